// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The command line of `onehop p2p status|find|connect|accept|host|join|leave`.
#pragma once

#include <optional>
#include <string>

#include "tools/onehop/options.hpp"

namespace CLI {
class App;
}

namespace onehop::p2p {

/// P2pOptions: what the verbs take; each takes some of it.
struct P2pOptions {
  std::string interface;  ///< of the radio
  std::string peer;
  bool is_pin_entered = false;
  std::string pin_file;
  bool is_pin_shown = false;
  bool is_button = false;
  bool is_persistent = false;
  std::optional<int> owner_intent;
  int frequency = 0;   ///< MHz, or 2 or 5 for a band; 0: 5 GHz where it may be
  double seconds = 0;  ///< of a search, or until it gives up
  std::string ssid;
  std::string passphrase_file;
  tool::OutputOptions output;
};

class P2pCommand {
 public:
  /// run does what was asked for, says what went wrong, and returns the exit code of the program.
  [[nodiscard]] int run();

 private:
  friend void add_verbs(CLI::App& p2p, P2pCommand& command);

  CLI::App* p2p_ = nullptr;
  P2pOptions options_;
};

/// add_verbs puts the verbs into the command `p2p`. `command` must live as long.
void add_verbs(CLI::App& p2p, P2pCommand& command);

}  // namespace onehop::p2p
