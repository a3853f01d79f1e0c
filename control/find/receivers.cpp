// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/find/receivers.hpp"

#include <algorithm>

namespace onehop::find {

bool is_better(const Way& one, const Way& other) {
  const auto rank = [](const Way& way) {
    return std::tuple{!way.is_one_hop, way.medium, -way.rate.count, !way.address.is_link_local()};
  };
  return rank(one) < rank(other);
}

bool Receivers::note(const Answer& answer, const Way& way,
                     const std::function<std::string(const Answer&)>& device_of, bool is_hint) {
  const auto [place, is_new] = places_.try_emplace(
      {answer.instance, answer.port, answer.name, answer.peer_hash, is_hint}, receivers_.size());
  if (is_new) {
    std::size_t& count = counts_[way.address];
    if (receivers_.size() >= receivers_max || count >= per_address_max) {
      places_.erase(place);
      if (count == 0) counts_.erase(way.address);
      return false;
    }
    ++count;
    receivers_.push_back({answer.name,
                          answer.port,
                          {way},
                          device_of ? device_of(answer) : std::string{},
                          answer.instance,
                          is_hint});
    return true;
  }
  std::vector<Way>& ways = receivers_[place->second].ways;
  if (ways.size() >= ways_max || std::ranges::count(ways, way.address, &Way::address) > 0)
    return false;
  ways.insert(std::ranges::upper_bound(ways, way, is_better), way);
  return true;
}

bool Receivers::has(const Instance& instance, const Endpoint& place) const {
  return std::ranges::any_of(receivers_, [&](const Receiver& one) {
    const bool is_there =
        one.port == place.port && std::ranges::count(one.ways, place.address, &Way::address) > 0;
    return !one.is_hint && (one.instance == instance || is_there);
  });
}

std::vector<Receiver> Receivers::ranked() const {
  std::vector<Receiver> ranked = receivers_;
  std::erase_if(ranked, [this](const Receiver& one) {
    return one.is_hint && has(one.instance, {one.ways.front().address, one.port});
  });
  std::ranges::stable_sort(ranked, [](const Receiver& one, const Receiver& other) {
    if (one.is_hint != other.is_hint) return other.is_hint;
    return is_better(one.ways.front(), other.ways.front());
  });
  return ranked;
}

}  // namespace onehop::find
