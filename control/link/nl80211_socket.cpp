// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/nl80211_socket.hpp"

#include <linux/genetlink.h>
#include <linux/nl80211.h>

#include <cerrno>

#include "engine/base/system/netlink_message.hpp"

namespace onehop::link {

Result<Nl80211Socket> Nl80211Socket::open() {
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_GENERIC));
  Nl80211Socket self{std::move(socket)};
  NetlinkRequest<genlmsghdr> request{GENL_ID_CTRL, 0, {.cmd = CTRL_CMD_GETFAMILY, .version = 1}};
  mnl_attr_put_strz(request, CTRL_ATTR_FAMILY_NAME, NL80211_GENL_NAME);
  const auto take = [&](const nlmsghdr* message) {
    const auto family = parse_family(bytes_of(message));
    if (family && family->name == NL80211_GENL_NAME) self.family_ = family->id;
  };
  const Result<void> rc = self.socket_.request(request, take, "find nl80211");
  if (self.family_ != 0) return self;
  if (rc || rc.error().errno_value == ENOENT)
    return Error{ExitCode::io_unavailable, "find nl80211",
                 "this kernel has no Wi-Fi (cfg80211 is not loaded)", "", ENOENT};
  return rc.error();
}

template <class F>
Result<void> Nl80211Socket::ask(std::uint8_t command, int ifindex, const MacAddress* mac,
                                const char* what, F&& on_message) {
  const bool is_dump = mac == nullptr && command != NL80211_CMD_GET_INTERFACE;
  const unsigned flags = is_dump ? NLM_F_DUMP : 0;
  NetlinkRequest<genlmsghdr> request{family_, flags, {.cmd = command, .version = 1}};
  mnl_attr_put_u32(request, NL80211_ATTR_IFINDEX, static_cast<std::uint32_t>(ifindex));
  if (mac != nullptr) mnl_attr_put(request, NL80211_ATTR_MAC, mac->size(), mac->data());
  // Without this the kernel leaves out of a radio what does not fit one message.
  if (command == NL80211_CMD_GET_WIPHY)
    mnl_attr_put(request, NL80211_ATTR_SPLIT_WIPHY_DUMP, 0, nullptr);
  return socket_.request(
      request, [&](const nlmsghdr* message) { on_message(bytes_of(message)); }, what);
}

Result<WifiInterfaceMessage> Nl80211Socket::interface(int ifindex) {
  std::optional<WifiInterfaceMessage> found;
  ONEHOP_TRYV(ask(
      NL80211_CMD_GET_INTERFACE, ifindex, nullptr, "read the Wi-Fi interface",
      [&](std::span<const std::byte> message) { found = parse_wifi_interface(message, family_); }));
  if (!found || found->ifindex != ifindex)
    return Error{ExitCode::io_unavailable, "read the Wi-Fi interface",
                 "the kernel's answer is not about it", "", EPROTO};
  return *std::move(found);
}

Result<void> Nl80211Socket::wiphy(
    int ifindex,
    const std::function<void(std::span<const std::byte>, std::uint16_t family)>& on_message) {
  return ask(NL80211_CMD_GET_WIPHY, ifindex, nullptr, "read what the radio can do",
             [&](std::span<const std::byte> message) { on_message(message, family_); });
}

Result<StationMessage> Nl80211Socket::station(int ifindex, const MacAddress& mac) {
  std::optional<StationMessage> found;
  ONEHOP_TRYV(
      ask(NL80211_CMD_GET_STATION, ifindex, &mac, "read the peer's station entry",
          [&](std::span<const std::byte> message) { found = parse_station(message, family_); }));
  if (!found || found->mac != mac)
    return Error{ExitCode::io_unavailable, "read the peer's station entry",
                 "the kernel's answer is not about it", "", EPROTO};
  return *std::move(found);
}

Result<void> Nl80211Socket::stations(int ifindex, std::vector<StationMessage>& out) {
  out.clear();
  return ask(NL80211_CMD_GET_STATION, ifindex, nullptr, "list the Wi-Fi stations",
             [&](std::span<const std::byte> message) {
               auto station = parse_station(message, family_);
               if (station && station->ifindex == ifindex && out.size() < stations_max)
                 out.push_back(*std::move(station));
             });
}

Result<void> Nl80211Socket::surveys(int ifindex, std::vector<SurveyMessage>& out) {
  out.clear();
  return ask(NL80211_CMD_GET_SURVEY, ifindex, nullptr, "read the channel survey",
             [&](std::span<const std::byte> message) {
               const auto survey = parse_survey(message, family_);
               if (survey && survey->ifindex == ifindex && out.size() < surveys_max)
                 out.push_back(*survey);
             });
}

Result<void> Nl80211Socket::set_noack_map(int ifindex, std::uint16_t map) {
  NetlinkRequest<genlmsghdr> request{
      family_, NLM_F_ACK, {.cmd = NL80211_CMD_SET_NOACK_MAP, .version = 1}};
  mnl_attr_put_u32(request, NL80211_ATTR_IFINDEX, static_cast<std::uint32_t>(ifindex));
  mnl_attr_put_u16(request, NL80211_ATTR_NOACK_MAP, map);
  const Result<void> rc = socket_.request(
      request, [](const nlmsghdr*) {}, "set the no-ack map");
  if (rc) return success();
  Error error = rc.error();
  error.code = ExitCode::io_unavailable;
  if (error.errno_value == EPERM || error.errno_value == EACCES) {
    error.code = ExitCode::privilege_missing;
    error.cause = "CAP_NET_ADMIN is missing";
    error.hint = "Run it with sudo";
  } else if (error.errno_value == EOPNOTSUPP) {
    error.cause = "the driver has no such map";
    error.hint = "Leave --mac-noack out, or use another Wi-Fi adapter";
  }
  return error;
}

}  // namespace onehop::link
