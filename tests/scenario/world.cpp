// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tests/scenario/world.hpp"

#include <algorithm>

#include "control/law/make_law.hpp"
#include "engine/base/check.hpp"
#include "engine/crypto/key_schedule.hpp"

namespace onehop::scenario {

namespace {

run::GateKeys keys_for(const WorldConfig& config, bool is_sender) {
  crypto::ExporterSecret exporter;  // any secret serves, both ends derive from the same one
  const auto from_sender = crypto::direction_secret(exporter, crypto::Direction::from_sender, 0);
  const auto from_receiver = crypto::direction_secret(exporter, crypto::Direction::from_receiver, 0);
  return {.send = is_sender ? from_sender : from_receiver,
          .receive = is_sender ? from_receiver : from_sender,
          .key_interval_packets = config.key_interval_packets};
}

run::SenderLoopConfig sender_config(const WorldConfig& config) {
  run::SenderLoopConfig loop;
  loop.frame_bytes = config.frame_bytes;
  loop.sender.body_bytes_max = config.frame_bytes - wire::overhead_bytes;
  loop.sender.block_slots = config.sender_slots;
  loop.sender.first_packet_number = config.first_packet_number;
  loop.sender.skip_seed = config.seed;
  loop.sender.is_repair_lazy = config.is_repair_lazy;
  return loop;
}

run::ReceiverLoopConfig receiver_config(const WorldConfig& config) {
  run::ReceiverLoopConfig loop;
  loop.frame_bytes = config.frame_bytes;
  loop.first_packet_number = config.first_packet_number;
  loop.receiver.block_slots = config.receiver_slots;
  loop.receiver.body_bytes_max = config.frame_bytes - wire::overhead_bytes;
  loop.receiver.file_sizes = config.file_sizes;
  loop.receiver.is_repair_lazy = config.is_repair_lazy;
  return loop;
}

}  // namespace

World::World(const WorldConfig& config)
    : config_{config},
      link_{{.directions = {config.forward, config.backward}, .seed = config.seed, .frame_bytes_max = config.frame_bytes}},
      sender_port_{link_, 0}, receiver_port_{link_, 1},
      source_{config.seed, config.sender_slots}, sink_{config.seed, config.receiver_slots},
      sender_{sender_port_, keys_for(config_, true), sender_config(config_), sender_side_.links()},
      receiver_{receiver_port_, keys_for(config_, false), receiver_config(config_), receiver_side_.links()},
      disk_rate_{config.disk_rate} {
  auto law = law::make_law({.spec = config.law});
  ONEHOP_CHECK(law.has_value());
  law_ = std::move(law).value();
  rate_ = std::make_unique<rate::RateLoop>(*law_, nullptr, sender_side_.report, limits_, sender_side_.grant, state_, nullptr);
  for (std::uint32_t slot = 0; slot < source_.slots(); ++slot) free_slots_.push_back(slot);
  for (std::uint32_t slot = 0; slot < sink_.slots(); ++slot)
    ONEHOP_CHECK(receiver_side_.file_to_engine.push(sink_.lend(slot)));
  for (const std::uint64_t size : config_.file_sizes) bytes_total_ += size;
}

World::~World() = default;

void World::start() {
  const CommandKind kind = config_.is_path_proof_skipped ? CommandKind::start : CommandKind::prove_path;
  ONEHOP_CHECK(sender_side_.commands.push({.kind = kind}));
  ONEHOP_CHECK(receiver_side_.commands.push({.kind = kind}));
}

const Outcome& World::run(Nanos span) {
  const Instant until = now() + span;
  while (!outcome_.is_finished && !outcome_.has_failed && now() < until) step();
  return outcome_;
}

void World::step() {
  const Instant start = now();
  Instant next = std::min({std::max(sender_at_, start), std::max(receiver_at_, start), std::max(tick_at_, start)});
  next = std::min({next, std::max(sender_port_.ready_at(), start), std::max(receiver_port_.ready_at(), start)});
  next = std::min(next, std::max(link_.next_event(), start));
  link_.run_until(next);
  const Instant t = link_.now();
  if (t >= sender_at_ || t >= sender_port_.ready_at()) {
    feed_sender();
    const run::Rest rest = sender_.turn(t);
    sender_at_ = std::max(rest.deadline, t + 1us);
    (void)sender_port_.wait(sender_at_, rest.is_rx_wanted);
  }
  if (t >= receiver_at_ || t >= receiver_port_.ready_at()) {
    const run::Rest rest = receiver_.turn(t);
    receiver_at_ = std::max(rest.deadline, t + 1us);
    (void)receiver_port_.wait(receiver_at_, rest.is_rx_wanted);
    drain_receiver();
  }
  if (t >= tick_at_) {
    rate_->tick(t);
    tick_at_ = t + config_.tick;
  }
  take_events();
}

bool World::next_block(BlockRef& block) {
  if (next_file_ >= config_.file_sizes.size()) return false;
  const std::uint64_t size = config_.file_sizes[next_file_];
  block.file = next_file_;
  block.offset = next_offset_;
  block.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(block_bytes, size - next_offset_));
  next_offset_ += block_bytes;
  if (next_offset_ >= size) {
    ++next_file_;
    next_offset_ = 0;
  }
  return true;
}

