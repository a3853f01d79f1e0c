// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The laboratories: programs that measure, which moving files does not need. `onehop NAME` becomes
// one of them, as git does: the same process, with its arguments, streams, environment and signals.
//
//   built      BUILD/tools/onehop/onehop    BUILD/tools/labs/lab/onehop-lab
//   installed  PREFIX/bin/onehop            PREFIX/libexec/onehop/onehop-lab
//
// A program finds another by its own place (engine/base/system/own_place.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"

namespace onehop::tool {

struct Laboratory {
  std::string_view name;
  const char* about;
  const char* remedy;  ///< where it is not installed
};

inline constexpr const char* laboratory_remedy =
    "Install the package onehop-labs, or build with -Dlabs=enabled (tools/bootstrap installs what "
    "that needs)";
inline constexpr std::array laboratories{
    Laboratory{"bench", "measure what moving a byte costs, as a whole and by its parts",
               laboratory_remedy},
    Laboratory{"lab", "a link between two hosts, built from network namespaces (root)",
               laboratory_remedy},
    Laboratory{"stress", "drive rings and buffers through hostile schedules", laboratory_remedy},
    Laboratory{"plot", "make a report of traces: one HTML file, and by gnuplot SVG and PNG",
               laboratory_remedy},
    Laboratory{"ns3", "play a table of a paper over ns-3's Wi-Fi, the paper's values beside ours",
               "It is never installed, for ns-3 is GPL-2.0-only: build with -Dns3=enabled "
               "(libns3-dev), and run the onehop of the build folder"},
};

[[nodiscard]] constexpr const Laboratory* find_laboratory(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(laboratories, name, &Laboratory::name);
  return found != laboratories.end() ? found : nullptr;
}

/// find_program is the path of "onehop" or "onehop-NAME" of this build or installation. Error 9:
/// there is none, or others than those who can write this program could have put it there.
/// Syscalls: readlink, stat.
[[nodiscard]] Result<std::string> find_program(std::string_view name);

/// start_laboratory becomes the program that argv names. It returns nothing where argv names none,
/// and the exit code where it cannot be started; all is said then. Call it first: what this process
/// has set up would be handed on. Syscalls: find_program's, execve.
[[nodiscard]] std::optional<ExitCode> start_laboratory(int argc, char** argv);

}  // namespace onehop::tool
