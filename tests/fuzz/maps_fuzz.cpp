// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Memory maps of processes, in which names of files may be anything: each ring that is found lies
// in the text's address space, once per socket and kind.
#include <algorithm>
#include <random>
#include <string>

#include "engine/base/check.hpp"
#include "tests/fuzz/text_inputs.hpp"
#include "tools/onehop/rings/maps.hpp"

namespace onehop::fuzz {

std::uint64_t accepted_total = 0;

std::size_t make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  constexpr std::array<std::string_view, 6> names{
      "socket:[31337]", "/tmp/a\\012socket:[31337] (deleted)", "[heap]", "", "anon_inode:[perf]",
      "/socket:[31337]"};
  constexpr std::array<std::string_view, 5> offsets{"00000000", "80000000", "100000000",
                                                    "180000000", "00001000"};
  std::string text;
  for (std::uint64_t line = random() % 8 + 1; line > 0; --line)
    text += "7f000000" + std::to_string(line) + "000-7f000000" + std::to_string(line + 1) +
            "000 rw-s " + std::string{offsets[random() % offsets.size()]} + " 00:08 31337    " +
            std::string{names[random() % 2 == 0 ? 0 : random() % names.size()]} + "\n";
  return put_text(text, out);
}

}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace onehop;
  const std::string text = fuzz::text_of(data, size);
  const auto found = rings::mappings_in(text);
  if (found.empty()) return 0;
  ++fuzz::accepted_total;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ONEHOP_CHECK(found[i].inode != 0);
    ONEHOP_CHECK(found[i].bytes > 0);
    ONEHOP_CHECK(text.find("socket:[" + std::to_string(found[i].inode) + "]") != std::string::npos);
    for (std::size_t k = 0; k < i; ++k)
      ONEHOP_CHECK(found[k].inode != found[i].inode || found[k].kind != found[i].kind);
  }
  return 0;
}
