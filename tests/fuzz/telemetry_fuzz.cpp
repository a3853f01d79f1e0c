// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Lines of the local socket, from a process that may be anything: what is read is printable,
// bounded, fits a terminal and is written again as it was read.
#include <algorithm>
#include <string>

#include "engine/base/check.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/tools/watch_sample.hpp"
#include "tools/onehop/watch/screen.hpp"

namespace onehop::fuzz {

std::uint64_t accepted_total = 0;

std::size_t make_valid(std::uint64_t random, std::span<std::byte, input_bytes_max> out) {
  watch::Telemetry t = watch::random_telemetry(random);
  t.details.resize(random % 2);
  std::string line = random % 8 == 0 ? watch::line_of(watch::Ended{.exit_code = 3, .seconds = 1})
                                     : watch::line_of(t);
  const std::size_t size = std::min(line.size(), out.size());
  std::copy_n(reinterpret_cast<const std::byte*>(line.data()), size, out.begin());
  return size;
}

}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace onehop;
  const auto read = watch::read_line({reinterpret_cast<const char*>(data), size});
  if (!read.has_value()) return 0;
  ++fuzz::accepted_total;
  const auto* t = std::get_if<watch::Telemetry>(&read.value());
  if (t == nullptr) return 0;
  for (const std::string* text :
       {&t->peer, &t->interface, &t->io, &t->law, &t->sensor, &t->bottleneck})
    ONEHOP_CHECK(std::ranges::all_of(*text, [](char c) { return c >= ' ' && c <= '~'; }));
  const std::string line = watch::line_of(*t);
  const auto again = watch::read_line(line);
  ONEHOP_CHECK(again.has_value());
  ONEHOP_CHECK(watch::line_of(std::get<watch::Telemetry>(again.value())) == line);
  const watch::ScreenOptions options{.columns = 80, .rows = 24, .has_color = false};
  const std::string text = watch::text_of(watch::lines_of(*t, {}, options), options);
  ONEHOP_CHECK(std::ranges::count(text, '\n') <= 24);
  return 0;
}
