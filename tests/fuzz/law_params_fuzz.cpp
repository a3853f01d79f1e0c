// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// D3: a parameter file is what somebody sent a user. Whatever read_params accepts makes a law, and
// its grants stay within the limits of the file, whatever the queue does.
#include <cmath>
#include <random>

#include "control/law/make_law.hpp"
#include "tests/control/law/law_sample.hpp"
#include "tests/fuzz/text_inputs.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

namespace {

constexpr int steps = 40;

/// The limits of a file are of payload, and a grant is of what stands on the wire.
BytesPerSecond to_wire(BytesPerSecond rate) {
  const test::SampleMaker frame;
  return {rate.count / frame.sample.path.payload_per_frame.count *
              frame.sample.path.wire_per_frame.count +
          frame.sample.path.wire_per_frame.count};
}

void check_law(const law::LawOptions& options, std::uint64_t seed) {
  auto made = law::make_law(options);
  ONEHOP_CHECK(made.has_value());
  std::mt19937_64 random{seed};
  test::SampleMaker maker;
  for (int i = 0; i < steps; ++i) {
    const Nanos span = 1us * static_cast<int>(random() % 20'000);
    const Bytes left{static_cast<std::int64_t>(random() % 1'000'000)};
    const Bytes standing{static_cast<std::int64_t>(random() % 1'000'000)};
    if (random() % 4 == 0) maker.know(standing);
    const RateGrant grant = made.value()->step(maker.step(span, left, standing));
    ONEHOP_CHECK(grant.rate > BytesPerSecond{0});
    ONEHOP_CHECK(grant.rate <= to_wire(options.params.safe_range.rate_max));
    ONEHOP_CHECK(grant.backlog_max >= Bytes{0});
    ONEHOP_CHECK(grant.batch_frames > 0);
  }
}

}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  static const auto texts = texts_in(ONEHOP_CONFIGS "/law", ".json");
  return make_text(texts, ':', seed, out);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::text_of(data, size);
  law::LawParams params;
  auto read = law::read_params(text, "fuzz", params);
  const std::string* const name = fuzz::accepted_by(read);
  if (name == nullptr) {
    ONEHOP_CHECK(params.safe_range == law::SafeRangeParams{});
    return 0;
  }
  const bool is_qcut = *name == "qcut";
  law::LawOptions options{.has_qcut = is_qcut, .params = params};
  if (!is_qcut) options.spec = *name;
  check_law(options, std::hash<std::string>{}(text));
  return 0;
}
