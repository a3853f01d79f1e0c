// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SenderLoop: the engine core of the sending end. turn(now) takes what has arrived, sends what the
// grant and the peer's credit allow, and says how long it may sleep.
//
//   commands ─▶ ┐                                           ┌─▶ events
//   blocks  ──▶ │ receive ▸ timers ▸ refill the lower queue │─▶ blocks given back
//   grant   ──▶ ┘        (rate and backlog_max)             └─▶ report
//
// It allocates nothing after construction, takes no lock, and waits only on its port.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "engine/protocol/pacer.hpp"
#include "engine/protocol/sender.hpp"
#include "engine/run/frame_size.hpp"
#include "engine/run/loop_base.hpp"
#include "engine/run/refill.hpp"

namespace onehop::run {

struct SenderLoopConfig {
  protocol::SenderParams sender;  ///< body_bytes_max: the loop fits it to the frame
  std::size_t frame_bytes = 0;    ///< UDP payload of a full frame, agreed by both ends
};

template <Port P>
class SenderLoop : public LoopBase<P> {
 public:
  // Implementation constants of a turn.
  /// Batches read before frames are sent: a flood must not starve the refill.
  static constexpr std::size_t rx_batches_per_turn_max = 8;
  /// Frames sent before feedback is looked at: 0.3 ms at 10 Gbit/s.
  static constexpr std::size_t tx_frames_per_turn_max = 256;
  /// Blocks held that are not sent yet: what such a turn sends, and as much again. More waits in
  /// the ring, where the file thread sees how far ahead it has read (source::ReadAhead).
  static constexpr std::size_t blocks_ahead_max = 4;

  SenderLoop(P& port, const SessionKeys& keys, const SenderLoopConfig& config, EngineLinks links)
      : LoopBase<P>{port, keys, links},
        sender_{fitted(config.sender, config.frame_bytes)},
        size_{{.single_bytes = config.frame_bytes,
               .ip_udp_bytes = this->ip_udp_bytes(),
               .large_bytes = large_frame_bytes(port)}} {
    if (size_.bytes() > config.frame_bytes) sender_.set_body_max(size_.body_bytes());
  }

  /// turn does one round of work. Not called again once is_closed().
  [[nodiscard]] NextWakeup turn(Instant now) noexcept {
    ++counters_.turns_total;
    take_commands(now);
    receive(now);
    // Before Command start the session does not take what blocks bring about (roots, failures).
    if (phase_ == Phase::flowing) take_blocks(now);
    const QueueTelemetry queue = port_.tx_queue(now);
    follow_loss(now, queue);
    // While the link is down nothing can be sent, and what is not answered then is not lost.
    if (is_link_up_) sender_.tick(now, queue.occupancy);
    const NextWakeup refill = transmit(now, queue);
    give_back();
    report_events(now);
    publish_report(now);
    return next_wakeup(now, refill);
  }

  [[nodiscard]] const protocol::Sender& sender() const noexcept { return sender_; }

 private:
  using Base = LoopBase<P>;
  using Base::counters_, Base::feedback_, Base::first_data_at_, Base::idle_max, Base::info_,
      Base::is_link_up_, Base::links_, Base::phase_, Base::port_, Base::protection_;

  /// Burst: what one turn has given to the port.
  struct Burst {
    Bytes wire{};
    std::size_t frames = 0;
    bool is_port_full = false;
  };

  static std::size_t large_frame_bytes(const P& port) noexcept {
    if constexpr (requires { port.large_frame_bytes(); })
      return port.large_frame_bytes();
    else
      return 0;
  }

  void take_commands(Instant now) noexcept {
    Command command;
    while (links_.commands.pop(command)) {
      switch (command.kind) {
        case CommandKind::prove_path:
          this->start_proof(now, sender_.pings());
          sender_.prove_path(size_.body_bytes());
          break;
        case CommandKind::start:
          sender_.start(now);
          phase_ = Phase::flowing;
          break;
        case CommandKind::path_update:
          this->follow_path(command.path);
          if (command.path.mtu_bytes == 0) break;
          size_.follow_mtu(command.path.mtu_bytes);
          sender_.set_body_max(size_.body_bytes());
          break;
        case CommandKind::skip_block:
        case CommandKind::add_files: break;  // a sender sends what it is handed
        case CommandKind::checkpoint: sender_.pause(); break;
        case CommandKind::finish: phase_ = Phase::finishing; break;
      }
    }
  }

