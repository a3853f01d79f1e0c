// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/wifi_net.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <ns3/boolean.h>
#include <ns3/config.h>
#include <ns3/he-configuration.h>
#include <ns3/ht-configuration.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/neighbor-cache-helper.h>
#include <ns3/qos-txop.h>
#include <ns3/queue-size.h>
#include <ns3/simulator.h>
#include <ns3/socket.h>
#include <ns3/ssid.h>
#include <ns3/string.h>
#include <ns3/traffic-control-helper.h>
#include <ns3/traffic-control-layer.h>
#include <ns3/uinteger.h>
#include <ns3/wifi-helper.h>
#include <ns3/wifi-mac-helper.h>
#include <ns3/wifi-mac-queue.h>

#include "tools/labs/ns3/radio.hpp"
#include "tools/labs/ns3/station_rates.hpp"

namespace onehop::sim {

using ns3::MakeCallback;
using ns3::Ptr;
using ns3::StringValue;
using ns3::UintegerValue;

namespace {
// QoS header, FCS, A-MPDU delimiter, padding
constexpr std::uint32_t mpdu_overhead_bytes = 26 + 4 + 4 + 2;
constexpr double associated_s = 0.5;  // of an AP's stations; beacons come each 0.1 s
// For one direction of one link: far longer than the handshake takes
constexpr double primer_s = 0.005;
constexpr std::uint32_t primer_frames = 3, primer_bytes = 200;
constexpr std::uint16_t primer_protocol = 0x88B5;  // IEEE 802, local experiments: no node listens
constexpr std::uint16_t mtu_bytes = 1500;          // Ethernet's, as Linux has it; ns-3's is 2296
constexpr std::uint32_t fq_codel_frames = 10'240;  // ns-3's default limit
}  // namespace

WifiNet::WifiNet(const LinkSpec& link, std::size_t flows, std::uint32_t payload_bytes)
    : link_{link}, random_{ns3::CreateObject<ns3::UniformRandomVariable>()} {
  ns3::Config::SetDefault("ns3::WifiMacQueue::MaxSize",
                          StringValue(std::to_string(link.mac_queue_frames) + "p"));
  if (link.rts_bytes > 0)
    ns3::Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold",
                            UintegerValue(link.rts_bytes));
  if (link.mac_tries > 0)
    for (const char* const of_size : {"MaxSsrc", "MaxSlrc"})
      ns3::Config::SetDefault(std::string{"ns3::WifiRemoteStationManager::"} + of_size,
                              UintegerValue(link.mac_tries));
  nodes_.Create(link.topology == "ap" ? link.pairs + 1 : link.pairs * 2);
  if (link.topology == "ap")
    install_ap();
  else
    install_pairs();
  set_up_devices();
  install_ip();
  const std::uint64_t frame = payload_bytes + ip_udp_bytes + ethernet_bytes;
  mac_queue_bytes_ = link.mac_queue_frames * frame;
  // One aggregate: bounded by its bytes and by the Block Ack window.
  const std::uint64_t mpdu = payload_bytes + ip_udp_bytes + llc_bytes + mpdu_overhead_bytes;
  const std::uint64_t aggregate_frames =
      std::min<std::uint64_t>(link.ampdu_bytes / mpdu, link.block_ack);
  for (std::uint32_t i = 0; i < nodes_.GetN(); ++i) {
    const Ptr<ns3::WifiNetDevice> device = ns3::DynamicCast<ns3::WifiNetDevice>(devices_.Get(i));
    std::uint64_t frames = link.mac_queue_frames;
    if (i > 0 && link.station_queue_frames > 0) {
      frames = link.station_queue_frames;
      for (const ns3::AcIndex ac : {ns3::AC_BE, ns3::AC_BK})
        device->GetMac()->GetTxopQueue(ac)->SetMaxSize(
            ns3::QueueSize(ns3::QueueSizeUnit::PACKETS, link.station_queue_frames));
    }
    if (link.qdisc == "fifo" || link.qdisc == "pfifo_fast") frames += link.qdisc_frames;
    if (link.qdisc == "fq_codel") frames += fq_codel_frames;
    if (link.scheduler == "round-robin") {
      const Ptr<RoundRobinScheduler> scheduler = ns3::CreateObject<RoundRobinScheduler>();
      scheduler->set_limits(static_cast<std::uint32_t>(aggregate_frames),
                            link.mac_queue_frames / std::max(link.pairs, 1U));
      device->GetMac()->SetMacQueueScheduler(scheduler);
    }
    meters_.push_back(
        std::make_unique<DeviceMeter>(device, flows,
                                      DeviceMeter::Limits{frames * frame, aggregate_frames * frame,
                                                          link.scheduler == "round-robin"}));
    if (link.ip_loss > 0 || link.jitter_ms > 0) hear_above_mac(i);
  }
  if (link.jitter_ms > 0) jitter_.emplace(link);
  if (link.drought_ms > 0) droughts_.emplace(link, devices_);
  settle_s_ = link.topology == "ap" ? associated_s : primer_s;
}

