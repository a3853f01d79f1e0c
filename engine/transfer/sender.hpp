// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sender: the sending half of the protocol as a state machine of (now, frames). No socket, no clock, no thread, no
// allocation after construction, no AEAD: the engine loop seals what next() plans and hands on what it has opened.
//
//   add_block() ─▶ [ blocks read, in order ] ─▶ next() ─▶ frame ─▶ in flight ─▶ on_feedback() ─▶ pop_freed()
//                                                 ▲                       │ listed as missing
//                                                 └── ranges to resend ◀──┘  (first, under a new packet number)
//
// Eager repair resends what a report lists; lazy repair waits for a window's list (repair_rounds.hpp). Data that does not arrive although
// the peer is heard makes it search for the frames that still pass (size_search.hpp).
//
// Called by the engine core only. Blocks stay lent to the Sender until every byte is known to have arrived, so a
// repair never waits for the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/base/block.hpp"
#include "engine/base/units.hpp"
#include "engine/wire/feedback.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::transfer {

struct SenderParams {
  std::size_t body_bytes_max = 0;         ///< UDP payload less wire::overhead_bytes; set_body_max() lowers or raises it
  std::size_t block_slots = 0;            ///< blocks that can be lent at once
  std::size_t in_flight_max = 1U << 16;   ///< packets not yet settled; power of two, 64 at least
  std::uint64_t first_packet_number = 1;  ///< tests start near a wrap
  std::uint64_t skip_seed = 1;            ///< for the numbers skipped on purpose (optimistic ACK defence, N4)
  Nanos ping_period_min = 10ms, ping_period_max = 100ms;  // 1 per srtt, within these
  Nanos silent_limit = 30s;               ///< without a word of the peer, or with data that never arrives
  Nanos stall_limit = 120s;               ///< without credit or progress at the peer's disk
  bool is_repair_lazy = false;            ///< as agreed with the peer: repair in rounds, from lists (repair_rounds.hpp)
};

/// FramePlan: one frame to seal. `body` points into the block (data), or is empty and `body_bytes` tells the size of a
/// ping whose body is `ping` plus zero padding (`ping` means nothing in others).
struct FramePlan {
  wire::FrameHeader header;
  std::span<const std::byte> body;
  std::size_t body_bytes = 0;
  wire::Ping ping;
  bool is_retransmission = false;
};

/// SenderTotals only grow.
struct SenderTotals {
  std::uint64_t packets_sent = 0, packets_told = 0, packets_lost = 0, packets_skipped = 0, probes = 0;
  std::uint64_t data_bytes_sent = 0, retransmitted_bytes = 0, new_bytes_started = 0;
  std::uint64_t ce_packets = 0, feedback_frames = 0, stale_feedback = 0;
};

class Sender {
 public:
  explicit Sender(const SenderParams& params);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // --- blocks, from and to the file thread
  /// can_take_block is false while block_slots blocks are lent.
  [[nodiscard]] bool can_take_block() const noexcept;
  void add_block(const BlockRef& block) noexcept;
  /// end_of_files: no add_block() follows.
  void end_of_files() noexcept;
  /// pop_freed gives back a block whose every byte has arrived.
  [[nodiscard]] bool pop_freed(BlockRef& block) noexcept;
  /// pop_sent tells of a block whose last byte was sent for the first time: its digest is due.
  [[nodiscard]] bool pop_sent(BlockRef& block) noexcept;

