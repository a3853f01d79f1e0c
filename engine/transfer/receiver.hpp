// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Receiver: the receiving half of the protocol as a state machine of (now, frames). No socket, no clock, no thread, no
// allocation after construction, no AEAD.
//
//   frame ─▶ place() ─▶ [AEAD opens into the block, at its place] ─▶ accept() ─▶ pop_full() ─▶ file thread
//                                                                       │            add_free() ◀── block written
//   feedback_due() / next_feedback() ◀── gaps, credit, buffer states ◀──┘
//
// Eager repair lists the gaps in each report. Lazy repair reports counters, and the gaps once per window or on request.
//
// place() changes nothing that a forged frame could leave behind: a block buffer is bound to (file, offset) only in
// accept(), after the tag was verified, and a range that has arrived is never the target of another open().
//
// Credit (credit_bytes_total) counts buffer bytes: a block costs block_bytes however short it is, a frame costs its
// own length and the last frame of a block also what the block lacks to block_bytes. credit = min((blocks given to
// the file thread and come back + slots) x block_bytes, cost received + room in the receive ring), and never shrinks.
// The Sender counts cost the same way (frame_cost() in credit.hpp) and starts a frame while any credit is left: buffers
// are whole blocks, so it never passes those, and it passes the ring by one frame at most. Under lazy repair what is
// missing counts as having passed the ring: it will not come before it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/base/block.hpp"
#include "engine/base/telemetry.hpp"
#include "engine/base/units.hpp"
#include "engine/wire/feedback.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::transfer {

struct ReceiverParams {
  std::size_t block_slots = 0;
  std::size_t body_bytes_max = 0;
  std::span<const std::uint64_t> file_sizes;  ///< by manifest index; outlives the Receiver
  std::size_t gap_ranges_max = 4096;          ///< missing ranges remembered; beyond it the oldest report covers less
  BytesPerSecond rate_offer{};                ///< told to the sender: what this end takes at most, in wire bytes; 0: no bound
  bool is_repair_lazy = false;                ///< as agreed with the peer: counters, and a list per window (list_timing.hpp)
};

/// Placement: where a data frame's plaintext goes.
struct Placement {
  enum class Verdict : std::uint8_t {
    fresh,      ///< open into `target`
    duplicate,  ///< its range has arrived: open into scratch, then accept() for the packet number
    no_room,    ///< no free block, or a part of the range has arrived: drop without opening (not counted as received)
    malformed,  ///< outside its file, crosses a block, unknown file: drop
  };
  Verdict verdict = Verdict::malformed;
  std::span<std::byte> target;
  std::uint32_t handle = 0;  ///< for accept()
};

struct ReceiverTotals {
  std::uint64_t packets_received = 0, bytes_accepted = 0, duplicate_bytes = 0, no_room = 0, malformed = 0;
  std::uint64_t ce_packets = 0, reports = 0, nacks = 0, blocks_completed = 0, gap_overflows = 0;
  std::uint64_t lists = 0;  ///< lazy repair: lists that named something missing
};

class Receiver {
 public:
  explicit Receiver(const ReceiverParams& params);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // --- blocks, to and from the file thread
  void add_free(const BlockRef& block) noexcept;            ///< at start, and each time the file thread gives one back
  [[nodiscard]] bool pop_full(BlockRef& block) noexcept;    ///< a complete block; app buffer until add_free()
  /// mark_skipped: (file, offset) is on disk already (resume); it counts as arrived and is never placed.
  void mark_skipped(std::uint32_t file, std::uint64_t offset) noexcept;

  // --- frames in
  [[nodiscard]] Placement place(const wire::FrameHeader& header, std::size_t body_bytes) noexcept;
  /// accept records an authenticated data frame that place() answered with fresh or duplicate.
  void accept(Instant now, const wire::FrameHeader& header, std::size_t body_bytes, const Placement& placement,
              bool is_ce) noexcept;
  /// on_ping records the number and answers: the pong is due at once (pop_pong).
  void on_ping(Instant now, const wire::FrameHeader& header, const wire::Ping& ping, std::size_t frame_bytes,
               bool is_ce) noexcept;
  [[nodiscard]] bool pop_pong(Instant now, wire::Pong& pong) noexcept;
  /// on_other records the number of an authentic frame that carries nothing for the Receiver (a pong).
  void on_other(Instant now, const wire::FrameHeader& header, bool is_ce) noexcept;

  // --- feedback out
  /// rx_ring: our receive ring as the sender is to see it, in payload bytes: what stands there, not the rest of a burst.
  void set_rx_ring(const QueueTelemetry& rx_ring) noexcept;
  /// set_srtt: the path's round trip as this end knows it (its own PINGs); the ACK interval is srtt/4 in 2..25 ms,
  /// 5 ms before the first sample.
  void set_srtt(Nanos srtt) noexcept;
  /// feedback_interval is what the sender's newest PING asked for; 0: nothing.
  [[nodiscard]] Nanos feedback_interval() const noexcept;
  /// is_credit_due: so much has arrived since the last report that the sender may run out of credit before the next one.
  [[nodiscard]] bool is_credit_due(Instant now) const noexcept;
  /// tick looks at timers and at the credit: periodic ACK, gap older than the reorder threshold (3 packets and 1/8 srtt), one immediate
  /// NACK per ms at most. True: a report is due now.
  [[nodiscard]] bool tick(Instant now) noexcept;
  /// next_feedback fills one frame of the report that is due; call until false. At most frames_per_report_max, of a lazy
  /// list frames_per_list_max.
  [[nodiscard]] bool next_feedback(Instant now, wire::Feedback& feedback) noexcept;
  [[nodiscard]] Instant next_deadline() const noexcept;

  [[nodiscard]] QueueTelemetry app_buffer(Instant now) const noexcept;  ///< payload bytes
  [[nodiscard]] bool has_started() const noexcept;   ///< a data frame was accepted
  [[nodiscard]] bool is_complete() const noexcept;   ///< every byte of every file was accepted or skipped
  [[nodiscard]] Instant heard_at() const noexcept;   ///< newest authentic frame; Instant{}: none
  [[nodiscard]] const ReceiverTotals& totals() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> s_;
};

}  // namespace onehop::transfer
