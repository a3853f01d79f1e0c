// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ReceiverLoop: the engine core of the receiving end. turn(now) opens what has arrived into blocks,
// hands whole blocks to the file thread, reports to the sender, and says how long it may sleep.
//
//   port ─▶ decode ─▶ place ─▶ [AEAD opens into the block] ─▶ accept ─▶ whole blocks ─▶ file thread
//                                                               └─▶ gaps, credit, buffers ─▶ port
//
// While data flows it does not wait for frames. It sleeps until the next report is due, as long as
// the receive ring surely lasts: to wake for each burst costs more than the burst.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "engine/protocol/receiver.hpp"
#include "engine/run/loop_base.hpp"
#include "engine/run/peer_follower.hpp"

namespace onehop::run {

struct ReceiverLoopConfig {
  protocol::ReceiverParams receiver;  ///< body_bytes_max: the loop fits it to the frame
  /// What this end takes at most, now, in wire bytes; 0, or null: no bound.
  const Latest<BytesPerSecond>* rate_offer = nullptr;
  std::size_t frame_bytes = 0;            ///< UDP payload of a full frame, agreed by both ends
  std::uint64_t first_packet_number = 1;  ///< of the feedback direction
  Nanos silent_limit = 30s;               ///< nothing from the peer
  /// Frames come, but no file data; skipped blocks and holes count as data.
  Nanos stall_limit = 120s;
  std::uint64_t challenge_seed = 0;  ///< random: what a peer at another address is asked
};

template <Port P>
class ReceiverLoop : public LoopBase<P> {
 public:
  // Implementation constants.
  /// Batches read in one turn, before a report: 64 x 64 frames.
  static constexpr std::size_t rx_batches_per_turn_max = 64;
  static constexpr Nanos nap_min = 200us;   // shorter naps cost more than they save
  static constexpr Nanos nap_max = 2500us;  // longer: feedback at 4 per srtt would come late
  // Where the sender wants reports to be rare. Longer: repair and file thread wait for a nap.
  static constexpr Nanos nap_max_rare = 5ms;
  static constexpr Nanos ping_period_min = 10ms, ping_period_max = 100ms;  // 1 per srtt
  static constexpr std::int64_t ring_share = 4;  // a nap may fill a quarter of the receive ring
  // What gathers in a nap is opened at once; more than this leaves the second-level cache.
  static constexpr Bytes nap_bytes_max = kib(512);

  ReceiverLoop(P& port, const SessionKeys& keys, const ReceiverLoopConfig& config,
               EngineLinks links)
      : LoopBase<P>{port, keys, links},
        config_{config},
        receiver_{fitted(config.receiver, config.frame_bytes)},
        packet_number_{config.first_packet_number},
        follower_{port, config.challenge_seed} {}

  /// turn does one round of work. Not called again once is_closed().
  [[nodiscard]] NextWakeup turn(Instant now) noexcept {
    ++counters_.turns_total;
    take_commands(now);
    take_from_file();
    const bool is_drained = receive(now);
    receive_elsewhere(now);
    watch_ring(now, is_drained);
    give_blocks();
    send(now);
    report_events(now);
    publish_report(now);
    return next_wakeup(now, is_drained);
  }

  [[nodiscard]] const protocol::Receiver& receiver() const noexcept { return receiver_; }

 private:
  using Base = LoopBase<P>;
  using Base::counters_, Base::feedback_, Base::first_data_at_, Base::idle_max, Base::info_,
      Base::is_link_up_, Base::links_, Base::phase_, Base::port_, Base::protection_;

