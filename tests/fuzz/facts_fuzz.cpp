// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// N5: any process of the same user can write to the model's socket. Whatever decode_facts accepts
// is within bounds, and encode_facts writes it back byte for byte.
#include <array>
#include <cstring>
#include <random>

#include "control/link/emulated_source.hpp"
#include "engine/base/check.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  const auto total = [&] { return random() >> (2 + random() % 60); };
  const auto bytes = [&] { return Bytes{static_cast<std::int64_t>(total())}; };
  const auto span = [&] { return Nanos{static_cast<Nanos::rep>(total())}; };
  const auto is_wanted = [&] { return random() % 2 == 0; };
  law::LinkFacts facts;
  const Instant at{span()};
  const Nanos period = 1us * static_cast<int>(random() % 10'000'001);
  facts.medium = static_cast<law::Medium>(random() % 3);
  if (is_wanted()) {
    law::QueueReading queue{.foreign = bytes()};
    queue.queue = {.occupancy = bytes(),
                   .drained_total = bytes(),
                   .capacity = bytes(),
                   .refused_total = total()};
    facts.exact_queue = {queue, at, period};
  }
  if (is_wanted())
    facts.phy_rate = {{static_cast<std::int64_t>(random() % link::facts_rate_max)}, at, period};
  if (is_wanted())
    facts.channel = {{span(), is_wanted() ? std::optional{span()} : std::nullopt}, at, period};
  if (is_wanted())
    facts.own_airtime = {{is_wanted() ? std::optional{span()} : std::nullopt, span()}, at, period};
  if (is_wanted()) facts.mac = {{total(), total(), total()}, at, period};
  if (is_wanted()) facts.stations = {static_cast<std::int32_t>(random() % 65'537), at, period};
  if (is_wanted()) facts.aggregate_max = {bytes(), at, Nanos{0}};
  if (is_wanted()) facts.exchange = {1us * static_cast<int>(random() % 1'000'001), at, period};
  std::array<std::byte, link::facts_datagram_bytes_max> made;
  const std::size_t size = link::encode_facts(facts, made);
  ONEHOP_CHECK(size > 0);
  std::memcpy(out.data(), made.data(), size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto decoded = link::decode_facts({reinterpret_cast<const std::byte*>(data), size});
  if (!decoded) return 0;
  ++fuzz::accepted_total;
  const law::LinkFacts& facts = *decoded;
  if (facts.phy_rate) ONEHOP_CHECK(facts.phy_rate->value >= BytesPerSecond{0});
  if (facts.stations) ONEHOP_CHECK(facts.stations->value >= 0);
  if (facts.exchange) ONEHOP_CHECK(facts.exchange->value <= link::facts_exchange_max);
  if (facts.exact_queue) ONEHOP_CHECK(facts.exact_queue->value.queue.occupancy >= Bytes{0});
  if (facts.exact_queue) ONEHOP_CHECK(facts.exact_queue->period <= link::facts_period_max);
  if (facts.exact_queue) ONEHOP_CHECK(facts.exact_queue->value.sensor == law::QueueSensor::model);
  std::array<std::byte, link::facts_datagram_bytes_max> again;
  ONEHOP_CHECK(link::encode_facts(facts, again) == size);
  ONEHOP_CHECK(std::memcmp(again.data(), data, size) == 0);
  // Nothing from the future is ever let in.
  law::LinkFacts merged;
  const Instant now{1s};
  link::merge_facts(facts, now, merged);
  if (merged.phy_rate) ONEHOP_CHECK(merged.phy_rate->at <= now);
  return 0;
}
