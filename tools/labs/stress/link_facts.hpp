// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// StressFacts: sensors of the world's link, as a Wi-Fi driver would have them, and what can be
// wrong with them.
//
//   VirtualLink ─▶ physical rate, exact queue, airtime, stations ─▶ RateLoop ─▶ laws
//
// One thread.
#pragma once

#include "control/link/fact_source.hpp"
#include "tools/labs/world/virtual_link.hpp"

namespace onehop::stress {

class StressFacts final : public link::FactSource {
 public:
  enum class Mood : std::uint8_t { silent, honest, rate_too_high, rate_too_low, without_queue };

  StressFacts(VirtualLink& link, bool has_facts)
      : link_{link}, usual_{has_facts ? Mood::honest : Mood::silent}, mood_{usual_} {}

  [[nodiscard]] std::string_view name() const noexcept override { return "stress"; }
  void read(Instant now, law::LinkFacts& facts) override {
    if (mood_ == Mood::silent || now - read_at_ < period) return;
    const BytesPerSecond rate = link_.config(0).rate;
    read_at_ = now;
    busy_ += time_for(link_.lower_queue(0).drained_total - drained_,
                      rate.count > 0 ? rate : mbit_per_s(1));
    drained_ = link_.lower_queue(0).drained_total;
    const Gain lie{mood_ == Mood::rate_too_high ? 4000 : mood_ == Mood::rate_too_low ? 250 : 1300};
    facts.phy_rate = {rate * lie, now, period};
    facts.channel = {{.active_total = now.time_since_epoch(), .busy_total = busy_}, now, period};
    facts.stations = {2, now, period};
    facts.medium = law::Medium::wifi;
    if (mood_ == Mood::without_queue) return;
    facts.exact_queue = {
        {.queue = link_.lower_queue(0), .sensor = law::QueueSensor::model}, now, period};
  }

  void set(Mood mood) { mood_ = mood; }
  void reset() { mood_ = usual_; }

 private:
  static constexpr Nanos period = 2ms;
  VirtualLink& link_;
  const Mood usual_;
  Mood mood_;
  Instant read_at_{};
  Nanos busy_{0};
  Bytes drained_{};
};

}  // namespace onehop::stress
