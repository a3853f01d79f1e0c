// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Look asks repeatedly on the links of this machine until a receiver answers, and finds visible
// reasons why none does. Any thread; it blocks.
#pragma once

#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#if ONEHOP_HAS_BUS
#include "control/find/avahi_browser.hpp"
#endif
#include "control/find/questioner.hpp"
#include "control/pair/peers.hpp"
#include "tools/onehop/signals.hpp"
#include "tools/onehop/text/report.hpp"

namespace onehop::tool {

[[nodiscard]] std::string medium_text(find::Medium medium);
[[nodiscard]] std::string place_text(const find::Way& way);  ///< "lan0, cable, one hop"

/// Look asks until somebody answers, or the time is over.
class Look {
 public:
  static constexpr Nanos no_wait{-1};  ///< of run(): one glance, and no waiting
  struct Options {
    std::string interface, name;
    std::vector<pair::Peer> peers;  ///< that answers may be of
    bool is_pairing = false;
    bool has_hints = false;  ///< what Avahi knows counts as well
  };
  Look(const Options& options, const Reporter& reporter);

  /// run looks for look_span, and without an answer on until `limit`; nullopt: for ever.
  [[nodiscard]] Result<std::vector<find::Receiver>> run(std::optional<Nanos> limit);

  [[nodiscard]] std::string links() const;  ///< names of those that have a carrier
  [[nodiscard]] bool has_links() const { return !questioner_.links().empty(); }

  /// hindered is the visible reason why no receiver answers; empty: none.
  [[nodiscard]] std::string hindered() const;
  [[nodiscard]] Error nobody(const std::string& more) const;

 private:
  template <class Then>
  void after(boost::asio::steady_timer& timer, Nanos span, Then then) {
    timer.expires_after(span);
    timer.async_wait([then](const boost::system::error_code& stopped) {
      if (!stopped) then();
    });
  }
  void ask_avahi();
  void end_first_look(std::optional<Nanos> limit);
  void wait_on(std::optional<Nanos> limit);
  void say_waiting();
  void note_new();

  const Reporter& reporter_;
  const std::string name_;
  const bool is_device_enough_;
  bool is_found_ = false;
  boost::asio::io_context io_;
  Interrupts interrupts_;
  boost::asio::steady_timer settle_timer_, end_timer_;
  find::Questioner questioner_;
#if ONEHOP_HAS_BUS
  std::unique_ptr<find::AvahiBrowser> browser_;  // null: no daemon, or it is not asked
#endif
  const bool has_hints_;
  bool is_late_ = false;  // the first look is over, without an answer
  bool is_interrupted_ = false;
};

}  // namespace onehop::tool
