// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/transfer/receiver.hpp"

#include <algorithm>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/transfer/block_map.hpp"
#include "engine/transfer/credit.hpp"
#include "engine/transfer/gap_list.hpp"
#include "engine/transfer/in_flight.hpp"
#include "engine/transfer/list_timing.hpp"
#include "engine/transfer/range_set.hpp"
#include "engine/transfer/reorder.hpp"
#include "engine/transfer/report_pages.hpp"
#include "engine/transfer/report_timing.hpp"

namespace onehop::transfer {
namespace {
// Implementation.
// A lazy window at 50 % loss: 16 MB in frames of 1.4 kB, and as much of the next one, has 6000 gaps.
constexpr std::size_t list_ranges_max = 1U << 14;
constexpr Bytes ring_room_min = kib(256);      // where the port cannot read its ring
constexpr Bytes ring_frames_min = kib(576);    // at most so much for 64 frames: a ring of 9000-byte frames is larger, of 64-KB ones not
constexpr std::int64_t ring_share_num = 3, ring_share_den = 4;  // of the ring that may be in flight
constexpr std::uint32_t no_block = ~std::uint32_t{0};
// So many blocks at the file side for so long: it is what holds the transfer back. Shorter than the file thread's longest
// nap and its delay: a rate of our own making would pass for the disk's, and hold itself down.
constexpr std::uint32_t backlogged_blocks = 4;
constexpr Nanos backlogged_span = 10ms;

struct OpenBlock {
  BlockRef block;
  RangeSet ranges;
  std::uint32_t received = 0;
  bool is_open = false;
};

}  // namespace
struct Receiver::State {
  explicit State(const ReceiverParams& p);

  [[nodiscard]] std::uint32_t find_open(std::uint32_t file, std::uint64_t block_offset) noexcept;
  [[nodiscard]] std::uint32_t open_block(std::uint32_t file, std::uint64_t block_offset) noexcept;
  void record(Instant now, const wire::FrameHeader& header, bool is_ce) noexcept;
  void complete(std::uint32_t index) noexcept;
  [[nodiscard]] Bytes ring_room() const noexcept;
  [[nodiscard]] std::uint64_t credit() const noexcept;
  [[nodiscard]] bool has_gap_to_tell(Instant now) const noexcept;
  [[nodiscard]] bool is_list_due(Instant now) noexcept;

  ReceiverParams params;
  BlockMap blocks;
  std::vector<OpenBlock> open;            // by slot
  std::vector<std::uint32_t> open_list;   // slots of open blocks, newest last
  std::vector<BlockRef> free_blocks;      // a stack
  std::vector<std::uint32_t> held_bytes;  // by slot: file bytes at the file side
  FixedQueue<std::uint32_t> full;
  std::uint32_t at_file_side = 0, at_file_side_min = 0;
  Instant file_side_low_at{};             // when fewer than backlogged_blocks were seen there
  bool is_file_side_backlogged = false;

  GapList gaps;
  Instant heard_at{}, largest_at{};
  std::uint64_t cost_received = 0, blocks_given_back = 0, credit_told = 0;
  std::uint64_t bytes_whole = 0, bytes_given_back = 0;  // of whole blocks
  QueueTelemetry rx_ring;
  Nanos srtt{0};
  Nanos told_interval{0};                 // how far apart the sender wants reports; 0: it says nothing

  wire::Pong pong;
  Instant pong_at{};
  bool has_pong = false;