  // --- frames out
  /// prove_path asks for PINGs of `body_bytes` every 50 ms until is_path_proven(); stop_proving() ends it.
  void prove_path(std::size_t body_bytes) noexcept;
  void stop_proving() noexcept;
  [[nodiscard]] bool is_path_proven() const noexcept;
  /// start lets data flow.
  void start(Instant now) noexcept;
  /// pause stops new data and repairs (checkpoint on interrupt); PING goes on.
  void pause() noexcept;
  /// next plans one frame, and counts it as sent: the caller must seal and commit it. Order: PING due, ranges to
  /// resend, tail probe, new data within credit. False: nothing to send now. `is_data_allowed` false (no rate or
  /// backlog left): only what is exempt (PING).
  [[nodiscard]] bool next(Instant now, bool is_data_allowed, FramePlan& plan) noexcept;
  /// has_data says whether next() would send file data, credit included.
  [[nodiscard]] bool has_data() const noexcept;
  /// has_repairs: something known to be lost has not been sent again yet.
  [[nodiscard]] bool has_repairs() const noexcept;
  /// is_credit_limited: a block waits, and only the peer's credit keeps it back.
  [[nodiscard]] bool is_credit_limited() const noexcept;
  /// offered_bytes: file bytes in lent blocks not yet sent once, plus those to resend.
  [[nodiscard]] Bytes offered() const noexcept;

  /// take_packet_number counts a frame that the caller builds itself (a pong): it shares the numbers and has nothing to
  /// resend. settled is for its header.
  [[nodiscard]] std::uint64_t take_packet_number(Instant now) noexcept;
  [[nodiscard]] std::uint64_t settled() noexcept;
  /// can_number: a number is free; false while in_flight_max are not settled. take_packet_number() needs it to be true.
  [[nodiscard]] bool can_number() const noexcept;

  // --- frames in
  /// on_feedback checks and applies one frame. A violation ends the session.
  [[nodiscard]] wire::Violation on_feedback(Instant now, const wire::Feedback& feedback) noexcept;
  void on_pong(Instant now, const wire::Pong& pong) noexcept;

  // --- time
  /// tick runs timers (tail probe with back-off, PING). `own_queue` is what our lower queue still holds: while
  /// it is not empty the newest packets may be in it, and no probe is sent. Call before next().
  void tick(Instant now, Bytes own_queue) noexcept;
  /// next_deadline: when tick() has something to do at the latest; Instant::max() for never.
  [[nodiscard]] Instant next_deadline() const noexcept;
  /// ask_feedback passes the grant's wishes on: the peer's reports may be `interval` apart (0: its default), told in each PING;
  /// a change of `nack_request_id` asks for its missing ranges with the next frame.
  void ask_feedback(Instant now, Nanos interval, std::uint64_t nack_request_id) noexcept;
  [[nodiscard]] bool is_silent(Instant now) const noexcept;  ///< nothing from the peer for silent_limit
  /// is_stalled: the peer is heard, and yet the transfer has not moved for its limit. A source that has nothing to send does not count.
  [[nodiscard]] bool is_stalled(Instant now) const noexcept;

  /// set_body_max follows the MTU; ranges in flight at the old size are resent at the new one if they are lost. Where the path takes
  /// less than that (size_search.hpp), frames are smaller by themselves.
  void set_body_max(std::size_t body_bytes_max) noexcept;

  [[nodiscard]] bool is_all_arrived() const noexcept;  ///< end_of_files() was called and every byte has arrived
  [[nodiscard]] Nanos srtt() const noexcept;           ///< 0: no sample
  [[nodiscard]] Nanos rtt() const noexcept;            ///< the newest sample
  [[nodiscard]] const SenderTotals& totals() const noexcept;
  [[nodiscard]] const wire::Feedback& newest_feedback() const noexcept;
  [[nodiscard]] Instant feedback_at() const noexcept;  ///< Instant{}: none
  [[nodiscard]] std::size_t frame_payload_bytes() const noexcept;
  [[nodiscard]] std::size_t in_flight() const noexcept;
  [[nodiscard]] std::uint64_t pings_sent() const noexcept;
  [[nodiscard]] std::size_t proven_frame_bytes() const noexcept;  ///< as the pong told it

 private:
  struct State;
  std::unique_ptr<State> s_;
};

}  // namespace onehop::transfer
