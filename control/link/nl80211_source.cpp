// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/nl80211_source.hpp"

#include <cerrno>

namespace onehop::link {

Result<Nl80211Source> Nl80211Source::open(int ifindex, std::optional<MacAddress> peer) {
  ONEHOP_TRY(socket, Nl80211Socket::open());
  ONEHOP_TRY(interface, socket.interface(ifindex));
  return Nl80211Source{std::move(socket), std::move(interface), peer};
}

void Nl80211Source::read(Instant now, law::LinkFacts& facts) {
  facts.medium = law::Medium::wifi;
  error_.reset();
  list_budget_.run(now, [&] { read_list(now, facts); });
  station_budget_.run(now, [&] { read_station(now, facts); });
  survey_budget_.run(now, [&] { read_survey(now, facts); });
}

// The list also finds the one station that a client has, and finds it again after it roamed.
void Nl80211Source::read_list(Instant now, law::LinkFacts& facts) {
  if (auto rc = socket_.stations(interface_.ifindex, list_); !rc) {
    error_ = rc.error();
    list_.clear();
    return;
  }
  only_station_.reset();
  if (list_.size() == 1) only_station_ = list_.front().mac;
  if (interface_.role == WifiRole::access_point)
    wifi_.add_list(list_, peer_, now, list_budget_.period(), facts);
}

void Nl80211Source::read_station(Instant now, law::LinkFacts& facts) {
  // A client's peer is its access point, also where the frames go on to somebody else behind it.
  const bool is_told = peer_ && interface_.role != WifiRole::client;
  const std::optional<MacAddress>& peer = is_told ? peer_ : only_station_;
  station_.reset();
  if (!peer) return;
  auto station = socket_.station(interface_.ifindex, *peer);
  if (!station) {
    // ENOENT: it is not associated at the moment. Its facts grow old.
    if (station.error().errno_value != ENOENT) error_ = station.error();
    return;
  }
  station_ = std::move(station).value();
  wifi_.add_station(*station_, now, station_budget_.period(), facts);
}

void Nl80211Source::read_survey(Instant now, law::LinkFacts& facts) {
  // The channel may have been switched since; only the role never changes while the interface is
  // up.
  if (auto interface = socket_.interface(interface_.ifindex))
    interface_ = std::move(interface).value();
  if (auto rc = socket_.surveys(interface_.ifindex, surveys_); !rc) {
    // EOPNOTSUPP: the driver counts no airtime, which is no failure.
    if (rc.error().errno_value != EOPNOTSUPP) error_ = rc.error();
    return;
  }
  const SurveyMessage* survey = pick_survey(surveys_, interface_.frequency_mhz.value_or(0));
  if (survey != nullptr) WifiFacts::add_survey(*survey, now, survey_budget_.period(), facts);
}

}  // namespace onehop::link
