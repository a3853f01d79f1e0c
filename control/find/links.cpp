// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Options as in ip(7), ipv6(7), socket(7).
#include "control/find/links.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace onehop::find {

namespace {

constexpr const char* attempt = "look for receivers on a link";

Endpoint group_on(const Link& link, bool is_v6, std::uint16_t port) {
  Endpoint group{*IpAddress::parse(is_v6 ? group_v6 : group_v4), port};
  if (is_v6) group.address.scope_id = link.ifindex;
  return group;
}

template <class Value>
bool set(int fd, int level, int name, const Value& value) {
  return ::setsockopt(fd, level, name, &value, sizeof value) == 0;
}

Result<Fd> open_udp(bool is_v6) {
  Fd fd{::socket(is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const int on = 1;
  const bool is_set = fd.is_open() && (is_v6 ? set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, on) &&
                                                   set(fd.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, on)
                                             : set(fd.get(), IPPROTO_IP, IP_PKTINFO, on));
  if (!is_set) return errno_error(ExitCode::io_unavailable, attempt);
  return fd;
}

Result<void> bind_to(int fd, const Endpoint& local) {
  const SocketAddress at = local.to_sockaddr();
  if (::bind(fd, at.get(), at.size_bytes) == 0) return success();
  return errno_error(ExitCode::io_unavailable, attempt,
                     "Another program may hold UDP " + local.text() + ": see `ss -ulnp`");
}

/// Info is in_pktinfo or in6_pktinfo.
template <class Info>
void put_info(msghdr& message, std::span<std::byte> room, int level, int type, const Info& info) {
  message.msg_control = room.data();
  message.msg_controllen = CMSG_SPACE(sizeof info);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  *header = {.cmsg_len = CMSG_LEN(sizeof info), .cmsg_level = level, .cmsg_type = type};
  std::memcpy(CMSG_DATA(header), &info, sizeof info);
}

unsigned ifindex_of(msghdr& message) {
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(at), sizeof info);
      return static_cast<unsigned>(info.ipi_ifindex);
    }
    if (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(at), sizeof info);
      return info.ipi6_ifindex;
    }
  }
  return 0;
}

}  // namespace

bool Link::is_near(const IpAddress& address) const {
  if (address.is_link_local()) return address.scope_id == ifindex;
  return std::ranges::any_of(subnets, [&](const Subnet& subnet) {
    if (subnet.address.is_v6 != address.is_v6) return false;
    for (std::size_t i = 0; i < address.size_bytes(); ++i)
      if (((subnet.address.bytes[i] ^ address.bytes[i]) & subnet.mask.bytes[i]) != std::byte{0})
        return false;
    return true;
  });
}

bool Link::has_address(const IpAddress& address) const {
  return std::ranges::count(subnets, address, &Subnet::address) > 0;
}

bool Link::has_family(bool is_v6) const {
  // What is sent to a group of the link comes from a link-local address.
  return std::ranges::any_of(subnets, [&](const Subnet& subnet) {
    return subnet.address.is_v6 == is_v6 && (!is_v6 || subnet.address.is_link_local());
  });
}

std::vector<Link> list_links(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner{list, &::freeifaddrs};
  std::vector<Link> links;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    constexpr unsigned needed = IFF_UP | IFF_MULTICAST;
    constexpr unsigned unfit = IFF_LOOPBACK | IFF_POINTOPOINT | IFF_NOARP;
    // An IPv4 address may have a label in the place of its interface's name: "eth0:1".
    const std::string name{at->ifa_name, std::strcspn(at->ifa_name, ":")};
    const bool is_wanted = interface.empty() || interface == name;
    if (!is_wanted || (at->ifa_flags & (needed | unfit)) != needed) continue;
    auto link = std::ranges::find(links, name, &Link::name);
    if (link == links.end()) {
      const std::string wireless = "/sys/class/net/" + name + "/phy80211";
      links.push_back(
          {.ifindex = ::if_nametoindex(name.c_str()),
           .name = name,
           .medium = ::access(wireless.c_str(), F_OK) == 0 ? Medium::wifi : Medium::cable,
           .has_carrier = (at->ifa_flags & IFF_RUNNING) != 0});
      link = std::prev(links.end());
    }
    if (at->ifa_addr == nullptr || at->ifa_netmask == nullptr) continue;
    const socklen_t length =
        at->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    const auto address = Endpoint::from_sockaddr(at->ifa_addr, length);
    const auto mask = Endpoint::from_sockaddr(at->ifa_netmask, length);
    if (address && mask) link->subnets.push_back({address->address, mask->address});
  }
  return links;
}

