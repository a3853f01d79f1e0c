// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include <catch2/catch.hpp>
#include <random>

#include "engine/transfer/pacer.hpp"

using namespace onehop;
using transfer::Pacer;

TEST_CASE("Pacer loses nothing to short turns") {
  // At 1.9 MB/s a turn of 1 us earns 1.9 bytes: what a turn rounds away would be half the rate.
  const BytesPerSecond rate{GENERATE(1'900'000, 100'000, 12'345'678, 1'250'000'000)};
  const auto seed = GENERATE(1U, 2U);
  CAPTURE(rate.count, seed);
  std::mt19937 random{seed};
  const Instant start{5s};
  Pacer pacer;
  pacer.set(rate, Bytes{3000}, start);
  Bytes spent = pacer.allowance(start);  // the bucket was full at the start
  pacer.spend(spent);
  Instant now = start;
  while (now < start + 50ms) {
    now += Nanos{300 + random() % 1500};
    pacer.set(rate, Bytes{3000}, now);
    const Bytes allowance = pacer.allowance(now);
    if (allowance > Bytes{0}) {
      pacer.spend(allowance);
      spent += allowance;
    }
  }
  const Bytes earned = rate * (now - start) + Bytes{3000};
  CHECK(spent <= earned);
  CHECK(spent >= earned - Bytes{2});
}

TEST_CASE("Pacer never gathers more than its depth, and an overdraft is paid back") {
  Pacer pacer;
  pacer.set(BytesPerSecond{1'000'000}, Bytes{5000}, Instant{1s});
  CHECK(pacer.allowance(Instant{100s}) == Bytes{5000});
  pacer.spend(Bytes{6000});
  CHECK(pacer.allowance(Instant{100s}) == Bytes{-1000});
  CHECK(pacer.ready_at(Bytes{500}) == Instant{100s + 1500us});
  CHECK(pacer.allowance(Instant{100s + 1500us}) == Bytes{500});
  pacer.set(BytesPerSecond{1'000'000}, Bytes{100}, Instant{100s + 1500us});
  CHECK(pacer.allowance(Instant{100s + 1500us}) == Bytes{100});
}

TEST_CASE("Pacer at rate zero allows nothing more, and what was earned before stays at the old rate") {
  Pacer pacer;
  pacer.set(BytesPerSecond{1'000'000}, Bytes{10'000}, Instant{1s});
  pacer.spend(Bytes{10'000});
  pacer.set(BytesPerSecond{0}, Bytes{10'000}, Instant{1s + 2ms});
  CHECK(pacer.allowance(Instant{10s}) == Bytes{2000});
  CHECK(pacer.ready_at(Bytes{2001}) == Instant::max());
  pacer.set(BytesPerSecond{2'000'000}, Bytes{10'000}, Instant{10s});
  CHECK(pacer.allowance(Instant{10s + 1ms}) == Bytes{4000});
}

TEST_CASE("T1 Pacer ignores a time that lies back") {
  Pacer pacer;
  pacer.set(BytesPerSecond{1'000'000}, Bytes{1000}, Instant{1s});
  pacer.spend(Bytes{1000});
  CHECK(pacer.allowance(Instant{500ms}) == Bytes{0});
  CHECK(pacer.allowance(Instant{1s + 500us}) == Bytes{500});
}
