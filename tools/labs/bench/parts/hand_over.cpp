// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/parts/hand_over.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "engine/base/block.hpp"
#include "engine/base/spsc_ring.hpp"
#include "engine/base/system/cpu.hpp"
#include "engine/base/system/mapping.hpp"
#include "engine/base/time.hpp"
#include "engine/source/read_ahead.hpp"

namespace onehop::bench {

namespace {

// Read ahead, and as many on their way back
constexpr std::size_t slots = 2 * source::ReadAhead::blocks_min;
constexpr std::size_t rounds = 256;
// The other end of each copy stays in the first-level cache
constexpr std::size_t piece_bytes = 16 * 1024;
static_assert(block_bytes % piece_bytes == 0);

using Spans = std::array<Nanos, rounds>;
using Piece = std::array<std::byte, piece_bytes>;

Nanos write_block(std::byte* block, const Piece& from) {
  const Instant begin = monotonic_now();
  for (std::size_t at = 0; at < block_bytes; at += piece_bytes)
    std::memcpy(block + at, from.data(), piece_bytes);
  return monotonic_now() - begin;
}

Nanos read_block(const std::byte* block, Piece& to) {
  const Instant begin = monotonic_now();
  for (std::size_t at = 0; at < block_bytes; at += piece_bytes) {
    std::memcpy(to.data(), block + at, piece_bytes);
    asm volatile("" : : "r"(to.data()) : "memory");  // each copy is wanted
  }
  return monotonic_now() - begin;
}

double median_ns(Spans& spans) {
  std::ranges::nth_element(spans, spans.begin() + rounds / 2);
  return static_cast<double>(spans[rounds / 2].count());
}

class Blocks {
 public:
  explicit Blocks(std::byte* memory) : memory_{memory} {
    for (std::size_t slot = 0; slot < slots; ++slot) (void)free_.push(slot);
  }

  void write_all(Spans& spans) {
    Piece from{};
    pass(free_, full_, spans, [&from](std::byte* block) { return write_block(block, from); });
  }
  void read_all(Spans& spans) {
    Piece to{};
    pass(full_, free_, spans, [&to](const std::byte* block) { return read_block(block, to); });
  }

 private:
  using Ring = SpscRing<std::size_t>;

  template <class Work>
  void pass(Ring& in, Ring& out, Spans& spans, Work work) {
    for (Nanos& span : spans) {
      std::size_t slot = 0;
      while (!in.pop(slot)) {
      }
      span = work(memory_ + slot * block_bytes);
      (void)out.push(slot);  // it holds all slots
    }
  }

  std::byte* memory_;
  Ring free_{slots}, full_{slots};
};

}  // namespace

std::optional<double> hand_over_ns_per_byte(std::pair<int, int> cpus) {
  auto memory = Mapping::frame_memory(slots * block_bytes);
  if (memory.has_error()) return std::nullopt;
  Spans write_apart{}, read_apart{}, write_together{}, read_together{};
  std::atomic<int> failed_pins{0};
  const auto pin = [&failed_pins](int cpu) {
    if (!pin_this_thread(cpu)) failed_pins.fetch_add(1);
  };
  Blocks blocks{memory.value().data()};
  std::thread reader{[&] {
    pin(cpus.second);
    blocks.read_all(read_apart);
  }};
  std::thread writer{[&] {
    pin(cpus.first);
    blocks.write_all(write_apart);
  }};
  writer.join();
  reader.join();
  std::thread both{[&] {
    pin(cpus.first);
    Piece piece{};
    for (std::size_t i = 0; i < rounds; ++i) {
      std::byte* const block = memory.value().data() + i % slots * block_bytes;
      write_together[i] = write_block(block, piece);
      read_together[i] = read_block(block, piece);
    }
  }};
  both.join();
  if (failed_pins.load() > 0) return std::nullopt;
  const double apart_ns = median_ns(write_apart) + median_ns(read_apart);
  const double together_ns = median_ns(write_together) + median_ns(read_together);
  return (apart_ns - together_ns) / static_cast<double>(block_bytes);
}

}  // namespace onehop::bench
