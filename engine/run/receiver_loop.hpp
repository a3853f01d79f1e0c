// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ReceiverLoop: the engine core of the receiving end. turn(now) opens what has arrived into blocks, hands whole blocks to
// the file thread, reports to the sender, and says how long it may rest.
//
//   port ─▶ decode ─▶ place ─▶ [AEAD opens at its place] ─▶ accept ─▶ whole blocks ─▶ file thread
//                                                              └─▶ gaps, credit, buffer states ─▶ feedback ─▶ port
//
// While data flows it does not wait for frames: it naps until the next report is due, as long as the receive ring surely
// holds what comes meanwhile. Waking for each burst costs more than the burst.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/telemetry.hpp"
#include "engine/port/port.hpp"
#include "engine/run/frame_gate.hpp"
#include "engine/run/links.hpp"
#include "engine/run/path_watch.hpp"
#include "engine/transfer/ping_schedule.hpp"
#include "engine/transfer/receiver.hpp"
#include "engine/transfer/report_timing.hpp"
#include "engine/wire/feedback.hpp"

namespace onehop::run {

struct ReceiverLoopConfig {
  transfer::ReceiverParams receiver;
  std::size_t frame_bytes = 0;           ///< UDP payload of a full frame, agreed by both ends
  std::uint64_t first_packet_number = 1; ///< of the feedback direction
  Nanos silent_limit = 30s;
  Nanos stall_limit = 120s;              ///< frames come, but no file data; blocks that are skipped count as data
};

template <Port P>
class ReceiverLoop {
 public:
  static constexpr std::size_t rx_batches_per_turn_max = 64;  // then report: at most 64 x 64 frames between reports
  static constexpr Nanos nap_min = 200us;   // shorter naps cost more than they save
  static constexpr Nanos nap_max = 2500us;  // longer: feedback at 4 per srtt would come late
  static constexpr Nanos idle_max = 5ms;    // longest rest, so that commands and the file thread need no wake-up
  static constexpr Nanos ping_period_min = 10ms, ping_period_max = 100ms;  // 1 per srtt, within these
  static constexpr std::int64_t ring_share = 4;  // a nap may fill at most a quarter of the receive ring
  // What gathers during a nap is opened at once; more than this no longer lies in the second-level cache.
  static constexpr Bytes nap_bytes_max = kib(512);

  ReceiverLoop(P& port, const GateKeys& keys, const ReceiverLoopConfig& config, EngineLinks links)
      : port_{port}, gate_{keys}, config_{config}, links_{links}, to_file_{links.to_file}, events_{links.events},
        receiver_{config.receiver}, info_{port.info()}, packet_number_{config.first_packet_number} {}

  [[nodiscard]] Rest turn(Instant now) noexcept {
    ++counters_.turns_total;
    take_commands(now);
    take_from_file();
    const std::uint64_t before = counters_.frames_received_total;
    const bool is_drained = receive(now);
    has_ring_run_dry_ = has_ring_run_dry_ || is_drained;
    give_blocks();
    send(now);
    emit_events(now);
    publish(now);
    return rest(now, counters_.frames_received_total - before, is_drained);
  }

  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }
  [[nodiscard]] const transfer::Receiver& receiver() const noexcept { return receiver_; }
  [[nodiscard]] const DataPathCounters& counters() const noexcept { return counters_; }
  void note_wait() noexcept { ++counters_.wakeups_total; }

 private:
  void take_commands(Instant now) noexcept {
    Command command;
    while (to_file_.is_clear() && links_.commands.pop(command)) {
      switch (command.kind) {
        case CommandKind::file_message: on_file_command(now, command.block); break;
        case CommandKind::prove_path:
          path_.start_proof(path_now(now));
          pings_.prove(config_.frame_bytes - wire::overhead_bytes);
          break;
        case CommandKind::start: is_started_ = true; started_at_ = now; break;
        case CommandKind::path_update:
          port_.update_path(command.path);
          path_.on_update(command.path);
          if (command.path.mtu_bytes > 0) follow_mtu(command.path.mtu_bytes);
          break;
        case CommandKind::checkpoint: to_file_.put({.kind = BlockKind::checkpoint}); break;
        case CommandKind::finish: is_finishing_ = true; break;
      }
    }
  }
  /// follow_mtu keeps reports below a lowered MTU; ranges that do not fit wait until those before them are repaired.
  void follow_mtu(std::size_t mtu_bytes) noexcept {
    const std::size_t headers = static_cast<std::size_t>(info_.wire_overhead.count) - 14 + wire::overhead_bytes;
    feedback_bytes_max_ = std::clamp(mtu_bytes - std::min(headers, mtu_bytes), wire::feedback_body_bytes_min, wire::feedback_body_bytes_max);
  }
  /// A block that is on disk already counts as arrived here, and the file thread puts its digest into the tree.
  void on_file_command(Instant now, const BlockRef& message) noexcept {
    if (message.kind == BlockKind::skipped) receiver_.mark_skipped(message.file, message.offset);
    moved_at_ = now;
    to_file_.put(message);
  }

