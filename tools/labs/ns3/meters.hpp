// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What is measured in a run: delays by flow, and what one device's MAC and PHY do. Fed by ns-3's
// traces. C++17.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include <ns3/packet.h>
#include <ns3/queue-disc.h>
#include <ns3/queue-item.h>
#include <ns3/tag.h>
#include <ns3/wifi-mac.h>
#include <ns3/wifi-mpdu.h>
#include <ns3/wifi-net-device.h>
#include <ns3/wifi-phy-state-helper.h>
#include <ns3/wifi-ppdu.h>
#include <ns3/wifi-psdu.h>
#include <ns3/wifi-tx-vector.h>

#include "tools/labs/ns3/run_spec.hpp"
#include "tools/labs/ns3/seam.hpp"

namespace ns3 {
class Ipv4Header;
class Packet;
class Node;
}  // namespace ns3

namespace onehop::sim {

/// Ports tell flows apart: data goes to data_port + flow, what comes back to back_port + flow.
inline constexpr std::uint16_t data_port = 10'000, back_port = 20'000;
inline constexpr std::uint8_t background_priority = 1;  ///< user priority 1: access category BK
inline constexpr std::uint32_t ethernet_bytes = 14, ip_udp_bytes = 28, llc_bytes = 8;

/// FlowTag marks our own frames, so that the ledger of a device knows whose frame left its queue.
class FlowTag : public ns3::Tag {
 public:
  FlowTag() = default;
  explicit FlowTag(std::uint32_t flow) : flow_{flow} {}
  static ns3::TypeId GetTypeId();
  ns3::TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  std::uint32_t GetSerializedSize() const override { return 4; }
  void Serialize(ns3::TagBuffer buffer) const override;
  void Deserialize(ns3::TagBuffer buffer) override;
  void Print(std::ostream& out) const override;
  [[nodiscard]] std::uint32_t flow() const { return flow_; }

 private:
  std::uint32_t flow_ = 0;
};

/// SpreadMeter keeps every value (ns) and sorts at the end: exact percentiles.
class SpreadMeter {
 public:
  void add(std::int64_t value_ns) {
    values_.push_back(static_cast<std::uint32_t>(value_ns < 0        ? 0
                                                 : value_ns > max_ns ? max_ns
                                                                     : value_ns));
  }
  void clear() { values_.clear(); }
  void add(const SpreadMeter& other) {
    values_.insert(values_.end(), other.values_.begin(), other.values_.end());
  }
  [[nodiscard]] Spread spread() const;

 private:
  static constexpr std::int64_t max_ns = 0xFFFF'FFFF;  // 4.3 s
  std::vector<std::uint32_t> values_;
};

/// DelayMeter: one-way delay of every data packet, from IP output of the sender to IP delivery at
/// the receiver, keyed by the IP identification (packet UIDs are shared by TCP segments cut from
/// one write). Only while open.
class DelayMeter {
 public:
  explicit DelayMeter(std::size_t flows) : flows_(flows) {}
  void watch(ns3::Ptr<ns3::Node> node);
  void open() { is_open_ = true; }
  void close() { is_open_ = false; }
  [[nodiscard]] Spread spread(std::size_t flow) const { return flows_[flow].meter.spread(); }
  [[nodiscard]] Spread spread() const;  ///< of all flows together
  [[nodiscard]] std::uint64_t hash() const { return hash_; }

 private:
  struct Flow {
    std::vector<std::int64_t> sent_ns = std::vector<std::int64_t>(65'536, -1);
    SpreadMeter meter;
  };
  void on_sent(const ns3::Ipv4Header& header, ns3::Ptr<const ns3::Packet> packet,
               std::uint32_t interface);
  void on_delivered(const ns3::Ipv4Header& header, ns3::Ptr<const ns3::Packet> packet,
                    std::uint32_t interface);
  [[nodiscard]] Flow* flow_of(ns3::Ptr<const ns3::Packet> packet);
  std::vector<Flow> flows_;
  bool is_open_ = false;
  std::uint64_t hash_ = 14'695'981'039'346'656'037ULL;  // FNV-1a's offset basis
};

/// Census: the links (sender to receiver) that were on the air for more than 5 % of the last
/// second.
class Census {
 public:
  /// count takes the air each link had up to now; call it each period.
  void count(const std::vector<std::int64_t>& airtime_ns);
  [[nodiscard]] std::uint32_t active() const { return active_; }
  static constexpr double period_s = 0.1;

