// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The data path of DpdkPort, receiving and waiting. See dpdk_port.hpp.
#include <poll.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <ctime>

#include "engine/base/check.hpp"
#include "engine/base/time.hpp"
#include "engine/port/dpdk/dpdk_port.hpp"

namespace onehop {

namespace {

// Foreign bursts that one receive() looks at. Too low: a flood blocks ours. Too high: long turns.
constexpr int foreign_bursts_max = 4;
// Between looks: the ring holds 600 us of 20 Gbit/s. Shorter: cost. Longer: latency.
constexpr Nanos poll_interval{50us};
// rte_eth_stats_get costs a system call with net_af_xdp, and register reads with hardware.
constexpr Nanos statistics_interval{1ms};

}  // namespace

void DpdkPort::pull() noexcept {
  if (stash_begin_ != stash_end_) return;
  device_.pool().adopt();
  stash_begin_ = 0;
  stash_end_ = rte_eth_rx_burst(port_, 0, stash_.data(), batch_frames_max);
  is_burst_full_ = stash_end_ == batch_frames_max;
  received_frames_ += stash_end_;
}

bool DpdkPort::is_ours(const wire::UdpFrame& frame) const noexcept {
  return frame.is_ipv6 == is_ipv6_ && frame.target_port == reservation_.port() &&
         frame.target_ip == local_ip_ && (header_bytes_ == 0 || frame.source_ip == peer_ip_);
}

bool DpdkPort::take_view(rte_mbuf* frame, RxFrame& view) noexcept {
  if (frame->nb_segs != 1) return false;
  const std::span<const std::byte> bytes{rte_pktmbuf_mtod(frame, const std::byte*),
                                         frame->data_len};
  const auto udp = wire::parse_udp_frame(bytes);
  if (udp && is_ours(*udp)) {
    received_total_ += Bytes{frame->pkt_len};
    view = {.data = udp->payload.data(),
            .length = static_cast<std::uint32_t>(udp->payload.size()),
            .is_ce = udp->ecn == wire::Ecn::ce};
    return true;
  }
  if (!has_own_link_ || udp) return false;
  if (const std::size_t answer = peer_mac_.on_frame(bytes, control_frame_); answer > 0)
    send_control(answer);
  follow_peer_mac();
  return false;
}

std::size_t DpdkPort::receive(std::span<RxFrame> views) noexcept {
  ONEHOP_CHECK(held_frames_ == 0);  // views of the last batch are given back first
  views = views.first(std::min(views.size(), rx_batch_max));
  for (int burst = 0; burst < foreign_bursts_max && held_frames_ == 0; ++burst) {
    pull();
    if (stash_begin_ == stash_end_) break;
    for (; stash_begin_ != stash_end_ && held_frames_ < views.size(); ++stash_begin_) {
      rte_mbuf* const frame = stash_[stash_begin_];
      if (stash_begin_ + 1 != stash_end_)
        rte_prefetch0(rte_pktmbuf_mtod(stash_[stash_begin_ + 1], void*));
      if (take_view(frame, views[held_frames_]))
        held_[held_frames_++] = frame;
      else
        rte_pktmbuf_free(frame);
    }
  }
  return held_frames_;
}

void DpdkPort::release() noexcept {
  if (held_frames_ > 0) rte_pktmbuf_free_bulk(held_.data(), held_frames_);
  held_frames_ = 0;
}

void DpdkPort::read_statistics(Instant now) noexcept {
  if (now - statistics_at_ < statistics_interval) return;
  statistics_at_ = now;
  rte_eth_stats stats{};
  if (rte_eth_stats_get(port_, &stats) != 0) return;
  rx_refused_total_ = std::max(rx_refused_total_, stats.imissed + stats.rx_nombuf - missed_before_);
  // Drivers of software count as an error what they did not take, and what we then try again.
  if (!device_.facts().is_virtual)
    tx_refused_total_ = std::max(tx_refused_total_, stats.oerrors - errors_before_);
}

// Few drivers tell how many frames wait. Elsewhere what a burst brings is what waited.
QueueTelemetry DpdkPort::rx_ring(Instant now) noexcept {
  read_statistics(now);
  std::int64_t waiting_frames = 0;
  if (device_.facts().has_rx_count)
    waiting_frames = std::max(rte_eth_rx_queue_count(port_, 0), 0);
  else
    pull();
  waiting_frames += stash_end_ - stash_begin_;
  return {.at = now,
          .occupancy = Bytes{wire_frame_bytes_} * waiting_frames,
          .drained_total = received_total_,
          .capacity = Bytes{wire_frame_bytes_} *
                      std::max<std::int64_t>(device_.facts().rx_frames, waiting_frames),
          .refused_total = rx_refused_total_,
          .scope = QueueScope::own_ring,
          .is_backlogged = is_burst_full_ || waiting_frames > 0};
}

std::uint32_t DpdkPort::wait(Instant deadline, bool is_rx_wanted) noexcept {
  std::uint32_t calls = 0;
  for (;;) {
    if (is_rx_wanted) pull();
    if (is_rx_wanted && stash_begin_ != stash_end_) break;
    const Nanos left = deadline - monotonic_now();
    if (left <= Nanos{0}) break;
    const Nanos span = is_rx_wanted ? std::min(left, poll_interval) : left;
    pollfd wake{.fd = wake_.get(), .events = POLLIN, .revents = 0};
    const timespec timeout = timespec_of(span);
    calls += 1;
    if (::ppoll(&wake, 1, &timeout, nullptr) <= 0) continue;
    wake_.clear();
    calls += 1;
    break;
  }
  syscalls_total_ += calls;
  return calls;
}

}  // namespace onehop
