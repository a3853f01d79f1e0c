// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/meters.hpp"

#include <algorithm>
#include <numeric>

#include <ns3/ipv4-header.h>
#include <ns3/ipv4-l3-protocol.h>
#include <ns3/node.h>
#include <ns3/queue-disc.h>
#include <ns3/simulator.h>
#include <ns3/traffic-control-layer.h>
#include <ns3/wifi-mac-queue.h>
#include <ns3/wifi-phy-state-helper.h>
#include <ns3/wifi-phy.h>

namespace onehop::sim {

using ns3::MakeCallback;
using ns3::Ptr;

namespace {
// Of the old value; one exchange alone holds its backoff's luck
constexpr std::int64_t exchange_weight = 8;
constexpr std::uint64_t fnv_prime = 1'099'511'628'211ULL;

std::uint64_t wire_bytes_of(Ptr<const ns3::WifiMpdu> mpdu) {
  return mpdu->GetPacketSize() - llc_bytes + ethernet_bytes;
}
std::int64_t now_ns() { return ns3::Simulator::Now().GetNanoSeconds(); }
}  // namespace

ns3::TypeId FlowTag::GetTypeId() {
  static ns3::TypeId id =
      ns3::TypeId("onehop::FlowTag").SetParent<ns3::Tag>().AddConstructor<FlowTag>();
  return id;
}
void FlowTag::Serialize(ns3::TagBuffer buffer) const {
  buffer.WriteU32(flow_);
}
void FlowTag::Deserialize(ns3::TagBuffer buffer) {
  flow_ = buffer.ReadU32();
}
void FlowTag::Print(std::ostream& out) const { out << "flow=" << flow_; }

Spread SpreadMeter::spread() const {
  Spread out;
  out.count = values_.size();
  if (values_.empty()) return out;
  std::vector<std::uint32_t> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double share) {
    const auto rank =
        static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5);
    return sorted[rank] * 1e-3;
  };
  out.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) /
             static_cast<double>(sorted.size()) * 1e-3;
  out.p50 = at(0.5);
  out.p95 = at(0.95);
  out.p99 = at(0.99);
  out.max = sorted.back() * 1e-3;
  return out;
}

// --- DelayMeter

void DelayMeter::watch(Ptr<ns3::Node> node) {
  const Ptr<ns3::Ipv4L3Protocol> ip = node->GetObject<ns3::Ipv4L3Protocol>();
  ip->TraceConnectWithoutContext("SendOutgoing", MakeCallback(&DelayMeter::on_sent, this));
  ip->TraceConnectWithoutContext("LocalDeliver", MakeCallback(&DelayMeter::on_delivered, this));
}

DelayMeter::Flow* DelayMeter::flow_of(Ptr<const ns3::Packet> packet) {
  std::array<std::uint8_t, 4> ports{};  // of UDP and TCP alike: source, destination
  if (packet->CopyData(ports.data(), ports.size()) < ports.size()) return nullptr;
  const std::size_t to = static_cast<std::size_t>(ports[2]) << 8 | ports[3];
  return to >= data_port && to < data_port + flows_.size() ? &flows_[to - data_port] : nullptr;
}

void DelayMeter::on_sent(const ns3::Ipv4Header& header, Ptr<const ns3::Packet> packet,
                         std::uint32_t) {
  if (Flow* const flow = flow_of(packet)) flow->sent_ns[header.GetIdentification()] = now_ns();
}

void DelayMeter::on_delivered(const ns3::Ipv4Header& header, Ptr<const ns3::Packet> packet,
                              std::uint32_t) {
  Flow* const flow = flow_of(packet);
  if (flow == nullptr) return;
  hash_ = (hash_ ^ static_cast<std::uint64_t>(now_ns())) * fnv_prime;
  hash_ = (hash_ ^
           (packet->GetSize() + (static_cast<std::uint64_t>(header.GetIdentification()) << 32))) *
          fnv_prime;
  std::int64_t& sent_ns = flow->sent_ns[header.GetIdentification()];
  if (is_open_ && sent_ns >= 0) flow->meter.add(now_ns() - sent_ns);
  sent_ns = -1;
}

