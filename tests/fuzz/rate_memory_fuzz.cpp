// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// D3: what earlier runs remember of rates is a file, and anything may stand in it. A rate that is
// recalled is within limits; whatever stood there, the next run is remembered, and what was good of
// the rest stays.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "control/transfer/account/rate_memory.hpp"
#include "tests/fuzz/text_inputs.hpp"

using namespace onehop;
using transfer::RateMemory;

std::uint64_t fuzz::accepted_total = 0;

namespace {

/// One folder in memory for a run: the file is written anew for each input.
struct Folder {
  Folder() {
    std::string made = "/dev/shm/onehop-fuzz-XXXXXX";
    ONEHOP_CHECK(::mkdtemp(made.data()) != nullptr);
    path = made;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

const std::string peer = "10.0.0.2", interface = "wlan0", other = "10.0.0.3";

}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  std::string text = "{\n \"schema_version\": 1,\n \"rates\": [";
  for (std::uint64_t i = 0, entries = random() % 70; i < entries; ++i)
    text += std::string{i == 0 ? "" : ","} + "\n  {\"peer\": \"10.0.0." + std::to_string(i) +
            "\",\n   \"interface\": \"wlan0\",\n   \"rate_bytes_per_s\": " +
            std::to_string(125'000 + (random() >> (31 + random() % 30))) + "\n  }";
  text += "\n ]\n}\n";
  return put_text(swap_values(text, ':', random), out);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::string file = folder.path + "/rates.json";
  std::ofstream{file, std::ios::binary} << fuzz::text_of(data, size);
  const RateMemory memory{file};
  const auto before = memory.recall(peer, interface), beside = memory.recall(other, interface);
  ONEHOP_CHECK(before.has_value() == beside.has_value());
  if (before) {
    ++fuzz::accepted_total;
    for (const auto& rate : {before.value(), beside.value()}) {
      if (!rate) continue;
      ONEHOP_CHECK(*rate >= RateMemory::rate_min);
      ONEHOP_CHECK(*rate <= RateMemory::rate_max);
    }
  } else {
    ONEHOP_CHECK(before.error().code == ExitCode::local_file_error);
    ONEHOP_CHECK(!before.error().cause.empty());
  }
  ONEHOP_CHECK(memory.remember({peer, interface, BytesPerSecond{1'000'000}}).has_value());
  const auto after = memory.recall(peer, interface), kept = memory.recall(other, interface);
  ONEHOP_CHECK(after.has_value() && after.value() == BytesPerSecond{1'000'000});
  // The least recently used of as many as there may be has gone.
  if (before && kept.has_value() && kept.value()) ONEHOP_CHECK(kept.value() == beside.value());
  return 0;
}