  void take_commands(Instant now) noexcept {
    Command command;
    // They wait while the file thread takes nothing.
    while (links_.to_file.has_room() && links_.commands.pop(command)) {
      switch (command.kind) {
        case CommandKind::skip_block: skip_block(now, command.block); break;
        case CommandKind::prove_path:
          this->start_proof(now, pings_);
          pings_.prove(config_.frame_bytes - wire::overhead_bytes);
          break;
        case CommandKind::start:
          phase_ = Phase::flowing;
          owed_since_ = now;
          break;
        case CommandKind::add_files: add_files(now, *command.volume); break;
        case CommandKind::path_update:
          this->follow_path(command.path);
          if (command.path.mtu_bytes > 0) follow_mtu(command.path.mtu_bytes);
          break;
        case CommandKind::checkpoint: links_.to_file.put({.kind = BlockKind::checkpoint}); break;
        case CommandKind::finish: phase_ = Phase::finishing; break;
      }
    }
  }
  /// Between two volumes nothing is owed, and the limits begin anew with the next.
  void add_files(Instant now, protocol::FileVolume& volume) noexcept {
    if (receiver_.is_complete()) owed_since_ = now;
    receiver_.add_files(volume);
  }
  /// follow_mtu keeps reports below a lowered MTU; ranges that do not fit wait for the others.
  void follow_mtu(std::size_t mtu_bytes) noexcept {
    const std::size_t headers = this->ip_udp_bytes() + wire::overhead_bytes;
    feedback_bytes_max_ = std::clamp(mtu_bytes - std::min(headers, mtu_bytes),
                                     wire::feedback_body_bytes_min, wire::feedback_body_bytes_max);
  }
  /// A block that is on disk already, or in a hole, counts as arrived.
  void skip_block(Instant now, const BlockRef& block) noexcept {
    const std::uint64_t bytes = block.kind == BlockKind::hole ? block.length : 1;
    for (std::uint64_t at = 0; at < bytes; at += block_bytes)
      receiver_.mark_skipped(block.file, block.offset + at);
    moved_at_ = now;
    links_.to_file.put(block);
  }

  void take_from_file() noexcept {
    BlockRef block;
    while (links_.from_file.pop(block)) receiver_.add_free(block);
  }

  /// receive returns false when its limit ended it and more is waiting, or when the sender needs a
  /// report first. A batch that is not full may leave more: ports may hand over one packet at a
  /// time.
  [[nodiscard]] bool receive(Instant now) noexcept {
    std::array<RxFrame, rx_batch_max> views;
    for (std::size_t batch = 0; batch < rx_batches_per_turn_max; ++batch) {
      const std::size_t count = port_.receive(views);
      if (count == 0) return true;
      for (std::size_t i = 0; i < count; ++i) on_frame(now, views[i], std::nullopt);
      port_.release();
      give_blocks();
      if (receiver_.is_credit_due(now)) return false;
    }
    return false;
  }

  /// receive_elsewhere looks for the peer at other addresses, when it is missed where it was.
  void receive_elsewhere(Instant now) noexcept {
    const bool is_missed =
        this->is_proving() || (phase_ == Phase::flowing &&
                               now - receiver_.last_received_at() > PeerFollower<P>::missed_after);
    if (!is_missed) return;
    follower_.look(now, [this, now](const RxFrame& view, const std::optional<Endpoint>& source) {
      on_frame(now, view, source);
    });
  }
  void ask_elsewhere(Instant now) noexcept {
    follower_.ask(now, [this](std::uint64_t id, std::span<std::byte> frame) {
      std::array<std::byte, wire::ping_body_bytes_min> body{};
      wire::encode_ping({.id = id}, body);
      const std::uint64_t number = packet_number_++;
      wire::FrameHeader header{
          .type = wire::FrameType::ping, .packet_number = number, .settled = number};
      (void)protection_.seal(header, body, frame);
      ++counters_.frames_sent_total;
    });
  }

  /// `source`: it came from elsewhere than the peer.
  void on_frame(Instant now, const RxFrame& view, const std::optional<Endpoint>& source) noexcept {
    const Pieces frame = view.bytes();
    const bool is_ce = view.is_ce;
    const auto header = this->decode(frame);
    if (!header) return;
    if (header->type == wire::FrameType::data) {
      if (on_data(now, *header, frame, is_ce) && source) follower_.note_source(view, source);
      return;
    }
    const auto body = this->open_to_scratch(*header, frame);
    if (!body) return;
    follower_.note_source(view, source);
    if (header->type == wire::FrameType::ping) {
      if (const auto ping = this->checked(wire::decode_ping(*body)))
        receiver_.on_ping(now, *header, *ping, frame.size(), is_ce);
    } else if (header->type == wire::FrameType::pong) {
      receiver_.record(now, *header, is_ce);
      if (const auto pong = this->checked(wire::decode_pong(*body))) {
        if (follower_.on_pong(pong->id)) {
          pings_.restart();  // what was learnt of the path was of the other one
          receiver_.set_srtt(0ns);
        }
        pings_.on_pong(now, *pong);
        receiver_.set_srtt(pings_.srtt());
      }
    } else {
      ++counters_.malformed_total;
    }
  }

