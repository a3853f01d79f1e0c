// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/protocol/receiver.hpp"

#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/protocol/credit.hpp"
#include "engine/protocol/reorder.hpp"

namespace onehop::protocol {
namespace {
// Implementation.
// A lazy window at 50 % loss: 16 MB in frames of 1.4 kB, and the next one, has 6000 gaps.
constexpr std::size_t list_ranges_max = 1U << 14;
constexpr Bytes ring_room_min = kib(256);  // where the port cannot read its ring
// At most so much for 64 frames: a ring of 9000-byte frames is larger, of 64-KB ones not.
constexpr Bytes ring_frames_min = kib(576);
constexpr std::int64_t ring_share_num = 3, ring_share_den = 4;  // of the ring that may be in flight
constexpr std::uint32_t no_block = ~std::uint32_t{0};
// So many blocks at the file side for so long: the disk is the limit of this transfer. A span
// shorter than the file thread's longest nap would take our own rate for the disk's.
constexpr std::uint32_t backlogged_blocks = 4;
constexpr Nanos backlogged_span = 10ms;
}  // namespace

Receiver::Receiver(const ReceiverParams& params)
    : params_{params},
      open_(params.block_slots),
      held_(params.block_slots),
      full_{params.block_slots},
      gaps_{params.is_repair_lazy ? std::max(params.gap_ranges_max, list_ranges_max)
                                  : params.gap_ranges_max},
      lists_{params.block_slots} {
  open_list_.reserve(params.block_slots);
  free_blocks_.reserve(params.block_slots);
  if (params.file_sizes.empty()) return;
  first_volume_ = std::make_unique<FileVolume>(0, params.file_sizes);
  add_files(*first_volume_);
}

void Receiver::add_files(FileVolume& volume) noexcept {
  const bool is_added = files_.add(volume);
  ONEHOP_CHECK(is_added);
}

// --- blocks
void Receiver::add_free(const BlockRef& block) noexcept {
  ONEHOP_CHECK(block.slot < params_.block_slots && free_blocks_.size() < params_.block_slots);
  if (const HeldBlock held = std::exchange(held_[block.slot], {}); held.is_held) {
    // A buffer that comes back, as opposed to one lent for the first time.
    ++blocks_given_back_;
    bytes_given_back_ += held.bytes;
    ONEHOP_CHECK(at_file_side_ > 0);
    --at_file_side_;
    at_file_side_min_ = std::min(at_file_side_min_, at_file_side_);
  }
  free_blocks_.push_back({.data = block.data, .slot = block.slot});
  if (credit() > credit_reported_)
    has_news_ = true;  // a sender that has used up its credit waits for this
}

bool Receiver::pop_full(BlockRef& block) noexcept {
  if (full_.empty()) return false;
  const std::uint32_t slot = full_.front();
  full_.pop_front();
  block = open_[slot].block;
  held_[slot] = {.bytes = block.length, .is_held = true};
  ++at_file_side_;
  return true;
}

void Receiver::mark_skipped(std::uint32_t file, std::uint64_t offset) noexcept {
  const FileVolume* const volume = files_.find(file);
  if (volume == nullptr || volume->size_of(file) == file_without_blocks ||
      (offset != 0 && offset >= volume->size_of(file)))
    return;
  files_.mark_done(file, offset);
}

std::uint32_t Receiver::find_open(std::uint32_t file, std::uint64_t block_offset) noexcept {
  for (std::size_t i = open_list_.size(); i-- > 0;) {  // the newest is nearly always the one
    const BlockRef& block = open_[open_list_[i]].block;
    if (block.offset == block_offset && block.file == file) return open_list_[i];
  }
  return no_block;
}

/// open_block binds the free buffer that place() showed to (file, offset).
std::uint32_t Receiver::open_block(std::uint32_t file, std::uint64_t block_offset) noexcept {
  const FileVolume* const volume = files_.find(file);
  ONEHOP_CHECK(volume != nullptr);
  ONEHOP_CHECK(!free_blocks_.empty());
  BlockRef block = free_blocks_.back();
  free_blocks_.pop_back();
  block.file = file;
  block.offset = block_offset;
  block.length = block_length_at(volume->size_of(file), block_offset);
  OpenBlock& entry = open_[block.slot];
  entry.block = block;
  entry.ranges.clear();
  entry.received = 0;
  open_list_.push_back(block.slot);
  return block.slot;
}

// --- frames in
Placement Receiver::place(const wire::FrameHeader& header, std::size_t body_bytes) noexcept {
  using Verdict = Placement::Verdict;
  if (files_.is_over(header.file)) return {.verdict = Verdict::duplicate, .handle = no_block};
  const FileVolume* const volume = files_.find(header.file);
  if (volume == nullptr) return {.verdict = Verdict::malformed};
  const std::uint64_t size = volume->size_of(header.file);
  if (size == file_without_blocks) return {.verdict = Verdict::malformed};
  if (header.offset > size || body_bytes > size - header.offset || (body_bytes == 0 && size != 0))
    return {.verdict = Verdict::malformed};
  const std::uint64_t block_offset = header.offset / block_bytes * block_bytes;
  const auto first = static_cast<std::uint32_t>(header.offset - block_offset);
  if (body_bytes > block_bytes - first) return {.verdict = Verdict::malformed};
  const auto end = first + static_cast<std::uint32_t>(body_bytes);
  const std::uint32_t slot = find_open(header.file, block_offset);
  if (slot == no_block) {
    if (volume->is_done(header.file, block_offset))
      return {.verdict = Verdict::duplicate, .handle = no_block};
    // What is open will be marked, too.
    if (free_blocks_.empty() || !volume->has_room(open_list_.size() + 1)) {
      ++totals_.no_room;
      return {.verdict = Verdict::no_room};
    }
    return {.verdict = Verdict::fresh,
            .target = {free_blocks_.back().data + first, body_bytes},
            .handle = no_block};
  }
  OpenBlock& block = open_[slot];
  const BlockRanges::Relation relation = block.ranges.relation(first, end);
  if (relation == BlockRanges::Relation::present)
    return {.verdict = Verdict::duplicate, .handle = no_block};
  if (relation == BlockRanges::Relation::partial || !block.ranges.can_add(first, end)) {
    ++totals_.no_room;
    return {.verdict = Verdict::no_room};
  }
  return {
      .verdict = Verdict::fresh, .target = {block.block.data + first, body_bytes}, .handle = slot};
}

void Receiver::record(Instant now, const wire::FrameHeader& header, bool is_ce) noexcept {
  if (last_received_at_ == Instant{}) lists_.restart(now, 0);
  last_received_at_ = now;
  has_news_ = true;
  gaps_.settle(header.settled);
  if (gaps_.on_number(now, header.packet_number) && header.packet_number == gaps_.largest())
    largest_at_ = now;
  totals_.ce_packets += is_ce ? 1 : 0;
  if (!header.is_nack_requested ||
      (params_.is_repair_lazy && !lists_.is_new_request(now, header.nack_round, srtt_)))
    return;
  is_asked_ = true;
  lists_.on_request(header.nack_round);
}

void Receiver::accept(Instant now, const wire::FrameHeader& header, std::size_t body_bytes,
                      const Placement& placement, bool is_ce) noexcept {
  record(now, header, is_ce);
  if (placement.verdict == Placement::Verdict::duplicate) {
    totals_.duplicate_bytes += body_bytes;
    return;
  }
  ONEHOP_CHECK(placement.verdict == Placement::Verdict::fresh);
  const std::uint64_t block_offset = header.offset / block_bytes * block_bytes;
  const std::uint32_t slot =
      placement.handle == no_block ? open_block(header.file, block_offset) : placement.handle;
  OpenBlock& block = open_[slot];
  const auto first = static_cast<std::uint32_t>(header.offset - block_offset);
  const auto length = static_cast<std::uint32_t>(body_bytes);
  block.ranges.add(first, first + length);
  block.received += length;
  totals_.bytes_accepted += length;
  cost_received_ += frame_cost(first + length, length, block.block.length);
  if (block.received == block.block.length) complete(slot);
}

void Receiver::complete(std::uint32_t slot) noexcept {
  OpenBlock& block = open_[slot];
  files_.mark_done(block.block.file, block.block.offset);
  bytes_whole_ += block.block.length;
  open_list_.erase(std::find(open_list_.begin(), open_list_.end(), slot));
  ONEHOP_CHECK(!full_.full());  // a slot comes back only after pop_full()
  full_.push_back(slot);
}

void Receiver::on_ping(Instant now, const wire::FrameHeader& header, const wire::Ping& ping,
                       std::size_t frame_bytes, bool is_ce) noexcept {
  record(now, header, is_ce);
  asked_interval_ = ping.feedback_interval_us * 1us;
  pong_ = {.id = ping.id, .hold_ns = 0, .received_bytes = frame_bytes};
  pong_at_ = now;
  has_pong_ = true;
}

bool Receiver::pop_pong(Instant now, wire::Pong& pong) noexcept {
  if (!has_pong_) return false;
  has_pong_ = false;
  // A report that will be due soon rides along: a turn on the air costs more than the frame.
  if (asked_interval_ > 0ns && has_news_ && now - reported_at_ >= asked_interval_ / 2)
    report_at_ = now;
  pong = pong_;
  pong.hold_ns = static_cast<std::uint64_t>(std::clamp<Nanos>(now - pong_at_, 0ns, 10s).count());
  return true;
}

// --- feedback out
Bytes Receiver::ring_room() const noexcept {
  if (rx_ring_.scope == QueueScope::none || rx_ring_.capacity.count == 0) return ring_room_min;
  const Bytes share = rx_ring_.capacity * ring_share_num / ring_share_den;
  return std::max(share, std::min(Bytes{static_cast<std::int64_t>(64 * params_.body_bytes_max)},
                                  ring_frames_min));
}

/// What the sender may have started: never more than there are buffers for, nor more than the ring
/// takes before we read it again. What was reported once is never taken back.
std::uint64_t Receiver::credit() const noexcept {
  const std::uint64_t buffers = (blocks_given_back_ + params_.block_slots) * block_bytes;
  const std::uint64_t ring = cost_received_ + static_cast<std::uint64_t>(ring_room().count);
  // Bounded before it is multiplied: a peer chooses its numbers, and how many it passes over.
  const std::uint64_t held_back =
      params_.is_repair_lazy ? std::min(gaps_.missing_now(), buffers) * params_.body_bytes_max : 0;
  return std::max(credit_reported_, std::min(buffers, ring + held_back));
}

/// reorder_window: a gap that is younger is not reported. It is 0 until a number came late, and
/// then twice as long as that took, as receive queues are read in turns; but no longer than a
/// repair takes.
Nanos Receiver::reorder_window() const noexcept {
  return std::min(2 * gaps_.late_by(), std::max(srtt_, report_min));
}

/// has_gap_to_report: the oldest gap that has not had its NACK is old enough and has enough numbers
/// behind it. Beyond the window srtt/8 are waited for, so that one NACK names several gaps. (Not
/// the newest: where every tenth packet is lost one is always too young.)
bool Receiver::has_gap_to_report(Instant now) const noexcept {
  const auto& list = gaps_.gaps();
  const auto gap = std::ranges::lower_bound(list, nacked_to_, {}, &GapList::Gap::last);
  return gap != list.end() && gaps_.largest() - gap->range.last >= reorder_threshold_packets &&
         now - gap->seen_at >= reorder_window() + srtt_ / 8;
}

/// is_list_due: the sender asks, or a window is over and something missing. Else one begins.
bool Receiver::is_list_due(Instant now) noexcept {
  if (is_asked_) return true;
  if (gaps_.gaps().empty()) lists_.restart(now, totals_.bytes_accepted);
  return lists_.is_window_over(now, totals_.bytes_accepted);
}

/// Reports must not limit the sender: rare ones not where each costs a turn on the air, the usual
/// ones not where the ring holds too little (1024 frames: 6 Gbit/s at 2 ms).
bool Receiver::is_credit_due(Instant now) const noexcept {
  if (last_received_at_ == Instant{}) return false;  // there is no peer to report to yet
  const bool is_rare = asked_interval_ > 0ns;
  if (now - reported_at_ < (is_rare ? report_min : report_credit_min)) return false;
  const Bytes worth_reporting = is_rare ? ring_room() * 3 / 4 : ring_room() / 2;
  return credit() - credit_reported_ >= static_cast<std::uint64_t>(worth_reporting.count);
}

bool Receiver::tick(Instant now) noexcept {
  if (last_received_at_ == Instant{}) return false;
  if (at_file_side_min_ < backlogged_blocks) file_side_low_at_ = now;
  at_file_side_min_ = at_file_side_;
  bool is_due = now >= report_at_ && (has_news_ || now - reported_at_ >= report_idle);
  is_due = is_due || is_credit_due(now);
  bool is_list = false;
  if (params_.is_repair_lazy) {
    is_list = is_list_due(now);
    is_due = is_due || is_list;
  } else if (!is_due && now - nack_at_ >= nack_spacing(asked_interval_) && has_gap_to_report(now)) {
    is_due = true;
  }
  if (!is_due && !is_asked_) return false;
  const auto& list = gaps_.gaps();
  const Nanos window = reorder_window();
  const std::size_t named = is_list                  ? list.size()
                            : params_.is_repair_lazy ? 0
                                                     : gaps_.older_than(now, window);
  const bool has_young = !params_.is_repair_lazy && named < list.size();
  has_news_ = has_young;  // a report is due on those, though nothing more may come
  nack_at_ = reported_at_ = now;
  report_at_ = now + report_interval(srtt_, asked_interval_);
  if (is_asked_ && has_young) report_at_ = std::min(report_at_, now + window);
  is_asked_ = false;
  // A gap with fewer numbers behind it is listed too; the sender waits, and it is listed again.
  nacked_to_ = gaps_.largest() - std::min(gaps_.largest(), reorder_threshold_packets - 1);
  if (has_young) nacked_to_ = std::min(nacked_to_, list[named].range.first);
  using Kind = ReportPages::Kind;
  pages_.start(is_list                  ? Kind::list
               : params_.is_repair_lazy ? Kind::counters
                                        : Kind::eager,
               named, gaps_.settled());
  is_file_side_backlogged_ = now - file_side_low_at_ >= backlogged_span;
  if (is_list) {
    totals_.lists += gaps_.gaps().empty() ? 0 : 1;
    lists_.restart(now, totals_.bytes_accepted);
  }
  ++totals_.reports;
  return true;
}

bool Receiver::next_feedback(Instant now, wire::Feedback& feedback) noexcept {
  if (!pages_.next(gaps_, feedback)) return false;
  feedback.receive_delay_ns =
      static_cast<std::uint64_t>(std::max<Nanos>(now - largest_at_, 0ns).count());
  feedback.receiver_time_ns = static_cast<std::uint64_t>(now.time_since_epoch().count());
  feedback.received_bytes_total = totals_.bytes_accepted;
  feedback.credit_bytes_total = credit_reported_ = credit();
  feedback.rx_ring = rx_ring_;
  feedback.rx_ring.drained_total = {static_cast<std::int64_t>(totals_.bytes_accepted)};
  feedback.app_buffer = app_buffer(now);
  feedback.ce_packets_total = totals_.ce_packets;
  feedback.missing_packets_total = gaps_.missing_total();
  feedback.rate_offer_bytes_per_s = static_cast<std::uint64_t>(rate_offer_.count);
  return true;
}

Instant Receiver::next_deadline() const noexcept {
  if (last_received_at_ == Instant{}) return Instant::max();
  return has_news_ ? report_at_ : std::max(report_at_, reported_at_ + report_idle);
}

/// What waits for the disk. A block that waits for a repair does not: taken for a backlog, loss
/// would slow the sender down where reports are rare and many blocks are open.
QueueTelemetry Receiver::app_buffer(Instant now) const noexcept {
  return {.at = now,
          .occupancy = {static_cast<std::int64_t>(bytes_whole_ - bytes_given_back_)},
          .drained_total = {static_cast<std::int64_t>(bytes_given_back_)},
          .capacity = {static_cast<std::int64_t>(params_.block_slots * block_bytes)},
          .refused_total = totals_.no_room,
          .scope = QueueScope::lower_queue,
          .is_backlogged = is_file_side_backlogged_};
}

}  // namespace onehop::protocol
