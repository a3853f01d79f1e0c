// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SenderLoop: the engine core of the sending end. turn(now) takes what has arrived, sends what the grant and the
// peer's credit allow, and says how long it may rest. A pinned thread, a test and a simulator call it alike.
//
//   commands ─▶ ┐                                          ┌─▶ events
//   blocks  ──▶ │ receive ▸ timers ▸ refill the lower queue │─▶ blocks given back
//   grant   ──▶ ┘        (rate and backlog_max)             └─▶ report
//
// It allocates nothing after construction, takes no lock, writes no log, and waits only on its port.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "engine/base/telemetry.hpp"
#include "engine/port/port.hpp"
#include "engine/run/frame_gate.hpp"
#include "engine/run/frame_size.hpp"
#include "engine/run/links.hpp"
#include "engine/run/path_watch.hpp"
#include "engine/run/refill.hpp"
#include "engine/transfer/pacer.hpp"
#include "engine/transfer/sender.hpp"
#include "engine/wire/feedback.hpp"

namespace onehop::run {

struct SenderLoopConfig {
  transfer::SenderParams sender;
  std::size_t frame_bytes = 0;         ///< UDP payload of a full frame, agreed by both ends
  std::size_t fragmented_bytes = 0;    ///< likewise of a datagram in IP fragments; 0: none
};

template <Port P>
class SenderLoop {
 public:
  // Implementation constants of a turn.
  static constexpr std::size_t rx_batches_per_turn_max = 8;    // then send: a flood must not starve the refill
  static constexpr std::size_t tx_frames_per_turn_max = 256;   // then look at feedback: 0.3 ms at 10 Gbit/s
  static constexpr Nanos idle_max = 5ms;   // longest rest, so that commands need no wake-up

  SenderLoop(P& port, const GateKeys& keys, const SenderLoopConfig& config, EngineLinks links)
      : port_{port}, gate_{keys}, config_{config}, links_{links}, to_file_{links.to_file}, events_{links.events},
        sender_{config.sender}, info_{port.info()},
        size_{{config.frame_bytes, config.fragmented_bytes, static_cast<std::size_t>(info_.wire_overhead.count) - 14}} {
    if (size_.has_fragments()) sender_.set_body_max(size_.body_bytes());
  }

  /// turn does one round of work. Not called again once is_closed().
  [[nodiscard]] Rest turn(Instant now) noexcept {
    ++counters_.turns_total;
    take_commands(now);
    receive(now);
    if (is_started_) take_blocks();  // before that nobody listens to what they bring about (roots, failures)
    const QueueTelemetry before = port_.tx_queue(now);
    judge_fragments(now, before);
    // While the link is down nothing can be sent, and what is not answered then is not lost.
    if (path_.is_link_up()) sender_.tick(now, before.occupancy);
    const Rest until_refill = transmit(now, before);
    give_back();
    emit_events(now);
    publish(now);
    return rest(now, until_refill);
  }

  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }
  [[nodiscard]] const transfer::Sender& sender() const noexcept { return sender_; }
  [[nodiscard]] const DataPathCounters& counters() const noexcept { return counters_; }
  /// note_wait is told of each return from the port's wait.
  void note_wait() noexcept { ++counters_.wakeups_total; }

 private:
  void take_commands(Instant now) noexcept {
    Command command;
    while (to_file_.is_clear() && links_.commands.pop(command)) {
      if (command.kind == CommandKind::file_message) to_file_.put(command.block);
      else apply(now, command);
    }
  }

  void apply(Instant now, const Command& command) noexcept {
    switch (command.kind) {
      case CommandKind::prove_path:
        path_.start_proof(path_now(now));
        sender_.prove_path(size_.body_bytes());
        break;
      case CommandKind::start:
        sender_.stop_proving();
        sender_.start(now);
        is_started_ = true;
        break;
      case CommandKind::path_update:
        follow_path(command.path);
        break;
      case CommandKind::checkpoint:
        sender_.pause();
        break;
      case CommandKind::finish:
        is_finishing_ = true;
        break;
      case CommandKind::file_message:
        break;  // was handed on
    }
  }

