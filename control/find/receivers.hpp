// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Receivers: the receivers that answered, and the best address of each. Pure; one thread.
// One receiver answers on each link that it shares with us, by IPv6 and by IPv4: these are its
// ways. Any host on a link can send any number of answers in any name, so the memory is bounded,
// and the first ones are kept: an honest answer comes within milliseconds of its question, and a
// forger does not know the nonce before that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "control/find/message.hpp"
#include "engine/base/system/address.hpp"
#include "engine/base/units.hpp"

namespace onehop::find {

enum class Medium : std::uint8_t { cable, wifi };

/// Way: the source address of an answer, and the local link that it came over.
struct Way {
  IpAddress address;
  std::string interface;
  Medium medium = Medium::cable;
  BytesPerSecond rate{};    ///< that the driver claims; 0: none
  bool is_one_hop = false;  ///< link-local, or of a subnet of that link: no gateway lies between
};

/// is_better: one hop before a path through a gateway, cable before Wi-Fi, the faster driver first,
/// and of a link's addresses the link-local one, which no route and no VPN can redirect.
[[nodiscard]] bool is_better(const Way& one, const Way& other);

struct Receiver {
  std::string name;  ///< any bytes: escape it where it is shown
  std::uint16_t port = 0;
  std::vector<Way> ways;  ///< best first; one at least
  std::string device;     ///< our name of the paired device; empty: not a known one
  Instance instance{};
  bool is_hint = false;  ///< it did not answer: another program says that it is there
};

class Receivers {
 public:
  /// Too low: a flood of answers takes all places before the wanted one. Too high: memory, 300
  /// bytes each.
  static constexpr std::size_t receivers_max = 4096;
  static constexpr std::size_t ways_max = 16;        ///< of a receiver
  static constexpr std::size_t per_address_max = 4;  ///< receivers: several may run on one machine

  /// note takes an answer. True: it brought something new. It calls `device_of` only for an answer
  /// that it keeps, so forged answers take a bounded time.
  bool note(const Answer& answer, const Way& way,
            const std::function<std::string(const Answer&)>& device_of = {}) {
    return note(answer, way, device_of, false);
  }
  /// note_hint takes one that did not answer; of it the hash says nothing.
  bool note_hint(const Answer& said, const Way& way) { return note(said, way, {}, true); }
  /// has: one has answered from that place, or of that run of a receiver.
  [[nodiscard]] bool has(const Instance& instance, const Endpoint& place) const;
  [[nodiscard]] bool is_empty() const { return receivers_.empty(); }
  [[nodiscard]] std::size_t size() const { return receivers_.size(); }
  /// ranked: sorted by their best ways; of equal ones the first to answer comes first. Hints come
  /// last, and none of a receiver that has answered.
  [[nodiscard]] std::vector<Receiver> ranked() const;

 private:
  using Key = std::tuple<Instance, std::uint16_t, std::string, PeerHash, bool>;
  bool note(const Answer& answer, const Way& way,
            const std::function<std::string(const Answer&)>& device_of, bool is_hint);
  std::vector<Receiver> receivers_;  // in the order of their first answers
  std::map<Key, std::size_t> places_;
  std::map<IpAddress, std::size_t> counts_;  // receivers whose first answer came from there
};

}  // namespace onehop::find
