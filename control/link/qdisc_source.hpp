// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// QdiscSource: the backlog of the egress interface's root qdisc, by RTM_GETQDISC dump. If that is
// `noqueue` and the device is stacked (macvlan, vlan), the lower device's root qdisc. Frames of an
// AF_XDP socket bypass the root qdisc of the socket's own interface; its backlog and drain are
// those of others, and say nothing of us.
//
//   RTM_GETQDISC ─▶ QdiscSource ─┬─▶ lower_queue
//                                └─▶ WiredSource ─▶ exact_queue, with the bytes in the NIC's ring
//
// A dump and not a single request: a single RTM_GETQDISC needs NLM_F_ECHO and is then multicast to
// every listener of traffic control; a dump costs 5 us and wakes no other process. Control thread
// only: a dump can wait for rtnl_lock for milliseconds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/link/fact_source.hpp"
#include "control/link/qdisc_message.hpp"
#include "engine/base/system/interface.hpp"

namespace onehop::link {

class QdiscSource final : public FactSource {
 public:
  /// Derived: d_1, the law's own latency. Low: a dump may wait for rtnl_lock, and buys nothing.
  /// High: the queue has turned over before a reading counts as old.
  static constexpr Nanos period = 4ms;

  /// open looks at the interface. It succeeds also where there is no queue: queue() then returns
  /// nothing. `has_own_qdisc`: our frames pass that of the interface itself, too (not with AF_XDP).
  /// Syscalls: those of read_interface and NetlinkSocket::open.
  [[nodiscard]] static Result<QdiscSource> open(int ifindex, bool has_own_qdisc = true);
  [[nodiscard]] std::string_view name() const noexcept override { return "qdisc"; }
  void read(Instant now, law::LinkFacts& facts) override;
  void read_backlog(Instant now, law::LinkFacts& facts) override { read(now, facts); }
  /// queue returns nothing if there is no queue to read or the reading failed; never a zero that
  /// was not read. Another source that shares this one calls it, too: a second call with the same
  /// `now` returns the first one's reading. Syscalls: sendto, recvmsg; none if our frames pass no
  /// qdisc.
  [[nodiscard]] const std::optional<QueueTelemetry>& queue(Instant now);
  /// root_kind is the kind of the interface's own root qdisc in the last reading; empty where there
  /// was none.
  [[nodiscard]] std::string root_kind() const;

 private:
  QdiscSource(NetlinkSocket&& socket, int ifindex, std::vector<Interface>&& links) noexcept
      : socket_{std::move(socket)}, ifindex_{ifindex}, links_{std::move(links)} {}
  void dump();

  NetlinkSocket socket_;
  int ifindex_;
  std::vector<Interface> links_;  // whose root qdisc our frames pass, from the top
  std::vector<QdiscReading> readings_;
  std::optional<QueueTelemetry> queue_;
  std::optional<Instant> read_at_;
  std::optional<Instant> dumped_at_;
};

}  // namespace onehop::link
