// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/world/world.hpp"

#include <algorithm>

#include "engine/base/check.hpp"
#include "engine/protocol/file_table.hpp"

namespace onehop::scenario {

namespace {

run::SenderLoopConfig sender_config(const WorldConfig& config) {
  return {.sender = {.block_slots = config.sender_slots,
                     .in_flight_max = config.in_flight_max,
                     .first_packet_number = config.first_packet_number,
                     .skip_seed = config.seed,
                     .is_repair_lazy = config.is_repair_lazy},
          .frame_bytes = config.frame_bytes};
}

/// All that the engine takes beside the first, of which its configuration tells.
constexpr std::size_t volumes_told_max = protocol::FileTable::volumes_max - 1;

std::size_t files_of_first(const WorldConfig& config) {
  const std::size_t all = config.file_sizes.size();
  return config.volume_files == 0 ? all : std::min(config.volume_files, all);
}

run::ReceiverLoopConfig receiver_config(const WorldConfig& config) {
  return {.receiver = {.block_slots = config.receiver_slots,
                       .file_sizes = std::span{config.file_sizes}.first(files_of_first(config)),
                       .gap_ranges_max = config.gap_ranges_max,
                       .is_repair_lazy = config.is_repair_lazy},
          .frame_bytes = config.frame_bytes,
          .first_packet_number = config.first_packet_number};
}

}  // namespace

World::World(const WorldConfig& config)
    : config_{config},
      link_{{.directions = {config.forward, config.backward},
             .seed = config.seed,
             .frame_bytes_max = config.frame_bytes,
             .frames_max = config.link_frames_max}},
      sender_port_{link_, 0, config.rings},
      receiver_port_{link_, 1, config.rings},
      source_{config.seed, config.sender_slots},
      sink_{config.seed, config.receiver_slots},
      ends_{sender_port_,           receiver_port_,
            sender_config(config_), receiver_config(config_),
            config.links,           config.key_interval_packets},
      disk_rate_{config.disk_rate} {
  ends_.set_law({.spec = config.law,
                 .has_qcut = config.has_qcut,
                 .is_repair_lazy = config.is_repair_lazy && config.has_loss_mask});
  for (std::uint32_t slot = 0; slot < sink_.slots(); ++slot)
    to_receiver_.push_back(sink_.lend(slot));
  feed_receiver();
  for (const std::uint64_t size : config_.file_sizes)
    bytes_total_ += size == file_without_blocks ? 0 : size;
  files_told_ = files_of_first(config_);
  skip_packed();
}

World::~World() = default;

void World::start() {
  ends_.command(
      {.kind = config_.is_path_proof_skipped ? CommandKind::start : CommandKind::prove_path});
}

void World::follow_path(std::uint16_t mtu_bytes, bool is_up) {
  ends_.command(
      {.kind = CommandKind::path_update, .path = {.mtu_bytes = mtu_bytes, .is_link_up = is_up}});
}

const Outcome& World::run(Nanos span) {
  const Instant until = now() + span;
  while (!outcome_.is_finished && !outcome_.has_failed && now() < until) step(until);
  return outcome_;
}

Instant World::due(Actor actor) const {
  const Instant held = held_until_[static_cast<std::size_t>(actor)];
  if (actor == Actor::control) return std::max(tick_at_, held);
  return std::max(actor == Actor::sender ? ends_.sender.due() : ends_.receiver.due(), held);
}

void World::step(Instant until) {
  const Instant start = now();
  Instant next = std::min(
      {due(Actor::sender), due(Actor::receiver), due(Actor::control), link_.next_event(), until});
  next = std::max(next, start);
  link_.run_until(next);
  const Instant t = link_.now();
  sender_port_.play();
  receiver_port_.play();
  for (const Actor actor : {Actor::sender, Actor::receiver, Actor::control})
    if (t >= due(actor)) turn(actor, t);
}

void World::turn(Actor actor, Instant t) {
  if (watch_ != nullptr) watch_->before_turn(actor, t);
  tell_volumes();
  if (actor == Actor::sender) {
    feed_sender();
    ends_.sender.turn(t);
  } else if (actor == Actor::receiver) {
    feed_receiver();
    ends_.receiver.turn(t);
    drain_receiver();
  } else {
    ends_.rate->tick(t);
    tick_at_ = t + (config_.tick > 0ns ? config_.tick : ends_.rate->next_tick_in());
  }
  take_events();
  ends_.sender.pass_commands();
  ends_.receiver.pass_commands();
  if (watch_ == nullptr) return;
  watch_->after_turn(actor, t);
  if (const Nanos delay = watch_->delay(actor); delay > 0ns) {
    Instant& held = held_until_[static_cast<std::size_t>(actor)];
    held = std::max(held, t + delay);
  }
}

bool World::is_last_block() const {
  return next_file_ + 1 == config_.file_sizes.size() &&
         next_offset_ + block_bytes >= config_.file_sizes.back();
}

/// The receiver is told of a volume before a block of it is sent.
void World::tell_volumes() {
  while (!volumes_.empty() && volumes_.front()->is_released()) volumes_.pop_front();
  const std::span all{config_.file_sizes};
  while (files_told_ < all.size() && volumes_.size() < volumes_told_max) {
    const auto files =
        all.subspan(files_told_).first(std::min(config_.volume_files, all.size() - files_told_));
    volumes_.push_back(
        std::make_unique<protocol::FileVolume>(static_cast<std::uint32_t>(files_told_), files));
    ends_.receiver.command({.kind = CommandKind::add_files, .volume = volumes_.back().get()});
    files_told_ += files.size();
    ++volumes_told_;
  }
}

void World::skip_packed() {
  while (next_file_ < config_.file_sizes.size() &&
         config_.file_sizes[next_file_] == file_without_blocks)
    ++next_file_;
}

bool World::next_block(BlockRef& block) {
  if (next_file_ >= files_told_ || (is_last_block() && now() < config_.last_block_at)) return false;
  const std::uint64_t size = config_.file_sizes[next_file_];
  block = source_.lend(block.slot);
  block.file = next_file_;
  block.offset = next_offset_;
  block.length =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(block_bytes, size - next_offset_));
  next_offset_ += block_bytes;
  if (next_offset_ >= size) {
    ++next_file_;
    next_offset_ = 0;
    skip_packed();
  }
  source_.fill(block);
  return true;
}

