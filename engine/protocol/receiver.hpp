// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Receiver: the receiving half of the protocol as a state machine of (now, frames). No socket, no
// clock, no thread, no allocation after construction, no AEAD.
//
//   frame ─▶ place() ─▶ [AEAD opens into the block] ─▶ accept() ─▶ pop_full() ─▶ file thread
//                                                         │    add_free() ◀── block written
//   tick(), next_feedback() ◀── gaps, credit, buffers ◀───┘
//
// Eager repair lists the gaps in each report. Lazy repair lists them once per window or on request.
//
// place() changes nothing that a forged frame could leave behind: a block buffer is bound to (file,
// offset) only in accept(), after the tag was verified, and a range that has arrived is final.
//
// Credit (credit_bytes_total) counts buffer bytes: a block costs block_bytes however short it is, a
// frame costs its own length and the last frame of a block also what the block lacks to
// block_bytes. credit = min((blocks given to the file thread and come back + slots) x block_bytes,
// cost received + room in the receive ring), and never shrinks. The Sender counts cost the same way
// (frame_cost() in credit.hpp) and starts a frame while any credit is left: buffers are whole
// blocks, so it never passes those, and it passes the ring by one frame at most. Under lazy repair
// what is missing counts as having passed the ring: it will not come before it is asked for.
#pragma once

#include <boost/circular_buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/base/telemetry.hpp"
#include "engine/base/units.hpp"
#include "engine/base/zeroed_array.hpp"
#include "engine/protocol/file_table.hpp"
#include "engine/protocol/gap_list.hpp"
#include "engine/protocol/range_set.hpp"
#include "engine/protocol/reports.hpp"
#include "engine/wire/feedback.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::protocol {

struct ReceiverParams {
  std::size_t block_slots = 0;
  std::size_t body_bytes_max = 0;
  /// Of the first volume, which then need not be added: sizes by index on the wire, from 0 on.
  /// Read by the constructor only.
  std::span<const std::uint64_t> file_sizes;
  /// Missing ranges remembered; beyond it the oldest report covers less.
  std::size_t gap_ranges_max = 4096;
  /// As agreed with the peer: reports hold counters, and a list goes out once per window.
  bool is_repair_lazy = false;
};

/// Placement: where a data frame's plaintext goes.
struct Placement {
  enum class Verdict : std::uint8_t {
    fresh,      ///< open into `target`
    duplicate,  ///< its range has arrived: open into scratch, then accept() for the packet number
    no_room,    ///< no free block, a part of the range has arrived, or whole blocks lie in too many
                ///< places: drop it unopened. It does not count as received
    malformed,  ///< outside its file, crosses a block, unknown file: drop it, as no_room. A frame
                ///< may overtake the command that adds its volume
  };
  Verdict verdict = Verdict::malformed;
  std::span<std::byte> target;
  std::uint32_t handle = 0;  ///< for accept()
};

/// ReceiverTotals only grow. lists: of lazy repair, those that named something missing.
struct ReceiverTotals {
  std::uint64_t bytes_accepted = 0, duplicate_bytes = 0, no_room = 0, ce_packets = 0;
  std::uint64_t reports = 0, lists = 0;
};

class Receiver {
 public:
  explicit Receiver(const ReceiverParams& params);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// add_files takes the next volume, in order of the indices and without a gap, while fewer than
  /// FileTable::volumes_max are not released: else it stops the program.
  void add_files(FileVolume& volume) noexcept;

  // --- blocks, to and from the file thread
  /// add_free takes a buffer, at start and each time the file thread gives one back.
  void add_free(const BlockRef& block) noexcept;
  /// pop_full gives a complete block; it counts as app buffer until add_free().
  [[nodiscard]] bool pop_full(BlockRef& block) noexcept;
  /// mark_skipped: (file, offset) is on disk already (resume), or in a hole; it counts as arrived.
  /// A volume that is over needs to know no more. What no sender does in its order is forgotten.
  void mark_skipped(std::uint32_t file, std::uint64_t offset) noexcept;

  // --- frames in
  [[nodiscard]] Placement place(const wire::FrameHeader& header, std::size_t body_bytes) noexcept;
  /// accept records an authenticated data frame that place() answered with fresh or duplicate.
  void accept(Instant now, const wire::FrameHeader& header, std::size_t body_bytes,
              const Placement& placement, bool is_ce) noexcept;
  /// on_ping records the number and answers: the pong is due at once (pop_pong).
  void on_ping(Instant now, const wire::FrameHeader& header, const wire::Ping& ping,
               std::size_t frame_bytes, bool is_ce) noexcept;
  [[nodiscard]] bool pop_pong(Instant now, wire::Pong& pong) noexcept;
  /// record notes the number of an authentic frame: all there is to do for a pong.
  void record(Instant now, const wire::FrameHeader& header, bool is_ce) noexcept;

