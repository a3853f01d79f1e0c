// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What every target adds to libFuzzer: valid inputs to start from, since a digest is never found by
// chance, and a run that accepted no input at all fails. Source:
// https://llvm.org/docs/LibFuzzer.html, "Startup initialization", and FuzzerInterface.h.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/fuzz.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t size_max, unsigned seed);

namespace {

// One input in so many begins anew with a valid one; half of these are left as they are. Fewer: a
// target behind a digest sees none for long. More: less of what libFuzzer has learnt is used.
constexpr unsigned valid_period = 16;

void check_accepted() {
  const auto accepted = static_cast<unsigned long long>(onehop::fuzz::accepted_total);
  std::fprintf(stderr, "%llu inputs accepted\n", accepted);
  if (accepted == 0) std::_Exit(1);  // an exit code cannot be changed by exit() in a handler of it
}

}  // namespace

int LLVMFuzzerInitialize(int*, char***) { return std::atexit(check_accepted); }

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t size_max,
                                    unsigned seed) {
  if (seed % valid_period == 0) {
    std::array<std::byte, onehop::fuzz::input_bytes_max> valid{};
    size = std::min(onehop::fuzz::make_valid(seed, valid), size_max);
    std::transform(valid.begin(), valid.begin() + static_cast<std::ptrdiff_t>(size), data,
                   [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
    if (seed / valid_period % 2 == 0) return size;
  }
  return LLVMFuzzerMutate(data, size, size_max);
}
