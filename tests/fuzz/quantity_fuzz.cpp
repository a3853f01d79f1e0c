// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Addresses, rates and amounts as people write them. Whatever a reader accepts is within its
// limits, and an address reads the same when it is written again.
#include <array>
#include <random>

#include "control/transfer/settings.hpp"
#include "engine/base/rate_text.hpp"
#include "engine/base/system/address.hpp"
#include "tests/fuzz/text_inputs.hpp"
#include "tools/labs/bench/options.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

namespace {

constexpr std::uint64_t amount_max = 1'000'000'000'000'000;

std::string draw_number(std::mt19937_64& random) {
  constexpr std::array<std::string_view, 10> special{"nan", "inf",   "-1", "0",    "0x10",
                                                     "1e9", "1e400", ".5", "1..2", "00007"};
  if (random() % 4 == 0) return std::string{special[random() % special.size()]};
  return std::to_string(random() >> (20 + random() % 40));
}

std::string draw_endpoint(std::mt19937_64& random) {
  constexpr std::array<std::string_view, 9> hosts{
      "10.0.0.2",          "box.local", "[fe80::1%lo]", "[::1]", "::1", "fe80::1%1",
      "[::ffff:10.0.0.1]", "",          "10.0.0.256"};
  std::string text{hosts[random() % hosts.size()]};
  if (random() % 2 == 0) text += ":" + std::to_string(random() % 70'000);
  return text;
}

bool is_rate(const std::string& text) {
  const auto rate = parse_rate(text);
  if (!rate) return false;
  ONEHOP_CHECK(rate.value() >= BytesPerSecond{1'000});
  ONEHOP_CHECK(rate.value() <= BytesPerSecond{125'000'000'000});
  return true;
}

bool is_amount(const std::string& text) {
  const auto amount = bench::parse_amount(text);
  if (!amount) return false;
  ONEHOP_CHECK(amount.value() >= 1);
  ONEHOP_CHECK(amount.value() <= amount_max);
  return true;
}

bool is_address(const std::string& text) {
  const auto address = IpAddress::parse(text);
  if (!address) return false;
  ONEHOP_CHECK(text.find('\0') == std::string::npos);
  ONEHOP_CHECK(IpAddress::parse(address->text()) == address);
  return true;
}

bool is_endpoint(const std::string& text) {
  const auto endpoint = transfer::parse_endpoint(text);
  if (!endpoint) return false;
  ONEHOP_CHECK(endpoint.value().port != 0);
  ONEHOP_CHECK(endpoint.value().host.find('\0') == std::string::npos);
  ONEHOP_CHECK(endpoint.value().host.size() <= text.size());
  (void)is_address(endpoint.value().host);
  return true;
}

}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  constexpr std::array<std::string_view, 9> units{"",  "k",  "Mbit", "Gbit/s", "bps",
                                                  "M", "2G", "T",    "MB"};
  std::mt19937_64 random{seed};
  std::string text = random() % 2 == 0 ? draw_endpoint(random) : draw_number(random);
  if (random() % 2 == 0) text += units[random() % units.size()];
  if (random() % 16 == 0) text.insert(random() % (text.size() + 1), 1, '\0');
  return put_text(text, out);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::text_of(data, size);
  // A word alone is a host name, so an endpoint takes nearly everything: the others count.
  (void)is_endpoint(text);
  const bool is_read = is_rate(text), is_counted = is_amount(text), is_placed = is_address(text);
  if (is_read || is_counted || is_placed) ++fuzz::accepted_total;
  return 0;
}
