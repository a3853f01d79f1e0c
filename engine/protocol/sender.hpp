// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sender: the sending half of the protocol as a state machine of (now, frames). No socket, no
// clock, no thread, no allocation after construction, no AEAD: the loop seals what next() plans.
//
//   add_block() ─▶ blocks, in order ─▶ next() ─▶ in flight ─▶ on_feedback() ─▶ pop_freed()
//                                       ▲                       │ listed as missing
//                                       └── ranges to resend ◀──┘ (first, under a new number)
//
// Eager repair resends what a report lists. Lazy repair waits for a window's list
// (repair_rounds.hpp). When data does not arrive although the peer answers, the Sender searches for
// the frame size that still passes (size_search.hpp).
//
// Called by the engine core only. Blocks stay lent until they arrive: repairs never wait for the
// disk.
#pragma once

#include <boost/circular_buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/block.hpp"
#include "engine/base/units.hpp"
#include "engine/protocol/in_flight.hpp"
#include "engine/protocol/lent_blocks.hpp"
#include "engine/protocol/ping_schedule.hpp"
#include "engine/protocol/repair_rounds.hpp"
#include "engine/protocol/size_search.hpp"
#include "engine/protocol/skip_schedule.hpp"
#include "engine/protocol/tail_probe.hpp"
#include "engine/wire/feedback.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::protocol {

struct SenderParams {
  /// UDP payload less wire::overhead_bytes; set_body_max() lowers or raises it.
  std::size_t body_bytes_max = 0;
  std::size_t block_slots = 0;            ///< blocks that can be lent at once
  std::size_t in_flight_max = 1U << 16;   ///< packets not yet settled; power of two, 64 at least
  std::uint64_t first_packet_number = 1;  ///< tests start near a wrap
  std::uint64_t skip_seed = 1;  ///< for the numbers skipped on purpose (optimistic ACK defence, N4)
  Nanos ping_period_min = 10ms, ping_period_max = 100ms;  ///< 1 per srtt, within these
  Nanos silent_limit = 30s;     ///< nothing from the peer, or data that never arrives
  Nanos stall_limit = 120s;     ///< without credit or progress at the peer's disk
  bool is_repair_lazy = false;  ///< as agreed with the peer
};

/// FramePlan: one frame to seal. `body` points into the block (data). For a ping it is empty:
/// `body_bytes` is then the size of a body of `ping` plus zero padding.
struct FramePlan {
  wire::FrameHeader header;
  std::span<const std::byte> body;
  std::size_t body_bytes = 0;
  wire::Ping ping;  ///< of a ping only
  bool is_retransmission = false;
};

/// SenderTotals only grow. packets_reported: sent, and some report says whether they arrived.
struct SenderTotals {
  std::uint64_t packets_sent = 0, packets_reported = 0, packets_lost = 0, packets_skipped = 0;
  std::uint64_t data_bytes_sent = 0, retransmitted_bytes = 0, new_bytes_started = 0;
  std::uint64_t ce_packets = 0, feedback_frames = 0, probes = 0;
};

class Sender {
 public:
  explicit Sender(const SenderParams& params);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // --- blocks, from and to the file thread
  /// can_take_block is false while block_slots blocks are lent.
  [[nodiscard]] bool can_take_block() const noexcept { return blocks_.can_take(); }
  void add_block(const BlockRef& block) noexcept { blocks_.add(block); }
  /// end_of_files: no add_block() follows.
  void end_of_files() noexcept { has_ended_ = true; }
  /// pop_freed gives back a block whose every byte has arrived.
  [[nodiscard]] bool pop_freed(BlockRef& block) noexcept { return blocks_.pop_freed(block); }
  /// pop_sent gives a block whose last byte was sent for the first time: its digest is due.
  [[nodiscard]] bool pop_sent(BlockRef& block) noexcept { return blocks_.pop_sent(block); }

