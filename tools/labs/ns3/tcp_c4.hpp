// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TcpC4 is C4 over ns-3's TCP, as ns-3's BBR is: TCP acknowledges, finds losses, repeats and paces;
// C4 says how fast and how much. C++17.
//
// ns-3's TCP does not count ECN marks, and no queue here marks, so C4 sees none. It tells the time
// since a packet was sent for the first packet of those that left between two acknowledgements. It
// tells how much what it takes for lost has changed, not whether it grew: sure are losses that
// begin a repair, and C4 asks for no others while it recovers. A timer's are not told, as the draft
// has it.
#pragma once

#include <optional>
#include <string>

#include <ns3/tcp-congestion-ops.h>

#include "tools/labs/ns3/c4.hpp"

namespace onehop::sim {

class TcpC4 final : public ns3::TcpCongestionOps {
 public:
  static ns3::TypeId GetTypeId();

  std::string GetName() const override { return "TcpC4"; }
  void Init(ns3::Ptr<ns3::TcpSocketState> socket) override;
  bool HasCongControl() const override { return true; }
  void CongControl(ns3::Ptr<ns3::TcpSocketState> socket,
                   const ns3::TcpRateOps::TcpRateConnection& connection,
                   const ns3::TcpRateOps::TcpRateSample& sample) override;
  void CongestionStateSet(ns3::Ptr<ns3::TcpSocketState> socket,
                          ns3::TcpSocketState::TcpCongState_t state) override;
  std::uint32_t GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> socket,
                            std::uint32_t bytes_in_flight) override;
  ns3::Ptr<ns3::TcpCongestionOps> Fork() override { return ns3::CopyObject<TcpC4>(this); }

 private:
  std::optional<C4> c4_;
  bool begins_repair_ = false;
  std::uint64_t delivered_at_send_ = 0;  // of the newest packet whose round trip was taken
};

}  // namespace onehop::sim
