// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Ns3LinkSource: what the ns-3 MAC says of its queue, as a link source of the control loop. Called in virtual time.
#pragma once

#include "control/link/link_source.hpp"
#include "tools/ns3/seam.hpp"

namespace onehop::sim {

class Ns3LinkSource final : public link::LinkSource {
 public:
  explicit Ns3LinkSource(const Air& air) : air_{air} {}
  [[nodiscard]] std::string_view name() const noexcept override { return "ns3-mac"; }
  [[nodiscard]] std::optional<link::LowerQueue> poll(Instant now) override {
    const LinkReading reading = air_.read_link();
    return link::LowerQueue{.at = now,
                            .occupancy = {static_cast<std::int64_t>(reading.queue_bytes)},
                            .drained_total = {static_cast<std::int64_t>(reading.drained_bytes_total)},
                            .capacity = {static_cast<std::int64_t>(reading.capacity_bytes)}};
  }
  [[nodiscard]] const std::optional<Error>& error() const noexcept override { return error_; }

 private:
  const Air& air_;
  const std::optional<Error> error_;
};

}  // namespace onehop::sim
