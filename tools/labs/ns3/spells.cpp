// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/spells.hpp"

#include <algorithm>
#include <cmath>

#include <ns3/channel-access-manager.h>
#include <ns3/double.h>
#include <ns3/simulator.h>
#include <ns3/wifi-mac.h>
#include <ns3/wifi-net-device.h>
#include <ns3/wifi-phy-state-helper.h>
#include <ns3/wifi-phy.h>

namespace onehop::sim {

using ns3::Ptr;
using ns3::Simulator;
using ns3::Time;

namespace {

constexpr double short_mean = 1, short_ms = 1;
constexpr double long_mean = 12, long_ms = 7.5;
constexpr double least_mean_ms = 1, share_span_ms = 90;  // of a mean of 1 ms no draw is long
constexpr std::uint16_t subchannel_mhz = 20;
// What is held comes up frame by frame, at 12 Gbit/s: all at once is more than any ring takes
const Time release_gap = ns3::MicroSeconds(1);
// The longest exchange that was on the air as a drought began has ended by then
const Time exchange_max = ns3::MilliSeconds(6);

Time milliseconds(double ms) { return ns3::Seconds(ms * 1e-3); }

}  // namespace

// --- Jitter

Jitter::Jitter(const LinkSpec& link)
    : random_{ns3::CreateObject<ns3::UniformRandomVariable>()},
      draw_each_{milliseconds(link.jitter_draw_ms)},
      share_{std::clamp((link.jitter_ms - least_mean_ms) / share_span_ms, 0.0, 1.0)},
      receivers_(link.topology == "ap" ? link.pairs + 1 : link.pairs * 2) {}

/// Knuth's: as many factors as fit before the product falls below e^-mean.
std::uint32_t Jitter::poisson(double mean) {
  std::uint32_t count = 0;
  for (double product = random_->GetValue(); product > std::exp(-mean); ++count)
    product *= random_->GetValue();
  return count;
}

double Jitter::draw_ms() {
  const std::uint32_t collisions = poisson(short_mean);
  double ms = collisions * short_ms - (collisions > 0 ? random_->GetValue() * short_ms : 0);
  if (random_->GetValue() < share_) ms += poisson(long_mean) * long_ms;
  return ms;
}

Time Jitter::release_after(std::uint32_t device) {
  Receiver& receiver = receivers_[device];
  const Time now = Simulator::Now();
  Time release = now;
  if (now >= receiver.draws_at) {
    release += milliseconds(draw_ms());
    receiver.draws_at = now + draw_each_;
  }
  receiver.released_at = std::max(receiver.released_at + release_gap, release);
  return receiver.released_at - now;
}

// --- Droughts

Droughts::Droughts(const LinkSpec& link, const ns3::NetDeviceContainer& devices)
    : devices_{devices},
      gap_ms_{ns3::CreateObject<ns3::ExponentialRandomVariable>()},
      length_{milliseconds(link.drought_ms)} {
  gap_ms_->SetAttribute("Mean", ns3::DoubleValue(link.drought_gap_ms));
}

void Droughts::begin() {
  Simulator::Schedule(milliseconds(gap_ms_->GetValue()), &Droughts::start, this);
}

void Droughts::start() {
  until_ = Simulator::Now() + length_;
  for (std::uint32_t i = 0; i < devices_.GetN(); ++i) hold(i);
  Simulator::Schedule(length_, &Droughts::begin, this);
}

/// The NAV keeps a device from sending; that the PHY is busy is what its counters tell. A reception
/// ends the PHY's, so it is told again.
void Droughts::hold(std::uint32_t device) {
  const Time left = until_ - Simulator::Now();
  if (left <= ns3::Seconds(0)) return;
  const Ptr<ns3::WifiNetDevice> wifi = ns3::DynamicCast<ns3::WifiNetDevice>(devices_.Get(device));
  wifi->GetMac()->GetChannelAccessManager()->NotifyNavStartNow(left);
  const Ptr<ns3::WifiPhy> phy = wifi->GetPhy();
  const std::uint16_t width_mhz = phy->GetChannelWidth();
  const std::size_t subchannels = width_mhz > subchannel_mhz ? width_mhz / subchannel_mhz : 0;
  phy->GetState()->SwitchMaybeToCcaBusy(left, ns3::WIFI_CHANLIST_PRIMARY,
                                        std::vector<Time>(subchannels, left));
  Simulator::Schedule(exchange_max, &Droughts::hold, this, device);
}

}  // namespace onehop::sim