  void follow_loss(Instant now, const QueueTelemetry& queue) noexcept {
    if (!size_.follow_loss(
            {now, sender_.totals().packets_sent, lost_on_path(queue), sender_.srtt()}))
      return;
    if constexpr (requires { port_.end_large_frames(); }) port_.end_large_frames();
    sender_.set_body_max(size_.body_bytes());
  }
  /// lost_on_path: what our own queue refused was never on it. A refusal is known at once, and
  /// counts as lost a round trip later: meanwhile the difference says too little.
  [[nodiscard]] std::uint64_t lost_on_path(const QueueTelemetry& queue) noexcept {
    const std::uint64_t lost = sender_.totals().packets_lost;
    return lost_on_path_ = std::max(lost_on_path_, lost - std::min(lost, queue.refused_total));
  }

  // --- in
  void receive(Instant now) noexcept {
    std::array<RxFrame, rx_batch_max> views;
    for (std::size_t batch = 0; batch < rx_batches_per_turn_max; ++batch) {
      const std::size_t count = port_.receive(views);
      if (count == 0) return;
      for (std::size_t i = 0; i < count; ++i) on_frame(now, views[i].bytes());
      port_.release();
    }
  }

  void on_frame(Instant now, Pieces frame) noexcept {
    const auto header = this->decode(frame);
    if (!header) return;
    if (header->type == wire::FrameType::data) {
      ++counters_.malformed_total;
      return;
    }
    const auto body = this->open_to_scratch(*header, frame);
    if (!body) return;
    if (header->type == wire::FrameType::feedback) {
      on_feedback(now, *body);
    } else if (header->type == wire::FrameType::pong) {
      if (const auto pong = this->checked(wire::decode_pong(*body))) sender_.on_pong(now, *pong);
    } else if (const auto ping = this->checked(wire::decode_ping(*body))) {
      pong_due_ = {.id = ping->id, .hold_ns = 0, .received_bytes = frame.size()};
      pinged_at_ = now;
    }
  }

  void on_feedback(Instant now, std::span<const std::byte> body) noexcept {
    if (!wire::decode_feedback(body, feedback_)) {
      ++counters_.malformed_total;
      return;
    }
    const wire::Violation violation = sender_.on_feedback(now, feedback_);
    if (violation_ == wire::Violation::none) violation_ = violation;
  }

  /// can_take_block: what waits in the ring will be taken by the next turn.
  [[nodiscard]] bool can_take_block() noexcept {
    return links_.events.has_room() && sender_.unsent_blocks() < blocks_ahead_max;
  }
  void take_blocks(Instant now) noexcept {
    BlockRef block;
    while (can_take_block() && links_.from_file.pop(block)) {
      if (block.kind == BlockKind::block) {
        sender_.add_block(block);
      } else if (block.kind == BlockKind::end_of_files) {
        sender_.end_of_files();
        has_end_ = true;
      } else {
        links_.events.put({.kind = EventKind::block_skipped, .at = now, .block = block});
      }
    }
  }

  // --- out
  /// transmit refills the lower queue and returns when to do so again (max(): a report will tell).
  [[nodiscard]] NextWakeup transmit(Instant now, const QueueTelemetry& before) noexcept {
    // 1. Take the newest grant. While the link is down nothing is sent.
    const RateGrant grant = links_.grant.load();
    pacer_.set(grant.rate, std::max(grant.backlog_max, wire_frame_bytes() * 2), now);
    if (!is_link_up_) return {Instant::max()};
    // 2. Say what the law wants reported, and answer the peer's PING.
    sender_.ask_feedback(now, grant.feedback_interval, grant.nack_request_id);
    send_pong(now);
    // 3. How much may leave: what the rate allows, and no more than the backlog limit leaves room
    //    for where the port sees the queue.
    Bytes room = pacer_.allowance(now);
    if (info_.has_back_pressure) room = std::min(room, grant.backlog_max - before.occupancy);
    // 4. Send it in batches, and let the port hand over the rest.
    LowerQueue queue{.backlog = before.occupancy,
                     .frame = wire_frame_bytes(),
                     .has_back_pressure = info_.has_back_pressure};
    const Burst burst = send_burst(now, grant, room, queue);
    const bool is_full = port_.flush(now) > 0 || burst.is_port_full;
    pacer_.spend(burst.wire);
    queue.backlog += burst.wire;
    // 5. When to come back: at once when only the limit of a turn ended the burst, with the next
    //    report when there is nothing to send, else when enough has drained.
    if (burst.frames == tx_frames_per_turn_max && !is_full && room > burst.wire) return {now};
    const bool has_run_dry = sender_.unsent_blocks() == 0 && can_take_block();
    if (!is_full && has_run_dry && !links_.from_file.is_empty()) return {now};
    if (!is_full && !sender_.has_data()) return {Instant::max()};
    return {refill_at(now, grant, pacer_, queue),
            sender_.is_credit_limited() || !is_well_filled(grant, queue)};
  }

