// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Profiles of `onehop lab` are TOML that users write. Whatever parse_profile accepts describes a
// link that can be built: every number is finite and within what the kernel takes.
#include "tests/fuzz/text_inputs.hpp"
#include "tools/labs/lab/profile.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

namespace {

constexpr BytesPerSecond rate_min{1000}, rate_max{125'000'000'000};
constexpr std::uint32_t ppm_max = 1'000'000;

void check_rate(BytesPerSecond rate) {
  ONEHOP_CHECK(rate >= rate_min);
  ONEHOP_CHECK(rate <= rate_max);
}

template <class Points>
void check_trace(const Points& trace, Nanos period) {
  if (trace.empty()) return;
  ONEHOP_CHECK(trace.front().at == Nanos{0});
  for (std::size_t i = 1; i < trace.size(); ++i) ONEHOP_CHECK(trace[i].at > trace[i - 1].at);
  ONEHOP_CHECK(period > trace.back().at);
}

void check_wifi(const lab::air::AirProfile& wifi) {
  ONEHOP_CHECK(wifi.channel.aggregate_max > Bytes{0});
  ONEHOP_CHECK(wifi.channel.loss_ppm <= 900'000);
  ONEHOP_CHECK(wifi.channel.stations >= 2);
  ONEHOP_CHECK(wifi.queue_frames >= 2);
  ONEHOP_CHECK(wifi.facts.period > Nanos{0});
  ONEHOP_CHECK(wifi.facts.late >= Nanos{0});
  ONEHOP_CHECK(wifi.facts.loss_ppm <= ppm_max);
  check_trace(wifi.trace, wifi.trace_period);
}

void check_profile(const lab::Profile& profile) {
  if (profile.rate) check_rate(*profile.rate);
  for (const lab::TracePoint& point : profile.trace) check_rate(point.rate);
  check_trace(profile.trace, profile.trace_period);
  if (profile.is_reverse_shaped) check_rate(profile.reverse_rate);
  for (const Bytes size : {profile.queue, profile.burst}) {
    ONEHOP_CHECK(size >= Bytes{2000});
    ONEHOP_CHECK(size <= Bytes{1'000'000'000});
  }
  ONEHOP_CHECK(profile.mtu_bytes >= 1280);
  ONEHOP_CHECK(profile.mtu_bytes <= 9000);
  ONEHOP_CHECK(profile.loss_ppm <= ppm_max);
  ONEHOP_CHECK(profile.reverse_loss_ppm <= ppm_max);
  ONEHOP_CHECK(!profile.is_direct || profile.loss_ppm + profile.reverse_loss_ppm == 0);
  ONEHOP_CHECK((lab::shaper_of(profile) == lab::Shaper::none) == !profile.rate.has_value());
  if (profile.disk) ONEHOP_CHECK(profile.disk->folder.starts_with('/'));
  if (profile.wifi) check_wifi(*profile.wifi);
}

}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  static const auto texts = texts_in(ONEHOP_CONFIGS "/lab", ".toml");
  return make_text(texts, '=', seed, out);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto read = lab::parse_profile(fuzz::text_of(data, size), "fuzz");
  if (const lab::Profile* const profile = fuzz::accepted_by(read)) check_profile(*profile);
  return 0;
}
