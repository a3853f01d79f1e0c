// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/world/world.hpp"

#include <algorithm>

#include "control/law/make_law.hpp"
#include "engine/base/check.hpp"
#include "engine/crypto/key_schedule.hpp"
#include "engine/protocol/file_table.hpp"

namespace onehop::scenario {

namespace {

run::SessionKeys keys_for(const WorldConfig& config, bool is_sender) {
  crypto::ExporterSecret exporter;  // any secret serves, both ends derive from the same one
  const auto from_sender = crypto::direction_secret(exporter, crypto::Direction::from_sender, 0);
  const auto from_receiver =
      crypto::direction_secret(exporter, crypto::Direction::from_receiver, 0);
  return {.send = is_sender ? from_sender : from_receiver,
          .receive = is_sender ? from_receiver : from_sender,
          .key_interval_packets = config.key_interval_packets};
}

run::SenderLoopConfig sender_config(const WorldConfig& config) {
  run::SenderLoopConfig loop;
  loop.frame_bytes = config.frame_bytes;
  loop.sender.body_bytes_max = config.frame_bytes - wire::overhead_bytes;
  loop.sender.block_slots = config.sender_slots;
  loop.sender.in_flight_max = config.in_flight_max;
  loop.sender.first_packet_number = config.first_packet_number;
  loop.sender.skip_seed = config.seed;
  loop.sender.is_repair_lazy = config.is_repair_lazy;
  return loop;
}

/// All that the engine takes beside the first, of which its configuration tells.
constexpr std::size_t volumes_told_max = protocol::FileTable::volumes_max - 1;

std::size_t files_of_first(const WorldConfig& config) {
  const std::size_t all = config.file_sizes.size();
  return config.volume_files == 0 ? all : std::min(config.volume_files, all);
}

run::ReceiverLoopConfig receiver_config(const WorldConfig& config) {
  run::ReceiverLoopConfig loop;
  loop.frame_bytes = config.frame_bytes;
  loop.first_packet_number = config.first_packet_number;
  loop.receiver.block_slots = config.receiver_slots;
  loop.receiver.gap_ranges_max = config.gap_ranges_max;
  loop.receiver.body_bytes_max = config.frame_bytes - wire::overhead_bytes;
  loop.receiver.file_sizes = std::span{config.file_sizes}.first(files_of_first(config));
  loop.receiver.is_repair_lazy = config.is_repair_lazy;
  return loop;
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
      sender_side_{config},
      receiver_side_{config},
      source_{config.seed, config.sender_slots},
      sink_{config.seed, config.receiver_slots},
      sender_{sender_port_, keys_for(config_, true), sender_config(config_), sender_side_.links()},
      receiver_{receiver_port_, keys_for(config_, false), receiver_config(config_),
                receiver_side_.links()},
      disk_rate_{config.disk_rate} {
  auto law = law::make_law({.spec = config.law,
                            .has_qcut = config.has_qcut,
                            .is_repair_lazy = config.is_repair_lazy && config.has_loss_mask});
  ONEHOP_CHECK(law.has_value());
  law_ = std::move(law).value();
  rate_ = std::make_unique<rate::RateLoop>(
      *law_, rate::RateCells{sender_side_.report, limits_, sender_side_.grant, state_}, nullptr);
  for (std::uint32_t slot = 0; slot < source_.slots(); ++slot) free_slots_.push_back(slot);
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
  const CommandKind kind =
      config_.is_path_proof_skipped ? CommandKind::start : CommandKind::prove_path;
  command(sender_side_, {.kind = kind});
  command(receiver_side_, {.kind = kind});
}

/// Commands wait here while their ring is full, as they do in the session.
void World::command(Side& side, const Command& command) {
  side.commands_waiting.push_back(command);
  pass_commands(side);
}

void World::pass_commands(Side& side) {
  while (!side.commands_waiting.empty() && side.commands.push(side.commands_waiting.front()))
    side.commands_waiting.erase(side.commands_waiting.begin());
}

void World::follow_path(std::uint16_t mtu_bytes, bool is_up) {
  const Command update{.kind = CommandKind::path_update,
                       .path = {.mtu_bytes = mtu_bytes, .is_link_up = is_up}};
  command(sender_side_, update);
  command(receiver_side_, update);
}

const Outcome& World::run(Nanos span) {
  const Instant until = now() + span;
  while (!outcome_.is_finished && !outcome_.has_failed && now() < until) step(until);
  return outcome_;
}

Instant World::due(Actor actor) const {
  const Instant held = held_until_[static_cast<std::size_t>(actor)];
  if (actor == Actor::control) return std::max(tick_at_, held);
  const bool is_sender = actor == Actor::sender;
  const Instant wanted = is_sender ? std::min(sender_at_, sender_port_.ready_at())
                                   : std::min(receiver_at_, receiver_port_.ready_at());
  return std::max(wanted, held);
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
    const run::NextWakeup next = sender_.turn(t);
    sender_at_ = std::max(next.deadline, t + 1us);
    (void)sender_port_.wait(sender_at_, next.is_rx_wanted);
  } else if (actor == Actor::receiver) {
    feed_receiver();
    const run::NextWakeup next = receiver_.turn(t);
    receiver_at_ = std::max(next.deadline, t + 1us);
    (void)receiver_port_.wait(receiver_at_, next.is_rx_wanted);
    drain_receiver();
  } else {
    rate_->tick(t);
    tick_at_ = t + (config_.tick > 0ns ? config_.tick : rate_->next_tick_in());
  }
  take_events();
  pass_commands(sender_side_);
  pass_commands(receiver_side_);
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
    command(receiver_side_, {.kind = CommandKind::add_files, .volume = volumes_.back().get()});
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
  return true;
}

void World::feed_sender() {
  BlockRef back;
  while (sender_side_.engine_to_file.pop(back)) free_slots_.push_back(back.slot);
  SpscRing<BlockRef>& ring = sender_side_.file_to_engine;
  while (!free_slots_.empty() && ring.size() < ring.capacity()) {
    BlockRef block = source_.lend(free_slots_.back());
    if (!next_block(block)) break;
    free_slots_.pop_back();
    source_.fill(block);
    ONEHOP_CHECK(ring.push(block));
  }
  if (next_file_ >= config_.file_sizes.size() && !has_ended_)
    has_ended_ = ring.push({.kind = BlockKind::end_of_files});
}

void World::feed_receiver() {
  std::size_t pushed = 0;
  while (pushed < to_receiver_.size() && receiver_side_.file_to_engine.push(to_receiver_[pushed]))
    ++pushed;
  to_receiver_.erase(to_receiver_.begin(),
                     to_receiver_.begin() + static_cast<std::ptrdiff_t>(pushed));
}

/// The model disk writes one block after the other at disk_rate_; a written block's bytes are
/// checked and its buffer given back.
void World::drain_receiver() {
  BlockRef block;
  while (receiver_side_.engine_to_file.pop(block))
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
  Event event;
  const auto take = [&](Side& side) {
    while (side.events.pop(event)) {
      switch (event.kind) {
        case EventKind::path_proven:
          if (++proofs_ == 2) {
            command(sender_side_, {.kind = CommandKind::start});
            command(receiver_side_, {.kind = CommandKind::start});
          }
          break;
        case EventKind::first_data:
          if (outcome_.first_data_at == Instant{}) outcome_.first_data_at = event.at;
          break;
        case EventKind::path_dead:
        case EventKind::feedback_silent:
        case EventKind::stalled:
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
  if (sender_.sender().is_all_arrived() && outcome_.bytes_checked == bytes_total_ &&
      !outcome_.is_finished) {
    outcome_.is_finished = true;
    outcome_.finished_at = now();
  }
}

}  // namespace onehop::scenario