  void take_from_file() noexcept {
    BlockRef block;
    while (events_.is_clear() && links_.from_file.pop(block)) {
      if (block.kind == BlockKind::block) receiver_.add_free(block);
      else events_.put({.kind = EventKind::file_message, .block = block});
    }
  }

  /// receive returns false when its limit ended it and more is waiting, or when the sender is to hear of it first.
  [[nodiscard]] bool receive(Instant now) noexcept {
    std::array<RxFrame, rx_batch_max> views;
    for (std::size_t batch = 0; batch < rx_batches_per_turn_max; ++batch) {
      const std::size_t count = port_.receive(views);
      if (count == 0) return true;  // fewer than asked for says nothing: a port may hand over one coalesced packet at a time
      for (std::size_t i = 0; i < count; ++i) on_frame(now, views[i].bytes(), views[i].is_ce);
      port_.release();
      give_blocks();
      if (receiver_.is_credit_due(now)) return false;
    }
    return false;
  }

  void on_frame(Instant now, Pieces frame, bool is_ce) noexcept {
    const auto header = wire::decode_header(frame.first);
    const std::size_t frame_bytes = frame.size();
    if (!header || frame_bytes > gate_.scratch().size()) {
      ++counters_.malformed_total;
      return;
    }
    if (header->type == wire::FrameType::data) return on_data(now, *header, frame, is_ce);
    if (!gate_.open(*header, frame, gate_.scratch().data(), counters_)) return;
    ++counters_.frames_received_total;
    const auto body = gate_.scratch().first(frame_bytes - wire::overhead_bytes);
    if (header->type == wire::FrameType::ping) {
      if (const auto ping = wire::decode_ping(body)) receiver_.on_ping(now, *header, *ping, frame_bytes, is_ce);
      else ++counters_.malformed_total;
    } else if (header->type == wire::FrameType::pong) {
      receiver_.on_other(now, *header, is_ce);
      if (const auto pong = wire::decode_pong(body)) on_pong(now, *pong);
      else ++counters_.malformed_total;
    } else {
      ++counters_.malformed_total;
    }
  }

  void on_data(Instant now, const wire::FrameHeader& header, Pieces frame, bool is_ce) noexcept {
    const std::size_t body_bytes = frame.size() - wire::overhead_bytes;
    const transfer::Placement placement = receiver_.place(header, body_bytes);
    using Verdict = transfer::Placement::Verdict;
    if (placement.verdict == Verdict::malformed || placement.verdict == Verdict::no_room) {
      ++counters_.malformed_total;
      return;
    }
    // A duplicate is opened elsewhere: its place holds verified bytes already.
    std::byte* const target = placement.verdict == Verdict::fresh ? placement.target.data() : gate_.scratch().data();
    if (!gate_.open(header, frame, target, counters_)) return;
    ++counters_.frames_received_total;
    receiver_.accept(now, header, body_bytes, placement, is_ce);
    if (first_data_at_ == Instant{}) {
      first_data_at_ = now;
      is_first_data_due_ = true;
    }
    last_data_at_ = now;
  }

  void on_pong(Instant now, const wire::Pong& pong) noexcept {
    pings_.on_pong(now, pong);
    receiver_.set_srtt(pings_.srtt());
  }

  void give_blocks() noexcept {
    BlockRef block;
    while (to_file_.is_clear() && receiver_.pop_full(block)) to_file_.put(block);
  }

