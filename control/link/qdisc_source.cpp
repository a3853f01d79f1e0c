// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/qdisc_source.hpp"

#include <libmnl/libmnl.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>

namespace onehop::link {

namespace {
constexpr std::size_t stack_depth_max = 8;
constexpr std::uint64_t ethernet_header_bytes = 14;
}  // namespace

Result<QdiscSource> QdiscSource::open(int ifindex, bool has_own_qdisc) {
  std::vector<LinkInfo> links;
  for (int next = ifindex; next != 0 && links.size() < stack_depth_max;) {
    ONEHOP_TRY(info, read_link_info(next));
    next = info.lower_ifindex;
    links.push_back(std::move(info));
  }
  if (!has_own_qdisc) links.erase(links.begin());
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_ROUTE));
  return QdiscSource{std::move(socket), ifindex, std::move(links)};
}

std::optional<LowerQueue> QdiscSource::poll(Instant now) {
  alignas(NLMSG_ALIGNTO) std::array<char, 128> buffer{};
  nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
  request->nlmsg_type = RTM_GETQDISC;
  request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  auto* family = static_cast<tcmsg*>(mnl_nlmsg_put_extra_header(request, sizeof(tcmsg)));
  family->tcm_family = AF_UNSPEC;
  readings_.clear();
  const Result<void> rc = socket_.request(request, [&](const nlmsghdr* message) {
    if (auto qdisc = parse_qdisc({reinterpret_cast<const std::byte*>(message), message->nlmsg_len}))
      readings_.push_back(*std::move(qdisc));
  });
  error_.reset();
  if (!rc) {
    error_ = rc.error();
    error_->attempt = "read the qdisc backlog";
    return std::nullopt;
  }
  for (const LinkInfo& link : links_) {
    const auto queue = pick_queue(readings_, link.ifindex, now, link.mtu_bytes + ethernet_header_bytes, link.tx_queue_len);
    if (queue) return queue;
  }
  return std::nullopt;
}

std::string QdiscSource::root_kind() const {
  const auto root = std::ranges::find_if(readings_, [&](const QdiscReading& qdisc) {
    return qdisc.ifindex == ifindex_ && qdisc.parent == TC_H_ROOT;
  });
  return root == readings_.end() ? std::string{} : root->kind;
}

}  // namespace onehop::link
