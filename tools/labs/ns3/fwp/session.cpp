// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/fwp/session.hpp"

#include <algorithm>

#include "engine/base/check.hpp"
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

}  // namespace

FwpSession::FwpSession(const SessionConfig& config)
    : file_sizes_{endless_bytes},
      link_{link_of(config)},
      sender_port_{link_, 0},
      receiver_port_{link_, 1},
      source_(block_bytes),
      sink_{std::make_unique<std::byte[]>(disk::receiver_slots * block_bytes)},
      ends_{sender_port_,
            receiver_port_,
            {.sender = {.block_slots = disk::sender_slots,
                        .skip_seed = config.seed,
                        .is_repair_lazy = config.is_repair_lazy},
             .frame_bytes = frame_bytes},
            {.receiver = {.block_slots = disk::receiver_slots,
                          .file_sizes = file_sizes_,
                          .is_repair_lazy = config.is_repair_lazy},
             .frame_bytes = frame_bytes}},
      stations_{{*this, 0, 0, config.seed}, {*this, 1, config.frame_error_rate, config.seed}} {
  for (std::uint32_t slot = 0; slot < disk::receiver_slots; ++slot) lend(slot);
  // The queue is kept full, as the paper's TCP keeps it: the table is about the air, not about a
  // law.
  ends_.sender.links.grant.store(
      {.rate = mbit_per_s(600), .backlog_max = Bytes{128 * 1514}, .batch_frames = 32});
  ends_.command({.kind = CommandKind::start});
}

void FwpSession::play(Instant until) {
  while (link_.now() < until) {
    Instant next = std::min({until, ends_.sender.due(), ends_.receiver.due(), link_.next_event()});
    next = std::max(next, link_.now());
    link_.run_until(next);
    const Instant t = link_.now();
    if (t >= ends_.sender.due()) {
      feed();
      ends_.sender.turn(t);
    }
    if (t >= ends_.receiver.due()) {
      ends_.receiver.turn(t);
      write();
    }
    ends_.take_events(
        [](const Event& event) { ONEHOP_CHECK(sim::failure_text(event.kind) == nullptr); });
  }
}

void FwpSession::feed() {
  ends_.feed([this](BlockRef& block) {
    block.data = source_.data();
    block.offset = std::exchange(next_offset_, next_offset_ + block_bytes);
    block.length = block_bytes;
    return true;
  });
}

/// A disk that takes no time.
void FwpSession::write() {
  for (BlockRef block; ends_.receiver.links.file.from_engine.pop(block);)
    if (block.kind == BlockKind::block) lend(block.slot);
}

void FwpSession::lend(std::uint32_t slot) {
  ONEHOP_CHECK(ends_.receiver.links.file.to_engine.push(
      {.data = sink_.get() + std::size_t{slot} * block_bytes, .slot = slot}));
}

}  // namespace onehop::fwp
