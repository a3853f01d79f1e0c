// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The data path of DpdkPort, sending: each turn's calls, and open. Receiving: dpdk_rx.cpp.
#include "engine/port/dpdk/dpdk_port.hpp"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ranges>

#include "engine/base/check.hpp"
#include "engine/base/time.hpp"

namespace onehop {

namespace {

// Where the payload begins in an mbuf's buffer: the longest headers fit in front, on a cache line.
constexpr std::uint32_t payload_offset_bytes = RTE_PKTMBUF_HEADROOM + dpdk::header_room_bytes;
static_assert(wire::l2_l4_bytes_max <= dpdk::header_room_bytes &&
              payload_offset_bytes % RTE_CACHE_LINE_SIZE == 0);
constexpr std::uint32_t ethernet_bytes = 14;
// A link that comes or goes is seen so much later. Shorter: a call to the driver in every turn.
constexpr Nanos link_interval{10ms};
// A peer that ended silently is noticed so much later. Shorter: an idle link blocks the core.
constexpr Nanos service_interval{200ms};

// Frames whose memory is asked for before they are lent. Fewer: it is not there in time. More: they
// leave the first-level cache again. bytes_ahead_max: of each; 32 lines, as a core can await.
constexpr std::uint32_t frames_ahead = 3, bytes_ahead_max = 2048;

// prefetch_for_writing takes cache lines from the core that has them: with net_memif's zero-copy
// the peer's core, which has just read there. Without it each store of the AEAD waits for a line.
void prefetch_for_writing(const std::byte* from, std::size_t bytes) noexcept {
  for (std::size_t at = 0; at < bytes; at += RTE_CACHE_LINE_SIZE) {
#if defined(__x86_64__)
    // gcc's own builtin asks to read, unless it builds for one CPU.
    asm volatile("prefetchw %0" : : "m"(from[at]));
#else
    __builtin_prefetch(from + at, 1);
#endif
  }
}

std::byte* payload_of(rte_mbuf* frame) noexcept {
  return static_cast<std::byte*>(frame->buf_addr) + payload_offset_bytes;
}

}  // namespace

Result<std::unique_ptr<DpdkPort>> DpdkPort::open(dpdk::DpdkDevice& device, DpdkPortConfig config) {
  ONEHOP_CHECK(config.tx_frames_max > 0 &&
               (config.tx_frames_max & (config.tx_frames_max - 1)) == 0);
  if (config.reservation.port() == 0) {
    ONEHOP_TRY(reservation, UdpReservation::bind(config.local));
    config.reservation = std::move(reservation);
  }
  ONEHOP_TRY(wake, WakeFd::open());
  return std::unique_ptr<DpdkPort>{
      new DpdkPort{device, std::move(config.reservation), std::move(wake), config.tx_frames_max}};
}

DpdkPort::DpdkPort(dpdk::DpdkDevice& device, UdpReservation reservation, WakeFd wake,
                   std::uint32_t tx_frames_max)
    : device_{device},
      reservation_{std::move(reservation)},
      wake_{std::move(wake)},
      port_{device.port()},
      tx_count_{device.facts().tx_count},
      is_ipv6_{reservation_.is_ipv6()},
      has_own_link_{device.facts().has_own_link()},
      local_ip_{reservation_.address().address.bytes},
      pending_(tx_frames_max) {
  peer_mac_ = dpdk::PeerMac{{.mac = device.facts().mac, .ip = local_ip_}, is_ipv6_};
  wire_overhead_bytes_ = is_ipv6_ ? wire::ethernet_ipv6_udp_bytes : wire::ethernet_ipv4_udp_bytes;
  wire_frame_bytes_ = device.facts().mtu_bytes + ethernet_bytes;
  const std::size_t room_bytes =
      rte_pktmbuf_data_room_size(device.pool().get()) - payload_offset_bytes;
  frame_bytes_max_ = std::min<std::size_t>(wire_frame_bytes_ - wire_overhead_bytes_, room_bytes);
  // Where the device cannot keep frames that are not ours away, take_view() does.
  (void)device.steer(reservation_.address());
  freed_before_ = device.pool().freed_bytes();
  freed_frames_before_ = device.pool().freed_frames();
  rte_eth_stats stats{};
  (void)rte_eth_stats_get(port_, &stats);
  missed_before_ = stats.imissed + stats.rx_nombuf;
  errors_before_ = stats.oerrors;
}

DpdkPort::~DpdkPort() {
  if (device_.gate() != nullptr) device_.gate()->open();
  release();
  while (head_ != tail_) rte_pktmbuf_free(pending_[head_++ & (pending_.size() - 1)]);
  for (std::uint32_t i = stash_begin_; i < stash_end_; ++i) rte_pktmbuf_free(stash_[i]);
  while (spare_begin_ != spare_end_) rte_pktmbuf_free(spare_[spare_begin_++]);
  rte_pktmbuf_free(lent_);
}

// outstanding_frames were accepted and are not known to have left.
std::uint64_t DpdkPort::outstanding_frames() const noexcept {
  if (tx_count_ == dpdk::TxCount::handed) return pending_frames();
  return accepted_frames_ - (device_.pool().freed_frames() - freed_frames_before_);
}

void DpdkPort::refill_spare() noexcept {
  std::copy(spare_.begin() + spare_begin_, spare_.begin() + spare_end_, spare_.begin());
  spare_end_ -= std::exchange(spare_begin_, 0);
  device_.pool().adopt();
  if (rte_pktmbuf_alloc_bulk(device_.pool().get(), spare_.data() + spare_end_, batch_frames_max) ==
      0)
    spare_end_ += batch_frames_max;
}

rte_mbuf* DpdkPort::take_frame() noexcept {
  if (spare_end_ - spare_begin_ <= frames_ahead) refill_spare();
  if (spare_begin_ == spare_end_) return nullptr;
  if (spare_end_ - spare_begin_ > frames_ahead)
    prefetch_for_writing(payload_of(spare_[spare_begin_ + frames_ahead]) - wire::l2_l4_bytes_max,
                         std::min(wire_frame_bytes_, bytes_ahead_max));
  return spare_[spare_begin_++];
}

std::span<std::byte> DpdkPort::lend(std::size_t frame_bytes) noexcept {
  ONEHOP_CHECK(frame_bytes <= frame_bytes_max_);
  if (!has_path_ || pending_frames() == pending_.size() || outstanding_frames() >= pending_.size())
    return {};
  if (lent_ == nullptr) lent_ = take_frame();
  if (lent_ == nullptr) return {};
  return {payload_of(lent_), frame_bytes};
}

void DpdkPort::commit(std::size_t frame_bytes) noexcept {
  ONEHOP_CHECK(lent_ != nullptr);
  ONEHOP_CHECK(frame_bytes > 0 && frame_bytes <= frame_bytes_max_);
  std::byte* const payload = payload_of(lent_);
  template_.write(payload - template_.size(), {payload, frame_bytes});
  const auto wire_bytes = static_cast<std::uint32_t>(template_.size() + frame_bytes);
  lent_->data_off = static_cast<std::uint16_t>(payload_offset_bytes - template_.size());
  lent_->data_len = static_cast<std::uint16_t>(wire_bytes);
  lent_->pkt_len = wire_bytes;
  if (tx_count_ != dpdk::TxCount::handed) dpdk::FramePool::mark(lent_, wire_bytes);
  pending_[tail_++ & (pending_.size() - 1)] = std::exchange(lent_, nullptr);
  pending_bytes_ += Bytes{wire_bytes};
  accepted_total_ += Bytes{wire_bytes};
  accepted_frames_ += 1;
}

std::size_t DpdkPort::flush(Instant now) noexcept {
  device_.pool().adopt();
  resolve(now);
  while (head_ != tail_) {
    const std::uint32_t at = head_ & static_cast<std::uint32_t>(pending_.size() - 1);
    const auto count = static_cast<std::uint16_t>(
        std::min<std::uint32_t>(tail_ - head_, static_cast<std::uint32_t>(pending_.size()) - at));
    // Once the driver has it, a frame may be freed: its length is added up before.
    std::array<std::uint32_t, batch_frames_max> lengths;
    const std::uint16_t batch = std::min<std::uint16_t>(count, batch_frames_max);
    for (std::uint16_t i = 0; i < batch; ++i) lengths[i] = pending_[at + i]->pkt_len;
    const std::uint16_t taken = rte_eth_tx_burst(port_, 0, &pending_[at], batch);
    for (std::uint16_t i = 0; i < taken; ++i) pending_bytes_ -= Bytes{lengths[i]};
    head_ += taken;
    if (taken < batch) break;
  }
  if (head_ == tail_) ONEHOP_CHECK(pending_bytes_ == Bytes{0});
  return pending_frames();
}

// reclaim has the driver free what has left, where it does so only when it is called. Once a turn.
void DpdkPort::reclaim(Instant now) noexcept {
  if (tx_count_ != dpdk::TxCount::freed || now == reclaimed_at_ ||
      outstanding_frames() == pending_frames())
    return;
  reclaimed_at_ = now;
  if (device_.facts().has_done_cleanup)
    (void)rte_eth_tx_done_cleanup(port_, 0, 0);
  else
    (void)rte_eth_tx_burst(port_, 0, nullptr, 0);
}

Bytes DpdkPort::occupancy() noexcept {
  if (tx_count_ == dpdk::TxCount::handed) return pending_bytes_;
  const Bytes unfreed = accepted_total_ - (device_.pool().freed_bytes() - freed_before_);
  if (tx_count_ == dpdk::TxCount::freed) return unfreed;
  // The next frame goes to offset 0, and the newest one lies at the end. Sent ones come first, so a
  // binary search finds the border: eleven reads for a ring of 2048.
  const auto offsets = std::views::iota(std::uint32_t{0}, device_.facts().tx_frames);
  const auto first_unsent = std::ranges::partition_point(offsets, [&](std::uint32_t offset) {
    return rte_eth_tx_descriptor_status(port_, 0, static_cast<std::uint16_t>(offset)) !=
           RTE_ETH_TX_DESC_FULL;
  });
  return std::min(unfreed,
                  pending_bytes_ + Bytes{wire_frame_bytes_} *
                                       static_cast<std::int64_t>(offsets.end() - first_unsent));
}

QueueTelemetry DpdkPort::tx_queue(Instant now) noexcept {
  reclaim(now);
  watch_link(now);
  read_statistics(now);
  const Instant read_at = monotonic_now();
  // What drained stays drained: descriptor states are coarser than frees.
  drained_total_ = std::max(drained_total_, accepted_total_ - occupancy());
  const Bytes backlog = accepted_total_ - drained_total_;
  const bool is_backlogged = !std::exchange(was_empty_, backlog == Bytes{0}) && backlog > Bytes{0};
  return {.at = read_at,
          .occupancy = backlog,
          .drained_total = drained_total_,
          .capacity = Bytes{wire_frame_bytes_} * static_cast<std::int64_t>(pending_.size()),
          .refused_total = tx_refused_total_,
          .scope = device_.facts().scope,
          .is_backlogged = is_backlogged};
}

void DpdkPort::watch_link(Instant now) noexcept {
  if (now - linked_at_ < link_interval) return;
  linked_at_ = now;
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(port_, &link) != 0) return;
  watch_gate(now, link.link_status == RTE_ETH_LINK_UP);
  last_error_ = link.link_status == RTE_ETH_LINK_UP ? 0 : ENETDOWN;
}

