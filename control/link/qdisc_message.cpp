// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/qdisc_message.hpp"

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <algorithm>

#include "engine/base/system/netlink_message.hpp"

namespace onehop::link {

namespace {

bool read_stats(std::span<const std::byte> nested, QdiscReading& out) {
  bool has_basic = false, has_queue = false;
  const bool is_whole = each_attribute(nested, [&](int type, std::span<const std::byte> value) {
    if (type == TCA_STATS_BASIC) {
      // gnet_stats_basic has tail padding that the kernel does not always send
      std::uint64_t sent_bytes = 0;
      if (read_value(value, sent_bytes)) {
        out.sent_bytes_total = std::min(sent_bytes, counter_max);
        has_basic = true;
      }
    } else if (type == TCA_STATS_QUEUE) {
      gnet_stats_queue queue;
      if (read_value(value, queue)) {
        out.backlog_bytes = queue.backlog;
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
      if (type == TCA_TBF_PARMS && read_value(value, parms)) out.limit_bytes = parms.limit;
    });
  }
  if (out.kind == "fq_codel") {
    return each_attribute(options, [&](int type, std::span<const std::byte> value) {
      std::uint32_t limit = 0;
      if (type == TCA_FQ_CODEL_LIMIT && read_value(value, limit)) out.limit_packets = limit;
    });
  }
  tc_fifo_qopt fifo;
  if (out.kind == "bfifo" && read_value(options, fifo)) out.limit_bytes = fifo.limit;
  if (out.kind == "pfifo" && read_value(options, fifo)) out.limit_packets = fifo.limit;
  return true;
}

Bytes capacity_of(const QdiscReading& qdisc, std::uint64_t packet_bytes,
                  std::uint64_t tx_queue_len) {
  std::uint64_t packets = qdisc.limit_packets;
  if (qdisc.kind == "pfifo_fast") packets = tx_queue_len;
  const std::uint64_t bytes = qdisc.limit_bytes > 0
                                  ? qdisc.limit_bytes
                                  : packets * std::min<std::uint64_t>(packet_bytes, 1 << 20);
  return {static_cast<std::int64_t>(std::min(bytes, counter_max))};
}

}  // namespace

std::optional<QdiscReading> parse_qdisc(std::span<const std::byte> message) {
  tcmsg family;
  const auto attributes = message_body(message, RTM_NEWQDISC, family);
  if (!attributes) return std::nullopt;
  QdiscReading out{
      .ifindex = family.tcm_ifindex, .handle = family.tcm_handle, .parent = family.tcm_parent};
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

std::optional<QueueTelemetry> pick_queue(std::span<const QdiscReading> readings, int ifindex,
                                         Instant at, std::uint64_t packet_bytes,
                                         std::uint64_t tx_queue_len) {
  const QdiscReading* root = nullptr;
  for (const QdiscReading& qdisc : readings) {
    if (qdisc.ifindex == ifindex && qdisc.parent == TC_H_ROOT) root = &qdisc;
  }
  if (root == nullptr || root->kind == "noqueue" || !root->has_stats) return std::nullopt;
  Bytes capacity = capacity_of(*root, packet_bytes, tx_queue_len);
  // A classful root (htb) has no limit of its own; where one leaf alone hangs below it, the leaf's
  // limit is the queue's.
  if (capacity == Bytes{0}) {
    std::size_t leaves = 0;
    for (const QdiscReading& qdisc : readings) {
      const bool is_below = qdisc.ifindex == ifindex && qdisc.parent != TC_H_ROOT &&
                            TC_H_MAJ(qdisc.parent) == TC_H_MAJ(root->handle);
      if (is_below && ++leaves == 1) capacity = capacity_of(qdisc, packet_bytes, tx_queue_len);
    }
    if (leaves != 1) capacity = {};
  }
  return QueueTelemetry{
      .at = at,
      .occupancy = {static_cast<std::int64_t>(std::min(root->backlog_bytes, counter_max))},
      .drained_total = {static_cast<std::int64_t>(root->sent_bytes_total)},
      .capacity = capacity,
      .refused_total = root->drops_total,
      .scope = QueueScope::lower_queue};
}

}  // namespace onehop::link
