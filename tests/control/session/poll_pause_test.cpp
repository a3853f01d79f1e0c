// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PollPause over whole transfers: the end is seen soon, and not at the price of many polls.
#include <catch2/catch.hpp>

#include "control/session/poll_pause.hpp"
#include "engine/base/block.hpp"
#include "engine/base/time.hpp"
#include "engine/base/units.hpp"

namespace onehop::session {
namespace {

struct Polled {
  Nanos late;  ///< from the last block to the poll that sees it
  int polls;
};

/// poll_through: `bytes` in blocks of 256 KiB at `rate`, of which nothing moves before `still`.
Polled poll_through(Bytes bytes, BytesPerSecond rate, Nanos still) {
  const SessionLimits limits;
  PollPause pause{limits};
  const Nanos end = still + time_for(bytes, rate);
  Nanos now{0};
  for (int polls = 1;; ++polls) {
    const Bytes moved = now > still ? std::min(rate * (now - still), bytes) : Bytes{0};
    if (moved >= bytes) return {now - end, polls};
    const auto whole = static_cast<std::uint64_t>(moved.count) / block_bytes * block_bytes;
    now += pause.next(now, whole, static_cast<std::uint64_t>(bytes.count));
  }
}

TEST_CASE("the poll that sees the last block comes within 5 ms of it, after a slow start too",
          "[control][session]") {
  const Nanos still = GENERATE(as<Nanos>{}, 0ms, 1ms, 7ms, 15ms, 40ms, 300ms);
  const Bytes bytes = GENERATE(as<Bytes>{}, Bytes{300'000}, Bytes{1'000'000}, Bytes{10'000'000},
                               Bytes{70'000'000}, Bytes{1'000'000'000});
  const BytesPerSecond rate = GENERATE(as<BytesPerSecond>{}, mbit_per_s(100), mbit_per_s(600),
                                       mbit_per_s(1156), mbit_per_s(10'000));
  CAPTURE(still.count(), bytes.count, rate.count);
  const Polled polled = poll_through(bytes, rate, still);
  CHECK(polled.late <= 5ms);
  // 2 ms until the first block, then doubling, a poll per 100 ms, and a quarter of the rest at a
  // time.
  CHECK(polled.polls <= static_cast<int>((still + time_for(kib(256), rate)) / 2ms) + 40 +
                            static_cast<int>(time_for(bytes, rate) / 100ms));
}

TEST_CASE(
    "a pause is a quarter of what is left at the rate so far, and no longer than that was watched",
    "[control][session]") {
  const SessionLimits limits;
  const auto after = [&limits](Nanos watched, std::uint64_t done, std::uint64_t total) {
    PollPause pause{limits};
    CHECK(pause.next(300ms, block_bytes, total * block_bytes) == limits.poll_short);
    return pause.next(300ms + watched, done * block_bytes, total * block_bytes);
  };
  CHECK(after(20ms, 3, 5) == 5ms);     // two blocks in 20 ms, two are left
  CHECK(after(40ms, 5, 6) == 2500us);  // four in 40 ms, one is left
  CHECK(after(4ms, 2, 1000) == 4ms);   // a quarter of 998 blocks is longer than was watched
  CHECK(after(20ms, 1, 2) == 5ms);     // none since the first: as much is left as was watched
  CHECK(after(20ms, 1, 1000) == 5ms);
  CHECK(after(1ms, 2, 3) == limits.poll_short);
  CHECK(after(10s, 2, 1000) == limits.poll);
}

TEST_CASE("a slow link is not polled as if its next block were due at once", "[control][session]") {
  const BytesPerSecond rate =
      mbit_per_s(1);  // a block takes 2.1 s, of which only the first is waited for by short polls
  CHECK(poll_through(Bytes{2'000'000}, rate, 0ms).polls <= 1049 + 40 + 160);
}

}  // namespace
}  // namespace onehop::session