  /// send_burst sends frames until `room` is used up, the port is full, nothing is left to send, or
  /// the limit of a turn is reached. The last batch is left for the caller to flush.
  [[nodiscard]] Burst send_burst(Instant now, const RateGrant& grant, Bytes room,
                                 LowerQueue queue) noexcept {
    const std::size_t batch_frames = std::max<std::size_t>(grant.batch_frames, 1);
    const Bytes batch_wire = queue.frame * static_cast<std::int64_t>(batch_frames);
    const Bytes backlog_before = queue.backlog;
    protocol::FramePlan plan;
    Burst burst;
    std::size_t unflushed = 0;
    while (burst.frames < tx_frames_per_turn_max) {
      const std::span<std::byte> slot = lend_slot(now, unflushed);
      if (slot.empty()) {
        burst.is_port_full = true;
        break;
      }
      queue.backlog = backlog_before + burst.wire;
      const Bytes left = room - burst.wire;
      const bool may_begin =
          unflushed > 0 || sender_.has_repairs() || is_batch_worth(grant, queue, left, batch_wire);
      if (!sender_.next(now, left > Bytes{0} && may_begin, plan)) break;
      prefetch_after(plan.body);
      burst.wire += send_frame(now, plan, slot);
      ++burst.frames;
      // A batch is one packet to the queues below us: on a slow link a large one delays all others.
      if (++unflushed == batch_frames) {
        unflushed = 0;
        if (port_.flush(now) > 0) break;
      }
    }
    return burst;
  }

  /// lend_slot: where the port has no room, what fills it may be a batch that waits to leave. (Of
  /// frames of 9000 bytes fewer fit the UDP port than make a batch.)
  [[nodiscard]] std::span<std::byte> lend_slot(Instant now, std::size_t& unflushed) noexcept {
    std::span<std::byte> slot = port_.lend(size_.bytes());
    if (!slot.empty() || unflushed == 0 || port_.flush(now) > 0) return slot;
    unflushed = 0;
    return port_.lend(size_.bytes());
  }

  /// prefetch_after asks for the next frame's bytes, read by another core, while this is sealed.
  static void prefetch_after(std::span<const std::byte> body) noexcept {
    for (std::size_t at = 0; at < body.size(); at += 64)
      __builtin_prefetch(body.data() + body.size() + at);
  }

  /// send_frame seals one planned frame into its slot and returns its wire bytes.
  Bytes send_frame(Instant now, protocol::FramePlan& plan, std::span<std::byte> slot) noexcept {
    std::span<const std::byte> body = plan.body;
    if (plan.header.type == wire::FrameType::ping) {
      const auto padded = protection_.scratch().first(plan.body_bytes);
      wire::encode_ping(plan.ping, padded);
      body = padded;
    } else if (first_data_at_ == Instant{}) {
      first_data_at_ = now;
    }
    const std::size_t length = this->seal(plan.header, body, slot);
    return Bytes{static_cast<std::int64_t>(length)} + info_.wire_overhead;
  }

  /// A peer that asks and never acknowledges gets no more answers once the numbers are used up.
  void send_pong(Instant now) noexcept {
    if (!pong_due_ || !sender_.can_number()) return;
    const std::span<std::byte> slot = port_.lend(wire::overhead_bytes + wire::pong_body_bytes);
    if (slot.empty()) return;
    // A full port or a link that is down may have held it back: that is no round trip.
    pong_due_->hold_ns = static_cast<std::uint64_t>((now - pinged_at_).count());
    std::array<std::byte, wire::pong_body_bytes> body{};
    wire::encode_pong(*pong_due_, body);
    pong_due_.reset();
    wire::FrameHeader header = sender_.take_pong_header(now);
    this->seal(header, body, slot);
  }

  [[nodiscard]] Bytes wire_frame_bytes() const noexcept {
    return Bytes{static_cast<std::int64_t>(size_.bytes())} + info_.wire_overhead;
  }

