// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the tests of the loops share: the links of one end, keys, a peer made by hand that may lie,
// and both loops back to back in virtual time.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "engine/base/alloc_guard.hpp"
#include "engine/crypto/key_schedule.hpp"
#include "engine/run/receiver_loop.hpp"
#include "engine/run/sender_loop.hpp"
#include "tools/labs/world/virtual_port.hpp"

namespace onehop::run {

inline constexpr std::size_t bench_frame_bytes = 1472;

struct Side {
  SpscRing<BlockRef> from_file{256}, to_file{256};
  SpscRing<Command> commands{64};
  SpscRing<Event> events{1024};
  Latest<PathReport> report;
  Latest<RateGrant> grant{RateGrant{.rate = mbit_per_s(1000), .backlog_max = kib(256)}};
  [[nodiscard]] EngineLinks links() {
    return {from_file, to_file, commands, events, report, grant};
  }
  void command(CommandKind kind) { ONEHOP_CHECK(commands.push({.kind = kind})); }
  /// take_events empties the ring.
  std::vector<Event> take_events() {
    std::vector<Event> list;
    for (Event event; events.pop(event);) list.push_back(event);
    return list;
  }
  bool has_event(EventKind kind) {
    bool has = false;
    for (const Event& event : take_events()) has = has || event.kind == kind;
    return has;
  }
};

/// keys_of gives one end's keys; another `session` has other ones.
inline SessionKeys keys_of(bool is_sender, std::uint8_t session = 0,
                           std::uint64_t interval = 1U << 12) {
  crypto::ExporterSecret exporter;
  exporter.writable()[0] = static_cast<std::byte>(session);
  SessionKeys keys = session_keys(exporter, is_sender);
  keys.key_interval_packets = interval;
  return keys;
}

inline SenderLoopConfig sender_config() {
  SenderLoopConfig config;
  config.frame_bytes = bench_frame_bytes;
  config.sender.block_slots = 16;
  config.sender.in_flight_max = 4096;
  return config;
}
inline ReceiverLoopConfig receiver_config(std::span<const std::uint64_t> sizes) {
  ReceiverLoopConfig config;
  config.frame_bytes = bench_frame_bytes;
  config.receiver.block_slots = 16;
  config.receiver.file_sizes = sizes;
  return config;
}

/// RawPeer sits at the other end of the link and sends what it likes.
class RawPeer {
 public:
  using Frame = std::vector<std::byte>;
  RawPeer(VirtualLink& link, std::size_t end, const SessionKeys& keys)
      : port_{link, end}, protection_{std::make_unique<PacketProtection>(keys)} {}

  Frame sealed(wire::FrameHeader header, std::span<const std::byte> body) {
    Frame frame(body.size() + wire::overhead_bytes);
    (void)protection_->seal(header, body, frame);
    return frame;
  }
  void send(Instant now, const Frame& frame) {
    if (frame.empty()) return;
    const auto slot = port_.lend(frame.size());
    ONEHOP_CHECK(!slot.empty());
    std::memcpy(slot.data(), frame.data(), frame.size());
    port_.commit(frame.size());
    (void)port_.flush(now);
  }
  /// take returns the frames that the loop sent.
  std::vector<Frame> take() {
    std::array<RxFrame, rx_batch_max> views;
    std::vector<Frame> frames;
    while (const std::size_t count = port_.receive(views)) {
      for (std::size_t i = 0; i < count; ++i)
        frames.emplace_back(views[i].data, views[i].data + views[i].length);
      port_.release();
    }
    return frames;
  }
  /// feedback_of opens a frame; nothing if it is no report.
  std::optional<wire::Feedback> feedback_of(const Frame& frame) {
    const auto header = wire::decode_header(frame);
    if (!header || header->type != wire::FrameType::feedback) return std::nullopt;
    DataPathCounters counters;
    wire::Feedback feedback;
    if (!protection_->open(*header, frame, protection_->scratch().data(), counters))
      return std::nullopt;
    if (!wire::decode_feedback(protection_->scratch().first(frame.size() - wire::overhead_bytes),
                               feedback))
      return std::nullopt;
    return feedback;
  }

 private:
  VirtualPort port_;
  std::unique_ptr<PacketProtection> protection_;
};

/// forgeries_of spoils an authentic frame in every way that needs no key.
inline std::vector<RawPeer::Frame> forgeries_of(const RawPeer::Frame& frame) {
  std::vector<RawPeer::Frame> list;
  for (std::size_t at = 0; at < frame.size(); at += at < 80 ? 1 : 53)
    for (const unsigned bit : {0U, 3U, 7U}) {
      list.push_back(frame);
      list.back()[at] ^= static_cast<std::byte>(1U << bit);
    }
  for (const std::size_t length : {std::size_t{1}, std::size_t{27}, std::size_t{28},
                                   std::size_t{43}, frame.size() - 1, frame.size() / 2})
    if (length < frame.size())
      list.emplace_back(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length));
  for (const std::size_t more : {1U, 16U}) {
    if (frame.size() + more > bench_frame_bytes) continue;
    list.push_back(frame);
    list.back().resize(frame.size() + more);
  }
  list.emplace_back(frame.size(), std::byte{0});
  list.emplace_back(frame.size(), std::byte{0xFF});
  return list;
}

