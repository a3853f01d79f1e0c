// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Drives a fuzz target without libFuzzer: inputs, random and mutated, from a seed. Arguments: the
// seed (1), and how many (20000).
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "tests/fuzz/fuzz.hpp"

namespace {

using onehop::fuzz::input_bytes_max;
using Buffer = std::array<std::byte, input_bytes_max>;

std::size_t make_input(std::mt19937_64& random, Buffer& buffer) {
  if (random() % 4 == 0) {
    const std::size_t size = random() % (random() % 8 == 0 ? input_bytes_max : 200);
    for (std::size_t i = 0; i < size; ++i) buffer[i] = static_cast<std::byte>(random());
    return size;
  }
  std::size_t size = onehop::fuzz::make_valid(random(), buffer);
  const std::uint64_t mutations = random() % 4;  // none: valid ones are tested too
  for (std::uint64_t m = 0; m < mutations && size > 0; ++m) {
    const std::size_t at = random() % size;
    switch (random() % 6) {
      case 0: buffer[at] ^= static_cast<std::byte>(1U << (random() % 8)); break;
      case 1: buffer[at] = static_cast<std::byte>(random()); break;
      case 2: size = at; break;
      case 3: size = std::min(size + 1 + random() % 16, input_bytes_max); break;
      case 4: {  // a run of equal bytes: zeros and ones are where bounds are
        const std::size_t end = std::min(size, at + 1 + random() % 10);
        for (std::size_t i = at; i < end; ++i)
          buffer[i] = random() % 2 == 0 ? std::byte{0xff} : std::byte{0};
        break;
      }
      default: std::swap(buffer[at], buffer[random() % size]); break;
    }
  }
  return size;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const std::uint64_t inputs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20'000;
  std::printf("seed %llu, %llu inputs\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(inputs));
  std::fflush(stdout);  // an abort below must leave the seed behind
  std::mt19937_64 random{seed};
  Buffer buffer{};
  for (std::uint64_t i = 0; i < inputs; ++i) {
    const std::size_t size = make_input(random, buffer);
    // An allocation of the exact size, so that a sanitizer or valgrind sees a read beyond the end.
    const std::unique_ptr<std::uint8_t[]> exact{new std::uint8_t[size]};
    std::transform(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(size), exact.get(),
                   [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
    (void)LLVMFuzzerTestOneInput(exact.get(), size);
  }
  const std::uint64_t accepted = onehop::fuzz::accepted_total;
  std::printf("%llu accepted\n", static_cast<unsigned long long>(accepted));
  const bool is_meaningful = accepted > inputs / 100 && accepted < inputs;
  if (!is_meaningful)
    std::printf("the inputs are all good or (nearly) all bad: this run tested nothing\n");
  return is_meaningful ? 0 : 1;
}
