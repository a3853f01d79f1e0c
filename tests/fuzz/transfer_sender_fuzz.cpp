// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// N4, N5: a peer that has the code reports anything. Whatever it says, the sending role gives a
// block back only when the peer has spoken of each of its bytes as received, sends bytes of lent
// blocks alone, keeps its numbers bounded, and ends at a violation.
//
// An input is a list of steps: one byte chooses, the next ones say how.
#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

#include "engine/base/byte_codec.hpp"
#include "engine/base/check.hpp"
#include "engine/protocol/sender.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;
using protocol::FramePlan;
using protocol::Sender;

std::uint64_t fuzz::accepted_total = 0;

namespace {

constexpr std::size_t slots = 4, in_flight_max = 128, step_bytes = 16;
constexpr std::uint32_t block_length_max = 6000;
enum Step : std::uint8_t { send, told, pong, wait, add, change, raw, step_count };

class World {
 public:
  World(bool is_lazy, std::uint64_t seed)
      : sender_{{.body_bytes_max = 700,
                 .block_slots = slots,
                 .in_flight_max = in_flight_max,
                 .skip_seed = seed,
                 .is_repair_lazy = is_lazy}} {
    sender_.start(now_);
  }

  /// take does one step; false: the session is over.
  [[nodiscard]] bool take(Step step, ByteReader& in) {
    switch (step) {
      case send: send_frames(in.u8()); break;
      case told: return on_feedback(in);
      case pong:
        sender_.on_pong(now_, {.id = in.u8() < 200 ? ping_id_ : in.u16(),
                               .hold_ns = in.u16(),
                               .received_bytes = in.u16()});
        break;
      case wait:
        now_ += 50us * in.u16();
        sender_.tick(now_, Bytes{in.u8() % 4 == 0 ? 1000 : 0});
        break;
      case add: add_block(in.u16()); break;
      case change:
        sender_.ask_feedback(now_, 10us * in.u16(), in.u8());
        sender_.set_body_max(300 + in.u16() % 1200);
        break;
      default: return on_raw(in);
    }
    return true;
  }
  [[nodiscard]] bool has_freed() const { return freed_total_ > 0; }

 private:
  struct Block {
    bool is_lent = false;
    std::uint32_t file = 0, length = 0;
    std::vector<bool> has_arrived;
    bool has_empty_frame = false;
  };
  struct Sent {
    std::uint32_t file = 0, slot = 0, first = 0, length = 0;
  };

  void add_block(std::uint16_t choice) {
    if (has_ended_) return;
    if (choice % 16 == 15) {
      has_ended_ = true;
      sender_.end_of_files();
      return;
    }
    if (!sender_.can_take_block()) return;
    const auto free =
        std::ranges::find_if(blocks_, [](const Block& block) { return !block.is_lent; });
    ONEHOP_CHECK(free != blocks_.end());
    const auto slot = static_cast<std::uint32_t>(free - blocks_.begin());
    *free = {.is_lent = true,
             .file = next_file_++,
             .length = choice % (block_length_max + 1),
             .has_arrived = {},
             .has_empty_frame = false};
    free->has_arrived.resize(free->length);
    sender_.add_block({.data = memory_.data() + std::size_t{slot} * block_bytes,
                       .file = free->file,
                       .length = free->length,
                       .slot = slot});
  }

  void send_frames(std::uint8_t most) {
    FramePlan plan;
    for (int i = 0; i < most % 64 && sender_.next(now_, true, plan); ++i) {
      const std::uint64_t number = plan.header.packet_number;
      ONEHOP_CHECK(number >= next_number_);
      ONEHOP_CHECK(plan.header.settled <= number);
      next_number_ = number + 1;
      if (plan.header.type == wire::FrameType::data)
        on_data(plan);
      else
        ping_id_ = plan.ping.id;
    }
    ONEHOP_CHECK(sender_.in_flight() <= in_flight_max);
    BlockRef block;
    while (sender_.pop_sent(block)) ONEHOP_CHECK(block.length <= block_length_max);
  }
  void on_data(const FramePlan& plan) {
    const auto at = static_cast<std::size_t>(plan.body.data() - memory_.data());
    const auto slot = static_cast<std::uint32_t>(at / block_bytes);
    const auto first = static_cast<std::uint32_t>(at % block_bytes);
    const auto length = static_cast<std::uint32_t>(plan.body.size());
    ONEHOP_CHECK(slot < slots && blocks_[slot].is_lent);
    ONEHOP_CHECK(blocks_[slot].file == plan.header.file);
    ONEHOP_CHECK(first + length <= blocks_[slot].length);
    sent_[plan.header.packet_number] = {blocks_[slot].file, slot, first, length};
  }

  /// number_from: near what was sent, and near the ends of what a number can be.
  std::uint64_t number_from(ByteReader& in) {
    const std::uint8_t kind = in.u8();
    const std::uint64_t delta = in.u8();
    switch (kind % 16) {
      case 13: return next_number_ + delta;
      case 14: return wire::counter_max - delta;
      case 15: return delta;
      default: return next_number_ - std::min(next_number_, 1 + delta % (kind % 4 == 0 ? 256 : 4));
    }
  }

