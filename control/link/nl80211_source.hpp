// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Nl80211Source: a Wi-Fi link's facts, from the kernel, without privilege.
//
//   peer's station entry (2 ms) ─▶ phy_rate, exact_queue (its TXQs), mac, own_airtime
//   survey (50 ms)              ─▶ channel
//   station list (1 s, AP only) ─▶ stations, and which entry is the peer where there is but one
//
// Each poll has a budget of its own (poll_budget.hpp). Control thread only.
#pragma once

#include "control/link/fact_source.hpp"
#include "control/link/nl80211_socket.hpp"
#include "control/link/poll_budget.hpp"
#include "control/link/wifi_facts.hpp"

namespace onehop::link {

class Nl80211Source final : public FactSource {
 public:
  /// Implementation constants. 2 ms is the control loop's tick in the steady state. The survey has
  /// steps of 1 ms, so that 50 ms have 2 % of error. Activity of stations is judged over a second.
  static constexpr Nanos station_period = 2ms, survey_period = 50ms, list_period = 1s;

  /// open fails if `ifindex` is not a Wi-Fi interface. `peer` selects the station on an access
  /// point; a client has one. Syscalls: those of Nl80211Socket.
  [[nodiscard]] static Result<Nl80211Source> open(int ifindex, std::optional<MacAddress> peer);

  [[nodiscard]] std::string_view name() const noexcept override { return "nl80211"; }
  void read(Instant now, law::LinkFacts& facts) override;

  // For users (onehop doctor): what was read last.
  [[nodiscard]] const WifiInterfaceMessage& interface() const noexcept { return interface_; }
  [[nodiscard]] const std::optional<StationMessage>& station() const noexcept { return station_; }
  [[nodiscard]] std::span<const StationMessage> list() const noexcept { return list_; }

 private:
  Nl80211Source(Nl80211Socket&& socket, WifiInterfaceMessage&& interface,
                std::optional<MacAddress> peer)
      : socket_{std::move(socket)}, interface_{std::move(interface)}, peer_{peer} {}
  void read_list(Instant now, law::LinkFacts& facts);
  void read_station(Instant now, law::LinkFacts& facts);
  void read_survey(Instant now, law::LinkFacts& facts);

  Nl80211Socket socket_;
  WifiInterfaceMessage interface_;
  std::optional<MacAddress> peer_;          // as given
  std::optional<MacAddress> only_station_;  // as found
  WifiFacts wifi_;
  PollBudget station_budget_{station_period}, survey_budget_{survey_period},
      list_budget_{list_period};
  std::optional<StationMessage> station_;
  std::vector<StationMessage> list_;
  std::vector<SurveyMessage> surveys_;
};

}  // namespace onehop::link
