// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/rings/socket_facts.hpp"

#include <fcntl.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/xdp_diag.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <system_error>
#include <thread>
#include <utility>

#include "engine/base/display_name.hpp"
#include "engine/base/system/netlink.hpp"
#include "engine/base/system/netlink_message.hpp"
#include "tools/onehop/rings/program.hpp"

namespace onehop::rings {

namespace {

template <class T>
bool get_option(const Fd& socket, int option, T& value) {
  socklen_t length = sizeof value;
  return ::getsockopt(socket.get(), SOL_XDP, option, &value, &length) == 0 &&
         length == sizeof value;
}

void ask_socket(const Fd& socket, SocketFacts& facts) {
  if (xdp_statistics counts{}; get_option(socket, XDP_STATISTICS, counts)) facts.counts = counts;
  if (xdp_options options{}; get_option(socket, XDP_OPTIONS, options))
    facts.is_zero_copy = (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
}

std::string name_of(std::uint32_t ifindex) {
  std::array<char, IF_NAMESIZE> name{};
  return ifindex != 0 && ::if_indextoname(ifindex, name.data()) != nullptr ? name.data() : "";
}

/// dump_diag asks for all AF_XDP sockets of the namespace of the calling thread.
Result<FactsByInode> dump_diag() {
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_SOCK_DIAG));
  const xdp_diag_req wanted{
      .sdiag_family = AF_XDP,
      .sdiag_protocol = 0,
      .pad = 0,
      .xdiag_ino = 0,
      .xdiag_show = XDP_SHOW_INFO | XDP_SHOW_RING_CFG | XDP_SHOW_UMEM | XDP_SHOW_STATS,
      .xdiag_cookie = {}};
  NetlinkRequest<xdp_diag_req> request{SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, wanted};
  FactsByInode found;
  const auto take = [&](const nlmsghdr* message) {
    auto one = parse_diag(bytes_of(message));
    if (!one) return;
    one->facts.interface = display_name(name_of(one->ifindex));
    found[one->inode] = std::move(one->facts);
  };
  ONEHOP_TRYV(socket.request(request, take, "list AF_XDP sockets by sock_diag"));
  return FactsByInode{std::move(found)};
}

/// is_here: `space` is the network namespace that this process is in.
bool is_here(const Fd& space) {
  struct stat there {
  }, here{};
  return ::fstat(space.get(), &there) == 0 && ::stat("/proc/self/ns/net", &here) == 0 &&
         there.st_ino == here.st_ino && there.st_dev == here.st_dev;
}

/// dump_diag_in does so for a namespace, from a thread of its own: a thread that has entered one
/// stays there.
Result<FactsByInode> dump_diag_in(const Fd& space) {
  if (is_here(space)) return dump_diag();
  Result<FactsByInode> result = Error{};
  const auto ask = [&] {
    if (::setns(space.get(), CLONE_NEWNET) == 0)
      result = dump_diag();
    else
      result = errno_error(ExitCode::privilege_missing, "enter its network namespace");
  };
  try {
    std::thread{ask}.join();
  } catch (const std::system_error& refused) {
    return Error{ExitCode::io_unavailable, "start a thread", refused.what(), {}};
  }
  return result;
}

std::string why_missing(const Error& error) {
  if (error.errno_value == ENOENT || error.errno_value == EINVAL)
    return "this kernel has no xdp_diag (CONFIG_XDP_SOCKETS_DIAG)";
  return error.message();
}

}  // namespace

