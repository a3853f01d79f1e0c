// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/radio.hpp"

#include <cmath>
#include <vector>

#include <ns3/config.h>
#include <ns3/constant-velocity-mobility-model.h>
#include <ns3/double.h>
#include <ns3/jakes-propagation-loss-model.h>
#include <ns3/mobility-helper.h>
#include <ns3/mobility-model.h>
#include <ns3/pointer.h>
#include <ns3/position-allocator.h>
#include <ns3/propagation-loss-model.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>
#include <ns3/yans-wifi-channel.h>

namespace onehop::sim {

using ns3::Ptr;
using ns3::StringValue;
using ns3::UintegerValue;

namespace {

constexpr double circle_m = 1.0;   // all nodes within 2 m: full signal everywhere
constexpr double hidden_db = 200;  // of loss between two that do not hear each other
constexpr double carrier_hz = 5.2e9, light_mps = 299'792'458;

/// Fading is the mean power of several independent paths (ns-3's Jakes processes). A wide channel
/// carries a frame over many of them at once, so that it fades by far less than one alone.
class Fading final : public ns3::PropagationLossModel {
 public:
  static ns3::TypeId GetTypeId() {
    static ns3::TypeId id =
        ns3::TypeId("onehop::Fading").SetParent<ns3::PropagationLossModel>();
    return id;
  }
  explicit Fading(std::uint32_t paths) {
    for (std::uint32_t i = 0; i < paths; ++i)
      paths_.push_back(ns3::CreateObject<ns3::JakesPropagationLossModel>());
  }

 private:
  double DoCalcRxPower(double dbm, Ptr<ns3::MobilityModel> a,
                       Ptr<ns3::MobilityModel> b) const override {
    double power = 0;
    for (const auto& path : paths_) power += std::pow(10, path->CalcRxPower(0, a, b) / 10);
    return dbm + 10 * std::log10(power / static_cast<double>(paths_.size()));
  }
  int64_t DoAssignStreams(int64_t stream) override {
    const int64_t first = stream;
    for (const auto& path : paths_) stream += path->AssignStreams(stream);
    return stream - first;
  }
  std::vector<Ptr<ns3::JakesPropagationLossModel>> paths_;
};

/// hidden_loss is a loss between senders, of which distance knows nothing.
Ptr<ns3::PropagationLossModel> hidden_loss(const ns3::NodeContainer& nodes, bool has_router) {
  const auto is_sender = [&](std::uint32_t i) { return has_router ? i > 0 : i % 2 == 0; };
  const Ptr<ns3::MatrixPropagationLossModel> loss =
      ns3::CreateObject<ns3::MatrixPropagationLossModel>();
  loss->SetDefaultLoss(0);
  for (std::uint32_t i = 0; i < nodes.GetN(); ++i)
    for (std::uint32_t j = 0; j < i; ++j)
      if (is_sender(i) && is_sender(j))
        loss->SetLoss(nodes.Get(i)->GetObject<ns3::MobilityModel>(),
                      nodes.Get(j)->GetObject<ns3::MobilityModel>(), hidden_db);
  return loss;
}

Ptr<ns3::YansWifiChannel> channel_of(const LinkSpec& link, const ns3::NodeContainer& nodes) {
  const Ptr<ns3::YansWifiChannel> channel = ns3::YansWifiChannelHelper::Default().Create();
  if (link.rssi_dbm < 0) {
    const Ptr<ns3::FixedRssLossModel> fixed = ns3::CreateObject<ns3::FixedRssLossModel>();
    fixed->SetRss(link.rssi_dbm);
    channel->SetPropagationLossModel(fixed);
  }
  ns3::PointerValue loss;
  channel->GetAttribute("PropagationLossModel", loss);
  const Ptr<ns3::PropagationLossModel> first = loss.Get<ns3::PropagationLossModel>();
  if (link.hides_senders) first->SetNext(hidden_loss(nodes, link.topology == "ap"));
  if (link.fading_paths > 0) {
    ns3::Config::SetDefault("ns3::JakesProcess::DopplerFrequencyHz",
                            ns3::DoubleValue(link.walk_mps * carrier_hz / light_mps));
    first->SetNext(ns3::CreateObject<Fading>(link.fading_paths));
  }
  return channel;
}

}  // namespace

ns3::YansWifiPhyHelper phy_of(const LinkSpec& link, const ns3::NodeContainer& nodes) {
  ns3::YansWifiPhyHelper phy;
  phy.SetChannel(channel_of(link, nodes));
  phy.Set("ChannelSettings",
          StringValue("{0, " + std::to_string(link.width_mhz) + ", BAND_5GHZ, 0}"));
  phy.Set("Antennas", UintegerValue(link.streams));
  phy.Set("MaxSupportedTxSpatialStreams", UintegerValue(link.streams));
  phy.Set("MaxSupportedRxSpatialStreams", UintegerValue(link.streams));
  return phy;
}

void place(const LinkSpec& link, const ns3::NodeContainer& nodes) {
  ns3::MobilityHelper mobility;
  if (link.walk_mps > 0) {
    mobility.SetMobilityModel("ns3::ConstantVelocityMobilityModel");
    mobility.Install(nodes);
    const auto receiver = nodes.Get(1)->GetObject<ns3::ConstantVelocityMobilityModel>();
    receiver->SetPosition(ns3::Vector(link.walk_from_m, 0, 0));
    receiver->SetVelocity(ns3::Vector(link.walk_mps, 0, 0));
    return;
  }
  const Ptr<ns3::ListPositionAllocator> positions = ns3::CreateObject<ns3::ListPositionAllocator>();
  for (std::uint32_t i = 0; i < nodes.GetN(); ++i) {
    const double angle = 2 * M_PI * i / nodes.GetN();
    positions->Add(ns3::Vector(circle_m * std::cos(angle), circle_m * std::sin(angle), 0));
  }
  mobility.SetPositionAllocator(positions);
  mobility.Install(nodes);
}

void set_rate(const LinkSpec& link, const std::string& mode, ns3::WifiHelper& wifi) {
  if (link.rate_control == "ideal")
    wifi.SetRemoteStationManager("ns3::IdealWifiManager");
  else
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue(mode),
                                 "ControlMode", StringValue("OfdmRate24Mbps"));
}

}  // namespace onehop::sim
