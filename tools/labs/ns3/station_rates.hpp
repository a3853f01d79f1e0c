// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Two small parts that ns-3 3.37 lacks, for a router with near and far stations. C++17.
//   StationRates: a constant rate for each station (ns-3's own has one for all).
//   RoundRobinScheduler: the MAC queue serves stations in turn, those with a whole aggregate first
//   (but nobody for ever); ns-3 has first come, first served only, where one slow station's frames
//   hold everybody's.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include <ns3/constant-rate-wifi-manager.h>
#include <ns3/wifi-mac-queue-scheduler-impl.h>

namespace onehop::sim {

class StationRates final : public ns3::ConstantRateWifiManager {
 public:
  static ns3::TypeId GetTypeId();
  void set(ns3::Mac48Address station, ns3::WifiMode mode) { modes_[station] = mode; }

 private:
  ns3::WifiTxVector DoGetDataTxVector(ns3::WifiRemoteStation* station,
                                      std::uint16_t allowed_width_mhz) override;
  std::map<ns3::Mac48Address, ns3::WifiMode> modes_;
};

/// A queue's priority: first those that hold a whole aggregate, then who waited longest for a turn.
struct Turn {
  bool is_short = true;
  std::uint64_t order = 0;
  bool operator==(const Turn& other) const {
    return is_short == other.is_short && order == other.order;
  }
  bool operator<(const Turn& other) const {
    return std::pair{is_short, order} < std::pair{other.is_short, other.order};
  }
};

class RoundRobinScheduler final : public ns3::WifiMacQueueSchedulerImpl<Turn> {
 public:
  static ns3::TypeId GetTypeId();
  /// set_limits: frames that make a whole aggregate, and frames that one station may have queued.
  void set_limits(std::uint32_t aggregate_frames, std::uint32_t station_frames);

 private:
  ns3::Ptr<ns3::WifiMpdu> HasToDropBeforeEnqueuePriv(ns3::AcIndex ac,
                                                     ns3::Ptr<ns3::WifiMpdu> mpdu) override;
  void DoNotifyEnqueue(ns3::AcIndex ac, ns3::Ptr<ns3::WifiMpdu> mpdu) override;
  void DoNotifyDequeue(ns3::AcIndex ac, const std::list<ns3::Ptr<ns3::WifiMpdu>>& mpdus) override;
  void DoNotifyRemove(ns3::AcIndex ac, const std::list<ns3::Ptr<ns3::WifiMpdu>>& mpdus) override;
  void rank_all(ns3::AcIndex ac);
  void rank(ns3::AcIndex ac, const ns3::WifiContainerQueueId& queue, bool is_served);

  std::uint32_t aggregate_frames_ = 64, station_frames_ = 500;
  std::uint64_t turns_ = 0;
  std::map<ns3::WifiContainerQueueId, std::uint64_t> served_;  // number of the newest turn
};

}  // namespace onehop::sim