// While the link is up the driver's control thread is parked, until nothing comes for a while.
void DpdkPort::watch_gate(Instant now, bool is_up) noexcept {
  dpdk::InterruptGate* const gate = device_.gate();
  if (gate == nullptr) return;
  if (received_frames_ != received_before_) {
    received_before_ = received_frames_;
    serviced_at_ = now;
  }
  if (!is_up) {
    gate->open();
  } else if (!gate->is_closed()) {
    (void)gate->close();
    serviced_at_ = now;
  } else if (now - serviced_at_ >= service_interval) {
    (void)gate->service_once();
    serviced_at_ = now;
  }
}

// ---- link addresses, path, reports ----

void DpdkPort::resolve(Instant now) noexcept {
  if (!has_own_link_ || !peer_mac_.is_due(now)) return;
  send_control(peer_mac_.ask(now, control_frame_));
}

// send_control sends control_frame_, past what is pending; what finds no room is sent again anyway.
void DpdkPort::send_control(std::size_t bytes) noexcept {
  rte_mbuf* frame = take_frame();
  if (frame == nullptr) return;
  std::memcpy(rte_pktmbuf_mtod(frame, void*), control_frame_.data(), bytes);
  frame->data_len = static_cast<std::uint16_t>(bytes);
  frame->pkt_len = static_cast<std::uint32_t>(bytes);
  if (rte_eth_tx_burst(port_, 0, &frame, 1) == 0) rte_pktmbuf_free(frame);
}

