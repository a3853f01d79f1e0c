// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/station_rates.hpp"

#include <algorithm>
#include <set>

#include <ns3/wifi-mpdu.h>
#include <ns3/wifi-phy.h>
#include <ns3/wifi-utils.h>

namespace onehop::sim {

using ns3::Ptr;

namespace {
// About 0.1 s. Lower: whole aggregates are first in name only, and TCP's far stations fare as with
// UDP, where the paper's nearly starve. Higher: a flow that begins behind a busy one waits seconds
// for its handshake.
constexpr std::uint64_t patience_turns = 200;
}  // namespace

NS_OBJECT_ENSURE_REGISTERED(StationRates);
NS_OBJECT_ENSURE_REGISTERED(RoundRobinScheduler);

ns3::TypeId StationRates::GetTypeId() {
  static ns3::TypeId id = ns3::TypeId("onehop::StationRates")
                              .SetParent<ns3::ConstantRateWifiManager>()
                              .AddConstructor<StationRates>();
  return id;
}

ns3::WifiTxVector StationRates::DoGetDataTxVector(ns3::WifiRemoteStation* station,
                                                  std::uint16_t allowed_width_mhz) {
  const auto found = modes_.find(GetAddress(station));
  const ns3::WifiMode mode = found == modes_.end() ? GetDefaultMode() : found->second;
  const std::uint8_t streams =
      std::min(GetMaxNumberOfTransmitStreams(), GetNumberOfSupportedStreams(station));
  const std::uint16_t guard_ns = ns3::ConvertGuardIntervalToNanoSeconds(
      mode, GetShortGuardIntervalSupported(station), ns3::NanoSeconds(GetGuardInterval(station)));
  return ns3::WifiTxVector(
      mode, GetDefaultTxPowerLevel(),
      ns3::GetPreambleForTransmission(mode.GetModulationClass(), GetShortPreambleEnabled()),
      guard_ns, GetNumberOfAntennas(), streams, 0,
      ns3::GetChannelWidthForTransmission(mode,
                                          std::min(GetChannelWidth(station), allowed_width_mhz)),
      GetAggregation(station));
}

ns3::TypeId RoundRobinScheduler::GetTypeId() {
  static ns3::TypeId id = ns3::TypeId("onehop::RoundRobinScheduler")
                              .SetParent<ns3::WifiMacQueueSchedulerImpl<Turn>>()
                              .AddConstructor<RoundRobinScheduler>();
  return id;
}

void RoundRobinScheduler::set_limits(std::uint32_t aggregate_frames, std::uint32_t station_frames) {
  aggregate_frames_ = aggregate_frames;
  station_frames_ = station_frames;
}

void RoundRobinScheduler::rank(ns3::AcIndex ac, const ns3::WifiContainerQueueId& queue,
                               bool is_served) {
  if (is_served || served_.count(queue) == 0) served_[queue] = ++turns_;
  // Passed over so often, a short queue waits no longer: a station that always has a whole
  // aggregate would else keep another's few frames for ever.
  const std::uint32_t frames = GetWifiMacQueue(ac)->GetNPackets(queue);
  const bool is_passed_over = turns_ - served_[queue] > patience_turns;
  if (frames > 0)
    SetPriority(ac, queue, {frames < aggregate_frames_ && !is_passed_over, served_[queue]});
}

void RoundRobinScheduler::rank_all(ns3::AcIndex ac) {
  const std::map<ns3::WifiContainerQueueId, std::uint64_t> known = served_;
  for (const auto& [queue, turn] : known) rank(ac, queue, false);
}

Ptr<ns3::WifiMpdu> RoundRobinScheduler::HasToDropBeforeEnqueuePriv(ns3::AcIndex ac,
                                                                   Ptr<ns3::WifiMpdu> mpdu) {
  const Ptr<ns3::WifiMacQueue> queue = GetWifiMacQueue(ac);
  const bool is_station_full =
      queue->GetNPackets(ns3::WifiMacQueueContainer::GetQueueId(mpdu)) >= station_frames_;
  return is_station_full || queue->QueueBase::GetNPackets() >= queue->GetMaxSize().GetValue()
             ? mpdu
             : nullptr;
}

void RoundRobinScheduler::DoNotifyEnqueue(ns3::AcIndex ac, Ptr<ns3::WifiMpdu> mpdu) {
  rank(ac, ns3::WifiMacQueueContainer::GetQueueId(mpdu), false);
}

void RoundRobinScheduler::DoNotifyDequeue(ns3::AcIndex ac,
                                          const std::list<Ptr<ns3::WifiMpdu>>& mpdus) {
  std::set<ns3::WifiContainerQueueId> queues;
  for (const auto& mpdu : mpdus) queues.insert(ns3::WifiMacQueueContainer::GetQueueId(mpdu));
  for (const auto& queue : queues) rank(ac, queue, true);
  rank_all(ac);
}

void RoundRobinScheduler::DoNotifyRemove(ns3::AcIndex ac,
                                         const std::list<Ptr<ns3::WifiMpdu>>& mpdus) {
  std::set<ns3::WifiContainerQueueId> queues;
  for (const auto& mpdu : mpdus) queues.insert(ns3::WifiMacQueueContainer::GetQueueId(mpdu));
  for (const auto& queue : queues) rank(ac, queue, false);
}

}  // namespace onehop::sim