/// without_drops hides what a dropped frame may change, so that two readings can be compared.
inline DataPathCounters without_drops(DataPathCounters counters) {
  counters.auth_failures_total = counters.replays_total = counters.malformed_total = 0;
  counters.turns_total = counters.wakeups_total = counters.syscalls_total = 0;
  return counters;
}
inline bool is_same(const DataPathCounters& a, const DataPathCounters& b) {
  const DataPathCounters x = without_drops(a), y = without_drops(b);
  return std::memcmp(&x, &y, sizeof x) == 0;
}
inline std::uint64_t drops_of(const DataPathCounters& c) {
  return c.auth_failures_total + c.replays_total + c.malformed_total;
}

/// Pair: both loops over one link. The file sides are this test's memory.
template <Port SendPort>
struct PairOver {
  explicit PairOver(std::vector<std::uint64_t> file_sizes, std::uint64_t interval = 1U << 12,
                    VirtualLinkConfig way = {})
      : sizes{std::move(file_sizes)},
        link{{.directions = {way, way}, .seed = 7}},
        sender_port{link, 0},
        receiver_port{link, 1},
        sender{std::make_unique<SenderLoop<SendPort>>(sender_port, keys_of(true, 0, interval),
                                                      sender_config(), sender_side.links())},
        receiver{std::make_unique<ReceiverLoop<VirtualPort>>(
            receiver_port, keys_of(false, 0, interval), receiver_config(sizes),
            receiver_side.links())},
        source(16 * block_bytes),
        sink(16 * block_bytes) {
    for (std::uint32_t slot = 0; slot < 16; ++slot) {
      free_slots.push_back(slot);
      ONEHOP_CHECK(receiver_side.from_file.push(
          {.data = sink.data() + std::size_t{slot} * block_bytes, .slot = slot}));
    }
  }
  static std::byte byte_at(std::uint32_t file, std::uint64_t offset) {
    return static_cast<std::byte>((offset * 0x9E3779B97F4A7C15ULL + file * 77) >> 29);
  }
  void start() {
    for (Side* side : {&sender_side, &receiver_side}) side->command(CommandKind::start);
  }
  void step() {
    feed();
    now += 100us;
    {
      const AllocGuard guard;
      link.run_until(now);
      (void)sender->turn(now);
      (void)receiver->turn(now);
    }
    drain();
  }
  bool run_until_arrived(int steps = 100'000) {
    for (int i = 0; i < steps && !(is_fed() && sender->sender().is_all_arrived() &&
                                   receiver->receiver().is_complete());
         ++i)
      step();
    for (int i = 0; i < 5; ++i) step();
    return sender->sender().is_all_arrived();
  }
  [[nodiscard]] bool is_fed() const { return next_file == sizes.size() && has_ended; }

  void feed() {
    for (BlockRef block; sender_side.to_file.pop(block);) free_slots.push_back(block.slot);
    for (; !free_slots.empty() && next_file < sizes.size(); free_slots.pop_back()) {
      BlockRef block{.data = source.data() + std::size_t{free_slots.back()} * block_bytes,
                     .offset = next_offset,
                     .file = next_file,
                     .slot = free_slots.back()};
      block.length = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(block_bytes, sizes[next_file] - next_offset));
      for (std::uint32_t i = 0; i < block.length; ++i)
        block.data[i] = byte_at(block.file, block.offset + i);
      ONEHOP_CHECK(sender_side.from_file.push(block));
      next_offset += block_bytes;
      if (next_offset >= sizes[next_file]) ++next_file, next_offset = 0;
    }
    if (next_file == sizes.size() && !has_ended)
      has_ended = sender_side.from_file.push({.kind = BlockKind::end_of_files});
  }
  void drain() {
    for (BlockRef block; receiver_side.to_file.pop(block);) {
      if (block.kind != BlockKind::block) {
        receiver_messages.push_back(block);
        continue;
      }
      for (std::uint32_t i = 0; i < block.length; ++i)
        wrong_bytes += block.data[i] != byte_at(block.file, block.offset + i) ? 1 : 0;
      checked_bytes += block.length;
      ONEHOP_CHECK(receiver_side.from_file.push(block));
    }
  }

  std::vector<std::uint64_t> sizes;
  VirtualLink link;
  SendPort sender_port;
  VirtualPort receiver_port;
  Side sender_side, receiver_side;
  std::unique_ptr<SenderLoop<SendPort>> sender;
  std::unique_ptr<ReceiverLoop<VirtualPort>> receiver;
  std::vector<std::byte> source, sink;
  std::vector<std::uint32_t> free_slots;
  std::vector<BlockRef> receiver_messages;
  Instant now{1s};
  std::uint64_t wrong_bytes = 0, checked_bytes = 0, next_offset = 0;
  std::uint32_t next_file = 0;
  bool has_ended = false;
};
using Pair = PairOver<VirtualPort>;

}  // namespace onehop::run