void DpdkPort::follow_peer_mac() noexcept {
  const auto& mac = peer_mac_.mac();
  has_path_ = mac.has_value() && header_bytes_ != 0;
  if (!has_path_ || std::memcmp(header_.data(), mac->data(), mac->size()) == 0) return;
  std::memcpy(header_.data(), mac->data(), mac->size());
  template_ = wire::HeaderTemplate{std::span{header_}.first(header_bytes_)};
}

// Where the kernel has the interface, the template is whole. Where DPDK owns the link, only its
// addresses and ports hold: the link addresses are ours and the one the peer answered with.
void DpdkPort::update_path(const PathUpdate& update) noexcept {
  const bool is_whole = !has_own_link_ && update.has_neighbour;
  if (is_whole || has_own_link_) {
    ONEHOP_CHECK(update.header_bytes == wire_overhead_bytes_);
    header_ = update.header;
    header_bytes_ = update.header_bytes;
    const std::size_t target_at = ethernet_bytes + (is_ipv6_ ? 24 : 16);
    peer_ip_ = {};
    std::memcpy(peer_ip_.data(), header_.data() + target_at, is_ipv6_ ? 16 : 4);
  }
  if (has_own_link_) {
    std::memset(header_.data(), 0, 6);
    std::memcpy(header_.data() + 6, device_.facts().mac.data(), device_.facts().mac.size());
    peer_mac_.set_peer(peer_ip_);
    follow_peer_mac();
    return;
  }
  if (is_whole) template_ = wire::HeaderTemplate{std::span{header_}.first(header_bytes_)};
  has_path_ = update.has_neighbour && update.is_link_up;
  if (update.mtu_bytes > 0)
    wire_frame_bytes_ =
        std::min<std::uint32_t>(update.mtu_bytes, device_.facts().mtu_bytes) + ethernet_bytes;
}

PortInfo DpdkPort::info() const noexcept {
  const dpdk::DeviceFacts& facts = device_.facts();
  return {.io = "dpdk",
          .mode = facts.driver,
          .frame_bytes_max = frame_bytes_max_,
          .memory = device_.pool().memory(),
          .wire_overhead = Bytes{wire_overhead_bytes_},
          .has_back_pressure =
              facts.scope == QueueScope::lower_queue || facts.scope == QueueScope::driver};
}

}  // namespace onehop
