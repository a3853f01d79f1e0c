// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/tcp_c4.hpp"

#include <algorithm>
#include <limits>

#include <ns3/simulator.h>
#include <ns3/tcp-socket-state.h>

namespace onehop::sim {

using ns3::Ptr;

NS_OBJECT_ENSURE_REGISTERED(TcpC4);

ns3::TypeId TcpC4::GetTypeId() {
  static ns3::TypeId type = ns3::TypeId("onehop::TcpC4")
                                .SetParent<ns3::TcpCongestionOps>()
                                .AddConstructor<TcpC4>()
                                .SetGroupName("Internet");
  return type;
}

void TcpC4::Init(Ptr<ns3::TcpSocketState> socket) {
  socket->m_pacing = true;
  c4_.emplace(socket->m_segmentSize, static_cast<double>(socket->m_maxPacingRate.GetBitRate()) / 8);
}

void TcpC4::CongControl(Ptr<ns3::TcpSocketState> socket,
                        const ns3::TcpRateOps::TcpRateConnection& connection,
                        const ns3::TcpRateOps::TcpRateSample& sample) {
  C4::Ack ack;
  ack.since_sent_s = (ns3::Simulator::Now() - connection.m_firstSentTime).GetSeconds();
  ack.send_delay_s = sample.m_sendElapsed.GetSeconds();
  ack.acked_bytes = sample.m_ackedSacked;
  ack.delivered_bytes_total = connection.m_delivered;
  ack.delivered_bytes_at_send = sample.m_priorDelivered;
  if (ack.delivered_bytes_at_send > delivered_at_send_ || delivered_at_send_ == 0)
    ack.rtt_s = ack.since_sent_s;
  delivered_at_send_ = ack.delivered_bytes_at_send;
  if (begins_repair_) ack.lost_packets = sample.m_bytesLoss / socket->m_segmentSize;
  begins_repair_ = false;
  ack.is_app_limited = sample.m_isAppLimited;
  c4_->on_ack(ack);
  socket->m_cWnd = static_cast<std::uint32_t>(
      std::min<double>(c4_->window_bytes(), std::numeric_limits<std::uint32_t>::max()));
  socket->m_pacingRate = std::min(ns3::DataRate(static_cast<std::uint64_t>(c4_->pacing_rate() * 8)),
                                  socket->m_maxPacingRate);
}

void TcpC4::CongestionStateSet(Ptr<ns3::TcpSocketState>,
                               ns3::TcpSocketState::TcpCongState_t state) {
  begins_repair_ = state == ns3::TcpSocketState::CA_RECOVERY;
}

/// The window is C4's, also where TCP repairs.
std::uint32_t TcpC4::GetSsThresh(Ptr<const ns3::TcpSocketState> socket, std::uint32_t) {
  return socket->m_cWnd;
}

}  // namespace onehop::sim