  // --- frames out
  /// prove_path asks for PINGs of `body_bytes` every 50 ms until pings().is_proven().
  void prove_path(std::size_t body_bytes) noexcept { pings_.prove(body_bytes); }
  /// start ends the proof and lets data flow.
  void start(Instant now) noexcept;
  /// pause stops new data and repairs (checkpoint on interrupt); PING goes on.
  void pause() noexcept { mode_ = Mode::paused; }
  /// next plans one frame, and counts it as sent: the caller must seal and commit it. Order: PING
  /// due, ranges to resend, new data. False: nothing to send. Without `is_data_allowed`: PING only.
  [[nodiscard]] bool next(Instant now, bool is_data_allowed, FramePlan& plan) noexcept;
  /// has_data says whether next() would send file data, credit included.
  [[nodiscard]] bool has_data() const noexcept {
    return may_send_data() && (can_repair() || can_start_new());
  }
  /// has_repairs: something known to be lost has not been sent again yet.
  [[nodiscard]] bool has_repairs() const noexcept { return !resend_.empty(); }
  /// unsent_blocks: lent blocks of which not every byte was sent once.
  [[nodiscard]] std::size_t unsent_blocks() const noexcept { return blocks_.unsent_count(); }
  /// is_credit_limited: a block waits, and only the peer's credit keeps it back.
  [[nodiscard]] bool is_credit_limited() const noexcept {
    return mode_ != Mode::idle && resend_.empty() && blocks_.has_unsent() && !has_credit();
  }
  /// offered: file bytes in lent blocks not yet sent once, plus those to resend.
  [[nodiscard]] Bytes offered() const noexcept {
    return {static_cast<std::int64_t>(blocks_.bytes_unsent() + bytes_to_resend_)};
  }

  /// take_pong_header counts a PONG, whose body the caller builds: it shares the numbers and has
  /// nothing to resend. The header may carry a request, so it must be sent. Needs can_number().
  [[nodiscard]] wire::FrameHeader take_pong_header(Instant now) noexcept;
  /// can_number: a number is free; false while in_flight_max are not settled.
  [[nodiscard]] bool can_number() const noexcept { return has_numbers(0); }

  // --- frames in
  /// on_feedback checks and applies one frame. A violation ends the session.
  [[nodiscard]] wire::Violation on_feedback(Instant now, const wire::Feedback& feedback) noexcept;
  void on_pong(Instant now, const wire::Pong& pong) noexcept;

  // --- time
  /// tick runs timers (tail probe with back-off, PING). `own_queue` is what our lower queue still
  /// holds: the newest packets may be in it, so no probe is sent meanwhile. Call before next().
  void tick(Instant now, Bytes own_queue) noexcept;
  /// next_deadline: when tick() has something to do at the latest; Instant::max() for never.
  [[nodiscard]] Instant next_deadline() const noexcept;
  /// ask_feedback passes on what the grant wants. Reports may be `interval` apart (0: the peer's
  /// default); each PING says so. A new `nack_request_id` asks for what is missing.
  void ask_feedback(Instant now, Nanos interval, std::uint64_t nack_request_id) noexcept;
  /// is_silent: nothing from the peer for silent_limit.
  [[nodiscard]] bool is_silent(Instant now) const noexcept;
  /// is_stalled: the peer answers, yet the transfer has not moved for its limit: while data is
  /// under way silent_limit, else stall_limit.
  [[nodiscard]] bool is_stalled(Instant now) const noexcept {
    return mode_ == Mode::running &&
           now - moved_at_ > (is_under_way_ ? params_.silent_limit : params_.stall_limit);
  }

  /// set_body_max follows the MTU. Ranges in flight at the old size are resent at the new one if
  /// they are lost. Where the path takes less (size_search.hpp), frames are smaller by themselves.
  void set_body_max(std::size_t body_bytes_max) noexcept;