void WifiNet::prime(const FlowSpec& flow) {
  const std::uint8_t priority = flow.is_background ? background_priority : 0;
  for (const auto& [from, to] :
       {std::pair{sender_of(flow), receiver_of(flow)}, {receiver_of(flow), sender_of(flow)}}) {
    ns3::Simulator::Schedule(ns3::Seconds(settle_s_), &WifiNet::send_primer, this, from, to,
                             priority);
    settle_s_ += primer_s;
  }
}

void WifiNet::send_primer(std::uint32_t from, std::uint32_t to, std::uint8_t priority) {
  for (std::uint32_t i = 0; i < primer_frames; ++i) {
    const Ptr<ns3::Packet> packet = ns3::Create<ns3::Packet>(primer_bytes);
    ns3::SocketPriorityTag tag;
    tag.SetPriority(priority);
    packet->AddPacketTag(tag);
    devices_.Get(from)->Send(packet, devices_.Get(to)->GetAddress(), primer_protocol);
  }
}

std::uint32_t WifiNet::sender_of(const FlowSpec& flow) const {
  if (link_.topology == "ap") return flow.is_reverse ? flow.pair + 1 : 0;
  return flow.pair * 2 + (flow.is_reverse ? 1 : 0);
}
std::uint32_t WifiNet::receiver_of(const FlowSpec& flow) const {
  if (link_.topology == "ap") return flow.is_reverse ? 0 : flow.pair + 1;
  return flow.pair * 2 + (flow.is_reverse ? 0 : 1);
}
ns3::Mac48Address WifiNet::mac(std::uint32_t i) const {
  return ns3::Mac48Address::ConvertFrom(devices_.Get(i)->GetAddress());
}

std::string WifiNet::mode_name(std::uint32_t mcs) const {
  return (link_.standard == "ac" ? "VhtMcs" : "HeMcs") + std::to_string(mcs);
}

namespace {

ns3::WifiHelper wifi_of(const LinkSpec& link) {
  ns3::WifiHelper wifi;
  wifi.SetStandard(link.standard == "ac" ? ns3::WIFI_STANDARD_80211ac : ns3::WIFI_STANDARD_80211ax);
  return wifi;
}

}  // namespace

void WifiNet::install_pairs() {
  place(link_, nodes_);
  ns3::WifiHelper wifi = wifi_of(link_);
  set_rate(link_, mode_name(link_.mcs), wifi);
  ns3::WifiMacHelper mac;
  mac.SetType("ns3::AdhocWifiMac", "BE_MaxAmpduSize", UintegerValue(link_.ampdu_bytes),
              "BK_MaxAmpduSize", UintegerValue(link_.ampdu_bytes));
  devices_ = wifi.Install(phy_of(link_, nodes_), mac, nodes_);
}

