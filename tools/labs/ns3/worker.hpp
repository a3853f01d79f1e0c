// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Worker: plays points in child processes, several at a time: ns-3's simulator is one per process,
// an abort in it ends one point and not the table, and its memory goes back with the process.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/result.hpp"
#include "tools/labs/ns3/run_spec.hpp"

namespace onehop::sim {

[[nodiscard]] nlohmann::json to_json(const RunResult& result);
[[nodiscard]] RunResult from_json(const nlohmann::json& value);

/// Played: a result, or why there is none.
struct Played {
  RunResult result;
  std::string failure;
};

/// play_all runs every spec and calls `done` for each as it ends. Syscalls: pipe2, fork, poll,
/// read, waitpid.
[[nodiscard]] Result<std::vector<Played>> play_all(
    const std::vector<RunSpec>& specs, std::size_t jobs,
    const std::function<void(std::size_t index, const Played& played)>& done);

}  // namespace onehop::sim
