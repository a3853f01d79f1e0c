// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The link model and the pattern disk behind Pair.
#include "tests/engine/protocol/pair.hpp"

#include <algorithm>

#include "engine/base/alloc_guard.hpp"

namespace onehop::protocol {

Pair::Pair(const PairConfig& c) : config{c}, random_{c.seed} {
  const std::size_t source_slots = config.sender.block_slots;
  source_ = std::make_unique<std::byte[]>(source_slots * block_bytes);
  sink_ = std::make_unique<std::byte[]>(config.receiver_slots * block_bytes);
  sender = std::make_unique<Sender>(config.sender);
  receiver =
      std::make_unique<Receiver>(ReceiverParams{.block_slots = config.receiver_slots,
                                                .body_bytes_max = config.sender.body_bytes_max,
                                                .file_sizes = config.file_sizes,
                                                .gap_ranges_max = config.gap_ranges_max});
  for (std::size_t i = 0; i < source_slots; ++i)
    free_source_.push_back(static_cast<std::uint32_t>(i));
  for (std::size_t i = 0; i < config.receiver_slots; ++i)
    receiver->add_free(
        {.data = sink_.get() + i * block_bytes, .slot = static_cast<std::uint32_t>(i)});
  receiver->set_rx_ring(
      {.at = now, .capacity = config.ring_capacity, .scope = QueueScope::own_ring});
  sender->start(now);
}

Instant Pair::arrival(const WayConfig& way) {
  return now + way.delay + (draw(way.reorder_ppm) ? way.reorder_delay : 0ns);
}

void Pair::feed() {
  BlockRef back;
  while (sender->pop_freed(back)) free_source_.push_back(back.slot);
  while (sender->pop_sent(back)) {
  }
  while (!free_source_.empty() && next_file_ < config.file_sizes.size() &&
         sender->can_take_block()) {
    const std::uint64_t size = config.file_sizes[next_file_];
    BlockRef block{.data = source_.get() + std::size_t{free_source_.back()} * block_bytes,
                   .offset = next_offset_,
                   .file = next_file_,
                   .slot = free_source_.back()};
    block.length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(size - next_offset_, block_bytes));
    free_source_.pop_back();
    if (config.is_checking_bytes)
      for (std::uint32_t i = 0; i < block.length; ++i)
        block.data[i] = pattern(block.file, block.offset + i);
    sender->add_block(block);
    next_offset_ += block.length;
    if (next_offset_ >= size) ++next_file_, next_offset_ = 0;
  }
  if (next_file_ == config.file_sizes.size() && !has_ended_) {
    has_ended_ = true;
    sender->end_of_files();
  }
}

void Pair::send() {
  sender->tick(now, own_queue);
  debt_ = std::max(debt_ - config.rate * config.step, Bytes{-3000});
  FramePlan plan;
  const auto next = [&] {
    const AllocGuard guard;
    return sender->next(now, is_data_allowed && debt_ <= Bytes{0}, plan);
  };
  while (next()) {
    debt_ += Bytes{static_cast<std::int64_t>(plan.body_bytes) + 86};
    ++frames_sent;
    const bool is_data = plan.header.type == wire::FrameType::data;
    is_data ? ++data_frames_sent : ++pings_sent;
    if (config.is_checking_bytes && is_data)
      for (std::size_t i = 0; i < plan.body.size(); ++i)
        wrong_bytes += plan.body[i] != pattern(plan.header.file, plan.header.offset + i);
    const int copies = draw(config.forward.duplicate_ppm) ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy)
      if (plan.body_bytes <= config.forward.body_bytes_max && !draw(config.forward.loss_ppm))
        flying_.push({arrival(config.forward), ++order_, plan.header, plan.body_bytes, plan.ping});
  }
  in_flight_max_seen = std::max(in_flight_max_seen, sender->in_flight());
}

void Pair::deliver() {
  while (!flying_.empty() && flying_.top().at <= now) {
    const Flying frame = flying_.top();
    flying_.pop();
    const AllocGuard guard;
    if (frame.header.type == wire::FrameType::ping) {
      receiver->on_ping(now, frame.header, frame.ping, frame.body_bytes + wire::overhead_bytes,
                        false);
      continue;
    }
    const Placement placement = receiver->place(frame.header, frame.body_bytes);
    using Verdict = Placement::Verdict;
    if (placement.verdict == Verdict::no_room || placement.verdict == Verdict::malformed) continue;
    if (config.is_checking_bytes && placement.verdict == Verdict::fresh)
      for (std::size_t i = 0; i < frame.body_bytes; ++i)
        placement.target[i] = pattern(frame.header.file, frame.header.offset + i);
    receiver->accept(now, frame.header, frame.body_bytes, placement, false);
  }
}

void Pair::write() {
  BlockRef block;
  while (receiver->pop_full(block)) {
    if (disk_.empty()) disk_free_at_ = std::max(disk_free_at_, now);
    disk_.push_back(block);
  }
  while (!disk_.empty() && !is_disk_stalled && disk_free_at_ + config.disk_time <= now) {
    disk_free_at_ += config.disk_time;
    block = disk_.front();
    disk_.pop_front();
    if (config.is_checking_bytes)
      for (std::uint32_t i = 0; i < block.length; ++i) {
        wrong_bytes += block.data[i] != pattern(block.file, block.offset + i);
        block.data[i] = std::byte{0};
      }
    ++blocks_written;
    receiver->add_free(block);
  }
  if (is_disk_stalled) disk_free_at_ = now;
}

void Pair::answer() {
  const auto back = [&](Returning item) {
    const int copies = draw(config.backward.duplicate_ppm) ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      if (draw(config.backward.loss_ppm)) continue;
      item.at = arrival(config.backward);
      item.order = ++order_;
      returning_.push(item);
    }
  };
  wire::Pong pong;
  if (receiver->pop_pong(now, pong)) back({.is_pong = true, .pong = pong});
  if (!receiver->tick(now)) return;
  auto feedback = std::make_shared<wire::Feedback>();
  std::uint64_t ranges = 0;
  const auto next = [&] {
    const AllocGuard guard;
    return receiver->next_feedback(now, *feedback);
  };
  while (next()) {
    ranges += feedback->range_count;
    back({.feedback = feedback});
    feedback = std::make_shared<wire::Feedback>();
  }
  ranges_reported_max = std::max(ranges_reported_max, ranges);
}

void Pair::hear() {
  while (!returning_.empty() && returning_.top().at <= now) {
    const Returning item = returning_.top();
    returning_.pop();
    const AllocGuard guard;
    if (item.is_pong) {
      sender->on_pong(now, item.pong);
      receiver->set_srtt(sender->srtt());
    } else if (sender->on_feedback(now, *item.feedback) != wire::Violation::none) {
      ++violations;
    }
  }
}

void Pair::step() {
  now += config.step;
  deliver();
  write();
  answer();
  hear();
  feed();
  send();
}

void Pair::run(Nanos span) {
  for (const Instant end = now + span; now < end;) step();
}

bool Pair::run_until_whole(Nanos span) {
  for (const Instant end = now + span; now < end;) {
    step();
    if (sender->is_all_arrived()) break;
  }
  if (!sender->is_all_arrived()) return false;
  is_disk_stalled = false;
  now += config.disk_time * static_cast<int>(disk_.size() + 1);
  write();
  return receiver->is_complete() && disk_.empty();
}

}  // namespace onehop::protocol