  void follow_path(const PathUpdate& path) noexcept {
    port_.update_path(path);
    info_ = port_.info();  // on another interface it may see less of the queue
    path_.on_update(path);
    if (path.mtu_bytes == 0) return;
    size_.follow_mtu(path.mtu_bytes);
    sender_.set_body_max(size_.body_bytes());
  }
  void judge_fragments(Instant now, const QueueTelemetry& queue) noexcept {
    if (!size_.judge(now, sender_.totals().packets_sent, lost_on_path(queue), sender_.srtt())) return;
    if constexpr (requires { port_.end_fragments(); }) port_.end_fragments();
    sender_.set_body_max(size_.body_bytes());
  }
  /// lost_on_path: what our own queue refused was never on it.
  [[nodiscard]] std::uint64_t lost_on_path(const QueueTelemetry& queue) const noexcept {
    const std::uint64_t lost = sender_.totals().packets_lost;
    return lost - std::min(lost, queue.refused_total);
  }

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
    const auto header = wire::decode_header(frame.first);
    const std::size_t frame_bytes = frame.size();
    if (!header || header->type == wire::FrameType::data || frame_bytes > gate_.scratch().size()) {
      ++counters_.malformed_total;
      return;
    }
    if (!gate_.open(*header, frame, gate_.scratch().data(), counters_)) return;
    ++counters_.frames_received_total;
    const auto body = gate_.scratch().first(frame_bytes - wire::overhead_bytes);
    switch (header->type) {
      case wire::FrameType::feedback: on_feedback(now, body); break;
      case wire::FrameType::pong:
        if (const auto pong = wire::decode_pong(body)) sender_.on_pong(now, *pong);
        else ++counters_.malformed_total;
        break;
      case wire::FrameType::ping:
        if (const auto ping = wire::decode_ping(body)) pong_due_ = {ping->id, 0, frame_bytes}, has_pong_due_ = true;
        else ++counters_.malformed_total;
        break;
      case wire::FrameType::data: break;
    }
  }

  void on_feedback(Instant now, std::span<const std::byte> body) noexcept {
    if (!wire::decode_feedback(body, feedback_)) {
      ++counters_.malformed_total;
      return;
    }
    const wire::Violation violation = sender_.on_feedback(now, feedback_);
    if (violation != wire::Violation::none && violation_ == wire::Violation::none) violation_ = violation;
  }

  void take_blocks() noexcept {
    BlockRef block;
    while (events_.is_clear() && links_.from_file.pop(block)) {
      if (block.kind == BlockKind::block) {
        sender_.add_block(block);
      } else if (block.kind == BlockKind::end_of_files) {
        sender_.end_of_files();
        has_end_ = true;
      } else {
        events_.put({.kind = EventKind::file_message, .block = block});
      }
    }
  }

  /// transmit refills the lower queue and returns when it wants to do so again (Instant::max(): feedback will tell).
  [[nodiscard]] Rest transmit(Instant now, const QueueTelemetry& before) noexcept {
    const RateGrant grant = links_.grant.load();
    pacer_.set(grant.rate, std::max(grant.backlog_max, wire_frame_bytes() * 2), now);
    if (!path_.is_link_up()) return {Instant::max()};
    sender_.ask_feedback(now, grant.feedback_interval, grant.nack_request_id);
    send_pong(now);
    Bytes room = pacer_.allowance(now);
    if (info_.has_back_pressure) room = std::min(room, grant.backlog_max - before.occupancy);

    transfer::FramePlan plan;
    Bytes sent{};
    std::size_t frames = 0, unflushed = 0;
    const std::size_t batch_frames = std::max<std::size_t>(grant.batch_frames, 1);
    const Bytes batch_wire = wire_frame_bytes() * static_cast<std::int64_t>(batch_frames);
    const auto below = [&] {
      return Below{.standing = before.occupancy + sent, .frame = wire_frame_bytes(), .has_back_pressure = info_.has_back_pressure};
    };
    bool is_port_full = false;
    while (frames < tx_frames_per_turn_max) {
      std::span<std::byte> slot = port_.lend(size_.bytes());
      // What has no room may be a batch that waits to leave: of frames of 9000 bytes fewer fit the UDP port than make a batch.
      if (slot.empty() && unflushed > 0 && port_.flush(now) == 0) {
        unflushed = 0;
        slot = port_.lend(size_.bytes());
      }
      if (slot.empty()) { is_port_full = true; break; }
      const bool may_begin = unflushed > 0 || sender_.has_repairs() || is_batch_worth(grant, below(), room - sent, batch_wire);
      const bool has_room = room > sent && may_begin;
      if (!sender_.next(now, has_room, plan)) break;
      prefetch_after(plan.body);
      sent += emit(now, plan, slot);
      ++frames;
      // A batch is one packet to the queues below us: on a slow link a large one is a delay that nobody can cut in on.
      if (++unflushed == batch_frames) {
        unflushed = 0;
        if (port_.flush(now) > 0) break;
      }
    }
    const std::size_t held_frames = port_.flush(now);
    pacer_.spend(sent);
    const bool is_full = is_port_full || held_frames > 0;
    if (frames == tx_frames_per_turn_max && !is_full && room > sent) return {now};
    if (!is_full && !sender_.has_data()) return {Instant::max()};
    return {refill_at(now, grant, pacer_, below()), sender_.is_credit_limited() || !is_well_filled(grant, below())};
  }

  /// prefetch_after asks for the bytes behind `body`, the next frame's, while this one is sealed: another core has just read them
  /// from the file.
  static void prefetch_after(std::span<const std::byte> body) noexcept {
    for (std::size_t at = 0; at < body.size(); at += 64) __builtin_prefetch(body.data() + body.size() + at);
  }

  /// emit seals one planned frame into its slot and commits it; it returns the wire bytes.
  Bytes emit(Instant now, transfer::FramePlan& plan, std::span<std::byte> slot) noexcept {
    std::span<const std::byte> body = plan.body;
    if (plan.header.type == wire::FrameType::ping) {
      const auto padded = gate_.scratch().first(plan.body_bytes);
      wire::encode_ping(plan.ping, padded);
      body = padded;
    } else if (!has_first_data_) {
      has_first_data_ = true;
      is_first_data_due_ = true;
      first_data_at_ = now;
    }
    const std::size_t length = gate_.seal(plan.header, body, slot);
    port_.commit(length);
    ++counters_.frames_sent_total;
    return Bytes{static_cast<std::int64_t>(length)} + info_.wire_overhead;
  }

  void send_pong(Instant now) noexcept {
    if (!has_pong_due_ || !sender_.can_number()) return;  // a peer that asks and never acknowledges gets no more
    const std::span<std::byte> slot = port_.lend(wire::overhead_bytes + wire::pong_body_bytes);
    if (slot.empty()) return;
    has_pong_due_ = false;
    std::array<std::byte, wire::pong_body_bytes> body{};
    wire::encode_pong(pong_due_, body);
    const std::uint64_t number = sender_.take_packet_number(now);
    wire::FrameHeader header{.type = wire::FrameType::pong, .packet_number = number, .settled = sender_.settled()};
    port_.commit(gate_.seal(header, body, slot));
    ++counters_.frames_sent_total;
  }

  [[nodiscard]] Bytes wire_frame_bytes() const noexcept {
    return Bytes{static_cast<std::int64_t>(size_.bytes())} + info_.wire_overhead;
  }

  void give_back() noexcept {
    BlockRef block;
    while (to_file_.is_clear() && sender_.pop_freed(block)) to_file_.put(block);
  }

  void emit_events(Instant now) noexcept {
    if (is_first_data_due_ && events_.is_clear()) {
      events_.put({.kind = EventKind::first_data, .at = first_data_at_});
      is_first_data_due_ = false;
    }
    BlockRef block;
    while (events_.is_clear() && sender_.pop_sent(block))
      events_.put({.kind = EventKind::block_sent, .at = now, .block = block});
    if (events_.is_clear())
      if (const auto event = path_.next_event(path_now(now))) events_.put(*event);
    if (events_.is_clear() && !has_all_arrived_ && sender_.is_all_arrived()) {
      has_all_arrived_ = true;
      events_.put({.kind = EventKind::all_arrived, .at = now});
    }
    if (events_.is_clear() && !has_failed_) emit_failure(now);
    if (events_.is_clear() && is_finishing_) {
      events_.put({.kind = EventKind::closed, .at = now});
      is_closed_ = true;
    }
  }
  [[nodiscard]] PathWatch::Now path_now(Instant now) const noexcept {
    return {.at = now, .is_proven = sender_.is_path_proven(), .proven_frame_bytes = sender_.proven_frame_bytes(),
            .pings_sent = sender_.pings_sent(), .frames_received = counters_.frames_received_total, .port_error = port_.last_error()};
  }
  void emit_failure(Instant now) noexcept {
    const int error = port_.last_error();
    Event event{.at = now};
    if (violation_ != wire::Violation::none)
      event.kind = EventKind::protocol_error, event.value = static_cast<std::uint64_t>(violation_);
    else if (is_started_ && !sender_.is_all_arrived() && sender_.is_silent(now))
      event.kind = EventKind::feedback_silent;
    else if (sender_.is_stalled(now))
      event.kind = EventKind::stalled;
    else if (!is_passing_error(error))
      event.kind = EventKind::port_failed, event.value = static_cast<std::uint64_t>(error);
    else
      return;
    has_failed_ = true;
    events_.put(event);
  }

  void publish(Instant now) noexcept {
    const transfer::SenderTotals& totals = sender_.totals();
    const wire::Feedback& feedback = sender_.newest_feedback();
    PathReport report;
    report.at = now;
    report.tx_queue = port_.tx_queue(now);
    if (published_) {
      report.tx_step = report.tx_queue.drained_total - published_->drained_total;
      report.tx_step_stood = published_->occupancy;
      report.tx_step_span = report.tx_queue.at - published_->at;
    }
    published_ = report.tx_queue;
    report.rx_ring = peer_buffer(feedback.rx_ring, feedback);
    report.app_buffer = peer_buffer(feedback.app_buffer, feedback);
    report.rx_ring.refused_total = feedback.kernel_drops_total;
    report.feedback_at = sender_.feedback_at();
    report.feedback_total = totals.feedback_frames;
    report.srtt = sender_.srtt();
    report.rtt = sender_.rtt();
    report.packets_sent_total = totals.packets_sent;
    report.packets_told_total = totals.packets_told;
    report.packets_lost_total = lost_on_path(report.tx_queue);
    report.packets_ce_total = totals.ce_packets;
    if constexpr (requires { port_.link_status(); }) {
      report.packets_link_acked_total = port_.link_status().acked_total();
      report.packets_link_failed_total = port_.link_status().failed_total();
    }
    report.sent_total = report.tx_queue.drained_total + report.tx_queue.occupancy;
    report.offered = sender_.offered();
    report.payload_per_frame = Bytes{static_cast<std::int64_t>(sender_.frame_payload_bytes())};
    report.wire_per_frame = report.payload_per_frame + Bytes{wire::overhead_bytes} + info_.wire_overhead;
    report.rate_offer = {static_cast<std::int64_t>(feedback.rate_offer_bytes_per_s)};
    report.is_credit_limited = sender_.is_credit_limited();
    counters_.data_bytes_sent_total = totals.data_bytes_sent;
    counters_.retransmitted_bytes_total = totals.retransmitted_bytes;
    counters_.tail_probes_total = totals.probes;
    counters_.syscalls_total = port_.syscalls_total();
    counters_.key_updates_total = gate_.key_updates_total();
    report.counters = counters_;
    links_.report.store(report);
  }

  [[nodiscard]] QueueTelemetry peer_buffer(const wire::BufferState& state, const wire::Feedback& feedback) const noexcept {
    if (sender_.feedback_at() == Instant{}) return {};
    return {.at = Instant{Nanos{static_cast<Nanos::rep>(feedback.receiver_time_ns)}},
            .occupancy = {static_cast<std::int64_t>(state.occupancy_bytes)},
            .drained_total = {static_cast<std::int64_t>(state.drained_bytes_total)},
            .capacity = {static_cast<std::int64_t>(state.capacity_bytes)},
            .scope = QueueScope::own_ring,
            .is_backlogged = state.is_backlogged};
  }

  [[nodiscard]] Rest rest(Instant now, const Rest& until_refill) const noexcept {
    const bool is_waiting_for_blocks = is_started_ && !has_end_ && !sender_.has_data() && !sender_.is_credit_limited();
    const Instant idle = now + (is_waiting_for_blocks ? refill_nap_max / 2 : idle_max);
    // A timer that is due and could not be served (a full port) is tried again after a nap, not at once. While the queue is well
    // filled none is worth a wake-up of its own: a PING takes its place behind that queue.
    const Instant timer = until_refill.is_rx_wanted && path_.is_link_up() ? std::max(sender_.next_deadline(), now + refill_nap_min) : Instant::max();
    return {.deadline = std::min({idle, until_refill.deadline, timer}), .is_rx_wanted = until_refill.is_rx_wanted};
  }

  P& port_;
  FrameGate gate_;
  const SenderLoopConfig config_;
  EngineLinks links_;
  Outlet<BlockRef> to_file_;
  Outlet<Event> events_;
  transfer::Sender sender_;
  transfer::Pacer pacer_;
  PortInfo info_;
  FrameSize size_;
  DataPathCounters counters_;
  wire::Feedback feedback_;

  std::optional<QueueTelemetry> published_;
  PathWatch path_;
  Instant first_data_at_{};
  wire::Pong pong_due_{};
  wire::Violation violation_ = wire::Violation::none;
  bool has_pong_due_ = false, has_first_data_ = false, is_first_data_due_ = false, has_end_ = false;
  bool is_started_ = false, has_all_arrived_ = false, has_failed_ = false, is_finishing_ = false, is_closed_ = false;
};

}  // namespace onehop::run
