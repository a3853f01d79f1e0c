// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a fuzz target provides. libFuzzer calls LLVMFuzzerTestOneInput with inputs that it evolves;
// replay_main.cpp calls it with random and mutated inputs from a printed seed, so that every target
// also runs as a plain unit test.
//
// A target states properties with ONEHOP_CHECK: an input that breaks one aborts, and libFuzzer
// keeps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// LLVMFuzzerTestOneInput returns 0, as libFuzzer asks.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace onehop::fuzz {

inline constexpr std::size_t input_bytes_max = 8192;

/// make_valid writes a valid input chosen by `random` and returns its length: what mutations start
/// from.
std::size_t make_valid(std::uint64_t random, std::span<std::byte, input_bytes_max> out);

/// accepted_total counts inputs that the code under test took. A run that accepts none, or all,
/// tests nothing.
extern std::uint64_t accepted_total;

}  // namespace onehop::fuzz