Spread DelayMeter::spread() const {
  SpreadMeter all;
  for (const Flow& flow : flows_) all.add(flow.meter);
  return all.spread();
}

// --- Census

void Census::count(const std::vector<std::int64_t>& airtime_ns) {
  history_.push_back(airtime_ns);
  if (history_.size() > periods + 1) history_.erase(history_.begin());
  const auto span_ns =
      static_cast<std::int64_t>(static_cast<double>(history_.size() - 1) * period_s * 1e9);
  active_ = 0;
  const std::vector<std::int64_t>& before = history_.front();
  for (std::size_t i = 0; i < airtime_ns.size(); ++i) {
    const std::int64_t used_ns = airtime_ns[i] - (i < before.size() ? before[i] : 0);
    if (used_ns * 1000 > span_ns * share_permille) ++active_;
  }
}

// --- DeviceMeter

DeviceMeter::DeviceMeter(Ptr<ns3::WifiNetDevice> device, std::size_t flows, const Limits& limits)
    : device_{device}, left_(flows), refused_(flows), on_left_(flows), limits_{limits} {
  const Ptr<ns3::WifiMac> mac = device->GetMac();
  for (const ns3::AcIndex ac : {ns3::AC_BE, ns3::AC_BK}) {
    const Ptr<ns3::WifiMacQueue> queue = mac->GetTxopQueue(ac);
    queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&DeviceMeter::on_enqueue, this));
    queue->TraceConnectWithoutContext("Dequeue", MakeCallback(&DeviceMeter::on_dequeue, this));
    queue->TraceConnectWithoutContext("DropBeforeEnqueue",
                                      MakeCallback(&DeviceMeter::on_refused, this));
  }
  mac->TraceConnectWithoutContext("NAckedMpdu", MakeCallback(&DeviceMeter::on_nacked, this));
  mac->TraceConnectWithoutContext("DroppedMpdu", MakeCallback(&DeviceMeter::on_dropped, this));
  const Ptr<ns3::WifiPhy> phy = device->GetPhy();
  phy->TraceConnectWithoutContext("PhyTxPsduBegin", MakeCallback(&DeviceMeter::on_psdu, this));
  phy->GetState()->TraceConnectWithoutContext("State", MakeCallback(&DeviceMeter::on_state, this));
  const Ptr<ns3::TrafficControlLayer> control =
      device->GetNode()->GetObject<ns3::TrafficControlLayer>();
  qdisc_ = control->GetRootQueueDiscOnDevice(device);
  if (qdisc_)
    qdisc_->TraceConnectWithoutContext("Drop", MakeCallback(&DeviceMeter::on_qdisc_drop, this));
}

// A fragment has its datagram's tag and counts for itself.
void DeviceMeter::count_left(Ptr<const ns3::Packet> packet, std::uint64_t wire_bytes,
                             bool is_refused) {
  FlowTag tag;
  if (!packet->PeekPacketTag(tag)) return;
  left_[tag.flow()] += wire_bytes;
  refused_[tag.flow()] += is_refused ? 1 : 0;
  if (on_left_[tag.flow()]) on_left_[tag.flow()]();
}