Result<Fd> open_group_socket(const Link& link, bool is_v6) {
  ONEHOP_TRY(fd, open_udp(is_v6));
  const int on = 1;
  bool is_set = set(fd.get(), SOL_SOCKET, SO_REUSEADDR, on) &&
                ::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, link.name.c_str(),
                             static_cast<socklen_t>(link.name.size())) == 0;
  const Endpoint group = group_on(link, is_v6, group_port);
  if (is_set) {
    ONEHOP_TRYV(bind_to(fd.get(), group));
  }
  // All nodes are in the group of IPv6.
  if (!is_v6) {
    ip_mreqn membership{};
    std::memcpy(&membership.imr_multiaddr, group.address.bytes.data(), sizeof(in_addr));
    membership.imr_ifindex = static_cast<int>(link.ifindex);
    is_set = is_set && set(fd.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, membership);
  }
  if (is_set) return std::move(fd);
  return errno_error(ExitCode::io_unavailable, attempt);
}

Result<Fd> open_asking_socket(bool is_v6) {
  ONEHOP_TRY(fd, open_udp(is_v6));
  ONEHOP_TRYV(bind_to(fd.get(), {{.is_v6 = is_v6}, 0}));
  return std::move(fd);
}

bool send_to_group(int fd, const Link& link, bool is_v6, std::uint16_t port,
                   std::span<const std::byte> datagram, Reach reach) {
  const int hops = reach == Reach::self ? 0 : 1;
  ip_mreqn over{};
  over.imr_ifindex = static_cast<int>(link.ifindex);
  const bool is_set = is_v6 ? set(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, hops)
                            : set(fd, IPPROTO_IP, IP_MULTICAST_TTL, hops) &&
                                  set(fd, IPPROTO_IP, IP_MULTICAST_IF, over);
  const SocketAddress to = group_on(link, is_v6, port).to_sockaddr();
  return is_set &&
         ::sendto(fd, datagram.data(), datagram.size(), MSG_NOSIGNAL, to.get(), to.size_bytes) >= 0;
}

void send_answer(int fd, const Endpoint& to, const std::optional<IpAddress>& source,
                 std::span<const std::byte> datagram) {
  SocketAddress address = to.to_sockaddr();
  iovec piece{.iov_base = const_cast<std::byte*>(datagram.data()), .iov_len = datagram.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(in6_pktinfo))> room{};
  msghdr message{};
  message.msg_name = &address.storage;
  message.msg_namelen = address.size_bytes;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (source && source->is_v6) {
    in6_pktinfo info{};
    std::memcpy(&info.ipi6_addr, source->bytes.data(), sizeof info.ipi6_addr);
    put_info(message, room, IPPROTO_IPV6, IPV6_PKTINFO, info);
  } else if (source) {
    in_pktinfo info{};
    std::memcpy(&info.ipi_spec_dst, source->bytes.data(), sizeof info.ipi_spec_dst);
    put_info(message, room, IPPROTO_IP, IP_PKTINFO, info);
  }
  (void)::sendmsg(fd, &message, MSG_NOSIGNAL);  // one that is lost is asked for again
}

std::optional<Datagram> receive_datagram(int fd, std::span<std::byte> into) {
  sockaddr_storage from{};
  iovec piece{.iov_base = into.data(), .iov_len = into.size()};
  alignas(cmsghdr) std::array<std::byte, 128> room{};
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  const ssize_t size = ::recvmsg(fd, &message, 0);
  if (size < 0) return std::nullopt;
  const auto sender =
      Endpoint::from_sockaddr(reinterpret_cast<const sockaddr*>(&from), message.msg_namelen);
  return Datagram{.bytes = into.first(static_cast<std::size_t>(size)),
                  .from = sender.value_or(Endpoint{}),
                  .ifindex = ifindex_of(message)};
}

}  // namespace onehop::find
