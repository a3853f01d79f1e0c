// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/port/local_address.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>

#include "control/link/nl80211_socket.hpp"

namespace onehop::transfer {

namespace {

constexpr const char* placeholder = "%IF";  // of the interface that only the other machine knows

/// The order in which addresses are offered: who types one prefers the short one. In a group of
/// Wi-Fi Direct onehop's own members have no other address than the link-local one, and plain
/// stations may have IPv4 alone.
int rank_of(const LocalAddress& local) {
  if (!local.address.is_v6) return 0;
  if (!local.address.is_link_local()) return 1;
  return local.is_p2p ? 0 : 2;
}

/// Where the kernel has no Wi-Fi there is no group, and none of a group has no link-local address.
void mark_groups(std::vector<LocalAddress>& found) {
  if (std::ranges::none_of(found, &IpAddress::is_link_local, &LocalAddress::address)) return;
  auto wifi = link::Nl80211Socket::open();
  if (!wifi) return;
  for (LocalAddress& local : found) {
    if (!local.address.is_link_local()) continue;
    const auto interface = wifi.value().interface(static_cast<int>(local.address.scope_id));
    local.is_p2p = interface.has_value() && interface.value().is_p2p;
  }
}

}  // namespace

std::vector<LocalAddress> local_addresses() {
  std::vector<LocalAddress> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 ||
        (entry->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    const socklen_t length =
        entry->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (const auto endpoint = onehop::Endpoint::from_sockaddr(entry->ifa_addr, length))
      found.push_back({entry->ifa_name, endpoint->address});
  }
  ::freeifaddrs(list);
  mark_groups(found);
  return found;
}

std::string with_scope(const std::string& text, const std::string& interface,
                       const std::vector<LocalAddress>& all) {
  const bool has_brackets = text.starts_with('[');
  const std::size_t begin = has_brackets ? 1 : 0,
                    end = std::min(has_brackets ? text.find(']') : text.size(), text.size());
  if (has_brackets && end == text.size()) return text;
  const std::string host = text.substr(begin, end - begin);
  const std::size_t percent = std::min(host.find('%'), host.size());
  const auto address = IpAddress::parse(host.substr(0, percent));
  const bool is_open = percent == host.size() || (host.substr(percent) == placeholder &&
                                                  ::if_nametoindex(placeholder + 1) == 0);
  if (!address || !address->is_v6 || !address->is_link_local() || !is_open) return text;
  std::set<std::string> names;
  for (const LocalAddress& local : all)
    if (local.address.is_v6 && local.address.is_link_local()) names.insert(local.interface);
  if (!interface.empty()) names = {interface};
  if (names.size() != 1) return text;
  return text.substr(0, begin) + host.substr(0, percent) + "%" + *names.begin() + text.substr(end);
}

bool listens_on_all(const Endpoint& listen) {
  const auto address = IpAddress::parse(listen.host);
  return listen.host.empty() || (address && address->is_any());
}

std::vector<LocalAddress> reachable(const std::vector<LocalAddress>& all, const Endpoint& listen,
                                    const std::string& interface) {
  const auto named = IpAddress::parse(listen.host);
  if (!listens_on_all(listen))
    return named ? std::vector{LocalAddress{interface, *named}} : std::vector<LocalAddress>{};
  std::vector<LocalAddress> found;
  for (const LocalAddress& local : all) {
    if (!interface.empty() && local.interface != interface) continue;
    if (named && !named->is_v6 && local.address.is_v6) continue;  // 0.0.0.0; :: takes IPv4 as well
    found.push_back(local);
  }
  if (found.empty()) return found;
  const int best = rank_of(std::ranges::min(found, {}, rank_of));
  std::erase_if(found, [best](const LocalAddress& local) { return rank_of(local) != best; });
  return found;
}

std::string to_text(const IpAddress& address, std::uint16_t port) {
  std::string text = address.text();
  if (address.is_v6) {
    if (address.is_link_local()) text = text.substr(0, text.find('%')) + placeholder;
    text = "[" + text + "]";
  }
  return port == default_port ? text : text + ":" + std::to_string(port);
}

}  // namespace onehop::transfer
