// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the tables [link], [run] and a flow of a scenario may hold, and the reading of it. An
// unknown key is refused: a slip of the pen would else be a point that silently measures something
// different.
#pragma once

#include <string>

#include <toml++/toml.h>

#include "engine/base/result.hpp"
#include "tools/labs/ns3/run_spec.hpp"

namespace onehop::sim {

/// FlowTable is a flow as a scenario tells it, before it is copied to pairs.
struct FlowTable {
  FlowSpec flow;
  bool is_each_pair = false;
  double stagger_s = 0;
  double rate_total_mbps = 0;  ///< shared by the copies
};

[[nodiscard]] Error refuse(const std::string& where, const std::string& key,
                           const std::string& cause);
[[nodiscard]] Result<void> read_link(const toml::table& table, const std::string& where,
                                     LinkSpec& link);
[[nodiscard]] Result<void> read_run(const toml::table& table, const std::string& where,
                                    RunSpec& run);
[[nodiscard]] Result<void> read_flow(const toml::table& table, const std::string& where,
                                     FlowTable& flow);
/// check_point refuses what no simulation could play.
[[nodiscard]] Result<void> check_point(const RunSpec& run, const std::string& where);

}  // namespace onehop::sim
