// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/fwp/session.hpp"

#include <algorithm>

#include "engine/base/check.hpp"
#include "engine/crypto/key_schedule.hpp"
#include "engine/disk/thread/block_pool.hpp"

namespace onehop::fwp {

namespace {

constexpr std::size_t frame_bytes = 1472;
constexpr std::uint64_t endless_bytes = std::uint64_t{1} << 40;

VirtualLink::Options link_of(const SessionConfig& config) {
  VirtualLinkConfig way;
  way.rate = {};  // served by the air alone
  way.queue_capacity = Bytes{256 * 1514};
  way.delay = 1us;
  way.ring_frames = 4096;
  VirtualLinkConfig data = way;
  data.loss_ppm = static_cast<std::uint32_t>(config.frame_error_rate * 1e6);
  return {.directions = {data, way}, .seed = config.seed, .frame_bytes_max = frame_bytes};
}

run::SessionKeys keys(bool is_sender) {
  crypto::ExporterSecret exporter;  // any secret serves, both ends derive from the same one
  const auto from_sender = crypto::direction_secret(exporter, crypto::Direction::from_sender, 0);
  const auto from_receiver =
      crypto::direction_secret(exporter, crypto::Direction::from_receiver, 0);
  return {.send = is_sender ? from_sender : from_receiver,
          .receive = is_sender ? from_receiver : from_sender,
          .key_interval_packets = 1U << 22};
}

run::SenderLoopConfig sender_config(const SessionConfig& config) {
  run::SenderLoopConfig loop;
  loop.frame_bytes = frame_bytes;
  loop.sender.body_bytes_max = frame_bytes - wire::overhead_bytes;
  loop.sender.block_slots = disk::sender_slots;
  loop.sender.skip_seed = config.seed;
  loop.sender.is_repair_lazy = config.is_repair_lazy;
  return loop;
}

run::ReceiverLoopConfig receiver_config(const SessionConfig& config,
                                        const std::vector<std::uint64_t>& file_sizes) {
  run::ReceiverLoopConfig loop;
  loop.frame_bytes = frame_bytes;
  loop.receiver.block_slots = disk::receiver_slots;
  loop.receiver.body_bytes_max = frame_bytes - wire::overhead_bytes;
  loop.receiver.file_sizes = file_sizes;
  loop.receiver.is_repair_lazy = config.is_repair_lazy;
  return loop;
}

}  // namespace

FwpSession::FwpSession(const SessionConfig& config)
    : file_sizes_{endless_bytes},
      link_{link_of(config)},
      sender_port_{link_, 0},
      receiver_port_{link_, 1},
      source_(block_bytes),
      sink_{std::make_unique<std::byte[]>(disk::receiver_slots * block_bytes)},
      sender_{sender_port_, keys(true), sender_config(config), sender_side_.links()},
      receiver_{receiver_port_, keys(false), receiver_config(config, file_sizes_),
                receiver_side_.links()},
      stations_{{*this, 0, 0, config.seed}, {*this, 1, config.frame_error_rate, config.seed}} {
  for (std::uint32_t slot = 0; slot < disk::sender_slots; ++slot) free_slots_.push_back(slot);
  for (std::uint32_t slot = 0; slot < disk::receiver_slots; ++slot)
    ONEHOP_CHECK(receiver_side_.file_to_engine.push(
        {.data = sink_.get() + std::size_t{slot} * block_bytes, .slot = slot}));
  // The queue is kept full, as the paper's TCP keeps it: the table is about the air, not about a
  // law.
  sender_side_.grant.store(
      {.rate = mbit_per_s(600), .backlog_max = Bytes{128 * 1514}, .batch_frames = 32});
  ONEHOP_CHECK(sender_side_.commands.push({.kind = CommandKind::start}));
  ONEHOP_CHECK(receiver_side_.commands.push({.kind = CommandKind::start}));
}

void FwpSession::play(Instant until) {
  while (link_.now() < until) {
    Instant next = std::min({until, sender_at_, receiver_at_, sender_port_.ready_at(),
                             receiver_port_.ready_at(), link_.next_event()});
    next = std::max(next, link_.now());
    link_.run_until(next);
    const Instant t = link_.now();
    if (t >= sender_at_ || t >= sender_port_.ready_at()) {
      feed();
      const run::NextWakeup wakeup = sender_.turn(t);
      sender_at_ = std::max(wakeup.deadline, t + 1us);
      (void)sender_port_.wait(sender_at_, wakeup.is_rx_wanted);
    }
    if (t >= receiver_at_ || t >= receiver_port_.ready_at()) {
      const run::NextWakeup wakeup = receiver_.turn(t);
      receiver_at_ = std::max(wakeup.deadline, t + 1us);
      (void)receiver_port_.wait(receiver_at_, wakeup.is_rx_wanted);
      write();
    }
    Event event;
    while (sender_side_.events.pop(event))
      ONEHOP_CHECK(event.kind != EventKind::protocol_error &&
                   event.kind != EventKind::feedback_silent);
    while (receiver_side_.events.pop(event)) ONEHOP_CHECK(event.kind != EventKind::feedback_silent);
  }
}

void FwpSession::feed() {
  BlockRef back;
  while (sender_side_.engine_to_file.pop(back)) free_slots_.push_back(back.slot);
  for (; !free_slots_.empty(); free_slots_.pop_back(), next_offset_ += block_bytes)
    ONEHOP_CHECK(sender_side_.file_to_engine.push({.data = source_.data(),
                                                   .offset = next_offset_,
                                                   .length = block_bytes,
                                                   .slot = free_slots_.back()}));
}

/// A disk that takes no time.
void FwpSession::write() {
  BlockRef block;
  while (receiver_side_.engine_to_file.pop(block))
    if (block.kind == BlockKind::block)
      ONEHOP_CHECK(receiver_side_.file_to_engine.push(
          {.data = sink_.get() + std::size_t{block.slot} * block_bytes, .slot = block.slot}));
}

}  // namespace onehop::fwp
