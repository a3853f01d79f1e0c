// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/transfer/sender.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/transfer/credit.hpp"
#include "engine/transfer/in_flight.hpp"
#include "engine/transfer/lent_blocks.hpp"
#include "engine/transfer/ping_schedule.hpp"
#include "engine/transfer/reorder.hpp"
#include "engine/transfer/repair_rounds.hpp"
#include "engine/transfer/size_search.hpp"
#include "engine/transfer/skip_schedule.hpp"
#include "engine/transfer/stall_watch.hpp"
#include "engine/transfer/tail_probe.hpp"

namespace onehop::transfer {
namespace {
// Specification.
constexpr Nanos lost_age_slack = 10ms;

// Implementation. Shares of in_flight_max that are kept back: new data leaves room for repairs, and both leave room for PING. Without
// it a window that is lost whole could never be asked after, since asking takes a number too. Smaller: a long blackhole
// uses it up (PING backs off to 1 per s, so 1/16 of 65536 lasts an hour). Larger: less data in flight.
constexpr std::size_t in_flight_min = 64;
constexpr std::size_t new_data_reserve_share = 8, repair_reserve_share = 16;
constexpr std::size_t numbers_per_frame_max = 2;  // one may be skipped on the way
}  // namespace
struct Sender::State {
  explicit State(const SenderParams& p)
      : params{p}, in_flight{p.in_flight_max, p.first_packet_number}, blocks{p.block_slots},
        resend{2 * std::bit_ceil(p.in_flight_max)}, skips{p.skip_seed, p.first_packet_number},
        pings{p.ping_period_min, p.ping_period_max}, stalls{{p.silent_limit, p.stall_limit}}, rounds{p.is_repair_lazy} {
    ONEHOP_CHECK(p.in_flight_max >= in_flight_min);
    set_body_max(p.body_bytes_max);
  }

  void set_body_max(std::size_t bytes) noexcept {
    if (bytes != body_full) search.forget();
    body_full = bytes;
    follow_search();
  }
  [[nodiscard]] bool may_send_data() const noexcept { return is_running && !is_paused && !search.is_searching(); }
  void follow_search() noexcept {
    const std::size_t limit = search.body_limit(body_full);
    if (frame_bytes > 0 && limit == params.body_bytes_max) return;
    params.body_bytes_max = limit;
    frame_bytes = wire::frame_payload_bytes(params.body_bytes_max, block_bytes);
  }
  void watch(Instant now, Bytes own_queue) noexcept;

  SentPacket& number(Instant now, wire::FrameType type, wire::FrameHeader& header) noexcept;
  [[nodiscard]] bool plan_ping(Instant now, FramePlan& plan) noexcept;
  [[nodiscard]] bool plan_resend(Instant now, FramePlan& plan) noexcept;
  [[nodiscard]] bool plan_new(Instant now, FramePlan& plan) noexcept;
  void plan_bytes(Instant now, const BlockPart& range, bool is_repair, FramePlan& plan) noexcept;
  [[nodiscard]] bool has_credit() const noexcept;
  [[nodiscard]] bool has_numbers(std::size_t reserve) const noexcept {
    return in_flight.span() + numbers_per_frame_max + reserve <= params.in_flight_max;
  }
  [[nodiscard]] bool can_repair() const noexcept { return !resend.is_empty() && has_numbers(params.in_flight_max / repair_reserve_share); }
  [[nodiscard]] bool can_start_new() const noexcept {
    return resend.is_empty() && blocks.can_start() && has_credit() && has_numbers(params.in_flight_max / new_data_reserve_share);
  }

  /// is_blocked: nothing can be sent before the peer is heard (a source that is merely slow does not count).
  [[nodiscard]] bool is_blocked() const noexcept {
    return !can_repair() && !can_start_new() && (has_ended || !blocks.can_take() || blocks.has_unsent());
  }
  void ask_if_due(FramePlan& plan) noexcept;

  void resolve(SentPacket& packet) noexcept;
  void on_arrived(SentPacket& packet) noexcept;
  void lose(SentPacket& packet) noexcept;
  [[nodiscard]] bool is_lost(Instant now, std::uint64_t number, std::uint64_t lost_below) const noexcept;
  [[nodiscard]] wire::Violation walk(Instant now, const wire::Feedback& feedback) noexcept;
  void probe() noexcept;
  SenderParams params;
  InFlight in_flight;
  LentBlocks blocks;
  FixedQueue<BlockPart> resend;
  SkipSchedule skips;
  SizeSearch search;
  std::size_t frame_bytes = 0, body_full = 0;
  std::uint64_t cost_started = 0, credit_total = 0, bytes_to_resend = 0;

