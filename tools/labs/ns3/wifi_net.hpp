// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// WifiNet: nodes with an 802.11ac/ax MAC and PHY and UDP/IP, as a LinkSpec says; loss; a trace of
// MCS. C++17.
//
//   "pairs":  0 ──▶ 1   2 ──▶ 3  ...   ad hoc, all on one channel and in range of each other
//   "ap":     0 (router) ──▶ 1, 2, ...  stations, associated before any flow starts
//
// Where senders are hidden, those that are drawn left of an arrow ("pairs"), or the stations
// ("ap"), do not hear each other, and all others hear everybody.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ns3/error-model.h>
#include <ns3/ipv4-address.h>
#include <ns3/net-device-container.h>
#include <ns3/node-container.h>
#include <ns3/random-variable-stream.h>
#include <ns3/wifi-net-device.h>

#include "tools/labs/ns3/meters.hpp"
#include "tools/labs/ns3/run_spec.hpp"
#include "tools/labs/ns3/spells.hpp"

namespace onehop::sim {

class WifiNet {
 public:
  WifiNet(const LinkSpec& link, std::size_t flows, std::uint32_t payload_bytes);

  /// Nodes of a flow.
  [[nodiscard]] std::uint32_t sender_of(const FlowSpec& flow) const;
  [[nodiscard]] std::uint32_t receiver_of(const FlowSpec& flow) const;

  [[nodiscard]] ns3::Ptr<ns3::Node> node(std::uint32_t i) const { return nodes_.Get(i); }
  [[nodiscard]] std::uint32_t size() const { return nodes_.GetN(); }
  [[nodiscard]] ns3::Ipv4Address address(std::uint32_t i) const { return addresses_[i]; }
  [[nodiscard]] ns3::Mac48Address mac(std::uint32_t i) const;
  [[nodiscard]] DeviceMeter& meter(std::uint32_t i) { return *meters_[i]; }
  [[nodiscard]] std::uint64_t mac_queue_bytes() const { return mac_queue_bytes_; }
  /// settle_s: when stations have associated and flows may start.
  [[nodiscard]] double settle_s() const { return settle_s_; }
  /// prime makes the Block Ack agreements of a flow's both directions before it starts, one link
  /// after the other. ns-3 makes one at a link's first frames; where they collide with others' the
  /// receiver may wait for ever for a number that never comes, and the link passes nothing (TCP
  /// loses its SYN, we our PINGs) until a whole window has passed.
  void prime(const FlowSpec& flow);
  /// begin_loss loses at the PHY of a flow's receiver from now on. It throws where a Block Ack
  /// agreement of the flow does not stand: ns-3 3.37 takes one for valid only with the ACK of its
  /// response, and a lost ACK ends the run (repaired in ns-3 3.38).
  void begin_loss(const FlowSpec& flow);
  /// play_mcs_trace begins the link's trace now.
  void play_mcs_trace();
  /// begin_droughts begins the link's droughts now.
  void begin_droughts();
  /// begin_census counts the active links among `links` (sender, receiver) from now on, where
  /// senders may know them.
  void begin_census(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& links);

 private:
  void install_pairs();
  void install_ap();
  void set_up_devices();
  void install_ip();
  void hear_above_mac(std::uint32_t i);
  bool receive(ns3::Ptr<ns3::NetDevice> device, ns3::Ptr<const ns3::Packet> packet,
               std::uint16_t protocol, const ns3::Address& from);
  void pass_up(ns3::Ptr<ns3::NetDevice> device, ns3::Ptr<const ns3::Packet> packet,
               std::uint16_t protocol, ns3::Address from);
  [[nodiscard]] bool has_agreement(std::uint32_t from, std::uint32_t to, ns3::AcIndex ac) const;
  void next_mcs();
  void send_primer(std::uint32_t from, std::uint32_t to, std::uint8_t priority);
  void count_links();
  [[nodiscard]] std::string mode_name(std::uint32_t mcs) const;

  LinkSpec link_;
  ns3::NodeContainer nodes_;
  ns3::NetDeviceContainer devices_;
  std::vector<ns3::Ipv4Address> addresses_;
  std::vector<std::unique_ptr<DeviceMeter>> meters_;
  ns3::Ptr<ns3::UniformRandomVariable> random_;
  std::uint64_t mac_queue_bytes_ = 0;
  double settle_s_ = 0;
  std::size_t mcs_next_ = 0;
  std::optional<Jitter> jitter_;
  std::optional<Droughts> droughts_;
  Census census_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links_;
};

}  // namespace onehop::sim