  /// on_data: false: it was dropped.
  bool on_data(Instant now, const wire::FrameHeader& header, Pieces frame, bool is_ce) noexcept {
    const std::size_t body_bytes = frame.size() - wire::overhead_bytes;
    const protocol::Placement placement = receiver_.place(header, body_bytes);
    using Verdict = protocol::Placement::Verdict;
    if (placement.verdict == Verdict::malformed) ++counters_.malformed_total;
    if (placement.verdict == Verdict::malformed || placement.verdict == Verdict::no_room)
      return false;
    // A duplicate is opened elsewhere: its place holds verified bytes already.
    const bool is_fresh = placement.verdict == Verdict::fresh;
    std::byte* const target = is_fresh ? placement.target.data() : protection_.scratch().data();
    if (!this->open(header, frame, target)) return false;
    receiver_.accept(now, header, body_bytes, placement, is_ce);
    if (first_data_at_ == Instant{}) first_data_at_ = now;
    last_data_at_ = now;
    return true;
  }

  /// watch_ring tells frames that stay in the receive ring from a burst that one turn reads:
  ///
  ///   windows of report_min at least:   │ never empty │ never empty │ was empty │
  ///   is_backlogged                                   └──── true ───┘
  ///
  /// A window that is over ends with the report that goes out then. Reports for the credit are too
  /// close together: between two the ring may hold one burst.
  void watch_ring(Instant now, bool is_drained) noexcept {
    was_empty_ = was_empty_ || is_drained;
    is_window_over_ = now - window_at_ >= protocol::report_min;
    if (is_window_over_) was_backlogged_ = !was_empty_;
  }

  void give_blocks() noexcept {
    BlockRef block;
    while (links_.to_file.has_room() && receiver_.pop_full(block)) links_.to_file.put(block);
  }

  /// send: a PONG that is owed, a PING that is due, a report that is due.
  void send(Instant now) noexcept {
    read_ring(now);
    if (!is_link_up_) return;
    const Nanos spacing = receiver_.feedback_interval();
    // Where reports are rare, each turn on the air costs a contention: our PING waits for a PONG.
    pings_.set_spacing(spacing * 3 / 2, now);
    ask_elsewhere(now);
    Instant due_until = now;
    if (wire::Pong pong; receiver_.pop_pong(now, pong)) {
      std::array<std::byte, wire::pong_body_bytes> body{};
      wire::encode_pong(pong, body);
      send_frame(wire::FrameType::pong, body);
      due_until += spacing;
    }
    if (pings_.is_due(due_until)) {
      const auto body = protection_.scratch().first(pings_.send(now));
      wire::encode_ping({.id = pings_.id()}, body);
      send_frame(wire::FrameType::ping, body);
    }
    if (receiver_.tick(now)) {
      if (config_.rate_offer != nullptr) receiver_.set_rate_offer(config_.rate_offer->load());
      if (is_window_over_) {
        was_empty_ = false;
        window_at_ = now;
      }
      while (receiver_.next_feedback(now, feedback_)) {
        const auto body = protection_.scratch().first(feedback_bytes_max_);
        std::size_t covered = 0;
        const std::size_t length = wire::encode_feedback(feedback_, body, covered);
        send_frame(wire::FrameType::feedback, body.first(length));
      }
    }
    (void)port_.flush(now);
  }
  void read_ring(Instant now) noexcept {
    rx_ring_ = port_.rx_ring(now);
    rx_ring_.is_backlogged = was_backlogged_ && !was_empty_;
    QueueTelemetry reported = to_payload(rx_ring_);
    // The rest of a burst that is still being read would hold the sender down.
    if (!reported.is_backlogged) reported.occupancy = Bytes{0};
    receiver_.set_rx_ring(reported);
  }
  /// A frame that finds the port full is lost as on the link; the next report says it again.
  void send_frame(wire::FrameType type, std::span<const std::byte> body) noexcept {
    const std::span<std::byte> slot = port_.lend(body.size() + wire::overhead_bytes);
    if (slot.empty()) return;
    const std::uint64_t number = packet_number_++;
    wire::FrameHeader header{.type = type, .packet_number = number, .settled = number};
    this->seal(header, body, slot);
  }

