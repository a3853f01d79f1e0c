// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The two ends of `bench loop`: a session of the program itself (TLS, pairing, engine, law, file
// thread), with memory in place of files where that is asked for. Each runs in a process of its
// own.
//
//   SIGUSR1 ─▶ session thread ─▶ Board::moved
//   the file is verified at both ends ─▶ Board::state = done
#pragma once

#include <optional>
#include <string>

#include "control/transfer/settings.hpp"
#include "engine/crypto/digest.hpp"
#include "tools/labs/bench/ends/board.hpp"

namespace onehop::bench {

struct LoopSpec {
  transfer::Settings common;
  std::string code;     ///< pairs the two ends
  std::string address;  ///< of the receiving end, numeric
  std::uint16_t port = 7411;
  bool is_source_file = false, is_sink_file = false;
  std::optional<crypto::DigestKind> digest = crypto::DigestKind::xxh3;
  std::uint64_t bytes = 0;  ///< of the one file
  /// Receiving: the sender is measured here as well, and waits when it is done
  bool is_sender_held = false;
  std::string source_path;  ///< of a file source
  std::string sink_folder;  ///< of a file sink
};

[[nodiscard]] int run_loop_sender(const LoopSpec& spec, Board& board);
[[nodiscard]] int run_loop_receiver(const LoopSpec& spec, Board& board);

}  // namespace onehop::bench