void World::feed_sender() {
  BlockRef back;
  while (sender_side_.engine_to_file.pop(back))
    if (back.kind == BlockKind::block) free_slots_.push_back(back.slot);
  while (!free_slots_.empty()) {
    BlockRef block = source_.lend(free_slots_.back());
    if (!next_block(block)) break;
    free_slots_.pop_back();
    source_.fill(block);
    ONEHOP_CHECK(sender_side_.file_to_engine.push(block));
  }
  if (next_file_ >= config_.file_sizes.size() && !has_ended_) {
    has_ended_ = true;
    ONEHOP_CHECK(sender_side_.file_to_engine.push({.kind = BlockKind::end_of_files}));
  }
}

/// The model disk writes one block after the other at disk_rate_; a written block's bytes are checked and its buffer given back.
void World::drain_receiver() {
  BlockRef block;
  while (receiver_side_.engine_to_file.pop(block))
    if (block.kind == BlockKind::block) on_disk_.push_back(block);
  const Instant t = now();
  while (on_disk_head_ < on_disk_.size() && disk_free_at_ <= t) {
    const BlockRef& full = on_disk_[on_disk_head_++];
    outcome_.bytes_wrong += sink_.wrong_bytes(full);
    outcome_.bytes_checked += full.length;
    if (disk_rate_.count > 0) disk_free_at_ = std::max(disk_free_at_, t - 5ms) + time_for(Bytes{full.length}, disk_rate_);
    ONEHOP_CHECK(receiver_side_.file_to_engine.push(sink_.lend(full.slot)));
  }
}

void World::take_events() {
  Event event;
  const auto take = [&](Side& side) {
    while (side.events.pop(event)) {
      switch (event.kind) {
        case EventKind::path_proven:
          if (++proofs_ == 2) {
            ONEHOP_CHECK(sender_side_.commands.push({.kind = CommandKind::start}));
            ONEHOP_CHECK(receiver_side_.commands.push({.kind = CommandKind::start}));
          }
          break;
        case EventKind::first_data:
          if (outcome_.first_data_at == Instant{}) outcome_.first_data_at = event.at;
          break;
        case EventKind::path_dead:
        case EventKind::feedback_silent:
        case EventKind::protocol_error:
        case EventKind::port_failed:
          outcome_.has_failed = true;
          outcome_.failure = event.kind;
          break;
        default: break;
      }
    }
  };
  take(sender_side_);
  take(receiver_side_);
  if (sender_.sender().is_all_arrived() && outcome_.bytes_checked == bytes_total_ && !outcome_.is_finished) {
    outcome_.is_finished = true;
    outcome_.finished_at = now();
  }
}

}  // namespace onehop::scenario
