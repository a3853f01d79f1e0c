// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/qdisc_message.hpp"

#include <libmnl/libmnl.h>
#include <linux/gen_stats.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace onehop::link {

namespace {

constexpr std::uint64_t value_max = std::uint64_t{1} << 62;  // fits Bytes; no counter reaches it

// Attributes are walked here and not by libmnl's callbacks, so that each length is checked against the bytes given.
template <class F>
bool each_attribute(std::span<const std::byte> bytes, F&& on_attribute) {
  while (bytes.size() >= sizeof(nlattr)) {
    nlattr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nla_len < sizeof header || header.nla_len > bytes.size()) return false;
    on_attribute(header.nla_type & NLA_TYPE_MASK, bytes.subspan(sizeof header, header.nla_len - sizeof header));
    bytes = bytes.subspan(std::min<std::size_t>(NLA_ALIGN(header.nla_len), bytes.size()));
  }
  return true;
}

template <class T>
bool read(std::span<const std::byte> bytes, T& out) {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(&out, bytes.data(), sizeof(T));
  return true;
}

std::string read_text(std::span<const std::byte> bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  return {text, strnlen(text, bytes.size())};
}

// body checks type and length and returns what follows the family header T.
template <class T>
std::optional<std::span<const std::byte>> body(std::span<const std::byte> message, int type, T& family) {
  nlmsghdr header;
  if (!read(message, header) || header.nlmsg_type != type) return std::nullopt;
  if (header.nlmsg_len > message.size() || header.nlmsg_len < NLMSG_LENGTH(sizeof(T))) return std::nullopt;
  if (!read(message.subspan(NLMSG_HDRLEN), family)) return std::nullopt;
  const std::size_t offset = std::min<std::size_t>(NLMSG_SPACE(sizeof(T)), header.nlmsg_len);
  return message.subspan(offset, header.nlmsg_len - offset);
}

bool read_stats(std::span<const std::byte> nested, QdiscReading& out) {
  bool has_basic = false, has_queue = false;
  const bool is_whole = each_attribute(nested, [&](int type, std::span<const std::byte> value) {
    if (type == TCA_STATS_BASIC) {
      std::uint64_t sent_bytes = 0;  // gnet_stats_basic has tail padding that the kernel does not always send
      if (read(value, sent_bytes)) {
        out.sent_bytes_total = std::min(sent_bytes, value_max);
        has_basic = true;
      }
    } else if (type == TCA_STATS_QUEUE) {
      gnet_stats_queue queue;
      if (read(value, queue)) {
        out.backlog_bytes = queue.backlog;
        out.qlen_packets = queue.qlen;
        out.drops_total = queue.drops;
        has_queue = true;
      }
    }
  });
  out.has_stats = has_basic && has_queue;
  return is_whole;
}

bool read_limit(std::span<const std::byte> options, QdiscReading& out) {
  if (out.kind == "tbf") {
    return each_attribute(options, [&](int type, std::span<const std::byte> value) {
      tc_tbf_qopt parms;
      if (type == TCA_TBF_PARMS && read(value, parms)) out.limit_bytes = parms.limit;
    });
  }
  if (out.kind == "fq_codel") {
    return each_attribute(options, [&](int type, std::span<const std::byte> value) {
      std::uint32_t limit = 0;
      if (type == TCA_FQ_CODEL_LIMIT && read(value, limit)) out.limit_packets = limit;
    });
  }
  tc_fifo_qopt fifo;
  if (out.kind == "bfifo" && read(options, fifo)) out.limit_bytes = fifo.limit;
  if (out.kind == "pfifo" && read(options, fifo)) out.limit_packets = fifo.limit;
  return true;
}

Bytes capacity_of(const QdiscReading& qdisc, std::uint64_t packet_bytes, std::uint64_t tx_queue_len) {
  std::uint64_t packets = qdisc.limit_packets;
  if (qdisc.kind == "pfifo_fast") packets = tx_queue_len;
  const std::uint64_t bytes = qdisc.limit_bytes > 0 ? qdisc.limit_bytes : packets * std::min<std::uint64_t>(packet_bytes, 1 << 20);
  return {static_cast<std::int64_t>(std::min(bytes, value_max))};
}

}  // namespace

