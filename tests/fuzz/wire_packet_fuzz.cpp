// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// N1: a raw port hands over whatever the wire carries. What parse_udp_frame accepts lies within the
// frame, and its headers, built again from what it read, agree in addresses, ports and lengths.
#include <array>
#include <cstring>
#include <random>

#include "engine/base/check.hpp"
#include "engine/wire/l2_l4.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  wire::UdpFlow flow{.is_ipv6 = random() % 2 == 0,
                     .source_port = static_cast<std::uint16_t>(random()),
                     .target_port = static_cast<std::uint16_t>(random()),
                     .dscp = static_cast<std::uint8_t>(random() % 64)};
  for (auto& b : flow.source_ip) b = static_cast<std::byte>(random());
  for (auto& b : flow.target_ip) b = static_cast<std::byte>(random());
  std::array<std::byte, wire::l2_l4_bytes_max> made;
  const std::size_t size = wire::build_headers(flow, made), payload = random() % 200;
  for (std::size_t i = 0; i < payload; ++i) out[size + i] = static_cast<std::byte>(random());
  const wire::HeaderTemplate header{std::span{made}.first(size)};
  header.write(out.data(), out.subspan(size, payload));
  return size + payload;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span frame{reinterpret_cast<const std::byte*>(data), size};
  const auto parsed = wire::parse_udp_frame(frame);
  if (!parsed) return 0;
  ++fuzz::accepted_total;
  const std::size_t headers =
      parsed->is_ipv6 ? wire::ethernet_ipv6_udp_bytes : wire::ethernet_ipv4_udp_bytes;
  ONEHOP_CHECK(parsed->payload.data() == frame.data() + headers);
  ONEHOP_CHECK(headers + parsed->payload.size() <= size);
  std::array<std::byte, wire::l2_l4_bytes_max> made;
  const std::size_t made_bytes = wire::build_headers({.source_mac = parsed->source_mac,
                                                      .is_ipv6 = parsed->is_ipv6,
                                                      .source_ip = parsed->source_ip,
                                                      .target_ip = parsed->target_ip,
                                                      .source_port = parsed->source_port,
                                                      .target_port = parsed->target_port},
                                                     made);
  ONEHOP_CHECK(made_bytes == headers);
  const wire::HeaderTemplate header{std::span{made}.first(made_bytes)};
  std::array<std::byte, wire::l2_l4_bytes_max> again;
  if (parsed->payload.size() > 65'507) return 0;
  header.write(again.data(), parsed->payload);
  const std::size_t addresses_at =
      parsed->is_ipv6 ? 22 : 26;  // addresses, ports and UDP length lie together
  ONEHOP_CHECK(std::memcmp(again.data() + addresses_at, data + addresses_at,
                           headers - 2 - addresses_at) == 0);
  return 0;
}
