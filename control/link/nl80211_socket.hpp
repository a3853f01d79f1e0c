// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Nl80211Socket: questions to cfg80211 over generic netlink, answered as parsed messages. Reading
// needs no privilege, the one order it knows does.
//
// A request may wait for a lock of the driver, and some drivers ask their firmware, which takes
// milliseconds: never on the engine core.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "control/link/nl80211_message.hpp"
#include "engine/base/result.hpp"
#include "engine/base/system/netlink.hpp"

namespace onehop::link {

class Nl80211Socket {
 public:
  /// Answers of a dump beyond these are dropped. An access point has at most 2007 stations
  /// (association ids); a link of one hop with more than 64 is not what this program is for.
  static constexpr std::size_t stations_max = 64;
  static constexpr std::size_t surveys_max = 256;  ///< channels of all bands

  /// open finds the family's id. Error io_unavailable: this kernel has no Wi-Fi (cfg80211 is not
  /// loaded). Syscalls: socket, bind, sendto, recvmsg.
  [[nodiscard]] static Result<Nl80211Socket> open();

  // Each of these: Syscalls: sendto, recvmsg.
  /// interface reports a Wi-Fi interface; an error with errno_value ENODEV if it is none.
  [[nodiscard]] Result<WifiInterfaceMessage> interface(int ifindex);
  [[nodiscard]] Result<StationMessage> station(int ifindex, const MacAddress& mac);
  /// wiphy passes on what the kernel reports of the interface's radio, in several messages, and the
  /// family's id.
  [[nodiscard]] Result<void> wiphy(
      int ifindex,
      const std::function<void(std::span<const std::byte>, std::uint16_t family)>& on_message);
  [[nodiscard]] Result<void> stations(int ifindex, std::vector<StationMessage>& out);
  [[nodiscard]] Result<void> surveys(int ifindex, std::vector<SurveyMessage>& out);
  /// set_noack_map makes the frames of the TIDs in `map` (bit n: TID n) leave the interface without
  /// an acknowledgement by the receiver's MAC; 0: all are acknowledged. The kernel does not report
  /// which map is set. Errors: privilege_missing without CAP_NET_ADMIN, io_unavailable if the
  /// driver has no such map.
  [[nodiscard]] Result<void> set_noack_map(int ifindex, std::uint16_t map);

 private:
  explicit Nl80211Socket(NetlinkSocket&& socket) noexcept : socket_{std::move(socket)} {}
  template <class F>
  [[nodiscard]] Result<void> ask(std::uint8_t command, int ifindex, const MacAddress* mac,
                                 const char* what, F&& on_message);

  NetlinkSocket socket_;
  std::uint16_t family_ = 0;
};

}  // namespace onehop::link
