// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Foreign: other people's programs over the same lab link, in the same rounds, measured from
// outside as our own ends are: wait4 of both whole processes, ksoftirqd and busy time of the
// machine meanwhile.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "tools/labs/bench/ends/link_points.hpp"

namespace onehop::bench {

/// Flow: what a program says that arrived, and how long that took; both over its whole life.
struct Flow {
  double bytes = 0, seconds = 0;
};

struct ForeignPair {
  std::string program;                        ///< in errors
  std::string remedy;                         ///< where it cannot be started
  std::vector<std::string> receiver, sender;  ///< commands
  bool is_udp = false;                        ///< what the receiver listens on
  int port = 0;
  std::function<Result<Flow>(const std::string& sender_output)> read;
};

[[nodiscard]] Result<RunResult> run_foreign(const BenchOptions& options, const Place& place,
                                            const ForeignPair& pair, bool is_counted);

}  // namespace onehop::bench
