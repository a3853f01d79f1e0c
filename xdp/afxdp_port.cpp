// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The data path of AfXdpPort: what the engine core calls in each turn. See afxdp_port.hpp.
// Waking the driver, XDP_STATISTICS and poll() are system calls: libxdp 1.3.1 wraps none of them.
#include "xdp/afxdp_port.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/check.hpp"
#include "engine/base/time.hpp"
#include "xdp/afxdp_layout.hpp"

namespace onehop {

namespace {

// One drop in the lower queue ends a sendto(), so a burst into a full queue needs one call per
// frame. Too low: frames wait that the kernel would take. Too high: a turn gets long.
constexpr std::uint32_t kicks_per_flush_max = 128;

// XDP_STATISTICS costs 0.2 us per queue. Too short: calls in every turn. Too long: late drops.
constexpr Nanos statistics_interval = 1ms;

constexpr Nanos sleep_max = 10s;

}  // namespace

// ---- sending ----

std::span<std::byte> AfXdpPort::lend(std::size_t frame_bytes) noexcept {
  Device& device = *device_;
  if (!has_path_ || frame_bytes > device.frame_bytes_max) return {};
  std::uint64_t offset_bytes = 0;
  if (!device.tx.lend(sender().completion, offset_bytes)) return {};
  lent_slot_ = offset_bytes + xdp::tx_payload_offset_bytes;
  return {sender().chunks().data() + lent_slot_, frame_bytes};
}

void AfXdpPort::commit(std::size_t frame_bytes) noexcept {
  ONEHOP_CHECK(frame_bytes > 0 && frame_bytes <= device_->frame_bytes_max);
  const std::uint64_t start = lent_slot_ - template_.size();
  std::byte* const headers = sender().chunks().data() + start;
  template_.write(headers, {headers + template_.size(), frame_bytes});
  device_->tx.commit(sender().tx, start,
                     static_cast<std::uint32_t>(template_.size() + frame_bytes));
}

// In copy mode a sendto() ends early with EAGAIN (budget used up, or the send buffer is full) or
// with EBUSY for exactly one frame that the device or the queue below it threw away; that frame is
// completed like any other. In zero-copy mode it only wakes the driver.
std::size_t AfXdpPort::flush(Instant) noexcept {
  const bool is_zero_copy = config_.mode == XdpMode::zero_copy;
  xsk_ring_prod& tx = sender().tx;
  device_->tx.publish(tx);
  std::uint32_t left_frames = xdp::unconsumed(tx);
  if (last_error_ == ENXIO) return left_frames;
  for (std::uint32_t kick = 0; kick < kicks_per_flush_max && left_frames > 0; ++kick) {
    if (xsk_ring_prod__needs_wakeup(&tx) == 0) break;
    ++syscalls_total_;
    const int error = sender().kick_tx();
    const bool is_one_dropped = error == EBUSY && !is_zero_copy;
    if (is_one_dropped) ++tx_refused_total_;
    if (error == 0 || error == EAGAIN || error == EBUSY || error == ENOBUFS || error == EINTR) {
      if (last_error_ == ENETDOWN) last_error_ = 0;
    } else {
      last_error_ = error;
    }
    const std::uint32_t left_before = std::exchange(left_frames, xdp::unconsumed(tx));
    if (is_zero_copy) break;
    if (!is_one_dropped && left_frames >= left_before) break;  // the next flush tries again
  }
  return left_frames;
}

// `now` is when the turn began. It has sealed frames since, and may have lost its processor: bytes
// that drained meanwhile would count as drained by then, and v_1 be several times the link's rate.
QueueTelemetry AfXdpPort::tx_queue(Instant) noexcept {
  xdp::TxChunks& chunks = device_->tx;
  const Instant read_at = monotonic_now();
  chunks.reclaim(sender().completion);
  return {.at = read_at,
          .occupancy = chunks.occupancy(),
          .drained_total = chunks.drained_total(),
          .capacity = Bytes{device_->wire_frame_bytes} * static_cast<std::int64_t>(chunks.slots()),
          .refused_total = tx_refused_total_,
          .scope = device_->scope,
          .is_backlogged = chunks.take_backlogged()};
}

// ---- receiving ----

std::size_t AfXdpPort::receive(std::span<RxFrame> views) noexcept {
  ONEHOP_CHECK(!is_holding_);  // views of the last batch are given back first
  views = views.first(std::min(views.size(), rx_batch_max));
  std::vector<RxQueue>& queues = device_->queues;
  std::size_t count = 0;
  for (std::size_t tried = 0; tried < queues.size() && count < views.size(); ++tried) {
    RxQueue& queue = queues[next_queue_];
    const auto taken = queue.chunks.take(queue.xsk.rx, queue.xsk.chunks(), views.subspan(count));
    count += taken.views;
    received_total_ += taken.bytes;
    malformed_total_ += taken.malformed_frames;
    next_queue_ = next_queue_ + 1 == queues.size() ? 0 : next_queue_ + 1;
  }
  is_holding_ = true;
  if (count == 0) release();  // nothing is lent, but dropped frames may be held
  return count;
}

void AfXdpPort::release() noexcept {
  for (RxQueue& queue : device_->queues)
    if (queue.chunks.has_held()) release_to(queue);
  is_holding_ = false;
}

// Syscalls: recvfrom, where the driver asks to be woken (zero-copy only).
void AfXdpPort::release_to(RxQueue& queue) noexcept {
  queue.chunks.give_back(queue.xsk.fill, queue.xsk.chunk_bytes());
  if (xsk_ring_prod__needs_wakeup(&queue.xsk.fill) != 0) {
    ++syscalls_total_;
    (void)::recvfrom(queue.xsk.rx_fd(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
  }
}

// In copy mode a frame without a chunk counts in rx_dropped and rx_fill_ring_empty_descs; both
// would count it twice. In zero-copy mode only the second is kept. Syscalls: getsockopt per queue.
void AfXdpPort::read_statistics() noexcept {
  std::uint64_t refused_frames = 0;
  for (const RxQueue& queue : device_->queues) {
    xdp_statistics statistics{};
    socklen_t length = sizeof statistics;
    ++syscalls_total_;
    if (::getsockopt(queue.xsk.rx_fd(), SOL_XDP, XDP_STATISTICS, &statistics, &length) != 0) return;
    refused_frames += statistics.rx_dropped + statistics.rx_ring_full;
    if (config_.mode == XdpMode::zero_copy) refused_frames += statistics.rx_fill_ring_empty_descs;
  }
  rx_refused_total_ = std::max(rx_refused_total_, rx_refused_before_ + refused_frames);
}

// One flow comes in on one queue, so the fullest ring matters: credit for the room of both overran
// one.
QueueTelemetry AfXdpPort::rx_ring(Instant now) noexcept {
  const std::uint32_t wire_frame_bytes = device_->wire_frame_bytes;
  std::int64_t waiting_chunks = 0, frame_chunks = 1;
  for (RxQueue& queue : device_->queues) {
    const std::uint32_t room_bytes = queue.chunks.chunk_room(queue.xsk.chunk_bytes());
    waiting_chunks = std::max<std::int64_t>(waiting_chunks, xdp::waiting(queue.xsk.rx));
    frame_chunks =
        std::max<std::int64_t>(frame_chunks, xdp::chunks_of(wire_frame_bytes, room_bytes));
  }
  if (now - statistics_at_ >= statistics_interval) {
    read_statistics();
    statistics_at_ = now;
  }
  // A waiting chunk counts as a full one: a ring holds chunks, whatever is in them.
  return {.at = now,
          .occupancy = Bytes{wire_frame_bytes * waiting_chunks / frame_chunks},
          .drained_total = received_total_,
          .capacity = Bytes{wire_frame_bytes * (std::int64_t{config_.rx_frames} / frame_chunks)},
          .refused_total = rx_refused_total_,
          .scope = QueueScope::own_ring};
}

// ---- waiting, path, reports ----

// POLLIN only: POLLOUT, set at half a TX ring, would end every sleep. Syscalls: ppoll, read.
std::uint32_t AfXdpPort::wait(Instant deadline, bool is_rx_wanted) noexcept {
  const Instant now = monotonic_now();
  if (deadline <= now) return 0;
  const timespec timeout = timespec_of(std::min(deadline - now, sleep_max));
  std::vector<pollfd>& poll_fds = device_->poll_fds;
  std::uint32_t calls = 1;
  const int ready = ::ppoll(poll_fds.data(), is_rx_wanted ? poll_fds.size() : 1, &timeout, nullptr);
  if (ready > 0 && (poll_fds.front().revents & POLLIN) != 0) {
    wake_.clear();
    ++calls;
  }
  syscalls_total_ += calls;
  return calls;
}

void AfXdpPort::take_offered() noexcept {
  is_taking_ = true;
  if (auto* const fresh = offered_.exchange(nullptr)) take_over(*fresh);
  is_taking_ = false;
}

void AfXdpPort::take_over(std::unique_ptr<Device>& fresh) noexcept {
  ONEHOP_CHECK(!is_holding_);
  fresh->tx.continue_from(device_->tx);
  tx_refused_total_ += device_->tx.in_flight() / device_->frame_chunks;
  std::swap(device_, fresh);
  rx_refused_before_ = rx_refused_total_;
  next_queue_ = 0;
  last_error_ = 0;
}

void AfXdpPort::update_path(const PathUpdate& update) noexcept {
  if (offered_.load() != nullptr) take_offered();
  if (update.has_neighbour) {
    ONEHOP_CHECK(update.header_bytes == wire_overhead_bytes_);
    const Endpoint before = path_.header_bytes > 0 ? peer() : Endpoint{};
    path_ = update;
    if (peer() != before) moved_port_ = 0;  // of another session
    set_template(moved_port_ != 0 ? moved_port_ : peer().port);
  }
  has_path_ = update.has_neighbour && update.is_link_up;
  if (update.mtu_bytes > 0)
    device_->wire_frame_bytes =
        xdp::wire_frame_bytes(update.mtu_bytes, sender().chunk_bytes(), device_->frame_chunks);
}

// ---- following a peer behind NAT ----

Endpoint AfXdpPort::peer() const noexcept {
  return wire::target_of(std::span{path_.header}.first(path_.header_bytes));
}

void AfXdpPort::set_template(std::uint16_t peer_port) noexcept {
  PathUpdate aimed = path_;
  const auto header = std::span{aimed.header}.first(aimed.header_bytes);
  wire::set_target_port(header, peer_port);
  template_ = wire::HeaderTemplate{header};
}

std::optional<Endpoint> AfXdpPort::source_elsewhere(const RxFrame& view) const noexcept {
  if (!has_path_) return std::nullopt;
  // The headers of a frame lie in front of what is shown of it.
  const Endpoint source =
      wire::source_of({view.data - wire_overhead_bytes_, std::size_t{wire_overhead_bytes_}});
  Endpoint expected = peer();
  if (moved_port_ != 0) expected.port = moved_port_;
  if (source == expected) return std::nullopt;
  return source;
}

bool AfXdpPort::send_to(const Endpoint& to, std::span<const std::byte> frame) noexcept {
  if (!has_path_ || to.address != peer().address) return false;
  const std::span<std::byte> slot = lend(frame.size());
  if (slot.empty()) return false;
  std::ranges::copy(frame, slot.begin());
  const wire::HeaderTemplate kept = template_;
  set_template(to.port);
  commit(frame.size());
  template_ = kept;
  return true;
}

bool AfXdpPort::move_peer(const Endpoint& to) noexcept {
  if (!has_path_ || to.address != peer().address) return false;
  moved_port_ = to.port;
  set_template(moved_port_);
  return true;
}

PortInfo AfXdpPort::info() const noexcept {
  return {.io = "afxdp",
          .mode = to_string(config_.mode),
          .frame_bytes_max = device_->frame_bytes_max,
          .memory = device_->memory,
          .wire_overhead = Bytes{wire_overhead_bytes_},
          .has_back_pressure =
              device_->scope == QueueScope::lower_queue || device_->scope == QueueScope::driver};
}

std::string_view to_string(XdpMode mode) noexcept {
  switch (mode) {
    case XdpMode::zero_copy: return "zero-copy";
    case XdpMode::copy: return "copy";
    case XdpMode::skb: return "skb";
    case XdpMode::automatic: break;
  }
  return "auto";
}

}  // namespace onehop