void WifiNet::install_ap() {
  place(link_, nodes_);
  ns3::WifiHelper wifi = wifi_of(link_);
  const ns3::YansWifiPhyHelper phy = phy_of(link_, nodes_);
  const ns3::Ssid ssid("onehop");
  const UintegerValue ampdu(link_.ampdu_bytes);
  const auto mcs_of = [&](std::uint32_t station) {
    return link_.station_mcs.empty() ? link_.mcs
                                     : link_.station_mcs[(station - 1) % link_.station_mcs.size()];
  };
  ns3::WifiMacHelper mac;
  wifi.SetRemoteStationManager("onehop::StationRates", "DataMode",
                               StringValue(mode_name(link_.mcs)), "ControlMode",
                               StringValue("OfdmRate24Mbps"));
  mac.SetType("ns3::ApWifiMac", "Ssid", ns3::SsidValue(ssid), "BE_MaxAmpduSize", ampdu,
              "BK_MaxAmpduSize", ampdu);
  devices_ = wifi.Install(phy, mac, nodes_.Get(0));
  mac.SetType("ns3::StaWifiMac", "Ssid", ns3::SsidValue(ssid), "BE_MaxAmpduSize", ampdu,
              "BK_MaxAmpduSize", ampdu);
  for (std::uint32_t i = 1; i < nodes_.GetN(); ++i) {
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode",
                                 StringValue(mode_name(mcs_of(i))), "ControlMode",
                                 StringValue("OfdmRate24Mbps"));
    devices_.Add(wifi.Install(phy, mac, nodes_.Get(i)));
  }
  const Ptr<ns3::WifiNetDevice> router = ns3::DynamicCast<ns3::WifiNetDevice>(devices_.Get(0));
  const Ptr<StationRates> rates = ns3::DynamicCast<StationRates>(router->GetRemoteStationManager());
  for (std::uint32_t i = 1; i < nodes_.GetN(); ++i)
    rates->set(this->mac(i), ns3::WifiMode(mode_name(mcs_of(i))));
}

void WifiNet::set_up_devices() {
  for (std::uint32_t i = 0; i < devices_.GetN(); ++i) {
    const Ptr<ns3::WifiNetDevice> device = ns3::DynamicCast<ns3::WifiNetDevice>(devices_.Get(i));
    device->SetMtu(mtu_bytes);
    device->GetHtConfiguration()->SetAttribute("ShortGuardIntervalSupported",
                                               ns3::BooleanValue(link_.guard_ns <= 400));
    if (link_.standard != "ax") continue;
    device->GetHeConfiguration()->SetAttribute("GuardInterval",
                                               ns3::TimeValue(ns3::NanoSeconds(link_.guard_ns)));
    device->GetHeConfiguration()->SetAttribute("MpduBufferSize", UintegerValue(link_.block_ack));
  }
}

namespace {
void know_neighbours() {
  ns3::NeighborCacheHelper neighbours;
  neighbours.PopulateNeighborCache();
}
}  // namespace

void WifiNet::install_ip() {
  // ns-3 ends a run of a queue discipline after 64 frames, and nothing goes on until the next frame
  // comes or the device stops and wakes (its netif_schedule is a TODO; queue-disc.cc). Linux goes
  // on at once, from a softirq (__qdisc_run, net/sched/sch_generic.c).
  ns3::Config::SetDefault("ns3::QueueDisc::Quota",
                          UintegerValue(std::numeric_limits<std::uint32_t>::max()));
  ns3::InternetStackHelper stack;
  stack.Install(nodes_);
  ns3::Ipv4AddressHelper ip;
  ip.SetBase("10.0.0.0", "255.255.0.0");
  const ns3::Ipv4InterfaceContainer interfaces = ip.Assign(devices_);  // installs FqCoDel
  for (std::uint32_t i = 0; i < nodes_.GetN(); ++i) addresses_.push_back(interfaces.GetAddress(i));
  if (link_.qdisc != "fq_codel") {
    ns3::TrafficControlHelper control;
    control.Uninstall(devices_);
    if (link_.qdisc != "none") {
      const bool is_fifo = link_.qdisc == "fifo";
      control.SetRootQueueDisc(is_fifo ? "ns3::FifoQueueDisc" : "ns3::PfifoFastQueueDisc",
                               "MaxSize", StringValue(std::to_string(link_.qdisc_frames) + "p"));
      control.Install(devices_);
    }
  }
  // ARP waits up to 10 ms before it asks, and queues three packets. A station forgets its
  // neighbours as it associates.
  if (link_.topology == "ap")
    ns3::Simulator::Schedule(ns3::Seconds(associated_s), &know_neighbours);
  else
    know_neighbours();
}

// --- loss

