// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A telemetry as a sender in full flow gives it, and others for the corners.
#pragma once

#include <random>

#include "tools/watch/telemetry.hpp"

namespace onehop::watch {

inline Telemetry sample_telemetry() {
  Telemetry t{.pid = 4711, .role = "send", .version = "0.1.0", .phase = "transferring", .peer = "192.168.49.1", .interface = "wlan0", .io = "udp",
              .io_mode = "", .law = "auto", .repair = "eager", .link_source = "nl80211+softnet", .at = Instant{9s}};
  t.elapsed = 7s;
  t.bytes_done = 451'000'000;
  t.bytes_expected = 1'073'741'824;
  t.goodput = mbit_per_s(553);
  t.eta_seconds = 9.0;
  t.rate = mbit_per_s(612);
  t.backlog_max = kib(700);
  t.bottleneck = "tx_queue";
  t.srtt = 8ms;
  t.packets_sent_total = 320'000;
  t.packets_lost_total = 160;
  t.retransmitted_bytes_total = 230'000;
  t.cpu_seconds = 1.75;
  t.link_rate = mbit_per_s(866);
  t.sensor = "port";
  t.details = {{"alpha_permille", 1000}, {"beta_bytes_per_s", -4000}, {"tau_ns", 4'000'000}, {"stations", 2}};
  t.buffers[0] = {.scope = "lower_queue", .occupancy = kib(600), .target = kib(586), .under = kib(586), .over = kib(640), .limit = kib(1200),
                  .capacity = mib(4), .drain = mbit_per_s(600), .allowed = mbit_per_s(612), .takes_part = true};
  t.buffers[1] = {.scope = "own_ring", .occupancy = kib(20), .target = kib(300), .under = kib(300), .over = mib(6), .capacity = mib(8),
                  .drain = mbit_per_s(598), .allowed = BytesPerSecond{-5}, .takes_part = false, .refused_total = 3};
  t.buffers[2] = {.scope = "lower_queue", .occupancy = mib(30), .target = mib(4), .under = mib(4), .over = mib(28), .capacity = mib(64),
                  .drain = mbit_per_s(500), .allowed = mbit_per_s(700), .takes_part = true};
  return t;
}

/// random_telemetry has any value that a transfer could tell.
inline Telemetry random_telemetry(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto number = [&] { return static_cast<std::int64_t>(random() >> (5 + random() % 58)); };
  const auto bytes = [&] { return Bytes{number()}; };
  const auto rate = [&] { return BytesPerSecond{number() / 16}; };
  Telemetry t = sample_telemetry();
  if (random() % 4 == 0) {
    t.role = "recv";
    t.rate.reset();
    t.bottleneck.clear();
    t.backlog_max = {};
  } else {
    constexpr std::array names{"none", "tx_queue", "rx_ring", "app_buffer", "source", "cap"};
    t.bottleneck = names[random() % names.size()];
    t.rate = rate();
  }
  t.bytes_expected = static_cast<std::uint64_t>(number());
  t.bytes_done = t.bytes_expected / (1 + random() % 4);
  t.goodput = rate();
  t.elapsed = Nanos{number()};
  t.srtt = Nanos{number()};
  if (random() % 3 == 0) t.eta_seconds.reset();
  if (random() % 3 == 0) t.link_rate.reset();
  t.is_degraded = t.role == "send" && random() % 5 == 0;
  for (BufferView& b : t.buffers) {
    b = {.scope = random() % 4 == 0 ? "none" : "driver", .occupancy = bytes(), .target = bytes(), .limit = bytes(), .capacity = bytes(),
         .drain = rate(), .takes_part = random() % 2 == 0, .refused_total = random() % 100};
    if (random() % 4 != 0) b.under = bytes();
    if (random() % 4 != 0) b.over = bytes();
  }
  return t;
}

}  // namespace onehop::watch
