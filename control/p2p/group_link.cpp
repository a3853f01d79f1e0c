// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/group_link.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "control/p2p/stop_fd.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/system/text_file.hpp"
#include "engine/base/time.hpp"

namespace onehop::p2p {

namespace {

/// Between two looks at the kernel's table, or for answers. There is no need to hurry: duplicate
/// address detection takes a second.
constexpr Nanos poll_interval = 50ms;
/// Between two echo requests. An owner sends multicast unacknowledged, so some are lost.
constexpr Nanos ask_interval = 300ms;
/// From the first answer to the end, so that others are heard, too.
constexpr Nanos settle = 300ms;

constexpr unsigned tentative_flag = 0x40, duplicate_flag = 0x08;  // linux/if_addr.h
constexpr unsigned link_scope = 0x20;

std::string read_file(const std::string& path) { return TextFile{path}.str(); }

std::string text_of(const in6_addr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(AF_INET6, &address, text.data(), text.size()) == nullptr ? "" : text.data();
}

Error interrupted(const std::string& attempt) {
  return {ExitCode::interrupted, attempt, "interrupted"};
}

/// ended: a group's interface goes with it.
Error ended(const std::string& attempt) {
  return {ExitCode::timed_out, attempt, "the group has ended", "Try again"};
}

bool is_gone(const std::string& interface) { return ::if_nametoindex(interface.c_str()) == 0; }

/// allow_ipv6 switches it on where a setting of the machine has it off for new interfaces, and has
/// the kernel make the address where NetworkManager would: it does not take that setting back.
Result<void> allow_ipv6(const std::string& interface, const std::string& attempt) {
  for (const std::string setting : {"disable_ipv6", "addr_gen_mode"}) {
    const std::string path = "/proc/sys/net/ipv6/conf/" + interface + "/" + setting;
    const std::string now = read_file(path);
    if (now.starts_with("0")) continue;
    if (now.empty() && is_gone(interface)) return ended(attempt);
    if (now.empty())
      return Error{ExitCode::io_unavailable, attempt, "this kernel has IPv6 switched off",
                   "Remove ipv6.disable=1 from the kernel's command line"};
    const Fd file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    if (!file.is_open() || ::write(file.get(), "0\n", 2) != 2)
      return Error{
          ExitCode::privilege_missing, attempt, "the kernel makes no IPv6 address there",
          "sysctl -w net.ipv6.conf." + interface + "." + setting + "=0, or run onehop as root"};
  }
  return success();
}

/// EchoSocket: an ICMPv6 socket bound to one interface.
class EchoSocket {
 public:
  static Result<EchoSocket> open(unsigned ifindex, const std::string& attempt) {
    EchoSocket made;
    made.fd_ = Fd{::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMPV6)};
    // net.ipv4.ping_group_range may leave our groups out; root has the raw kind.
    if (!made.fd_.is_open()) {
      made.is_raw_ = true;
      made.fd_ = Fd{::socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6)};
    }
    if (!made.fd_.is_open())
      return errno_error(ExitCode::privilege_missing, attempt,
                         "Allow your group to ping: sysctl -w net.ipv4.ping_group_range='0 "
                         "2147483647'; or name the address with --to");
    if (made.is_raw_) {
      icmp6_filter filter;
      ICMP6_FILTER_SETBLOCKALL(&filter);
      ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter);
      (void)::setsockopt(made.fd_.get(), IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter);
    }
    const int index = static_cast<int>(ifindex);
    const int hops = 1, is_looped = 0;
    const int fd = made.fd_.get();
    if (::setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index) != 0 ||
        ::setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof hops) != 0 ||
        ::setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &is_looped, sizeof is_looped) != 0)
      return errno_error(ExitCode::io_unavailable, attempt);
    made.all_nodes_.sin6_family = AF_INET6;
    made.all_nodes_.sin6_scope_id = ifindex;
    (void)::inet_pton(AF_INET6, "ff02::1", &made.all_nodes_.sin6_addr);
    return made;
  }

  void ask() {
    icmp6_hdr request{};
    request.icmp6_type = ICMP6_ECHO_REQUEST;
    request.icmp6_id = htons(static_cast<std::uint16_t>(::getpid()));
    request.icmp6_seq = htons(++sequence_);
    // Lost, or the link is not quite up: the next one follows.
    (void)!::sendto(fd_.get(), &request, sizeof request, 0,
                    reinterpret_cast<const sockaddr*>(&all_nodes_), sizeof all_nodes_);
  }

  /// take_answers adds who has answered, ourselves left out.
  void take_answers(std::vector<std::string>& members, const std::string& own) {
    std::array<char, 256> bytes;
    sockaddr_in6 from{};
    socklen_t length = sizeof from;
    while (::recvfrom(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT,
                      reinterpret_cast<sockaddr*>(&from), &length) > 0) {
      const std::string text = text_of(from.sin6_addr);
      const bool is_ours = from.sin6_scope_id == all_nodes_.sin6_scope_id;
      if (is_ours && IN6_IS_ADDR_LINKLOCAL(&from.sin6_addr) && text != own &&
          std::ranges::find(members, text) == members.end())
        members.push_back(text);
      length = sizeof from;
    }
  }

 private:
  Fd fd_;
  bool is_raw_ = false;
  sockaddr_in6 all_nodes_{};
  std::uint16_t sequence_ = 0;
};

}  // namespace