  /// is_all_arrived: end_of_files() was called and every byte has arrived.
  [[nodiscard]] bool is_all_arrived() const noexcept { return has_ended_ && blocks_.is_empty(); }
  [[nodiscard]] Nanos srtt() const noexcept { return pings_.srtt(); }  ///< 0: no sample
  [[nodiscard]] const PingSchedule& pings() const noexcept { return pings_; }
  [[nodiscard]] const SenderTotals& totals() const noexcept { return totals_; }
  [[nodiscard]] const wire::Feedback& newest_feedback() const noexcept { return newest_; }
  [[nodiscard]] Instant feedback_at() const noexcept { return feedback_at_; }  ///< Instant{}: none
  [[nodiscard]] std::size_t frame_payload_bytes() const noexcept { return frame_bytes_; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_.span(); }

 private:
  enum class Mode : std::uint8_t { idle, running, paused };

  [[nodiscard]] bool may_send_data() const noexcept {
    return mode_ == Mode::running && !search_.is_searching();
  }
  /// A frame may start while any credit is left (receiver.hpp). To ask for its whole cost would
  /// stop a file of a few bytes at a ring smaller than a block.
  [[nodiscard]] bool has_credit() const noexcept { return cost_started_ < credit_total_; }
  [[nodiscard]] bool has_numbers(std::size_t reserve) const noexcept;
  [[nodiscard]] bool can_repair() const noexcept;
  [[nodiscard]] bool can_start_new() const noexcept;
  [[nodiscard]] bool is_blocked() const noexcept;

  SentPacket& number(Instant now, wire::FrameType type, wire::FrameHeader& header) noexcept;
  [[nodiscard]] bool plan_ping(Instant now, FramePlan& plan) noexcept;
  [[nodiscard]] bool plan_resend(Instant now, FramePlan& plan) noexcept;
  [[nodiscard]] bool plan_new(Instant now, FramePlan& plan) noexcept;
  void plan_bytes(Instant now, const BlockPart& range, bool is_repair, FramePlan& plan) noexcept;
  void ask_if_due(FramePlan& plan) noexcept;

  void count_report(const wire::Feedback& feedback) noexcept;
  [[nodiscard]] wire::Violation walk(Instant now, const wire::Feedback& feedback) noexcept;
  void resolve(SentPacket& packet) noexcept;
  void lose(SentPacket& packet) noexcept;
  [[nodiscard]] bool is_lost(Instant now, std::uint64_t number, std::uint64_t lost_below) noexcept;

  void check_progress(Instant now, Bytes own_queue) noexcept;
  void check_moving(Instant now) noexcept;
  void probe() noexcept;
  void follow_search() noexcept;

  const SenderParams params_;
  InFlight in_flight_;
  LentBlocks blocks_;
  boost::circular_buffer<BlockPart> resend_;
  SkipSchedule skips_;
  SizeSearch search_;
  std::size_t body_full_ = 0;    // what our own end takes
  std::size_t body_max_ = 0;     // what the path takes of it
  std::size_t frame_bytes_ = 0;  // file bytes of a full frame
  std::uint64_t cost_started_ = 0, credit_total_ = 0, bytes_to_resend_ = 0;

  wire::Feedback newest_;
  Instant feedback_at_{}, started_at_{};
  PingSchedule pings_;
  TailProbe tail_;
  RepairRounds rounds_;
  std::uint64_t reported_below_ = 0;   // one more than the largest number of any report
  std::uint64_t data_sent_below_ = 0;  // one more than the newest number that carries data
  std::uint64_t nack_request_id_ = 0;
  Instant moved_at_{};  // when the transfer was last seen to move
  std::uint64_t arrived_bytes_ = 0, peer_moved_bytes_ = 0;  // at the last look
  Mode mode_ = Mode::idle;
  bool has_ended_ = false, is_nack_due_ = false;
  bool is_under_way_ = false;  // some data was sent, and is not known to have arrived
  SenderTotals totals_;
};

}  // namespace onehop::protocol