  void give_back() noexcept {
    BlockRef block;
    while (links_.to_file.has_room() && sender_.pop_freed(block)) links_.to_file.put(block);
  }

  // --- events and report
  void report_events(Instant now) noexcept {
    this->report_first_data();
    BlockRef block;
    while (links_.events.has_room() && sender_.pop_sent(block))
      links_.events.put({.kind = EventKind::block_sent, .at = now, .block = block});
    this->report_path(now, sender_.pings());
    if (sender_.is_all_arrived()) this->report_once({.kind = EventKind::all_arrived, .at = now});
    if (this->can_fail()) report_failure(now);
    this->close_if_finishing(now);
  }
  void report_failure(Instant now) noexcept {
    if (violation_ != wire::Violation::none)
      this->fail({.kind = EventKind::protocol_error,
                  .at = now,
                  .value = static_cast<std::uint64_t>(violation_)});
    else if (!sender_.is_all_arrived() && sender_.is_silent(now))
      this->fail({.kind = EventKind::feedback_silent, .at = now});
    else if (sender_.is_stalled(now))
      this->fail({.kind = EventKind::stalled, .at = now});
    else
      this->fail_if_port_failed(now);
  }

  void publish_report(Instant now) noexcept {
    const protocol::SenderTotals& totals = sender_.totals();
    const wire::Feedback& feedback = sender_.newest_feedback();
    PathReport report;
    report.at = now;
    report.tx_queue = port_.tx_queue(now);
    if (published_) {
      report.tx_step = report.tx_queue.drained_total - published_->drained_total;
      report.tx_step_backlog = published_->occupancy;
      report.tx_step_span = report.tx_queue.at - published_->at;
    }
    published_ = report.tx_queue;
    report.rx_ring = feedback.rx_ring;
    report.app_buffer = feedback.app_buffer;
    report.feedback_at = sender_.feedback_at();
    report.srtt = sender_.srtt();
    report.rtt = sender_.pings().rtt();
    report.packets_sent_total = totals.packets_sent;
    report.packets_reported_total = totals.packets_reported;
    report.packets_lost_total = lost_on_path(report.tx_queue);
    report.packets_ce_total = totals.ce_packets;
    if constexpr (requires { port_.link_status(); }) {
      report.packets_link_acked_total = port_.link_status().acked_total();
      report.packets_link_failed_total = port_.link_status().failed_total();
    }
    report.link_changes_total = Base::link_changes_total_;
    report.sent_total = report.tx_queue.drained_total + report.tx_queue.occupancy;
    report.offered = sender_.offered();
    report.payload_per_frame = Bytes{static_cast<std::int64_t>(sender_.frame_payload_bytes())};
    report.wire_per_frame =
        report.payload_per_frame + Bytes{wire::overhead_bytes} + info_.wire_overhead;
    report.rate_offer = {static_cast<std::int64_t>(feedback.rate_offer_bytes_per_s)};
    report.is_credit_limited = sender_.is_credit_limited();
    counters_.data_bytes_sent_total = totals.data_bytes_sent;
    counters_.retransmitted_bytes_total = totals.retransmitted_bytes;
    counters_.tail_probes_total = totals.probes;
    this->publish(report);
  }

  [[nodiscard]] NextWakeup next_wakeup(Instant now, const NextWakeup& refill) const noexcept {
    const bool is_waiting_for_blocks = phase_ == Phase::flowing && !has_end_ &&
                                       !sender_.has_data() && !sender_.is_credit_limited();
    const Instant idle = now + (is_waiting_for_blocks ? refill_nap_max / 2 : idle_max);
    // A timer that is due and could not be served (a full port) is tried again after a nap, not at
    // once. While the queue is well filled none is worth a wake-up: a PING waits behind that queue.
    const Instant timer = refill.is_rx_wanted && is_link_up_
                              ? std::max(sender_.next_deadline(), now + refill_nap_min)
                              : Instant::max();
    return {.deadline = std::min({idle, refill.deadline, timer}),
            .is_rx_wanted = refill.is_rx_wanted};
  }

  protocol::Sender sender_;
  protocol::Pacer pacer_;
  FrameSize size_;
  std::optional<QueueTelemetry> published_;
  std::optional<wire::Pong> pong_due_;
  Instant pinged_at_{};  // when the PING of pong_due_ came
  wire::Violation violation_ = wire::Violation::none;
  std::uint64_t lost_on_path_ = 0;
  bool has_end_ = false;  // the file thread has no more blocks
};

}  // namespace onehop::run