void DeviceMeter::on_enqueue(Ptr<const ns3::WifiMpdu> mpdu) {
  queue_bytes_ += wire_bytes_of(mpdu);
  peers_[mpdu->GetHeader().GetAddr1()].queue_bytes += wire_bytes_of(mpdu);
}
void DeviceMeter::on_dequeue(Ptr<const ns3::WifiMpdu> mpdu) {
  Peer& peer = peers_[mpdu->GetHeader().GetAddr1()];
  queue_bytes_ -= wire_bytes_of(mpdu);
  drained_bytes_ += wire_bytes_of(mpdu);
  peer.queue_bytes -= wire_bytes_of(mpdu);
  peer.drained_bytes += wire_bytes_of(mpdu);
  if (queue_bytes_ == 0) was_backlogged_ = false;
  count_left(mpdu->GetPacket(), wire_bytes_of(mpdu), false);
}
void DeviceMeter::on_refused(Ptr<const ns3::WifiMpdu> mpdu) {
  count_left(mpdu->GetPacket(), wire_bytes_of(mpdu), true);
}
void DeviceMeter::on_qdisc_drop(Ptr<const ns3::QueueDiscItem> item) {
  count_left(item->GetPacket(), item->GetSize() + ethernet_bytes, true);
}
void DeviceMeter::on_dropped(ns3::WifiMacDropReason reason, Ptr<const ns3::WifiMpdu>) {
  if (reason == ns3::WIFI_MAC_DROP_REACHED_RETRY_LIMIT ||
      reason == ns3::WIFI_MAC_DROP_EXPIRED_LIFETIME)
    ++failed_;
}

void DeviceMeter::on_psdu(ns3::WifiConstPsduMap psdus, ns3::WifiTxVector vector, double) {
  const Ptr<const ns3::WifiPsdu> psdu = psdus.begin()->second;
  const ns3::WifiMacHeader& header = psdu->GetHeader(0);
  if (!header.IsQosData() || header.GetAddr1().IsGroup()) return;
  const std::int64_t duration_ns =
      ns3::WifiPhy::CalculateTxDuration(psdus, vector, device_->GetPhy()->GetPhyBand())
          .GetNanoSeconds();
  Peer& peer = peers_[header.GetAddr1()];
  peer.airtime_ns += duration_ns;
  peer.phy_rate_bps = vector.GetMode().GetDataRate(vector);
  frames_ += psdu->GetNMpdus();
  ++psdus_;
  const std::int64_t now = now_ns();
  if (was_backlogged_) {
    const std::int64_t span = now - psdu_at_ns_;
    exchange_ns_ =
        exchange_ns_ == 0 ? span : exchange_ns_ + (span - exchange_ns_) / exchange_weight;
  }
  psdu_at_ns_ = now;
  was_backlogged_ = true;  // until the queue is seen empty
}

void DeviceMeter::on_state(ns3::Time, ns3::Time duration, WifiPhyState state) {
  const std::int64_t span = duration.GetNanoSeconds();
  if (state == WifiPhyState::TX || state == WifiPhyState::RX || state == WifiPhyState::CCA_BUSY)
    busy_ns_ += span;
}

std::int64_t DeviceMeter::airtime_ns(const ns3::Mac48Address& to) const {
  const auto found = peers_.find(to);
  return found == peers_.end() ? 0 : found->second.airtime_ns;
}

LinkReading DeviceMeter::read() const {
  LinkReading out;
  out.queue_bytes = queue_bytes_;
  if (qdisc_)
    out.queue_bytes += qdisc_->GetNBytes() + qdisc_->GetNPackets() * std::uint64_t{ethernet_bytes};
  out.drained_bytes_total = drained_bytes_;
  out.capacity_bytes = limits_.capacity_bytes;
  out.aggregate_max_bytes = limits_.aggregate_bytes;
  out.active_ns_total = now_ns();
  out.busy_ns_total = busy_ns_;
  out.mac_frames_total = frames_;
  out.mac_retries_total = retries_;
  out.mac_failed_total = failed_;
  out.exchange_ns = exchange_ns_;
  if (census_ != nullptr) out.stations = census_->active();
  return out;
}

LinkReading DeviceMeter::read(const ns3::Mac48Address& to) const {
  LinkReading out = read();
  const auto found = peers_.find(to);
  if (found == peers_.end()) return out;
  out.phy_rate_bps = found->second.phy_rate_bps;
  out.link_tx_ns_total = found->second.airtime_ns;
  if (limits_.is_by_station) {
    out.queue_bytes = found->second.queue_bytes;
    out.drained_bytes_total = found->second.drained_bytes;
  }
  return out;
}

}  // namespace onehop::sim
