// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the air between the nodes does: where they stand or walk, what of a signal arrives, and by
// which rule a sender picks its rate. C++17.
//
//   rssi_dbm       the same signal at every receiver, however far
//   walk_mps       a pair's receiver walks away from its sender, and the signal falls with distance
//   fading_paths   what walkers see besides: independent paths that fade as fast as they walk
#pragma once

#include <ns3/node-container.h>
#include <ns3/wifi-helper.h>
#include <ns3/yans-wifi-helper.h>

#include "tools/labs/ns3/run_spec.hpp"

namespace onehop::sim {

[[nodiscard]] ns3::YansWifiPhyHelper phy_of(const LinkSpec& link, const ns3::NodeContainer& nodes);
/// place gives every node its place, or its way.
void place(const LinkSpec& link, const ns3::NodeContainer& nodes);
/// set_rate: of senders in "pairs"; `mode` is the MCS of a constant rate.
void set_rate(const LinkSpec& link, const std::string& mode, ns3::WifiHelper& wifi);

}  // namespace onehop::sim