  [[nodiscard]] bool on_feedback(ByteReader& in) {
    wire::Feedback& f = made_;
    f = {};
    const std::uint8_t flags = in.u8();
    f.has_received = (flags & 7) != 0;
    f.is_list = (flags & 8) != 0;
    f.has_more = (flags & 16) != 0;
    sequence_ = flags >= 250 ? wire::counter_max - flags : sequence_ + 1;
    f.sequence = sequence_;
    f.credit_bytes_total = flags % 32 == 31 ? wire::counter_max : std::uint64_t{in.u16()} * 65'536;
    f.missing_packets_total = flags % 16 == 15 ? wire::counter_max : in.u8();
    const std::uint64_t a = number_from(in), b = number_from(in);
    if (!f.has_received) return apply(f);
    f.from = std::min(a, b);
    f.largest = std::max(a, b);
    std::uint64_t next = f.from;
    for (unsigned left = in.u8() % 8; left > 0; --left) {
      const std::uint64_t first = next + in.u8() % 32, last = first + in.u8() % 16;
      if (last > f.largest) break;
      f.missing[f.range_count++] = {first, last};
      next = last + 2;
      if (f.largest - last < 2) break;
    }
    std::array<std::byte, wire::feedback_body_bytes_max> body;
    std::size_t covered = 0;
    const std::size_t length = wire::encode_feedback(f, body, covered);
    ONEHOP_CHECK(wire::decode_feedback(std::span{body}.first(length), read_));
    return apply(read_);
  }
  [[nodiscard]] bool on_raw(ByteReader& in) {
    const auto body = in.bytes(std::min<std::size_t>(in.u8() * 2U, in.remaining()));
    return !wire::decode_feedback(body, read_) || apply(read_);
  }

  [[nodiscard]] bool apply(const wire::Feedback& f) {
    if (f.has_received && f.largest < next_number_) note_received(f);
    if (sender_.on_feedback(now_, f) != wire::Violation::none) return false;
    BlockRef block;
    while (sender_.pop_freed(block)) check_freed(block);
    ONEHOP_CHECK(!sender_.is_all_arrived() || std::ranges::none_of(blocks_, &Block::is_lent));
    return true;
  }
  void note_received(const wire::Feedback& f) {
    for (auto it = sent_.lower_bound(f.from); it != sent_.end() && it->first <= f.largest; ++it) {
      const auto is_in = [&](const wire::PacketRange& range) {
        return range.first <= it->first && it->first <= range.last;
      };
      if (std::any_of(f.missing.begin(), f.missing.begin() + f.range_count, is_in)) continue;
      Block& block = blocks_[it->second.slot];
      if (!block.is_lent || block.file != it->second.file) continue;
      for (std::uint32_t i = 0; i < it->second.length; ++i)
        block.has_arrived[it->second.first + i] = true;
      block.has_empty_frame = block.has_empty_frame || it->second.length == 0;
    }
  }
  void check_freed(const BlockRef& freed) {
    Block& block = blocks_[freed.slot];
    ONEHOP_CHECK(block.is_lent && block.file == freed.file);
    ONEHOP_CHECK(std::ranges::find(block.has_arrived, false) == block.has_arrived.end());
    ONEHOP_CHECK(block.length > 0 || block.has_empty_frame);
    block.is_lent = false;
    ++freed_total_;
  }

  static inline std::vector<std::byte> memory_ = std::vector<std::byte>(slots * block_bytes);
  static inline wire::Feedback made_, read_;
  Sender sender_;
  std::array<Block, slots> blocks_;
  std::map<std::uint64_t, Sent> sent_;
  Instant now_{1s};
  std::uint64_t next_number_ = 0, sequence_ = 0, ping_id_ = 0, freed_total_ = 0;
  std::uint32_t next_file_ = 0;
  bool has_ended_ = false;
};

}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  ByteWriter to{out};
  to.u8(static_cast<std::uint8_t>(random()));
  const std::size_t steps = 4 + random() % (input_bytes_max / step_bytes - 4);
  for (std::size_t i = 0; i < steps && to.remaining() > step_bytes; ++i) {
    static constexpr std::array<Step, 12> usual{add,  add,  send, send, send, told,
                                                told, told, told, wait, pong, change};
    const Step step = usual[random() % usual.size()];
    to.u8(step);
    if (step != told) {
      for (int n = 0; n < 4; ++n)
        to.u8(static_cast<std::uint8_t>(random() % (step == add ? 15 : 256)));
      continue;
    }
    to.u8(static_cast<std::uint8_t>(random() % 32 == 0 ? random() : 1));
    to.u16(1000);  // credit
    to.u8(static_cast<std::uint8_t>(random() % 8));
    to.u8(4), to.u8(static_cast<std::uint8_t>(random()));  // from: up to 256 back
    to.u8(static_cast<std::uint8_t>(random() % 32 == 0 ? random() : 1)),
        to.u8(0);  // largest: the newest
    const unsigned ranges = random() % 4;
    to.u8(static_cast<std::uint8_t>(ranges));
    for (unsigned n = 0; n < 2 * ranges; ++n) to.u8(static_cast<std::uint8_t>(random()));
  }
  return to.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  ByteReader in{{reinterpret_cast<const std::byte*>(bytes), size}};
  const std::uint8_t first = in.u8();
  World world{(first & 1) != 0, first};
  while (in.remaining() > 0 && world.take(static_cast<Step>(in.u8() % step_count), in)) {
  }
  fuzz::accepted_total += world.has_freed() ? 1 : 0;
  return 0;
}