std::optional<DiagSocket> parse_diag(std::span<const std::byte> message) {
  xdp_diag_msg head{};
  const auto body = message_body(message, SOCK_DIAG_BY_FAMILY, head);
  if (!body || head.xdiag_family != AF_XDP) return std::nullopt;
  DiagSocket out{.inode = head.xdiag_ino, .ifindex = 0, .facts = {}};
  const auto take_entries = [&](RingKind kind, std::span<const std::byte> value) {
    if (xdp_diag_ring ring{}; read_value(value, ring))
      out.facts.entries[static_cast<std::size_t>(kind)] = ring.entries;
  };
  const auto take = [&](int type, std::span<const std::byte> value) {
    xdp_diag_info info{};
    xdp_diag_umem umem{};
    xdp_diag_stats stats{};
    switch (type) {
      case XDP_DIAG_INFO:
        if (!read_value(value, info)) return;
        out.ifindex = info.ifindex;
        if (info.ifindex != 0) out.facts.queue = info.queue_id;
        break;
      case XDP_DIAG_UMEM:
        if (!read_value(value, umem)) return;
        out.facts.umem = umem.id;
        out.facts.is_zero_copy = (umem.flags & XDP_DU_F_ZEROCOPY) != 0;
        break;
      case XDP_DIAG_STATS:
        if (!read_value(value, stats)) return;
        out.facts.counts = xdp_statistics{.rx_dropped = stats.n_rx_dropped,
                                          .rx_invalid_descs = stats.n_rx_invalid,
                                          .tx_invalid_descs = stats.n_tx_invalid,
                                          .rx_ring_full = stats.n_rx_full,
                                          .rx_fill_ring_empty_descs = stats.n_fill_ring_empty,
                                          .tx_ring_empty_descs = stats.n_tx_ring_empty};
        break;
      case XDP_DIAG_RX_RING: take_entries(RingKind::rx, value); break;
      case XDP_DIAG_TX_RING: take_entries(RingKind::tx, value); break;
      case XDP_DIAG_UMEM_FILL_RING: take_entries(RingKind::fill, value); break;
      case XDP_DIAG_UMEM_COMPLETION_RING: take_entries(RingKind::completion, value); break;
      default: break;
    }
  };
  if (!each_attribute(*body, take)) return std::nullopt;
  return out;
}

FactsByInode read_facts(pid_t pid, std::span<const std::uint64_t> inodes) {
  FactsByInode out;
  Fd space;
  for (const std::uint64_t inode : inodes) {
    SocketFacts& facts = out[inode];
    const Fd socket = borrow_socket(pid, inode);
    if (!socket.is_open()) continue;
    ask_socket(socket, facts);
    // Where the socket is, which need not be where the process is now.
    if (!space.is_open()) space = Fd{::ioctl(socket.get(), SIOCGSKNS)};
  }
  if (!space.is_open())
    space = Fd{::open(("/proc/" + std::to_string(pid) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC)};
  auto dumped = space.is_open()
                    ? dump_diag_in(space)
                    : errno_error(ExitCode::privilege_missing, "open its network namespace");
  for (auto& [inode, facts] : out) {
    if (dumped.has_error()) {
      facts.missing = why_missing(dumped.error());
      continue;
    }
    const auto found = dumped.value().find(inode);
    if (found == dumped.value().end()) {
      facts.missing = "the socket is in another network namespace than its program";
      continue;
    }
    const SocketFacts asked = std::exchange(facts, found->second);
    if (asked.counts) facts.counts = asked.counts;
    if (asked.is_zero_copy) facts.is_zero_copy = asked.is_zero_copy;
  }
  return out;
}

Result<xdp_mmap_offsets> read_layout(pid_t pid, std::span<const RingMapping> rings) {
  xdp_mmap_offsets layout{};
  const Fd own{::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)};
  const int refused = errno;
  if (own.is_open() && get_option(own, XDP_MMAP_OFFSETS, layout)) return layout;
  for (const RingMapping& ring : rings) {
    const Fd socket = borrow_socket(pid, ring.inode);
    if (socket.is_open() && get_option(socket, XDP_MMAP_OFFSETS, layout)) return layout;
  }
  return errno_error(ExitCode::privilege_missing, "ask where the indices of AF_XDP rings are",
                     "Run it as root (sudo): it takes CAP_NET_RAW, or CAP_SYS_PTRACE", refused);
}

}  // namespace onehop::rings
