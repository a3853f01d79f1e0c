// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SafeRange: the rate from the occupancies of the buffers on the way, so that the bottleneck
// neither runs dry nor overflows.
//
//   ──v_0──▶ [1: lower queue X_1] ──v_1──▶ [2: rx ring X_2] ──v_2──▶ [3: app buffer X_3] ──v_3──▶
//
//   (1)  dX_i/dt = v_{i-1} - v_i
//   (6)  v_0     = max(min_i {v_i + (X_i^target - X_i) / d_i}, R_min)      i that take part
//
//   i = 1     own_queue_term.hpp, with the backlog limit;
//             where no queue can be read: min(paced_growth.hpp, delay_bound.hpp)
//   i = 2, 3  receiver_terms.hpp
//
// Source: [SMUFF], NSDI 2024 (control/README.md has the symbol table). Assumes one hop. All X and v
// are payload bytes. The tx queue's wire bytes are converted when read, and the grant is converted
// back to wire bytes when given.
//
// Called by the rate loop on the control thread, by tests and by simulators.
#pragma once

#include "control/law/controller.hpp"
#include "control/law/estimate/frame_ratio.hpp"
#include "control/law/estimate/outage.hpp"
#include "control/law/safe_range_params.hpp"
#include "control/law/term/ack_frequency.hpp"
#include "control/law/term/delay_bound.hpp"
#include "control/law/term/own_queue_term.hpp"
#include "control/law/term/paced_growth.hpp"
#include "control/law/term/receiver_terms.hpp"

namespace onehop::law {

/// SafeRangeModel: the safe range as part of a law. Laws that fall back to it keep one: it shares
/// its estimators with them, and it stays warm while they set the rate themselves.
class SafeRangeModel {
 public:
  /// Role: whether the grant uses this model's rate. A standby does not learn from a queue that it
  /// does not control, and names the source as its bottleneck.
  enum class Role : std::uint8_t { active, standby };

  explicit SafeRangeModel(const SafeRangeParams& params) noexcept;
  /// read reads the queue that safe-range controls into the law's model.
  void read(const LinkSample& sample, LinkModel& link) noexcept {
    ratio_.read(sample.path);
    link.read(sample.path, view_inexact_queue(sample), params_.d_1,
              ratio_.wire_frame() * batch_frames_);
  }
  /// step writes all of `trace` but its columns and notices, and returns the grant without reports.
  RateGrant step(const LinkSample& sample, const LinkModel& link, Role role, LawTrace& trace);
  /// request_reports completes a grant. trace.bottleneck is what limited the rate in this step.
  void request_reports(const LinkSample& sample, LawTrace& trace, RateGrant& grant) noexcept;
  /// row gives the lower queue's row from wire bytes; its dead band is `under` to `over`.
  [[nodiscard]] BufferRow row(Bytes queue, BytesPerSecond drain, Bytes under, Bytes over,
                              BytesPerSecond rate) const noexcept {
    return {.occupancy = ratio_.to_payload(queue),
            .drain = ratio_.to_payload(drain),
            .target = ratio_.to_payload(under),
            .rate = ratio_.to_payload(rate),
            .takes_part = true,
            .under = ratio_.to_payload(under),
            .over = ratio_.to_payload(over)};
  }

  [[nodiscard]] const FrameRatio& ratio() const noexcept { return ratio_; }
  [[nodiscard]] bool is_outage() const noexcept { return is_outage_; }
  /// The interval between reports that was granted last.
  [[nodiscard]] Nanos feedback_interval() const noexcept { return feedback_interval_; }
  /// clamp_wire bounds a wire rate by R_min and R_max.
  [[nodiscard]] BytesPerSecond clamp_wire(BytesPerSecond rate) const noexcept;

 private:
  void set_paced_term(const LinkSample& sample, BufferRow& row) noexcept;

  SafeRangeParams params_;
  FrameRatio ratio_;
  OwnQueueTerm own_;
  ReceiverTerms receivers_;
  PacedGrowth paced_;
  DelayBound delay_bound_;
  AckFrequency acks_;
  OutageWatch outage_;
  bool is_outage_ = false;
  Nanos feedback_interval_{0};
  BytesPerSecond rate_{};  // of the last step, wire
  Bottleneck bottleneck_ = Bottleneck::none;
  Bytes paced_backlog_max_{};  // payload
  std::uint32_t batch_frames_;
};

class SafeRange final : public Controller {
 public:
  explicit SafeRange(const SafeRangeParams& params) noexcept : model_{params}, link_{params} {}
  RateGrant step(const LinkSample& sample) override;
  [[nodiscard]] std::string_view name() const override { return "safe-range"; }

 private:
  SafeRangeModel model_;
  LinkModel link_;
  Instant stepped_at_{};
};

}  // namespace onehop::law