bool WifiNet::has_agreement(std::uint32_t from, std::uint32_t to, ns3::AcIndex ac) const {
  const Ptr<ns3::WifiNetDevice> device = ns3::DynamicCast<ns3::WifiNetDevice>(devices_.Get(from));
  const std::uint8_t tid = ac == ns3::AC_BK ? background_priority : 0;
  return device->GetMac()->GetQosTxop(ac)->GetBaAgreementEstablished(mac(to), tid);
}

void WifiNet::begin_loss(const FlowSpec& flow) {
  if (link_.phy_loss <= 0) return;
  const std::uint32_t from = sender_of(flow), to = receiver_of(flow);
  const ns3::AcIndex ac = flow.is_background ? ns3::AC_BK : ns3::AC_BE;
  const bool is_agreed = has_agreement(from, to, ac) && has_agreement(to, from, ac);
  if (!is_agreed && !flow.is_primed) {  // its own first frames make them
    ns3::Simulator::Schedule(ns3::MilliSeconds(1), &WifiNet::begin_loss, this, flow);
    return;
  }
  if (!is_agreed)
    throw std::runtime_error("no Block Ack agreement between " + std::to_string(from) + " and " +
                             std::to_string(to) + " before loss begins");
  const Ptr<ns3::RateErrorModel> errors = ns3::CreateObject<ns3::RateErrorModel>();
  errors->SetAttribute("ErrorRate", ns3::DoubleValue(link_.phy_loss));
  errors->SetAttribute("ErrorUnit", StringValue("ERROR_UNIT_PACKET"));
  ns3::DynamicCast<ns3::WifiNetDevice>(devices_.Get(to))
      ->GetPhy()
      ->SetPostReceptionErrorModel(errors);
}

void WifiNet::hear_above_mac(std::uint32_t i) {
  devices_.Get(i)->SetReceiveCallback(MakeCallback(&WifiNet::receive, this));
}

bool WifiNet::receive(Ptr<ns3::NetDevice> device, Ptr<const ns3::Packet> packet,
                      std::uint16_t protocol, const ns3::Address& from) {
  if (protocol == primer_protocol || random_->GetValue() < link_.ip_loss) return true;
  if (!jitter_) {
    pass_up(device, packet, protocol, from);
    return true;
  }
  const ns3::Time held = jitter_->release_after(device->GetNode()->GetId());
  ns3::Simulator::Schedule(held, &WifiNet::pass_up, this, device, packet, protocol, from);
  return true;
}

/// What the node's own handler does for these protocols, after the dice.
void WifiNet::pass_up(Ptr<ns3::NetDevice> device, Ptr<const ns3::Packet> packet,
                      std::uint16_t protocol, ns3::Address from) {
  const Ptr<ns3::TrafficControlLayer> control =
      device->GetNode()->GetObject<ns3::TrafficControlLayer>();
  control->Receive(device, packet, protocol, from, device->GetAddress(),
                   ns3::NetDevice::PACKET_HOST);
}

void WifiNet::begin_droughts() {
  if (droughts_) droughts_->begin();
}

// --- MCS over time

void WifiNet::play_mcs_trace() {
  if (!link_.mcs_trace.empty()) next_mcs();
}

void WifiNet::next_mcs() {
  const std::string name = mode_name(link_.mcs_trace[mcs_next_++ % link_.mcs_trace.size()]);
  for (std::uint32_t i = 0; i < devices_.GetN(); ++i) {
    const Ptr<ns3::WifiNetDevice> device = ns3::DynamicCast<ns3::WifiNetDevice>(devices_.Get(i));
    device->GetRemoteStationManager()->SetAttribute("DataMode", StringValue(name));
  }
  ns3::Simulator::Schedule(ns3::Seconds(link_.mcs_period_s), &WifiNet::next_mcs, this);
}

// --- who is on the air

void WifiNet::begin_census(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& links) {
  if (!link_.counts_stations) return;
  links_ = links;
  for (const auto& meter : meters_) meter->set_census(census_);
  count_links();
}

void WifiNet::count_links() {
  std::vector<std::int64_t> airtime_ns;
  for (const auto& [from, to] : links_) airtime_ns.push_back(meters_[from]->airtime_ns(mac(to)));
  census_.count(airtime_ns);
  ns3::Simulator::Schedule(ns3::Seconds(Census::period_s), &WifiNet::count_links, this);
}

}  // namespace onehop::sim
