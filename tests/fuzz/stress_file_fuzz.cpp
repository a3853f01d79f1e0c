// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Schedules of `onehop stress` are TOML that users write. Whatever parse_stress_file accepts is a
// schedule that can be played: it ends, its faults lie within it, and its file has a bounded size.
#include "control/law/make_law.hpp"
#include "tests/fuzz/text_inputs.hpp"
#include "tools/labs/stress/stress_file.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

namespace {

constexpr std::size_t events_max = 100'000;
constexpr std::size_t drawn_events_max = 1000;  // more take milliseconds for each input
constexpr std::uint64_t file_bytes_max = 1'000'000'000;

void check_schedule(const stress::Schedule& schedule) {
  const scenario::WorldConfig& world = schedule.world;
  ONEHOP_CHECK(schedule.span >= 1ms);
  ONEHOP_CHECK(schedule.span <= 60s);
  ONEHOP_CHECK(schedule.limit > schedule.span);
  for (const stress::FaultEvent& event : schedule.events) {
    ONEHOP_CHECK(event.at >= Nanos{0});
    ONEHOP_CHECK(event.at <= schedule.span);
    ONEHOP_CHECK(event.span > Nanos{0});
  }
  ONEHOP_CHECK(world.forward.rate > BytesPerSecond{0});
  ONEHOP_CHECK(world.forward.delay > Nanos{0});
  ONEHOP_CHECK(world.forward.queue_capacity > Bytes{0});
  ONEHOP_CHECK(law::make_law({.spec = world.law}).has_value());
  for (const std::uint64_t bytes : world.file_sizes) {
    ONEHOP_CHECK(bytes > 0);
    ONEHOP_CHECK(bytes <= file_bytes_max);
  }
}

}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  static const auto texts = texts_in(ONEHOP_CONFIGS "/stress", ".toml");
  return make_text(texts, '=', seed, out);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto read = stress::parse_stress_file(fuzz::text_of(data, size), "fuzz");
  const stress::StressFile* const file = fuzz::accepted_by(read);
  if (file == nullptr) return 0;
  ONEHOP_CHECK(file->schedule.events.size() <= events_max);
  ONEHOP_CHECK(file->random.events <= events_max);
  check_schedule(file->schedule);
  if (file->random.events > drawn_events_max) return 0;
  const stress::Schedule schedule = stress::schedule_from(*file, 1, 0);
  check_schedule(schedule);
  ONEHOP_CHECK(std::ranges::is_sorted(schedule.events, {}, &stress::FaultEvent::at));
  return 0;
}