  void send(Instant now) noexcept {
    rx_ring_ = port_.rx_ring(now);
    // Reports that the credit asked for are too close together: between two of them the ring may hold a burst all the time.
    const bool is_window_over = now - backlog_window_at_ >= transfer::report_min;
    if (is_window_over) was_backlogged_ = !has_ring_run_dry_;
    rx_ring_.is_backlogged = was_backlogged_ && !has_ring_run_dry_;
    QueueTelemetry told = to_payload(rx_ring_);
    // What stands is what the ring never fell below. The rest of a burst that is still being read would hold the sender down.
    if (!told.is_backlogged) told.occupancy = Bytes{0};
    receiver_.set_rx_ring(told);
    if (!path_.is_link_up()) return;
    const Nanos spacing = receiver_.feedback_interval();
    // Where reports are rare, on Wi-Fi each turn on the air costs a contention: our own PING waits for a PONG to go with.
    pings_.set_spacing(spacing * 3 / 2, now);
    Instant due_until = now;
    if (wire::Pong pong; receiver_.pop_pong(now, pong)) {
      send_pong(pong);
      due_until += spacing;
    }
    if (pings_.is_due(due_until)) {
      const auto body = gate_.scratch().first(pings_.send(now));
      wire::encode_ping({.id = pings_.id()}, body);
      send_frame(wire::FrameType::ping, body);
    }
    if (receiver_.tick(now)) {
      if (is_window_over) {
        has_ring_run_dry_ = false;
        backlog_window_at_ = now;
      }
      while (receiver_.next_feedback(now, feedback_)) {
        std::size_t covered = 0;
        const std::size_t length = wire::encode_feedback(feedback_, gate_.scratch().first(feedback_bytes_max_), covered);
        send_frame(wire::FrameType::feedback, gate_.scratch().first(length));
      }
    }
    (void)port_.flush(now);
  }
  void send_pong(const wire::Pong& pong) noexcept {
    std::array<std::byte, wire::pong_body_bytes> body{};
    wire::encode_pong(pong, body);
    send_frame(wire::FrameType::pong, body);
  }
  /// A frame that finds the port full is lost like one on the link; the next report says the same again.
  void send_frame(wire::FrameType type, std::span<const std::byte> body) noexcept {
    const std::span<std::byte> slot = port_.lend(body.size() + wire::overhead_bytes);
    if (slot.empty()) return;
    const std::uint64_t number = packet_number_++;
    wire::FrameHeader header{.type = type, .packet_number = number, .settled = number};
    port_.commit(gate_.seal(header, body, slot));
    ++counters_.frames_sent_total;
  }

  /// The ring is read in wire bytes; feedback speaks of file bytes.
  [[nodiscard]] QueueTelemetry to_payload(QueueTelemetry ring) const noexcept {
    const std::int64_t body = static_cast<std::int64_t>(config_.frame_bytes - wire::overhead_bytes);
    const std::int64_t frame = static_cast<std::int64_t>(config_.frame_bytes) + info_.wire_overhead.count;
    ring.occupancy = {ring.occupancy.count / frame * body};
    ring.drained_total = {ring.drained_total.count / frame * body};
    ring.capacity = {ring.capacity.count / frame * body};
    return ring;
  }

  void emit_events(Instant now) noexcept {
    if (is_first_data_due_ && events_.is_clear()) {
      events_.put({.kind = EventKind::first_data, .at = first_data_at_});
      is_first_data_due_ = false;
    }
    if (events_.is_clear())
      if (const auto event = path_.next_event(path_now(now))) events_.put(*event);
    if (events_.is_clear() && !has_failed_) emit_failure(now);
    if (events_.is_clear() && is_finishing_) {
      events_.put({.kind = EventKind::closed, .at = now});
      is_closed_ = true;
    }
  }
  [[nodiscard]] PathWatch::Now path_now(Instant now) const noexcept {
    return {.at = now, .is_proven = pings_.is_proven(), .proven_frame_bytes = pings_.proven_frame_bytes(), .pings_sent = pings_.id(),
            .frames_received = counters_.frames_received_total, .port_error = port_.last_error()};
  }
  void emit_failure(Instant now) noexcept {
    const int error = port_.last_error();
    // What waits for our own disk is no fault of the sender's.
    if (receiver_.totals().bytes_accepted != std::exchange(moved_bytes_, receiver_.totals().bytes_accepted) ||
        receiver_.app_buffer(now).occupancy > Bytes{0})
      moved_at_ = now;
    const bool is_waiting = is_started_ && !receiver_.is_complete();
    const bool is_silent = is_waiting && now - std::max(started_at_, receiver_.heard_at()) > config_.silent_limit;
    const bool is_stalled = is_waiting && now - std::max(started_at_, moved_at_) > config_.stall_limit;
    if (!is_silent && !is_stalled && is_passing_error(error)) return;
    has_failed_ = true;
    events_.put({.kind = is_silent ? EventKind::feedback_silent : is_stalled ? EventKind::stalled : EventKind::port_failed, .at = now,
                 .value = static_cast<std::uint64_t>(error)});
  }

