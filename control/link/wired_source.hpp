// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// WiredSource: a cable's facts: the speed by ethtool, and if the driver keeps byte queue limits
// (BQL, in sysfs), the exact queue: the backlog of the qdisc, plus what the NIC was given and has
// not sent.
//
//   UDP port ─▶ qdisc (backlog, dequeued bytes) ─▶ NIC's ring (BQL inflight) ─▶ wire
//               └────────────── occupancy ──────────────┘   drained = dequeued - inflight
//
// That sum is for frames that pass the qdisc: a port that bypasses it (AF_XDP zero-copy) has exact
// completions of its own. Control thread only; no privilege.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/link/fact_source.hpp"
#include "control/link/poll_budget.hpp"
#include "control/link/qdisc_source.hpp"
#include "engine/base/fd.hpp"

namespace onehop::link {

/// ByteQueueLimits: `inflight` of all transmit queues of an interface.
class ByteQueueLimits {
 public:
  static constexpr std::size_t queues_max = 64;

  /// open finds the files. Error where the driver has no BQL, or where this sysfs shows another
  /// network namespace (a mounted sysfs shows the one it was mounted in). `root` is /sys but in
  /// tests. Syscalls: open, read.
  [[nodiscard]] static Result<ByteQueueLimits> open(const Interface& link,
                                                    const std::string& root = "/sys");
  /// inflight is nothing where a file cannot be read (any more). Syscalls: pread per queue (1 us).
  [[nodiscard]] std::optional<Bytes> inflight() const;

 private:
  std::vector<Fd> files_;
};

class WiredSource final : public FactSource {
 public:
  /// Implementation constants: 2 ms is the control loop's tick in the steady state; a speed changes
  /// with the carrier.
  static constexpr Nanos queue_period = 2ms, speed_period = 1s;

  /// open fails if there is nothing to read: a software device, whose speed is meaningless, or
  /// neither speed nor BQL. `qdisc` is null if our frames do not pass the qdisc. Syscalls: those of
  /// read_interface and ByteQueueLimits.
  [[nodiscard]] static Result<WiredSource> open(int ifindex, std::shared_ptr<QdiscSource> qdisc);

  [[nodiscard]] std::string_view name() const noexcept override { return "wired"; }
  void read(Instant now, law::LinkFacts& facts) override;
  [[nodiscard]] std::string remark() const override {
    return why_no_queue_.empty() ? std::string{} : "speed only: " + why_no_queue_;
  }

 private:
  explicit WiredSource(Interface&& link) : link_{std::move(link)} {}
  void read_queue(Instant now, law::LinkFacts& facts);

  Interface link_;
  std::shared_ptr<QdiscSource> qdisc_;
  std::optional<ByteQueueLimits> limits_;
  std::string why_no_queue_;  // empty where the exact queue is read
  Bytes drained_total_{};
  PollBudget queue_budget_{queue_period}, speed_budget_{speed_period};
};

/// exact_wired_queue joins the two readings. Drained never goes back: they are of two moments.
[[nodiscard]] law::QueueReading exact_wired_queue(const QueueTelemetry& qdisc, Bytes inflight,
                                                  Bytes drained_before) noexcept;

}  // namespace onehop::link
