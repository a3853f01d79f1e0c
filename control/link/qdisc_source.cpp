// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/qdisc_source.hpp"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <algorithm>

#include "engine/base/system/netlink_message.hpp"

namespace onehop::link {

namespace {
constexpr std::uint64_t ethernet_header_bytes = 14;
}  // namespace

Result<QdiscSource> QdiscSource::open(int ifindex, bool has_own_qdisc) {
  ONEHOP_TRY(links, read_stack(ifindex));
  if (!has_own_qdisc) links.erase(links.begin());
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_ROUTE));
  return QdiscSource{std::move(socket), ifindex, std::move(links)};
}

const std::optional<QueueTelemetry>& QdiscSource::queue(Instant now) {
  if (links_.empty() || now == dumped_at_) return queue_;
  dumped_at_ = now;
  queue_.reset();
  dump();
  if (error_) return queue_;
  for (const Interface& link : links_) {
    queue_ = pick_queue(readings_, link.ifindex, now, link.mtu_bytes + ethernet_header_bytes,
                        link.tx_queue_len);
    if (queue_) break;
  }
  return queue_;
}

void QdiscSource::dump() {
  NetlinkRequest<tcmsg> request{RTM_GETQDISC, NLM_F_DUMP, {.tcm_family = AF_UNSPEC}};
  readings_.clear();
  const auto take = [&](const nlmsghdr* message) {
    if (auto qdisc = parse_qdisc(bytes_of(message))) readings_.push_back(*std::move(qdisc));
  };
  error_.reset();
  if (const auto rc = socket_.request(request, take, "read the qdisc backlog"); !rc)
    error_ = rc.error();
}

std::string QdiscSource::root_kind() const {
  const auto root = std::ranges::find_if(readings_, [&](const QdiscReading& qdisc) {
    return qdisc.ifindex == ifindex_ && qdisc.parent == TC_H_ROOT;
  });
  return root == readings_.end() ? std::string{} : root->kind;
}

void QdiscSource::read(Instant now, law::LinkFacts& facts) {
  if (read_at_ && now - *read_at_ < period) return;
  read_at_ = now;
  if (const auto& queue = this->queue(now))
    facts.lower_queue = {{.queue = *queue, .sensor = law::QueueSensor::qdisc}, now, period};
  else
    facts.lower_queue.reset();
}

}  // namespace onehop::link