void World::feed_sender() {
  ends_.feed([this](BlockRef& block) { return next_block(block); });
  if (next_file_ >= config_.file_sizes.size()) ends_.end_files();
}

void World::feed_receiver() {
  std::size_t pushed = 0;
  SpscRing<BlockRef>& ring = ends_.receiver.links.file.to_engine;
  while (pushed < to_receiver_.size() && ring.push(to_receiver_[pushed])) ++pushed;
  to_receiver_.erase(to_receiver_.begin(),
                     to_receiver_.begin() + static_cast<std::ptrdiff_t>(pushed));
}

/// The model disk writes one block after the other at disk_rate_; a written block's bytes are
/// checked and its buffer given back.
void World::drain_receiver() {
  for (BlockRef block; ends_.receiver.links.file.from_engine.pop(block);)
    if (block.kind == BlockKind::block) on_disk_.push_back(block);
  const Instant t = now();
  while (on_disk_head_ < on_disk_.size() && disk_free_at_ <= t) {
    const BlockRef& full = on_disk_[on_disk_head_++];
    const std::uint64_t wrong_bytes = sink_.wrong_bytes(full);
    if (watch_ != nullptr) watch_->on_block(full, wrong_bytes);
    outcome_.bytes_wrong += wrong_bytes;
    outcome_.bytes_checked += full.length;
    if (disk_rate_.count > 0)
      disk_free_at_ = std::max(disk_free_at_, t - 5ms) + time_for(Bytes{full.length}, disk_rate_);
    to_receiver_.push_back(sink_.lend(full.slot));
    ++blocks_given_back_;
    bytes_given_back_ += full.length;
  }
  feed_receiver();
}

void World::take_events() {
  ends_.take_events([this](const Event& event) {
    if (event.kind == EventKind::first_data && outcome_.first_data_at == Instant{})
      outcome_.first_data_at = event.at;
    if (sim::failure_text(event.kind) == nullptr) return;
    outcome_.has_failed = true;
    outcome_.failure = event.kind;
  });
  if (sender().is_all_arrived() && outcome_.bytes_checked == bytes_total_ &&
      !outcome_.is_finished) {
    outcome_.is_finished = true;
    outcome_.finished_at = now();
  }
}

}  // namespace onehop::scenario