  Instant report_at{}, nack_at{}, reported_at{};
  bool is_asked = false, has_news = false;
  ReportPages pages;
  std::uint64_t nacked_to = 0;            // gaps below have had their immediate NACK
  ListTiming lists;
  ReceiverTotals totals;
};

Receiver::State::State(const ReceiverParams& p)
    : params{p}, blocks{p.file_sizes}, open(p.block_slots), held_bytes(p.block_slots), full{p.block_slots},
      gaps{p.is_repair_lazy ? std::max(p.gap_ranges_max, list_ranges_max) : p.gap_ranges_max}, lists{p.block_slots} {
  open_list.reserve(p.block_slots);
  free_blocks.reserve(p.block_slots);
}

Receiver::Receiver(const ReceiverParams& params) : s_{std::make_unique<State>(params)} {}
Receiver::~Receiver() = default;

// --- blocks
void Receiver::add_free(const BlockRef& block) noexcept {
  State& s = *s_;
  ONEHOP_CHECK(block.slot < s.open.size() && s.free_blocks.size() < s.open.size());
  if (s.held_bytes[block.slot] > 0 || s.open[block.slot].block.data != nullptr) {
    // A buffer that comes back, as opposed to one lent for the first time.
    ++s.blocks_given_back;
    s.bytes_given_back += s.held_bytes[block.slot];
    s.held_bytes[block.slot] = 0;
    ONEHOP_CHECK(s.at_file_side > 0);
    --s.at_file_side;
    s.at_file_side_min = std::min(s.at_file_side_min, s.at_file_side);
  }
  s.free_blocks.push_back({.data = block.data, .slot = block.slot});
  if (s.credit() > s.credit_told) s.has_news = true;  // a sender that has used up its credit waits for this
}

bool Receiver::pop_full(BlockRef& block) noexcept {
  State& s = *s_;
  if (s.full.is_empty()) return false;
  const std::uint32_t slot = s.full.front();
  s.full.pop();
  block = s.open[slot].block;
  s.held_bytes[slot] = block.length;
  ++s.at_file_side;
  return true;
}

void Receiver::mark_skipped(std::uint32_t file, std::uint64_t offset) noexcept {
  State& s = *s_;
  if (file >= s.params.file_sizes.size() || (offset != 0 && offset >= s.params.file_sizes[file])) return;
  s.blocks.mark_done(file, offset);
}

std::uint32_t Receiver::State::find_open(std::uint32_t file, std::uint64_t block_offset) noexcept {
  for (std::size_t i = open_list.size(); i-- > 0;) {  // the newest is nearly always the one
    const BlockRef& block = open[open_list[i]].block;
    if (block.offset == block_offset && block.file == file) return open_list[i];
  }
  return no_block;
}

/// open_block binds the free buffer that place() showed to (file, offset).
std::uint32_t Receiver::State::open_block(std::uint32_t file, std::uint64_t block_offset) noexcept {
  ONEHOP_CHECK(!free_blocks.empty());
  BlockRef block = free_blocks.back();
  free_blocks.pop_back();
  block.file = file;
  block.offset = block_offset;
  block.length = block_length_at(params.file_sizes[file], block_offset);
  OpenBlock& entry = open[block.slot];
  entry.block = block;
  entry.ranges.clear();
  entry.received = 0;
  entry.is_open = true;
  open_list.push_back(block.slot);
  return block.slot;
}

// --- frames in
Placement Receiver::place(const wire::FrameHeader& header, std::size_t body_bytes) noexcept {
  State& s = *s_;
  using Verdict = Placement::Verdict;
  const auto malformed = [&] { ++s.totals.malformed; return Placement{}; };
  if (header.file >= s.params.file_sizes.size()) return malformed();
  const std::uint64_t size = s.params.file_sizes[header.file];
  if (header.offset > size || body_bytes > size - header.offset || (body_bytes == 0 && size != 0)) return malformed();
  const std::uint64_t block_offset = header.offset / block_bytes * block_bytes;
  const auto first = static_cast<std::uint32_t>(header.offset - block_offset);
  if (body_bytes > block_bytes - first) return malformed();
  const auto end = first + static_cast<std::uint32_t>(body_bytes);
  if (s.blocks.is_done(header.file, block_offset)) return {.verdict = Verdict::duplicate, .handle = no_block};

  const std::uint32_t slot = s.find_open(header.file, block_offset);
  if (slot == no_block) {
    if (s.free_blocks.empty()) {
      ++s.totals.no_room;
      return {.verdict = Verdict::no_room};
    }
    return {.verdict = Verdict::fresh, .target = {s.free_blocks.back().data + first, body_bytes}, .handle = no_block};
  }
  OpenBlock& block = s.open[slot];
  const RangeSet::Relation relation = block.ranges.relation(first, end);
  if (relation == RangeSet::Relation::present) return {.verdict = Verdict::duplicate, .handle = no_block};
  if (relation == RangeSet::Relation::partial || !block.ranges.can_add(first, end)) {
    ++s.totals.no_room;
    return {.verdict = Verdict::no_room};
  }
  return {.verdict = Verdict::fresh, .target = {block.block.data + first, body_bytes}, .handle = slot};
}

void Receiver::State::record(Instant now, const wire::FrameHeader& header, bool is_ce) noexcept {
  if (heard_at == Instant{}) lists.restart(now, 0);
  heard_at = now;
  has_news = true;
  gaps.settle(header.settled);
  if (gaps.on_number(now, header.packet_number) && header.packet_number == gaps.largest()) largest_at = now;
  ++totals.packets_received;
  totals.ce_packets += is_ce ? 1 : 0;
  totals.gap_overflows = gaps.overflows_total();
  if (!header.is_nack_requested || (params.is_repair_lazy && !lists.is_new_request(now, header.nack_round, srtt))) return;
  is_asked = true;
  lists.on_request(header.nack_round);
}

void Receiver::accept(Instant now, const wire::FrameHeader& header, std::size_t body_bytes, const Placement& placement,
                      bool is_ce) noexcept {
  State& s = *s_;
  s.record(now, header, is_ce);
  if (placement.verdict == Placement::Verdict::duplicate) {
    s.totals.duplicate_bytes += body_bytes;
    return;
  }
  ONEHOP_CHECK(placement.verdict == Placement::Verdict::fresh);
  const std::uint64_t block_offset = header.offset / block_bytes * block_bytes;
  const std::uint32_t slot = placement.handle == no_block ? s.open_block(header.file, block_offset) : placement.handle;
  OpenBlock& block = s.open[slot];
  const auto first = static_cast<std::uint32_t>(header.offset - block_offset);
  const auto length = static_cast<std::uint32_t>(body_bytes);
  block.ranges.add(first, first + length);
  block.received += length;
  s.totals.bytes_accepted += length;
  s.cost_received += frame_cost(first + length, length, block.block.length);
  if (block.received == block.block.length) s.complete(slot);
}

void Receiver::State::complete(std::uint32_t slot) noexcept {
  OpenBlock& block = open[slot];
  block.is_open = false;
  blocks.mark_done(block.block.file, block.block.offset);
  bytes_whole += block.block.length;
  open_list.erase(std::find(open_list.begin(), open_list.end(), slot));
  full.push(slot);
  ++totals.blocks_completed;
}

void Receiver::on_ping(Instant now, const wire::FrameHeader& header, const wire::Ping& ping, std::size_t frame_bytes,
                       bool is_ce) noexcept {
  State& s = *s_;
  s.record(now, header, is_ce);
  s.told_interval = ping.feedback_interval_us * 1us;
  s.pong = {.id = ping.id, .hold_ns = 0, .received_bytes = frame_bytes};
  s.pong_at = now;
  s.has_pong = true;
}

void Receiver::on_other(Instant now, const wire::FrameHeader& header, bool is_ce) noexcept {
  s_->record(now, header, is_ce);
}

bool Receiver::pop_pong(Instant now, wire::Pong& pong) noexcept {
  State& s = *s_;
  if (!s.has_pong) return false;
  s.has_pong = false;
  // A report that will be due soon rides along: each turn on the air costs more than the frame does.
  if (s.told_interval > 0ns && s.has_news && now - s.reported_at >= s.told_interval / 2) s.report_at = now;
  pong = s.pong;
  pong.hold_ns = static_cast<std::uint64_t>(std::clamp<Nanos>(now - s.pong_at, 0ns, 10s).count());
  return true;
}

// --- feedback out
void Receiver::set_rx_ring(const QueueTelemetry& rx_ring) noexcept { s_->rx_ring = rx_ring; }

void Receiver::set_srtt(Nanos srtt) noexcept { s_->srtt = srtt; }

Bytes Receiver::State::ring_room() const noexcept {
  if (rx_ring.scope == QueueScope::none || rx_ring.capacity.count == 0) return ring_room_min;
  const Bytes share = rx_ring.capacity * ring_share_num / ring_share_den;
  return std::max(share, std::min(Bytes{static_cast<std::int64_t>(64 * params.body_bytes_max)}, ring_frames_min));
}

/// What the sender may have started: never more than there are buffers for, nor more than the ring takes before we
/// look. What was told once is never taken back.
std::uint64_t Receiver::State::credit() const noexcept {
  const std::uint64_t buffers = (blocks_given_back + params.block_slots) * block_bytes;
  const std::uint64_t ring = cost_received + static_cast<std::uint64_t>(ring_room().count);
  // Bounded before it is multiplied: a peer chooses its numbers, and how many it passes over.
  const std::uint64_t held_back = params.is_repair_lazy ? std::min(gaps.missing_now(), buffers) * params.body_bytes_max : 0;
  return std::max(credit_told, std::min(buffers, ring + held_back));
}

/// has_gap_to_tell: the oldest gap that has not had its NACK is old enough and has enough numbers behind it. (The
/// newest would not do: where every tenth packet is lost there is always one that is too young.)
bool Receiver::State::has_gap_to_tell(Instant now) const noexcept {
  const auto& list = gaps.gaps();
  const auto ends_before = [](const GapList::Gap& g, std::uint64_t number) { return g.range.last < number; };
  const auto gap = std::lower_bound(list.begin(), list.end(), nacked_to, ends_before);
  return gap != list.end() && gaps.largest() - gap->range.last >= reorder_threshold_packets &&
         now - gap->seen_at >= srtt / 8;
}

/// is_list_due: the sender asks, or a window is over and something is missing. Where nothing is, a new window begins.
bool Receiver::State::is_list_due(Instant now) noexcept {
  if (is_asked) return true;
  if (gaps.gaps().empty()) lists.restart(now, totals.bytes_accepted);
  return lists.is_window_over(now, totals.bytes_accepted);
}

/// Reports must not become the sender's limit: rare ones not where each costs a turn on the air, and the usual ones not where
/// the ring holds less than the link carries between two of them (1024 frames: 6 Gbit/s at 2 ms).
bool Receiver::is_credit_due(Instant now) const noexcept {
  const State& s = *s_;
  if (s.heard_at == Instant{}) return false;  // nobody is told yet
  const bool is_rare = s.told_interval > 0ns;
  if (now - s.reported_at < (is_rare ? report_min : report_credit_min)) return false;
  const Bytes worth_telling = is_rare ? s.ring_room() * 3 / 4 : s.ring_room() / 2;
  return s.credit() - s.credit_told >= static_cast<std::uint64_t>(worth_telling.count);
}

bool Receiver::tick(Instant now) noexcept {
  State& s = *s_;
  if (s.heard_at == Instant{}) return false;
  if (s.at_file_side_min < backlogged_blocks) s.file_side_low_at = now;
  s.at_file_side_min = s.at_file_side;
  bool is_due = now >= s.report_at && (s.has_news || now - s.reported_at >= report_idle);
  is_due = is_due || is_credit_due(now);
  bool is_list = false;
  if (s.params.is_repair_lazy) {
    is_list = s.is_list_due(now);
    is_due = is_due || is_list;
  } else if (!is_due && now - s.nack_at >= nack_spacing(s.told_interval) && s.has_gap_to_tell(now)) {
    is_due = true;
    ++s.totals.nacks;
  }
  if (!is_due && !s.is_asked) return false;
  s.is_asked = false;
  s.has_news = false;
  s.nack_at = s.reported_at = now;
  s.report_at = now + report_interval(s.srtt, s.told_interval);
  // A gap with fewer numbers behind it is listed too, but the sender waits for more: it is told again when they came.
  s.nacked_to = s.gaps.largest() - std::min(s.gaps.largest(), reorder_threshold_packets - 1);
  using Kind = ReportPages::Kind;
  s.pages.start(is_list ? Kind::list : s.params.is_repair_lazy ? Kind::counters : Kind::eager, s.gaps.settled());
  s.is_file_side_backlogged = now - s.file_side_low_at >= backlogged_span;
  if (is_list) {
    s.totals.lists += s.gaps.gaps().empty() ? 0 : 1;
    s.lists.restart(now, s.totals.bytes_accepted);
  }
  ++s.totals.reports;
  return true;
}

bool Receiver::next_feedback(Instant now, wire::Feedback& feedback) noexcept {
  State& s = *s_;
  if (!s.pages.next(s.gaps, feedback)) return false;
  feedback.receive_delay_ns = static_cast<std::uint64_t>(std::max<Nanos>(now - s.largest_at, 0ns).count());
  feedback.receiver_time_ns = static_cast<std::uint64_t>(now.time_since_epoch().count());
  feedback.received_bytes_total = s.totals.bytes_accepted;
  feedback.credit_bytes_total = s.credit_told = s.credit();
  const Bytes standing = std::clamp(s.rx_ring.occupancy, Bytes{0}, std::max(s.rx_ring.capacity, Bytes{0}));
  feedback.rx_ring = {.occupancy_bytes = static_cast<std::uint64_t>(standing.count),
                      .drained_bytes_total = s.totals.bytes_accepted,
                      .capacity_bytes = static_cast<std::uint64_t>(s.rx_ring.capacity.count),
                      .is_backlogged = s.rx_ring.is_backlogged};
  const QueueTelemetry buffer = app_buffer(now);
  feedback.app_buffer = {.occupancy_bytes = static_cast<std::uint64_t>(buffer.occupancy.count),
                         .drained_bytes_total = static_cast<std::uint64_t>(buffer.drained_total.count),
                         .capacity_bytes = static_cast<std::uint64_t>(buffer.capacity.count),
                         .is_backlogged = buffer.is_backlogged};
  feedback.kernel_drops_total = s.rx_ring.refused_total;
  feedback.ce_packets_total = s.totals.ce_packets;
  feedback.missing_packets_total = s.gaps.missing_total();
  feedback.rate_offer_bytes_per_s = static_cast<std::uint64_t>(s.params.rate_offer.count);
  return true;
}

Nanos Receiver::feedback_interval() const noexcept { return s_->told_interval; }

Instant Receiver::next_deadline() const noexcept {
  const State& s = *s_;
  if (s.heard_at == Instant{}) return Instant::max();
  return s.has_news ? s.report_at : std::max(s.report_at, s.reported_at + report_idle);
}

/// What waits for the disk. A block that waits for a repair does not: taken for a backlog, loss would slow the sender down
/// where reports are rare and many blocks are open.
QueueTelemetry Receiver::app_buffer(Instant now) const noexcept {
  const State& s = *s_;
  return {.at = now,
          .occupancy = {static_cast<std::int64_t>(s.bytes_whole - s.bytes_given_back)},
          .drained_total = {static_cast<std::int64_t>(s.bytes_given_back)},
          .capacity = {static_cast<std::int64_t>(s.params.block_slots * block_bytes)},
          .refused_total = s.totals.no_room,
          .scope = QueueScope::lower_queue,
          .is_backlogged = s.is_file_side_backlogged};
}

bool Receiver::has_started() const noexcept { return s_->totals.bytes_accepted > 0 || s_->totals.blocks_completed > 0; }
bool Receiver::is_complete() const noexcept { return s_->blocks.is_complete(); }
Instant Receiver::heard_at() const noexcept { return s_->heard_at; }
const ReceiverTotals& Receiver::totals() const noexcept { return s_->totals; }

}  // namespace onehop::transfer
