// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a stranger says before TLS: whatever it is, an end takes it within its bounds or not at all,
// and has a key then that no other end has. Input: a greeting, the head of a message, what it says.
#include <algorithm>
#include <random>

#include "control/session/code/code_exchange.hpp"
#include "engine/base/check.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;
using namespace onehop::session;

std::uint64_t fuzz::accepted_total = 0;

// A true greeting, with a point of the group that the seed gives.
std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  std::array<std::byte, 8> password;
  for (std::byte& byte : password) byte = static_cast<std::byte>(random());
  const auto point = crypto::cpace_generator({password, {}, {}});
  const std::size_t said_bytes = random() % 64;
  auto at = std::ranges::copy(CodeExchange{Role::sender, random() % 3}.greeting(), out.begin()).out;
  at = std::ranges::copy(point, at).out;
  *at++ = static_cast<std::byte>(said_bytes);
  for (std::size_t i = 0; i < said_bytes; ++i) *at++ = static_cast<std::byte>(random());
  return static_cast<std::size_t>(at - out.begin());
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const PairingCode code = PairingCode::from_text("a code of twenty letters").value();
  const auto bytes = std::as_bytes(std::span{data, size});
  ExchangeGreeting greeting;
  ExchangeHead head;
  if (size < greeting.size() + head.size()) return 0;
  std::copy_n(bytes.begin(), greeting.size(), greeting.begin());
  std::copy_n(bytes.begin() + greeting.size(), head.size(), head.begin());
  const auto said = bytes.subspan(greeting.size() + head.size());
  for (const Role role : {Role::sender, Role::receiver}) {
    CodeExchange end{role, 0};
    if (!end.take_greeting(greeting)) return 0;
    // As exchange_code() does: a point that is none costs no multiplication.
    if (said.size() != CodeExchange::said_bytes(head)) return 0;
    if (!crypto::is_cpace_point(CodeExchange::point_of(head))) return 0;
    ONEHOP_CHECK(end.message(code, {}).size() <= exchange_head_bytes + exchange_said_bytes_max);
    const auto psk = end.take_message(head, said), again = end.take_message(head, said);
    ONEHOP_CHECK(psk.has_value());
    ONEHOP_CHECK(std::ranges::equal(psk->bytes(), again->bytes()));
    CodeExchange other{role, 0};
    ONEHOP_CHECK(other.take_greeting(greeting));
    (void)other.message(code, {});
    ONEHOP_CHECK(!std::ranges::equal(psk->bytes(), other.take_message(head, said)->bytes()));
    ++fuzz::accepted_total;
  }
  return 0;
}
