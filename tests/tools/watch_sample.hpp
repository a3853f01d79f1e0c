// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A telemetry as a sender in full flow gives it, and others for the corners.
#pragma once

#include <random>

#include "tools/onehop/watch/telemetry.hpp"

namespace onehop::watch {

inline Telemetry sample_telemetry() {
  Telemetry t{.pid = 4711,
              .role = api::Role::sending,
              .phase = api::Phase::transferring,
              .version = "0.1.0",
              .peer = "192.168.49.1",
              .interface = "wlan0",
              .io = "udp",
              .io_mode = "",
              .law = "auto",
              .repair = "eager",
              .link_source = "nl80211+softnet",
              .t_ns = 9'000'000'000};
  t.elapsed_ns = 7'000'000'000;
  t.bytes_done = 451'000'000;
  t.bytes_expected = 1'073'741'824;
  t.files_done = 3;
  t.files_total = 17;
  t.is_all_known = true;
  t.goodput_bps = 553'000'000;
  t.eta_seconds = 9.0;
  t.rate_bps = 612'000'000;
  t.backlog_max_bytes = 700 << 10;
  t.bottleneck = "tx_queue";
  t.bottleneck_permille = {{"tx_queue", 900}, {"app_buffer", 100}};
  t.srtt_ns = 8'000'000;
  t.packets_sent_total = 320'000;
  t.packets_lost_total = 160;
  t.retransmitted_bytes_total = 230'000;
  t.cpu_seconds = 1.75;
  t.link_rate_bps = 866'000'000;
  t.sensor = "port";
  t.details = {{"alpha_permille", 1000},
               {"beta_bytes_per_s", -4000},
               {"tau_ns", 4'000'000},
               {"stations", 2}};
  t.buffers[0] = {.scope = "lower_queue",
                  .occupancy_bytes = 600 << 10,
                  .target_bytes = 586 << 10,
                  .under_bytes = 586 << 10,
                  .over_bytes = 640 << 10,
                  .limit_bytes = 1200 << 10,
                  .capacity_bytes = 4 << 20,
                  .drain_bps = 600'000'000,
                  .allowed_bps = 612'000'000,
                  .takes_part = true};
  t.buffers[1] = {.scope = "own_ring",
                  .occupancy_bytes = 20 << 10,
                  .target_bytes = 300 << 10,
                  .under_bytes = 300 << 10,
                  .over_bytes = 6 << 20,
                  .capacity_bytes = 8 << 20,
                  .drain_bps = 598'000'000,
                  .allowed_bps = -40,
                  .takes_part = false,
                  .refused_total = 3};
  t.buffers[2] = {.scope = "lower_queue",
                  .occupancy_bytes = 30 << 20,
                  .target_bytes = 4 << 20,
                  .under_bytes = 4 << 20,
                  .over_bytes = 28 << 20,
                  .capacity_bytes = 64 << 20,
                  .drain_bps = 500'000'000,
                  .allowed_bps = 700'000'000,
                  .takes_part = true};
  return t;
}

/// random_telemetry has any value that a transfer could tell.
inline Telemetry random_telemetry(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto number = [&] { return static_cast<std::int64_t>(random() >> (5 + random() % 58)); };
  const auto rate = [&] { return number() / 16 * 8; };
  Telemetry t = sample_telemetry();
  if (random() % 4 == 0) {
    t.role = api::Role::receiving;
    t.rate_bps.reset();
    t.bottleneck.clear();
    t.bottleneck_permille.clear();
    t.backlog_max_bytes = 0;
  } else {
    constexpr std::array names{"none", "tx_queue", "rx_ring", "app_buffer", "source", "cap"};
    t.bottleneck = names[random() % names.size()];
    t.rate_bps = rate();
  }
  t.bytes_expected = static_cast<std::uint64_t>(number());
  t.bytes_done = t.bytes_expected / (1 + random() % 4);
  t.files_total = static_cast<std::uint64_t>(number());
  t.files_done = t.files_total / (1 + random() % 4);
  t.is_all_known = random() % 2 == 0;
  t.goodput_bps = rate();
  t.elapsed_ns = number();
  t.srtt_ns = number();
  if (random() % 3 == 0) t.eta_seconds.reset();
  if (random() % 3 == 0) t.link_rate_bps.reset();
  t.is_degraded = t.role == api::Role::sending && random() % 5 == 0;
  for (BufferView& b : t.buffers) {
    b = {.scope = random() % 4 == 0 ? "none" : "driver",
         .occupancy_bytes = number(),
         .target_bytes = number(),
         .limit_bytes = number(),
         .capacity_bytes = number(),
         .drain_bps = rate(),
         .takes_part = random() % 2 == 0,
         .refused_total = random() % 100};
    if (random() % 4 != 0) b.under_bytes = number();
    if (random() % 4 != 0) b.over_bytes = number();
  }
  return t;
}

}  // namespace onehop::watch
