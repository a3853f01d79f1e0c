// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/parts/core_distance.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "engine/base/system/cpu.hpp"
#include "engine/base/time.hpp"

namespace onehop::bench {

namespace {

constexpr std::size_t batches = 21;
constexpr std::uint32_t trips_per_batch = 100;
constexpr std::uint32_t the_end = ~std::uint32_t{0};

struct Lines {
  alignas(64) std::atomic<std::uint32_t> ball{0};
  alignas(64) std::atomic<std::uint32_t> answer{0};
  std::atomic<int> failed_pins{0};
};

void answer_all(Lines& lines, int cpu) {
  if (!pin_this_thread(cpu)) lines.failed_pins.fetch_add(1);
  std::uint32_t seen = 0;
  while (seen != the_end) {
    seen = lines.ball.load(std::memory_order_acquire);
    lines.answer.store(seen, std::memory_order_release);
  }
}

void ask_all(Lines& lines, int cpu, std::array<Nanos, batches>& spans) {
  if (!pin_this_thread(cpu)) lines.failed_pins.fetch_add(1);
  std::uint32_t sent = 0;
  for (Nanos& span : spans) {
    const Instant begin = monotonic_now();
    for (std::uint32_t i = 0; i < trips_per_batch; ++i) {
      lines.ball.store(++sent, std::memory_order_release);
      while (lines.answer.load(std::memory_order_acquire) != sent) {
      }
    }
    span = monotonic_now() - begin;
  }
  lines.ball.store(the_end, std::memory_order_release);
}

}  // namespace

std::optional<std::pair<int, int>> first_two_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2) return std::nullopt;
  int first = 0;
  while (!CPU_ISSET(first, &set)) ++first;
  int second = first + 1;
  while (!CPU_ISSET(second, &set)) ++second;
  return std::pair{first, second};
}

std::optional<Nanos> core_round_trip(std::pair<int, int> cpus) {
  Lines lines;
  std::array<Nanos, batches> spans{};
  std::thread there{[&] { answer_all(lines, cpus.second); }};
  std::thread here{[&] { ask_all(lines, cpus.first, spans); }};
  here.join();
  there.join();
  if (lines.failed_pins.load() > 0) return std::nullopt;
  std::ranges::nth_element(spans, spans.begin() + batches / 2);
  return spans[batches / 2] / trips_per_batch;
}

CpuPlace::CpuPlace() : cpus_{first_two_cpus()}, round_trip_{measure()} {}

Nanos CpuPlace::measure() const { return cpus_ ? core_round_trip(*cpus_).value_or(0ns) : 0ns; }

CpuPlace::Look CpuPlace::look() const {
  const Nanos now = measure();
  return {.round_trip = now, .is_here = is_same_place(now, round_trip_)};
}

}  // namespace onehop::bench