  // --- feedback out
  /// set_rx_ring: our receive ring in payload bytes: its backlog, not the rest of a burst.
  void set_rx_ring(const QueueTelemetry& rx_ring) noexcept { rx_ring_ = rx_ring; }
  /// set_rate_offer: for the sender: what this end takes at most, in wire bytes; 0: no bound.
  void set_rate_offer(BytesPerSecond offer) noexcept { rate_offer_ = offer; }
  /// set_srtt: the path's round trip as this end knows it (its own PINGs). Reports are srtt/4
  /// apart, within 2..25 ms, and 5 ms before the first sample.
  void set_srtt(Nanos srtt) noexcept { srtt_ = srtt; }
  /// feedback_interval is what the sender's newest PING asked for; 0: nothing.
  [[nodiscard]] Nanos feedback_interval() const noexcept { return asked_interval_; }
  /// is_credit_due: the sender may run out of credit before the next report.
  [[nodiscard]] bool is_credit_due(Instant now) const noexcept;
  /// tick looks at timers and at the credit: periodic ACK, gap older than the reorder threshold (3
  /// packets; 1/8 srtt, and on a path that reorders its window), one immediate NACK per ms at most.
  /// True: a report is due now.
  [[nodiscard]] bool tick(Instant now) noexcept;
  /// next_feedback fills one frame of the report that is due; call until false. At most
  /// frames_per_report_max, of a lazy list frames_per_list_max.
  [[nodiscard]] bool next_feedback(Instant now, wire::Feedback& feedback) noexcept;
  [[nodiscard]] Instant next_deadline() const noexcept;

  [[nodiscard]] QueueTelemetry app_buffer(Instant now) const noexcept;  ///< payload bytes
  /// is_complete: every byte of every file that was added so far was accepted or skipped.
  [[nodiscard]] bool is_complete() const noexcept { return files_.is_complete(); }
  /// last_received_at is of the newest authentic frame; Instant{}: none.
  [[nodiscard]] Instant last_received_at() const noexcept { return last_received_at_; }
  [[nodiscard]] const ReceiverTotals& totals() const noexcept { return totals_; }

 private:
  struct OpenBlock {
    BlockRef block;
    BlockRanges ranges;
    std::uint32_t received = 0;
  };

  struct HeldBlock {
    std::uint32_t bytes = 0;  // of a file
    bool is_held = false;     // by the file side, since pop_full()
  };

  [[nodiscard]] std::uint32_t find_open(std::uint32_t file, std::uint64_t block_offset) noexcept;
  [[nodiscard]] std::uint32_t open_block(std::uint32_t file, std::uint64_t block_offset) noexcept;
  void complete(std::uint32_t slot) noexcept;
  [[nodiscard]] Bytes ring_room() const noexcept;
  [[nodiscard]] std::uint64_t credit() const noexcept;
  [[nodiscard]] Nanos reorder_window() const noexcept;
  [[nodiscard]] bool has_gap_to_report(Instant now) const noexcept;
  [[nodiscard]] bool is_list_due(Instant now) noexcept;

  const ReceiverParams params_;
  std::unique_ptr<FileVolume> first_volume_;  // made from params.file_sizes
  FileTable files_;
  ZeroedArray<OpenBlock> open_;           // by slot
  std::vector<std::uint32_t> open_list_;  // slots of open blocks, newest last
  std::vector<BlockRef> free_blocks_;     // a stack
  std::vector<HeldBlock> held_;           // by slot
  boost::circular_buffer<std::uint32_t> full_;
  std::uint32_t at_file_side_ = 0, at_file_side_min_ = 0;
  Instant file_side_low_at_{};  // when fewer than backlogged_blocks were seen there
  bool is_file_side_backlogged_ = false;

  GapList gaps_;
  Instant last_received_at_{}, largest_at_{};
  std::uint64_t cost_received_ = 0, blocks_given_back_ = 0, credit_reported_ = 0;
  std::uint64_t bytes_whole_ = 0, bytes_given_back_ = 0;  // of whole blocks
  QueueTelemetry rx_ring_;
  BytesPerSecond rate_offer_{};
  Nanos srtt_{0};
  Nanos asked_interval_{0};  // how far apart the sender wants reports; 0: it says nothing

  wire::Pong pong_;
  Instant pong_at_{};
  bool has_pong_ = false;

  Instant report_at_{}, nack_at_{}, reported_at_{};
  bool is_asked_ = false, has_news_ = false;
  ReportPages pages_;
  std::uint64_t nacked_to_ = 0;  // gaps below have had their immediate NACK
  ListTiming lists_;
  ReceiverTotals totals_;
};

}  // namespace onehop::protocol
