// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What stays in reach of `onehop send` and `onehop recv` once a peer is listened to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/system/rights.hpp"
#include "tools/onehop/options.hpp"
#include "tools/onehop/text/report.hpp"

namespace onehop::tool {

/// Confinement: of one command.
struct Confinement {
  const api::Options& options;
  const OutputOptions& output;
  std::vector<std::string> sources{};   ///< are read, with all below them
  std::string destination{};            ///< a folder that is written; empty: none
  std::string to{};                     ///< the receiver; empty: we are it
  std::string listen{};                 ///< where we are it
  std::string state_file{};             ///< the rate memory, whose folder is made; empty: none
  std::vector<std::string> accepted{};  ///< folders of paired devices' own, as `destination`
  std::string devices{};                ///< where paired devices are kept; empty: none is asked for
  std::string metrics_file{};           ///< of a service; empty: none
  int stream_fd = -1;                   ///< what is read or written in place of files; -1: none
  bool is_other_user = false;           ///< become() changed who we are
};

/// keep_rights starts the process that opens a port of ours anew once we have given up the right to
/// (tools/onehop/confine/rights_process.hpp), for all ports from now on. Null: there is no right to
/// keep. Before all else is opened; what is returned outlives the transfer.
[[nodiscard]] Result<std::shared_ptr<Rights>> keep_rights(const api::Options& options);

/// confine_transfer is for the moment when all that takes a privilege is open, become() is done and
/// there are no threads yet. What this machine or this port cannot have of it is said. Error: 10.
[[nodiscard]] Result<void> confine_transfer(const Confinement& transfer, const Reporter& reporter);

}  // namespace onehop::tool