  /// The ring is read in wire bytes; feedback is in file bytes.
  [[nodiscard]] QueueTelemetry to_payload(QueueTelemetry ring) const noexcept {
    const std::int64_t body = static_cast<std::int64_t>(config_.frame_bytes - wire::overhead_bytes);
    const std::int64_t frame = wire_frame_bytes().count;
    ring.occupancy = {ring.occupancy.count / frame * body};
    ring.drained_total = {ring.drained_total.count / frame * body};
    ring.capacity = {ring.capacity.count / frame * body};
    return ring;
  }
  [[nodiscard]] Bytes wire_frame_bytes() const noexcept {
    return Bytes{static_cast<std::int64_t>(config_.frame_bytes)} + info_.wire_overhead;
  }

  void report_events(Instant now) noexcept {
    this->report_first_data();
    this->report_path(now, pings_);
    follower_.report(now, links_.events);
    if (this->can_fail()) report_failure(now);
    this->close_if_finishing(now);
  }
  void report_failure(Instant now) noexcept {
    // What waits for our own disk is no fault of the sender's.
    const std::uint64_t accepted = receiver_.totals().bytes_accepted;
    if (accepted != std::exchange(moved_bytes_, accepted) ||
        receiver_.app_buffer(now).occupancy > Bytes{0})
      moved_at_ = now;
    const auto is_over = [&](Instant since, Nanos limit) {
      return phase_ == Phase::flowing && !receiver_.is_complete() &&
             now - std::max(owed_since_, since) > limit;
    };
    if (is_over(receiver_.last_received_at(), config_.silent_limit))
      this->fail({.kind = EventKind::feedback_silent, .at = now});
    else if (is_over(moved_at_, config_.stall_limit))
      this->fail({.kind = EventKind::stalled, .at = now});
    else
      this->fail_if_port_failed(now);
  }

  void publish_report(Instant now) noexcept {
    const protocol::ReceiverTotals& totals = receiver_.totals();
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
    this->publish(report);
  }

  [[nodiscard]] NextWakeup next_wakeup(Instant now, bool is_drained) noexcept {
    if (!is_link_up_) return {now + idle_max, true};  // what is due cannot be sent
    const Instant report_at =
        std::min({receiver_.next_deadline(), pings_.due_at(), now + idle_max});
    if (!is_drained) return {.deadline = now, .is_rx_wanted = true};
    // How long the ring surely lasts follows from the arrival rate since the ring was last empty.
    const Nanos span = now - std::exchange(drained_at_, now);
    const std::uint64_t total = counters_.frames_received_total;
    const std::uint64_t received_frames = total - std::exchange(drained_frames_, total);
    if (received_frames == 0 || span <= 0ns || now - last_data_at_ > idle_max)
      return {report_at, true};
    const Bytes wire = wire_frame_bytes() * static_cast<std::int64_t>(received_frames);
    const Bytes share = std::min(rx_ring_.capacity / ring_share, nap_bytes_max);
    const Nanos ring_lasts = rx_ring_.capacity.count == 0 ? nap_min : time_for(share, wire / span);
    const Nanos longest = receiver_.feedback_interval() > nap_max_rare ? nap_max_rare : nap_max;
    const Instant nap_until = std::min(report_at, now + std::clamp(ring_lasts, nap_min, longest));
    return {.deadline = nap_until, .is_rx_wanted = false};
  }

  const ReceiverLoopConfig config_;
  protocol::Receiver receiver_;
  protocol::PingSchedule pings_{ping_period_min, ping_period_max};
  QueueTelemetry rx_ring_;  // as read when this turn's report was built; wire bytes
  // Of watch_ring(): its window, and whether the ring was never empty in the one before.
  Instant window_at_{};
  bool was_empty_ = false, was_backlogged_ = false, is_window_over_ = false;

  std::uint64_t packet_number_;
  PeerFollower<P> follower_;
  std::size_t feedback_bytes_max_ = wire::feedback_body_bytes_max;
  Instant owed_since_{}, moved_at_{}, last_data_at_{}, drained_at_{};
  std::uint64_t drained_frames_ = 0;  // received by drained_at_
  std::uint64_t moved_bytes_ = 0;     // accepted by moved_at_
};

}  // namespace onehop::run
