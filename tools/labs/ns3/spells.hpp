// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Spells in which nothing arrives, though the link is as good as before. C++17.
//
//   Jitter    a receiver holds a frame above its MAC, and those behind it wait: round trips jump
//             from one millisecond to two hundred
//   Droughts  others have the medium: no node may send, and each sees it busy
#pragma once

#include <cstdint>
#include <vector>

#include <ns3/net-device-container.h>
#include <ns3/nstime.h>
#include <ns3/random-variable-stream.h>

#include "tools/labs/ns3/run_spec.hpp"

namespace onehop::sim {

/// Jitter is the model of draft-huitema-ccwg-c4-test for "bad Wi-Fi": a short part from collisions,
/// and for a share of the draws a long one from repetitions. Its authors fitted it to probes 20 ms
/// apart. Their simulator draws for each packet of 10 Mbit/s, which is each 1.2 ms; at our rates a
/// draw for each packet would hold every one of them. So the distance of draws is a parameter.
class Jitter {
 public:
  explicit Jitter(const LinkSpec& link);
  /// release_after says how long a frame that `device` receives now is held.
  [[nodiscard]] ns3::Time release_after(std::uint32_t device);

 private:
  struct Receiver {
    ns3::Time draws_at, released_at;
  };
  [[nodiscard]] double draw_ms();
  [[nodiscard]] std::uint32_t poisson(double mean);

  ns3::Ptr<ns3::UniformRandomVariable> random_;
  ns3::Time draw_each_;
  double share_;  // of the draws that have the long part
  std::vector<Receiver> receivers_;
};

/// Droughts keeps all devices from the medium for link.drought_ms, again and again, an
/// exponentially distributed time apart whose mean is link.drought_gap_ms.
class Droughts {
 public:
  Droughts(const LinkSpec& link, const ns3::NetDeviceContainer& devices);
  void begin();

 private:
  void start();
  void hold(std::uint32_t device);

  ns3::NetDeviceContainer devices_;
  ns3::Ptr<ns3::ExponentialRandomVariable> gap_ms_;
  ns3::Time length_, until_;
};

}  // namespace onehop::sim