  wire::Feedback newest;
  Instant feedback_at{}, started_at{};
  PingSchedule pings;
  StallWatch stalls;
  TailProbe tail;
  RepairRounds rounds;
  std::uint64_t largest_spoken_for = 0;  // one more than the largest, so that 0 is none
  std::uint64_t data_sent_below = 0;     // one more than the newest number that carries data
  std::uint64_t nack_request_id = 0;
  bool is_running = false, is_paused = false, has_ended = false, is_nack_due = false;
  SenderTotals totals;
};

Sender::Sender(const SenderParams& params) : s_{std::make_unique<State>(params)} {}
Sender::~Sender() = default;
// --- blocks
bool Sender::can_take_block() const noexcept { return s_->blocks.can_take(); }
void Sender::add_block(const BlockRef& block) noexcept { s_->blocks.add(block); }
void Sender::end_of_files() noexcept { s_->has_ended = true; }
bool Sender::pop_freed(BlockRef& block) noexcept { return s_->blocks.pop_freed(block); }
bool Sender::pop_sent(BlockRef& block) noexcept { return s_->blocks.pop_sent(block); }

// --- frames out
void Sender::prove_path(std::size_t body_bytes) noexcept { s_->pings.prove(body_bytes); }
void Sender::stop_proving() noexcept { s_->pings.stop_proving(); }
bool Sender::is_path_proven() const noexcept { return s_->pings.is_proven(); }
void Sender::start(Instant now) noexcept {
  s_->is_running = true;
  s_->started_at = now;
  s_->stalls.start(now);
  s_->pings.start();
}
void Sender::pause() noexcept { s_->is_paused = true; }
/// number takes the next packet number, fills `header` but for what belongs to data frames, and returns the packet's record.
/// Headers and plans are filled in place for the reason that InFlight::push() gives.
SentPacket& Sender::State::number(Instant now, wire::FrameType type, wire::FrameHeader& header) noexcept {
  if (skips.take(in_flight.next())) {
    (void)in_flight.push({}, PacketState::skipped);
    ++totals.packets_skipped;
  }
  header.packet_number = in_flight.next();
  SentPacket& packet = in_flight.push(now, PacketState::in_flight);
  header.type = type;
  header.settled = std::min(in_flight.settled(), header.packet_number);
  header.is_nack_requested = std::exchange(is_nack_due, false) || rounds.is_asking();
  header.nack_round = rounds.round();
  header.is_end_of_block = false;
  header.file = 0;
  header.offset = 0;
  ++totals.packets_sent;
  return packet;
}

bool Sender::State::plan_ping(Instant now, FramePlan& plan) noexcept {
  const std::size_t searched = search.take_due(now);
  if (searched == 0 && !pings.is_due(now)) return false;
  number(now, wire::FrameType::ping, plan.header);
  plan.body = {};
  plan.body_bytes = searched;
  if (searched > 0) pings.send_extra(now);
  else plan.body_bytes = std::min(pings.send(now), params.body_bytes_max);  // the MTU may have been lowered meanwhile
  plan.ping = {.id = pings.id(), .feedback_interval_us = static_cast<std::uint32_t>(pings.spacing() / 1us)};
  plan.is_retransmission = false;
  return true;
}

void Sender::State::plan_bytes(Instant now, const BlockPart& range, bool is_repair, FramePlan& plan) noexcept {
  const BlockRef& block = blocks.at(range.slot);
  SentPacket& packet = number(now, wire::FrameType::data, plan.header);
  packet.slot = range.slot;
  packet.offset_in_block = range.offset;
  packet.length = range.length;
  packet.has_data = true;
  packet.is_repair = is_repair;
  plan.header.file = block.file;
  plan.header.offset = block.offset + range.offset;
  plan.header.is_end_of_block = range.offset + range.length == block.length;
  plan.body = {block.data + range.offset, range.length};
  plan.body_bytes = range.length;
  plan.is_retransmission = is_repair;
  totals.data_bytes_sent += range.length;
  data_sent_below = plan.header.packet_number + 1;
  tail.on_sent(now);
}

bool Sender::State::plan_resend(Instant now, FramePlan& plan) noexcept {
  if (!can_repair()) return false;
  BlockPart& range = resend.front();
  const std::uint32_t length = std::min(range.length, static_cast<std::uint32_t>(params.body_bytes_max));
  plan_bytes(now, {range.slot, range.offset, length}, true, plan);
  rounds.on_repair_sent();
  totals.retransmitted_bytes += length;
  bytes_to_resend -= length;
  range.offset += length;
  range.length -= length;
  if (range.length == 0) resend.pop();
  return true;
}

/// A frame may start while any credit is left. What it goes beyond is bounded: all frames of a block cost block_bytes
/// together and the peer's buffers are whole blocks, so it never passes those; it passes the peer's receive ring by
/// one frame at most. To ask for its whole cost would stop a file of a few bytes at a ring smaller than a block.
bool Sender::State::has_credit() const noexcept { return cost_started < credit_total; }

bool Sender::State::plan_new(Instant now, FramePlan& plan) noexcept {
  if (!can_start_new()) return false;
  const BlockPart part = blocks.next_part(static_cast<std::uint32_t>(frame_bytes));
  cost_started += frame_cost(part.offset + part.length, part.length, blocks.at(part.slot).length);
  plan_bytes(now, part, false, plan);
  blocks.on_started(part.length);
  totals.new_bytes_started += part.length;
  return true;
}

bool Sender::next(Instant now, bool is_data_allowed, FramePlan& plan) noexcept {
  State& s = *s_;
  if (!can_number()) return false;
  if (s.plan_ping(now, plan)) return true;
  if (!is_data_allowed || !s.may_send_data()) return false;
  if (!s.plan_resend(now, plan) && !s.plan_new(now, plan)) return false;
  s.ask_if_due(plan);
  return true;
}

/// ask_if_due: at the end of a round, when a window is full, and with the last frame that can be sent at all.
void Sender::State::ask_if_due(FramePlan& plan) noexcept {
  // What ends the transfer is acknowledged at once, however rare reports are.
  if (has_ended && !blocks.has_unsent() && resend.is_empty()) plan.header.is_nack_requested = true;
  if (!rounds.is_lazy()) return;
  const bool is_round_over = plan.is_retransmission && resend.is_empty() && !newest.has_more;
  const bool is_window_full = 2 * blocks.sent_count() >= params.block_slots;  // half: sent, not known to have arrived
  const bool is_window_over = is_window_full && resend.is_empty() && !rounds.is_repairing();
  if (is_round_over || is_window_over || is_blocked()) rounds.ask();
  if (rounds.is_asking()) plan.header.is_nack_requested = true, plan.header.nack_round = rounds.round();
}

bool Sender::has_data() const noexcept {
  return s_->may_send_data() && (s_->can_repair() || s_->can_start_new());
}

bool Sender::has_repairs() const noexcept { return !s_->resend.is_empty(); }
bool Sender::is_credit_limited() const noexcept {
  return s_->is_running && s_->resend.is_empty() && s_->blocks.has_unsent() && !s_->has_credit();
}

Bytes Sender::offered() const noexcept { return {static_cast<std::int64_t>(s_->blocks.bytes_unsent() + s_->bytes_to_resend)}; }

std::uint64_t Sender::take_packet_number(Instant now) noexcept {
  wire::FrameHeader header;
  s_->number(now, wire::FrameType::pong, header);
  return header.packet_number;
}
std::uint64_t Sender::settled() noexcept { return s_->in_flight.settled(); }
bool Sender::can_number() const noexcept { return s_->has_numbers(0); }

// --- frames in
void Sender::State::resolve(SentPacket& packet) noexcept {
  packet.state = PacketState::resolved;
  if (packet.is_repair) rounds.on_repair_settled();
}
void Sender::State::on_arrived(SentPacket& packet) noexcept {
  resolve(packet);
  if (packet.has_data) blocks.on_arrived(packet.slot, packet.length);
}

/// lose: the bytes go out again under a new number, which from then on answers for them alone.
void Sender::State::lose(SentPacket& packet) noexcept {
  if (packet.has_data && resend.is_full()) return;  // it stays in flight, and the next report lists it again
  resolve(packet);
  if (!packet.has_data) return;
  resend.push({packet.slot, packet.offset_in_block, packet.length});
  bytes_to_resend += packet.length;
}

bool Sender::State::is_lost(Instant now, std::uint64_t number, std::uint64_t lost_below) const noexcept {
  if (number < lost_below) return true;
  const Nanos srtt = pings.srtt();
  return srtt > 0ns && now - in_flight.at(number).sent_at > srtt * 9 / 8 + lost_age_slack;
}

/// walk looks once at each number that this frame speaks for and that is not yet resolved.
wire::Violation Sender::State::walk(Instant now, const wire::Feedback& feedback) noexcept {
  const bool is_waiting = is_blocked();  // then no later number can show that it was only late
  if (feedback.is_list) rounds.on_list(in_flight.next(), !resend.is_empty(), is_waiting);
  const std::uint64_t lost_below = third_newest_received(feedback);
  std::size_t range = 0;
  const std::uint64_t first = std::max(feedback.from, in_flight.oldest());
  for (std::uint64_t number = first; number <= feedback.largest; ++number) {
    while (range < feedback.range_count && feedback.missing[range].last < number) ++range;
    const bool is_missing = range < feedback.range_count && feedback.missing[range].first <= number;
    SentPacket& packet = in_flight.at(number);
    if (packet.state == PacketState::resolved) continue;
    if (packet.state == PacketState::skipped) {
      if (!is_missing) return wire::Violation::acked_skipped;
      resolve(packet);
    } else if (!is_missing) {
      on_arrived(packet);
    } else if (rounds.is_lazy() && !rounds.has_turn(number, packet.is_repair)) {
      continue;
    } else if ((rounds.is_lazy() && (is_waiting || feedback.has_more)) || is_lost(now, number, lost_below)) {
      if (packet.has_data && !rounds.is_lazy()) ++totals.packets_lost;
      lose(packet);
    }
  }
  in_flight.settle();
  return wire::Violation::none;
}

wire::Violation Sender::on_feedback(Instant now, const wire::Feedback& feedback) noexcept {
  State& s = *s_;
  if (feedback.has_received && feedback.largest >= s.in_flight.next()) return wire::Violation::acked_unsent;
  if (s.feedback_at != Instant{} && feedback.sequence <= s.newest.sequence) {
    ++s.totals.stale_feedback;
    return wire::Violation::none;
  }
  ++s.totals.feedback_frames;
  s.totals.ce_packets = std::max(s.totals.ce_packets, feedback.ce_packets_total);
  // Between two lists the peer's count alone tells of losses. Each frame of a list carries the count of the whole list, so it is read
  // with the last frame: read earlier, it would count packets as lost that no frame has reported yet.
  const bool is_count_whole = !s.rounds.is_lazy() || !feedback.has_more;
  if (s.rounds.is_lazy() && is_count_whole) {
    const std::uint64_t lost = lost_by_count(feedback.missing_packets_total, s.totals.packets_sent, s.totals.packets_skipped);
    s.totals.packets_lost = std::max(s.totals.packets_lost, lost);
  }
  s.credit_total = std::max(s.credit_total, feedback.credit_bytes_total);
  s.feedback_at = now;
  s.newest = feedback;
  if (!feedback.has_received) return wire::Violation::none;
  if (feedback.largest >= s.largest_spoken_for) {
    s.largest_spoken_for = feedback.largest + 1;
    s.tail.on_news(now);
  }
  if (is_count_whole) {
    const std::uint64_t untold = s.in_flight.next() - s.largest_spoken_for;  // and what was skipped among them, a few at most
    s.totals.packets_told = std::max(s.totals.packets_told, s.totals.packets_sent - std::min(s.totals.packets_sent, untold));
  }
  // A skipped number below `from` was settled before the receiver could speak of it. The others there are resolved already.
  const std::uint64_t settled_below = std::min(feedback.from, s.in_flight.settled());
  for (std::uint64_t number = s.in_flight.oldest(); number < settled_below; ++number)
    if (SentPacket& packet = s.in_flight.at(number); packet.state == PacketState::skipped) s.resolve(packet);
  return s.walk(now, feedback);
}

void Sender::on_pong(Instant now, const wire::Pong& pong) noexcept {
  s_->pings.on_pong(now, pong);
  s_->search.on_pong(now, std::max<std::size_t>(pong.received_bytes, wire::overhead_bytes) - wire::overhead_bytes);
  s_->follow_search();
}
void Sender::ask_feedback(Instant now, Nanos interval, std::uint64_t nack_request_id) noexcept {
  s_->pings.set_spacing(std::clamp(interval, Nanos{0}, Nanos{wire::feedback_interval_us_max * 1us}), now);
  s_->is_nack_due = std::exchange(s_->nack_request_id, nack_request_id) != nack_request_id || s_->is_nack_due;
}

// --- time
/// probe resends the newest unresolved packet: what is lost at the very end leaves no gap behind it.
void Sender::State::probe() noexcept {
  for (std::uint64_t number = in_flight.next(); number-- > in_flight.oldest();) {
    SentPacket& packet = in_flight.at(number);
    if (packet.state != PacketState::in_flight || !packet.has_data) continue;
    ++totals.probes;
    lose(packet);
    rounds.ask();
    return;
  }
}

/// watch looks whether data gets through at all.
void Sender::State::watch(Instant now, Bytes own_queue) noexcept {
  if (!is_running || is_paused) return;
  stalls.tick(now, {.is_under_way = blocks.sent_count() > 0 || !resend.is_empty(), .is_waiting = blocks.has_unsent() && !has_credit(),
                    .arrived_bytes = blocks.bytes_arrived(), .peer_moved_bytes = credit_total + newest.app_buffer.drained_bytes_total});
  const auto queued = static_cast<std::uint64_t>(std::max<std::int64_t>(own_queue.count, 0));
  search.tick(now, {.sent_bytes = totals.data_bytes_sent - std::min(totals.data_bytes_sent, queued),
                    .arrived_bytes = newest.received_bytes_total, .started_bytes = totals.new_bytes_started,
                    .heard_at = feedback_at, .asked_at = pings.asked_at(), .answered_at = pings.answered_at(), .srtt = pings.srtt(), .body_max = body_full,
                    .can_ask = has_numbers(params.in_flight_max / repair_reserve_share)});
  follow_search();
}

void Sender::tick(Instant now, Bytes own_queue) noexcept {
  State& s = *s_;
  s.watch(now, own_queue);
  // A lazy peer may have spoken of a number and left it for later: then it counts until it has arrived.
  const std::uint64_t settled_below = std::max(s.rounds.is_lazy() ? 0 : s.largest_spoken_for, s.in_flight.oldest());
  const bool has_unspoken = s.data_sent_below > settled_below;
  const bool is_armed = s.is_running && !s.is_paused && has_unspoken && s.resend.is_empty() && !s.can_start_new();
  // Rare reports are no sign of loss; at the end one was asked for at once.
  const Nanos quiet = s.has_ended ? s.pings.srtt() : std::max(s.pings.srtt(), s.pings.spacing());
  if (s.tail.tick(now, is_armed, own_queue, quiet)) s.probe();
}

Instant Sender::next_deadline() const noexcept { return std::min({s_->pings.due_at(), s_->tail.deadline(), s_->search.due_at()}); }

bool Sender::is_silent(Instant now) const noexcept {
  return s_->is_running && now - std::max(s_->started_at, s_->feedback_at) > s_->params.silent_limit;
}

bool Sender::is_stalled(Instant now) const noexcept { return s_->is_running && !s_->is_paused && s_->stalls.is_stalled(now); }
void Sender::set_body_max(std::size_t body_bytes_max) noexcept { s_->set_body_max(body_bytes_max); }
bool Sender::is_all_arrived() const noexcept { return s_->has_ended && s_->blocks.is_empty(); }
Nanos Sender::srtt() const noexcept { return s_->pings.srtt(); }
Nanos Sender::rtt() const noexcept { return s_->pings.rtt(); }
const SenderTotals& Sender::totals() const noexcept { return s_->totals; }
const wire::Feedback& Sender::newest_feedback() const noexcept { return s_->newest; }
Instant Sender::feedback_at() const noexcept { return s_->feedback_at; }
std::size_t Sender::frame_payload_bytes() const noexcept { return s_->frame_bytes; }
std::size_t Sender::in_flight() const noexcept { return s_->in_flight.span(); }
std::uint64_t Sender::pings_sent() const noexcept { return s_->pings.id(); }
std::size_t Sender::proven_frame_bytes() const noexcept { return s_->pings.proven_frame_bytes(); }

}  // namespace onehop::transfer
