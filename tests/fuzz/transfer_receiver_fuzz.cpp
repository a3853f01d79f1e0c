// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// N5: a peer that has the code sends any frames in any order. Whatever it sends, the receiving role
// places bytes in buffers that are its own, hands over whole blocks with the bytes that were sent,
// never takes credit back, and each of its reports can be encoded and decoded.
//
// An input is a list of steps: one byte chooses, the next ones say how. Bodies are opened already:
// the tag is not what is tested here.
#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "engine/base/byte_codec.hpp"
#include "engine/base/check.hpp"
#include "engine/protocol/credit.hpp"
#include "engine/protocol/receiver.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;
using protocol::Placement;
using protocol::Receiver;

std::uint64_t fuzz::accepted_total = 0;

namespace {

constexpr std::size_t slots = 4, body_bytes_max = 1428, step_bytes = 12;
constexpr std::array<std::uint64_t, 5> file_sizes{0, 1, 700'000, block_bytes, 2 * block_bytes + 7};
enum Step : std::uint8_t { data, ping, other, raw, wait, give_back, report, ring, step_count };

std::byte byte_at(std::uint32_t file, std::uint64_t offset) {
  return static_cast<std::byte>(offset % 251 + file);
}

class World {
 public:
  explicit World(bool is_lazy)
      : receiver_{{.block_slots = slots,
                   .body_bytes_max = body_bytes_max,
                   .file_sizes = file_sizes,
                   .gap_ranges_max = 16,
                   .is_repair_lazy = is_lazy}} {
    for (std::uint32_t slot = 0; slot < slots; ++slot) lend(slot);
  }

  void take(Step step, ByteReader& in) {
    switch (step) {
      case data:
      case ping:
      case other:
      case raw: on_frame(step, in); break;
      case wait: now_ += 50us * in.u16(); break;
      case give_back: give_back_one(in.u8()); break;
      case report: report_all(); break;
      default:
        receiver_.set_rx_ring({.at = now_,
                               .occupancy = {in.u16()},
                               .capacity = {in.u16() * 16},
                               .scope = QueueScope::own_ring});
        receiver_.set_srtt(10us * in.u16());
    }
    while (receiver_.pop_full(block_)) check_full();
  }
  [[nodiscard]] bool has_reported() const {
    return reports_ > 0 && receiver_.last_received_at() != Instant{};
  }

 private:
  void lend(std::uint32_t slot) {
    is_lent_[slot] = true;
    receiver_.add_free({.data = memory_.data() + std::size_t{slot} * block_bytes, .slot = slot});
  }
  void give_back_one(std::uint8_t choice) {
    if (full_.empty()) return;
    const std::size_t at = choice % full_.size();
    lend(full_[at]);
    full_.erase(full_.begin() + static_cast<std::ptrdiff_t>(at));
    ++given_back_;
  }

  /// number_from: near what came, and near the ends of what a number can be.
  std::uint64_t number_from(ByteReader& in) {
    const std::uint8_t kind = in.u8();
    const std::uint64_t delta = in.u16();
    switch (kind % 8) {
      case 0: return newest_ + 1 + delta % 4;
      case 1: return newest_ - std::min(newest_, delta % 64);
      case 2: return newest_ + delta;
      case 3: return newest_ + (delta << 20);
      case 4: return delta;
      case 5: return wire::packet_number_max - delta % 16;
      case 6: return wire::packet_number_max + 1 + delta % 16;
      default: return ~std::uint64_t{0} - delta % 16;
    }
  }

  void on_frame(Step step, ByteReader& in) {
    std::array<std::byte, wire::header_bytes> head{};
    std::size_t body_bytes = 0;
    if (step == raw) {
      for (std::byte& b : head) b = static_cast<std::byte>(in.u8());
      body_bytes = in.u16() % 2048;
    } else {
      static constexpr std::array types{wire::FrameType::data, wire::FrameType::ping,
                                        wire::FrameType::pong};
      head[0] = static_cast<std::byte>(types[step]);
      head[1] = static_cast<std::byte>(in.u8() & 15);
      store_be(head.data() + 8, number_from(in));
      const std::uint32_t lag = in.u16();
      store_be<std::uint32_t>(head.data() + 16, lag == 0xffff ? ~std::uint32_t{0} : lag);
      if (step == data) {
        store_be<std::uint32_t>(head.data() + 4, in.u8() % 8);
        const std::uint64_t at = in.u16();
        store_be<std::uint64_t>(head.data() + 20, at == 0xffff ? ~at : at * 64);
        body_bytes = std::min<std::size_t>(in.u16() % 2048 * 16, body_bytes_max);
      }
    }
    frame_.assign(wire::overhead_bytes + body_bytes, std::byte{0});
    std::copy(head.begin(), head.end(), frame_.begin());
    const auto header = wire::decode_header(frame_);
    if (!header) return;
    newest_ = std::max(newest_, header->packet_number);
    if (header->type == wire::FrameType::data)
      on_data(*header, body_bytes);
    else if (header->type == wire::FrameType::ping)
      receiver_.on_ping(now_, *header, {.id = newest_, .feedback_interval_us = in.u16()},
                        frame_.size(), false);
    else
      receiver_.record(now_, *header, true);
    wire::Pong pong;
    (void)receiver_.pop_pong(now_, pong);
  }

  void on_data(const wire::FrameHeader& header, std::size_t body_bytes) {
    const Placement placement = receiver_.place(header, body_bytes);
    using Verdict = Placement::Verdict;
    if (placement.verdict == Verdict::malformed || placement.verdict == Verdict::no_room) return;
    if (placement.verdict == Verdict::fresh) {
      ONEHOP_CHECK(placement.target.size() == body_bytes);
      const auto at = static_cast<std::size_t>(placement.target.data() - memory_.data());
      ONEHOP_CHECK(at + body_bytes <= memory_.size());
      ONEHOP_CHECK(is_lent_[at / block_bytes] || body_bytes == 0);
      for (std::size_t i = 0; i < body_bytes; ++i)
        placement.target[i] = byte_at(header.file, header.offset + i);
    }
    receiver_.accept(now_, header, body_bytes, placement, false);
  }

  void check_full() {
    ONEHOP_CHECK(is_lent_[block_.slot]);
    ONEHOP_CHECK(block_.length == block_length_at(file_sizes[block_.file], block_.offset));
    for (std::size_t i = 0; i < block_.length; ++i)
      ONEHOP_CHECK(block_.data[i] == byte_at(block_.file, block_.offset + i));
    is_lent_[block_.slot] = false;
    full_.push_back(block_.slot);
  }

  void report_all() {
    if (!receiver_.tick(now_)) return;
    std::array<std::byte, wire::feedback_body_bytes_max> body;
    while (receiver_.next_feedback(now_, made_)) {
      std::size_t covered = 0;
      const std::size_t length = wire::encode_feedback(made_, body, covered);
      ONEHOP_CHECK(covered == made_.range_count);
      ONEHOP_CHECK(wire::decode_feedback(std::span{body}.first(length), read_));
      ONEHOP_CHECK(read_.credit_bytes_total >= credit_);
      credit_ = read_.credit_bytes_total;
      ONEHOP_CHECK(credit_ <= (given_back_ + slots) * block_bytes);
      ++reports_;
    }
  }

  static inline std::vector<std::byte> memory_ = std::vector<std::byte>(slots * block_bytes);
  static inline wire::Feedback made_, read_;
  Receiver receiver_;
  std::array<bool, slots> is_lent_{};
  std::vector<std::uint32_t> full_;
  std::vector<std::byte> frame_;
  BlockRef block_;
  Instant now_{1s};
  std::uint64_t newest_ = 0, credit_ = 0, given_back_ = 0, reports_ = 0;
};

}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  ByteWriter to{out};
  to.u8(static_cast<std::uint8_t>(random()));
  const std::size_t steps = 4 + random() % (input_bytes_max / step_bytes - 4);
  std::uint64_t offset =
      random() % 3 * 4096;  // in 64 bytes: files are sent in order, as a true peer does
  const auto file = static_cast<std::uint8_t>(random() % file_sizes.size());
  for (std::size_t i = 0; i < steps && to.remaining() > step_bytes; ++i) {
    const std::uint64_t kind = random() % 16;
    if (kind < 8) {
      to.u8(data);
      to.u8(static_cast<std::uint8_t>(random()));                              // flags
      to.u8(static_cast<std::uint8_t>(random() % 8 == 0 ? random() % 6 : 0));  // number
      to.u16(static_cast<std::uint16_t>(random()));
      to.u16(static_cast<std::uint16_t>(random() % 64));  // lag
      to.u8(file);
      to.u16(static_cast<std::uint16_t>(offset));
      to.u16(64);  // 1024 bytes
      if (random() % 8 != 0) offset += 16;
    } else {
      const auto any = static_cast<Step>(random() % step_count);
      to.u8(kind < 11 ? report : kind < 13 ? wait : any);
      for (std::uint64_t n = random() % 4; n > 0; --n) to.u8(static_cast<std::uint8_t>(random()));
    }
  }
  return to.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  ByteReader in{{reinterpret_cast<const std::byte*>(bytes), size}};
  World world{(in.u8() & 1) != 0};
  while (in.remaining() > 0) {
    const auto step = static_cast<Step>(in.u8() % step_count);
    world.take(step, in);
  }
  fuzz::accepted_total += world.has_reported() ? 1 : 0;
  return 0;
}