 private:
  static constexpr std::size_t periods = 10;
  static constexpr std::int64_t share_permille = 50;
  std::vector<std::vector<std::int64_t>> history_;  // oldest first
  std::uint32_t active_ = 0;                        // 0: not counted yet
};

/// DeviceMeter: one device's queue below IP, what left it, what its PHY does.
class DeviceMeter {
 public:
  struct Limits {
    std::uint64_t capacity_bytes = 0, aggregate_bytes = 0;
    /// The MAC serves each receiver's frames from a queue of their own
    bool is_by_station = false;
  };
  DeviceMeter(ns3::Ptr<ns3::WifiNetDevice> device, std::size_t flows, const Limits& limits);
  DeviceMeter(const DeviceMeter&) = delete;
  DeviceMeter& operator=(const DeviceMeter&) = delete;

  /// read tells of the link to `peer`; without one of what all receivers share.
  [[nodiscard]] LinkReading read() const;
  [[nodiscard]] LinkReading read(const ns3::Mac48Address& peer) const;
  /// on_left: `call` is made when frames of `flow` have left, as a socket tells of room in its send
  /// buffer.
  void on_left(std::size_t flow, std::function<void()> call) { on_left_[flow] = std::move(call); }
  void set_census(const Census& census) { census_ = &census; }
  [[nodiscard]] std::uint64_t left_bytes(std::size_t flow) const { return left_[flow]; }
  [[nodiscard]] std::uint64_t refused_frames(std::size_t flow) const { return refused_[flow]; }
  [[nodiscard]] std::int64_t airtime_ns(const ns3::Mac48Address& to) const;
  [[nodiscard]] std::uint64_t data_frames() const { return frames_; }
  [[nodiscard]] std::uint64_t data_psdus() const { return psdus_; }

 private:
  void on_enqueue(ns3::Ptr<const ns3::WifiMpdu> mpdu);
  void on_dequeue(ns3::Ptr<const ns3::WifiMpdu> mpdu);
  void on_refused(ns3::Ptr<const ns3::WifiMpdu> mpdu);
  void on_qdisc_drop(ns3::Ptr<const ns3::QueueDiscItem> item);
  void on_nacked(ns3::Ptr<const ns3::WifiMpdu>) { ++retries_; }
  void on_dropped(ns3::WifiMacDropReason reason, ns3::Ptr<const ns3::WifiMpdu> mpdu);
  void on_psdu(ns3::WifiConstPsduMap psdus, ns3::WifiTxVector vector, double watts);
  void on_state(ns3::Time start, ns3::Time duration, WifiPhyState state);
  void count_left(ns3::Ptr<const ns3::Packet> packet, std::uint64_t wire_bytes, bool is_refused);

  ns3::Ptr<ns3::WifiNetDevice> device_;
  ns3::Ptr<ns3::QueueDisc> qdisc_;  // null: none
  std::vector<std::uint64_t> left_, refused_;
  std::vector<std::function<void()>> on_left_;
  struct Peer {
    std::uint64_t queue_bytes = 0, drained_bytes = 0, phy_rate_bps = 0;
    std::int64_t airtime_ns = 0;
  };
  std::map<ns3::Mac48Address, Peer> peers_;
  Limits limits_;
  std::uint64_t queue_bytes_ = 0, drained_bytes_ = 0, frames_ = 0, psdus_ = 0, retries_ = 0,
                failed_ = 0;
  std::int64_t busy_ns_ = 0, psdu_at_ns_ = 0, exchange_ns_ = 0;
  bool was_backlogged_ = false;
  const Census* census_ = nullptr;
};

}  // namespace onehop::sim
