// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/protocol/sender.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/protocol/credit.hpp"
#include "engine/protocol/reorder.hpp"

namespace onehop::protocol {
namespace {
// Specification.
constexpr Nanos lost_age_slack = 10ms;

// Implementation. Shares of in_flight_max that are kept back: new data leaves room for repairs, and
// both leave room for PING. Without it a window that is lost whole could never be asked after,
// since asking takes a number too. Smaller: a long blackhole uses it up (PING backs off to 1 per s,
// so 1/16 of 65536 lasts an hour). Larger: less data in flight.
constexpr std::size_t in_flight_min = 64;
constexpr std::size_t new_data_reserve_share = 8, repair_reserve_share = 16;
constexpr std::size_t numbers_per_frame_max = 2;  // one may be skipped on the way
}  // namespace

Sender::Sender(const SenderParams& params)
    : params_{params},
      in_flight_{params.in_flight_max, params.first_packet_number},
      blocks_{params.block_slots},
      resend_{2 * std::bit_ceil(params.in_flight_max)},
      skips_{params.skip_seed, params.first_packet_number},
      pings_{params.ping_period_min, params.ping_period_max},
      rounds_{params.is_repair_lazy} {
  ONEHOP_CHECK(params.in_flight_max >= in_flight_min);
  set_body_max(params.body_bytes_max);
}

void Sender::start(Instant now) noexcept {
  if (mode_ == Mode::idle) mode_ = Mode::running;
  started_at_ = now;
  moved_at_ = now;
  pings_.start();
}

void Sender::set_body_max(std::size_t body_bytes_max) noexcept {
  if (body_bytes_max != body_full_) search_.forget();
  body_full_ = body_bytes_max;
  follow_search();
}

void Sender::follow_search() noexcept {
  const std::size_t limit = search_.body_limit(body_full_);
  if (frame_bytes_ > 0 && limit == body_max_) return;
  body_max_ = limit;
  frame_bytes_ = wire::frame_payload_bytes(body_max_, block_bytes);
}

// --- what may be sent
bool Sender::has_numbers(std::size_t reserve) const noexcept {
  return in_flight_.span() + numbers_per_frame_max + reserve <= params_.in_flight_max;
}
bool Sender::can_repair() const noexcept {
  return !resend_.empty() && has_numbers(params_.in_flight_max / repair_reserve_share);
}
bool Sender::can_start_new() const noexcept {
  return resend_.empty() && blocks_.can_start() && has_credit() &&
         has_numbers(params_.in_flight_max / new_data_reserve_share);
}
/// is_blocked: nothing can be sent before a report comes. A slow source does not count.
bool Sender::is_blocked() const noexcept {
  return !can_repair() && !can_start_new() &&
         (has_ended_ || !blocks_.can_take() || blocks_.has_unsent());
}

// --- frames out
bool Sender::next(Instant now, bool is_data_allowed, FramePlan& plan) noexcept {
  if (!can_number()) return false;
  if (plan_ping(now, plan)) return true;
  if (!is_data_allowed || !may_send_data()) return false;
  if (!plan_resend(now, plan) && !plan_new(now, plan)) return false;
  ask_if_due(plan);
  return true;
}

/// number takes the next packet number, fills `header` but for what belongs to data frames, and
/// returns the packet's record. Filled in place for InFlight::push()'s reason.
SentPacket& Sender::number(Instant now, wire::FrameType type, wire::FrameHeader& header) noexcept {
  if (skips_.take(in_flight_.next())) {
    (void)in_flight_.push({}, PacketState::skipped);
    ++totals_.packets_skipped;
  }
  header.packet_number = in_flight_.next();
  SentPacket& packet = in_flight_.push(now, PacketState::in_flight);
  header.type = type;
  header.settled = std::min(in_flight_.settled(), header.packet_number);
  header.is_nack_requested = std::exchange(is_nack_due_, false) || rounds_.is_asking();
  header.nack_round = rounds_.round();
  header.is_end_of_block = false;
  header.file = 0;
  header.offset = 0;
  ++totals_.packets_sent;
  return packet;
}

wire::FrameHeader Sender::take_pong_header(Instant now) noexcept {
  wire::FrameHeader header;
  number(now, wire::FrameType::pong, header);
  return header;
}

bool Sender::plan_ping(Instant now, FramePlan& plan) noexcept {
  const std::size_t searched = search_.take_due(now);
  if (searched == 0 && !pings_.is_due(now)) return false;
  number(now, wire::FrameType::ping, plan.header);
  plan.body = {};
  plan.body_bytes = searched;
  if (searched > 0)
    pings_.send_extra(now);
  else  // the MTU may have been lowered meanwhile
    plan.body_bytes = std::min(pings_.send(now), body_max_);
  plan.ping = {.id = pings_.id(),
               .feedback_interval_us = static_cast<std::uint32_t>(pings_.spacing() / 1us)};
  plan.is_retransmission = false;
  return true;
}

void Sender::plan_bytes(Instant now, const BlockPart& range, bool is_repair,
                        FramePlan& plan) noexcept {
  const BlockRef& block = blocks_.at(range.slot);
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
  totals_.data_bytes_sent += range.length;
  data_sent_below_ = plan.header.packet_number + 1;
  tail_.on_sent(now);
}

bool Sender::plan_resend(Instant now, FramePlan& plan) noexcept {
  if (!can_repair()) return false;
  BlockPart& range = resend_.front();
  const std::uint32_t length = std::min(range.length, static_cast<std::uint32_t>(body_max_));
  plan_bytes(now, {range.slot, range.offset, length}, true, plan);
  rounds_.on_repair_sent();
  totals_.retransmitted_bytes += length;
  bytes_to_resend_ -= length;
  range.offset += length;
  range.length -= length;
  if (range.length == 0) resend_.pop_front();
  return true;
}

bool Sender::plan_new(Instant now, FramePlan& plan) noexcept {
  if (!can_start_new()) return false;
  const BlockPart part = blocks_.next_part(static_cast<std::uint32_t>(frame_bytes_));
  cost_started_ += frame_cost(part.offset + part.length, part.length, blocks_.at(part.slot).length);
  plan_bytes(now, part, false, plan);
  blocks_.on_started(part.length);
  totals_.new_bytes_started += part.length;
  return true;
}

/// ask_if_due: at the end of a round, in a full window, and with the last frame that can be sent.
void Sender::ask_if_due(FramePlan& plan) noexcept {
  // What ends the transfer is acknowledged at once, however rare reports are.
  if (has_ended_ && !blocks_.has_unsent() && resend_.empty()) plan.header.is_nack_requested = true;
  if (!rounds_.is_lazy()) return;
  const bool is_round_over = plan.is_retransmission && resend_.empty() && !newest_.has_more;
  // A window is full when half of the blocks are sent and not known to have arrived.
  const bool is_window_full = 2 * blocks_.sent_count() >= params_.block_slots;
  const bool is_window_over = is_window_full && resend_.empty() && !rounds_.is_repairing();
  if (is_round_over || is_window_over || is_blocked()) rounds_.ask();
  if (!rounds_.is_asking()) return;
  plan.header.is_nack_requested = true;
  plan.header.nack_round = rounds_.round();
}

// --- frames in
wire::Violation Sender::on_feedback(Instant now, const wire::Feedback& feedback) noexcept {
  if (feedback.has_received && feedback.largest >= in_flight_.next())
    return wire::Violation::acked_unsent;
  if (feedback_at_ != Instant{} && feedback.sequence <= newest_.sequence)
    return wire::Violation::none;
  credit_total_ = std::max(credit_total_, feedback.credit_bytes_total);
  feedback_at_ = now;
  newest_ = feedback;
  if (feedback.has_received && feedback.largest >= reported_below_) {
    reported_below_ = feedback.largest + 1;
    tail_.on_news(now);
  }
  count_report(feedback);
  if (!feedback.has_received) return wire::Violation::none;
  // A skipped number below `from` was settled unreported. The others there are resolved.
  const std::uint64_t settled_below = std::min(feedback.from, in_flight_.settled());
  for (std::uint64_t number = in_flight_.oldest(); number < settled_below; ++number)
    if (SentPacket& packet = in_flight_.at(number); packet.state == PacketState::skipped)
      resolve(packet);
  return walk(now, feedback);
}

/// count_report updates the totals. Between two lists of a lazy peer only its count says how much
/// was lost. Each frame of a list carries the count of the whole list, so it is read with the last
/// frame: before, it would count packets as lost that no frame has reported yet.
void Sender::count_report(const wire::Feedback& feedback) noexcept {
  ++totals_.feedback_frames;
  totals_.ce_packets = std::max(totals_.ce_packets, feedback.ce_packets_total);
  if (rounds_.is_lazy() && feedback.has_more) return;
  if (rounds_.is_lazy())
    totals_.packets_lost = std::max(
        totals_.packets_lost, lost_by_count(feedback.missing_packets_total, totals_.packets_sent,
                                            totals_.packets_skipped));
  if (!feedback.has_received) return;
  // Not reported yet; a few skipped numbers may be among them.
  const std::uint64_t unreported = in_flight_.next() - reported_below_;
  totals_.packets_reported = std::max(
      totals_.packets_reported, totals_.packets_sent - std::min(totals_.packets_sent, unreported));
}

/// walk looks once at each number that this frame reports and that is not yet resolved.
wire::Violation Sender::walk(Instant now, const wire::Feedback& feedback) noexcept {
  const bool is_waiting = is_blocked();  // then no later number can show that it was only late
  if (feedback.is_list) rounds_.on_list(in_flight_.next(), !resend_.empty(), is_waiting);
  const std::uint64_t lost_below = third_newest_received(feedback);
  std::size_t range = 0;
  const std::uint64_t first = std::max(feedback.from, in_flight_.oldest());
  for (std::uint64_t number = first; number <= feedback.largest; ++number) {
    while (range < feedback.range_count && feedback.missing[range].last < number) ++range;
    const bool is_missing = range < feedback.range_count && feedback.missing[range].first <= number;
    SentPacket& packet = in_flight_.at(number);
    if (packet.state == PacketState::resolved) continue;
    if (packet.state == PacketState::skipped) {
      if (!is_missing) return wire::Violation::acked_skipped;
      resolve(packet);
    } else if (!is_missing) {
      resolve(packet);
      if (packet.has_data) blocks_.on_arrived(packet.slot, packet.length);
    } else if (rounds_.is_lazy() && !rounds_.is_eligible(number, packet.is_repair)) {
      continue;
    } else if ((rounds_.is_lazy() && (is_waiting || feedback.has_more)) ||
               is_lost(now, number, lost_below)) {
      if (packet.has_data && !rounds_.is_lazy()) ++totals_.packets_lost;
      lose(packet);
    }
  }
  in_flight_.settle();
  return wire::Violation::none;
}

void Sender::resolve(SentPacket& packet) noexcept {
  packet.state = PacketState::resolved;
  if (packet.is_repair) rounds_.on_repair_settled();
}

/// lose: the bytes go out again under a new number, and from then on only that number counts.
void Sender::lose(SentPacket& packet) noexcept {
  // Without room it stays in flight, and the next report lists it again.
  if (packet.has_data && resend_.full()) return;
  resolve(packet);
  if (!packet.has_data) return;
  resend_.push_back({packet.slot, packet.offset_in_block, packet.length});
  bytes_to_resend_ += packet.length;
}

bool Sender::is_lost(Instant now, std::uint64_t number, std::uint64_t lost_below) noexcept {
  if (number < lost_below) return true;
  return srtt() > 0ns && now - in_flight_.at(number).sent_at > srtt() * 9 / 8 + lost_age_slack;
}

void Sender::on_pong(Instant now, const wire::Pong& pong) noexcept {
  pings_.on_pong(now, pong);
  search_.on_pong(
      now, std::max<std::size_t>(pong.received_bytes, wire::overhead_bytes) - wire::overhead_bytes);
  follow_search();
}

void Sender::ask_feedback(Instant now, Nanos interval, std::uint64_t nack_request_id) noexcept {
  pings_.set_spacing(std::clamp(interval, Nanos{0}, Nanos{wire::feedback_interval_us_max * 1us}),
                     now);
  if (std::exchange(nack_request_id_, nack_request_id) != nack_request_id) is_nack_due_ = true;
}

// --- time
void Sender::tick(Instant now, Bytes own_queue) noexcept {
  check_progress(now, own_queue);
  // A lazy peer may report a number and leave its repair for later: it counts until it arrives.
  const std::uint64_t settled_below =
      std::max(rounds_.is_lazy() ? 0 : reported_below_, in_flight_.oldest());
  const bool is_armed = mode_ == Mode::running && data_sent_below_ > settled_below &&
                        resend_.empty() && !can_start_new();
  // Rare reports are no sign of loss; at the end one was asked for at once.
  const Nanos quiet = has_ended_ ? srtt() : std::max(srtt(), pings_.spacing());
  if (tail_.tick(now, is_armed, own_queue, quiet)) probe();
}

/// probe resends the newest unresolved packet: what is lost at the end leaves no gap.
void Sender::probe() noexcept {
  for (std::uint64_t number = in_flight_.next(); number-- > in_flight_.oldest();) {
    SentPacket& packet = in_flight_.at(number);
    if (packet.state != PacketState::in_flight || !packet.has_data) continue;
    ++totals_.probes;
    lose(packet);
    rounds_.ask();
    return;
  }
}

/// check_progress looks whether data gets through at all.
void Sender::check_progress(Instant now, Bytes own_queue) noexcept {
  if (mode_ != Mode::running) return;
  check_moving(now);
  const std::uint64_t sent = totals_.data_bytes_sent;
  const auto queued = static_cast<std::uint64_t>(std::max<std::int64_t>(own_queue.count, 0));
  search_.tick(now, {.sent_bytes = sent - std::min(sent, queued),
                     .arrived_bytes = newest_.received_bytes_total,
                     .started_bytes = totals_.new_bytes_started,
                     .feedback_at = feedback_at_,
                     .asked_at = pings_.asked_at(),
                     .answered_at = pings_.answered_at(),
                     .srtt = srtt(),
                     .body_max = body_full_,
                     .can_ask = has_numbers(params_.in_flight_max / repair_reserve_share)});
  follow_search();
}

/// check_moving looks whether the transfer moves, whatever small frames the peer still answers.
/// While data is under way only its arrival counts; while the peer's credit is used up, what its
/// disk takes and what it allows. A source that has nothing to send stalls nothing.
void Sender::check_moving(Instant now) noexcept {
  const std::uint64_t arrived = blocks_.bytes_arrived();
  const std::uint64_t peer_moved =
      credit_total_ + static_cast<std::uint64_t>(newest_.app_buffer.drained_total.count);
  const bool is_arriving = arrived != std::exchange(arrived_bytes_, arrived);
  const bool is_peer_moving = peer_moved != std::exchange(peer_moved_bytes_, peer_moved);
  const bool is_waiting = blocks_.has_unsent() && !has_credit();
  is_under_way_ = blocks_.sent_count() > 0 || !resend_.empty();
  if (is_arriving || (!is_under_way_ && (is_peer_moving || !is_waiting))) moved_at_ = now;
}

Instant Sender::next_deadline() const noexcept {
  return std::min({pings_.due_at(), tail_.deadline(), search_.due_at()});
}

bool Sender::is_silent(Instant now) const noexcept {
  return mode_ != Mode::idle && now - std::max(started_at_, feedback_at_) > params_.silent_limit;
}

}  // namespace onehop::protocol