std::optional<QdiscReading> parse_qdisc(std::span<const std::byte> message) {
  tcmsg family;
  const auto attributes = body(message, RTM_NEWQDISC, family);
  if (!attributes) return std::nullopt;
  QdiscReading out{.ifindex = family.tcm_ifindex, .handle = family.tcm_handle, .parent = family.tcm_parent};
  std::span<const std::byte> options;
  bool is_whole = true;
  is_whole &= each_attribute(*attributes, [&](int type, std::span<const std::byte> value) {
    if (type == TCA_KIND) out.kind = read_text(value);
    if (type == TCA_OPTIONS) options = value;
    if (type == TCA_STATS2) is_whole &= read_stats(value, out);
  });
  if (!is_whole || out.kind.empty()) return std::nullopt;
  if (!read_limit(options, out)) return std::nullopt;
  return out;
}

std::optional<LinkMessage> parse_link(std::span<const std::byte> message) {
  ifinfomsg family;
  const auto attributes = body(message, RTM_NEWLINK, family);
  if (!attributes) return std::nullopt;
  LinkMessage out{.ifindex = family.ifi_index, .is_loopback = family.ifi_type == ARPHRD_LOOPBACK};
  bool is_whole = true;
  is_whole &= each_attribute(*attributes, [&](int type, std::span<const std::byte> value) {
    std::uint32_t number = 0;
    if (type == IFLA_IFNAME) out.name = read_text(value);
    if (type == IFLA_MTU && read(value, number)) out.mtu_bytes = number;
    if (type == IFLA_TXQLEN && read(value, number)) out.tx_queue_len = number;
    // A veth names its peer as IFLA_LINK, which is no lower device: parse_link only reports, link_info decides.
    if (type == IFLA_LINK && read(value, number)) out.lower_ifindex = static_cast<int>(number);
    if (type == IFLA_LINK_NETNSID) out.is_lower_elsewhere = true;
    if (type == IFLA_LINKINFO) {
      is_whole &= each_attribute(value, [&](int inner, std::span<const std::byte> text) {
        if (inner == IFLA_INFO_KIND) out.kind = read_text(text);
      });
    }
  });
  if (!is_whole || out.ifindex <= 0) return std::nullopt;
  if (out.lower_ifindex == out.ifindex || out.lower_ifindex < 0) out.lower_ifindex = 0;
  return out;
}

std::optional<LowerQueue> pick_queue(std::span<const QdiscReading> readings, int ifindex, Instant at,
                                     std::uint64_t packet_bytes, std::uint64_t tx_queue_len) {
  const QdiscReading* root = nullptr;
  for (const QdiscReading& qdisc : readings) {
    if (qdisc.ifindex == ifindex && qdisc.parent == TC_H_ROOT) root = &qdisc;
  }
  if (root == nullptr || root->kind == "noqueue" || !root->has_stats) return std::nullopt;
  Bytes capacity = capacity_of(*root, packet_bytes, tx_queue_len);
  // A classful root (htb) has no limit of its own; where one leaf alone hangs below it, the leaf's limit is the queue's.
  if (capacity == Bytes{0}) {
    std::size_t leaves = 0;
    for (const QdiscReading& qdisc : readings) {
      const bool is_below = qdisc.ifindex == ifindex && qdisc.parent != TC_H_ROOT &&
                            TC_H_MAJ(qdisc.parent) == TC_H_MAJ(root->handle);
      if (is_below && ++leaves == 1) capacity = capacity_of(qdisc, packet_bytes, tx_queue_len);
    }
    if (leaves != 1) capacity = {};
  }
  return LowerQueue{.at = at,
                    .occupancy = {static_cast<std::int64_t>(std::min(root->backlog_bytes, value_max))},
                    .drained_total = {static_cast<std::int64_t>(root->sent_bytes_total)},
                    .capacity = capacity,
                    .drops_total = root->drops_total};
}

}  // namespace onehop::link