  void publish(Instant now) noexcept {
    const transfer::ReceiverTotals& totals = receiver_.totals();
    PathReport report;
    report.at = now;
    report.tx_queue = port_.tx_queue(now);
    report.rx_ring = to_payload(rx_ring_);
    report.app_buffer = receiver_.app_buffer(now);
    report.srtt = pings_.srtt();
    report.packets_sent_total = counters_.frames_sent_total;
    report.packets_ce_total = totals.ce_packets;
    report.sent_total = Bytes{static_cast<std::int64_t>(totals.bytes_accepted)};
    counters_.duplicate_bytes_total = totals.duplicate_bytes;
    counters_.syscalls_total = port_.syscalls_total();
    counters_.key_updates_total = gate_.key_updates_total();
    report.counters = counters_;
    links_.report.store(report);
  }

  [[nodiscard]] Rest rest(Instant now, std::uint64_t received_frames, bool is_drained) noexcept {
    if (!path_.is_link_up()) return {now + idle_max, true};  // what is due cannot be sent
    const Instant report_at = std::min({receiver_.next_deadline(), pings_.due_at(), now + idle_max});
    if (!is_drained) return {.deadline = now, .is_rx_wanted = true};
    // The arrival rate of the last stretch tells how long the ring surely lasts.
    const Nanos span = now - turned_at_;
    turned_at_ = now;
    if (received_frames == 0 || span <= 0ns || now - last_data_at_ > idle_max) return {report_at, true};
    const Bytes wire = wire_frame_bytes() * static_cast<std::int64_t>(received_frames);
    const Bytes capacity = rx_ring_.capacity;
    const Bytes share = std::min(capacity / ring_share, nap_bytes_max);
    const Nanos ring_lasts = capacity.count == 0 ? nap_min : time_for(share, wire / span);
    const Instant nap_until = std::min(report_at, now + std::clamp(ring_lasts, nap_min, nap_max));
    return {.deadline = nap_until, .is_rx_wanted = false};
  }
  [[nodiscard]] Bytes wire_frame_bytes() const noexcept {
    return Bytes{static_cast<std::int64_t>(config_.frame_bytes)} + info_.wire_overhead;
  }

  P& port_;
  FrameGate gate_;
  const ReceiverLoopConfig config_;
  EngineLinks links_;
  Outlet<BlockRef> to_file_;
  Outlet<Event> events_;
  transfer::Receiver receiver_;
  transfer::PingSchedule pings_{ping_period_min, ping_period_max};
  const PortInfo info_;
  DataPathCounters counters_;
  wire::Feedback feedback_;
  QueueTelemetry rx_ring_;  // as read when this turn's report was built; wire bytes

  std::uint64_t packet_number_;
  std::size_t feedback_bytes_max_ = wire::feedback_body_bytes_max;
  PathWatch path_;
  Instant started_at_{}, moved_at_{};
  std::uint64_t moved_bytes_ = 0;  // accepted by moved_at_
  Instant first_data_at_{};
  Instant last_data_at_{};
  Instant turned_at_{};
  Instant backlog_window_at_{};
  bool has_ring_run_dry_ = false;  // in some turn of this window: what it drained then was the sender's rate, not ours
  bool was_backlogged_ = false;    // in the whole of the last window
  bool is_first_data_due_ = false, is_started_ = false, has_failed_ = false, is_finishing_ = false, is_closed_ = false;
};

}  // namespace onehop::run
