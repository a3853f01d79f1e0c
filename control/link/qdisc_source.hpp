// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// QdiscSource: the backlog of the egress interface's root qdisc, by RTM_GETQDISC dump. Where that is `noqueue` and the
// device is stacked (macvlan, vlan), the lower device's root qdisc. Frames of an AF_XDP socket go by the root qdisc of the
// socket's own interface; what stands there is others', and what drains there says nothing of us.
//
// A dump and not a single request: a single RTM_GETQDISC needs NLM_F_ECHO and is then multicast to every listener of
// traffic control; a dump costs 5 us and wakes nobody. Called by the control thread.
#pragma once

#include <vector>

#include "control/link/link_info.hpp"
#include "control/link/link_source.hpp"
#include "control/link/qdisc_message.hpp"
#include "engine/base/netlink.hpp"

namespace onehop::link {

class QdiscSource final : public LinkSource {
 public:
  /// open looks at the interface. It succeeds also where there is no queue: poll() then returns nothing.
  /// `has_own_qdisc`: our frames pass that of the interface itself, too (not with AF_XDP).
  /// Syscalls: those of read_link_info and NetlinkSocket::open.
  [[nodiscard]] static Result<QdiscSource> open(int ifindex, bool has_own_qdisc = true);
  [[nodiscard]] std::string_view name() const noexcept override { return "qdisc"; }
  /// poll may wait for rtnl_lock. Syscalls: sendto, recvmsg.
  [[nodiscard]] std::optional<LowerQueue> poll(Instant now) override;
  [[nodiscard]] const std::optional<Error>& error() const noexcept override { return error_; }
  /// root_kind is the kind of the interface's own root qdisc in the last poll; empty where there was none.
  [[nodiscard]] std::string root_kind() const;

 private:
  QdiscSource(NetlinkSocket&& socket, int ifindex, std::vector<LinkInfo>&& links) noexcept
      : socket_{std::move(socket)}, ifindex_{ifindex}, links_{std::move(links)} {}
  NetlinkSocket socket_;
  int ifindex_;
  std::vector<LinkInfo> links_;  // whose root qdisc our frames pass: the interface, then what lies below it
  std::vector<QdiscReading> readings_;
  std::optional<Error> error_;
};

}  // namespace onehop::link
