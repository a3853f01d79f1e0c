// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   however often, and by whom, questions are asked, a bounded number is answered.
// Method: the limiter alone, in virtual time.
// Bounds: in each span of a second 10 for an asker and 50 in all, exactly.
#include "control/find/answer_limiter.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace onehop;
using namespace onehop::find;

namespace {

constexpr Instant start{1000s};

IpAddress v4(int last) {
  IpAddress made = *IpAddress::parse("192.168.1.1");
  made.bytes[3] = static_cast<std::byte>(last);
  return made;
}

int taken(AnswerLimiter& limiter, const IpAddress& asker, Instant now, int asked) {
  int count = 0;
  for (int i = 0; i < asked; ++i) count += limiter.take(asker, now) ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("K7 an asker gets ten answers in any second", "[control][find]") {
  AnswerLimiter limiter;
  CHECK(taken(limiter, v4(1), start, 1000) == 10);
  CHECK(taken(limiter, v4(1), start + 1s - 1ns, 1000) == 0);
  CHECK(taken(limiter, v4(2), start + 500ms, 1000) == 10);  // another one is not kept from it
  CHECK(taken(limiter, v4(1), start + 1s, 1000) == 10);
}

TEST_CASE("K7 all addresses of an IPv6 /64 are one asker, on one link", "[control][find]") {
  AnswerLimiter limiter;
  const auto asks = [&](const char* address, unsigned scope) {
    IpAddress asker = *IpAddress::parse(address);
    asker.scope_id = scope;
    return taken(limiter, asker, start, 6);
  };
  CHECK(asks("fe80::1", 2) + asks("fe80::2", 2) == 10);
  CHECK(asks("fe80::1", 3) == 6);
  CHECK(asks("fd00:1::1", 0) + asks("fd00:1::ffff:1", 0) == 10);
  CHECK(asks("fd00:1:0:1::1", 0) == 6);
}

TEST_CASE("K7 fifty answers leave in any second, whoever asks", "[control][find]") {
  AnswerLimiter limiter;
  std::vector<Instant> answered;
  for (int ms = 0; ms < 3000; ++ms)
    for (int asker = 0; asker < 20; ++asker)
      if (limiter.take(v4((ms * 20 + asker) % 250), start + ms * 1ms))
        answered.push_back(start + ms * 1ms);
  CHECK(answered.size() == 150);
  for (std::size_t i = 50; i < answered.size(); ++i) CHECK(answered[i] - answered[i - 50] >= 1s);
}