std::string link_local_of(std::span<const std::uint8_t> mac) {
  if (mac.size() != 6) return {};
  in6_addr address{};
  address.s6_addr[0] = 0xfe;
  address.s6_addr[1] = 0x80;
  std::ranges::copy(mac.first(3), &address.s6_addr[8]);
  std::ranges::copy(mac.last(3), &address.s6_addr[13]);
  address.s6_addr[8] ^= 0x02;  // universal becomes local, and the other way round
  address.s6_addr[11] = 0xff;
  address.s6_addr[12] = 0xfe;
  return text_of(address);
}

std::string find_link_local(const std::string& table, const std::string& interface) {
  std::istringstream lines{table};
  std::string digits, name;
  unsigned ifindex = 0, prefix = 0, scope = 0, flags = 0;
  while (lines >> digits >> std::hex >> ifindex >> prefix >> scope >> flags >> name) {
    if (name != interface || scope != link_scope || digits.size() != 32) continue;
    if ((flags & (tentative_flag | duplicate_flag)) != 0) continue;
    in6_addr address{};
    for (std::size_t i = 0; i < 16; ++i)
      address.s6_addr[i] =
          static_cast<std::uint8_t>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
    return text_of(address);
  }
  return {};
}

Result<std::string> wait_for_link_local(const std::string& interface, Nanos limit, int stop_fd) {
  const std::string attempt = "wait for the link-local address of " + interface;
  ONEHOP_TRYV(allow_ipv6(interface, attempt));
  const Instant give_up_at = monotonic_now() + limit;
  for (;;) {
    std::string found = find_link_local(read_file("/proc/net/if_inet6"), interface);
    if (!found.empty()) return found;
    if (is_gone(interface)) return ended(attempt);
    if (monotonic_now() >= give_up_at)
      return Error{ExitCode::timed_out, attempt, "the kernel has made none",
                   "Look at 'ip addr show dev " + interface +
                       "': does another program take its addresses away?",
                   0};
    if (is_stopped(stop_fd, poll_interval)) return interrupted(attempt);
  }
}

Result<std::vector<std::string>> wait_for_members(const std::string& interface, Nanos limit,
                                                  int stop_fd) {
  const std::string attempt = "find the other end on " + interface;
  const unsigned ifindex = ::if_nametoindex(interface.c_str());
  if (ifindex == 0) return ended(attempt);
  ONEHOP_TRY(socket, EchoSocket::open(ifindex, attempt));
  const std::string own = find_link_local(read_file("/proc/net/if_inet6"), interface);
  std::vector<std::string> members;
  Instant end_at = monotonic_now() + limit, ask_at{};
  while (monotonic_now() < end_at) {
    if (monotonic_now() >= ask_at) {
      socket.ask();
      ask_at = monotonic_now() + ask_interval;
    }
    if (is_stopped(stop_fd, poll_interval)) return interrupted(attempt);
    if (is_gone(interface)) return ended(attempt);
    const bool had_none = members.empty();
    socket.take_answers(members, own);
    if (had_none && !members.empty()) end_at = std::min(end_at, monotonic_now() + settle);
  }
  if (!members.empty()) return members;
  return Error{ExitCode::timed_out, attempt, "nobody answers an ICMPv6 echo request to all nodes",
               "Does a firewall there drop it? Name its address with --to", 0};
}

}  // namespace onehop::p2p
