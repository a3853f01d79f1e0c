// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The data path of AfXdpPort: what the engine core calls in each turn. See afxdp_port.hpp.
#include "xdp/afxdp_port.hpp"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "engine/base/check.hpp"
#include "engine/base/time.hpp"
#include "xdp/afxdp_layout.hpp"

namespace onehop {

namespace {

// One drop in the lower queue ends a sendto(), so a burst into a full queue needs one call per frame.
// Too low: frames wait for the next turn although the kernel would take them. Too high: a turn gets long.
constexpr std::uint32_t kicks_per_flush_max = 128;

// XDP_STATISTICS costs 0.2 us per queue. Too short: calls in every turn. Too long: a drop is told late.
constexpr Nanos statistics_interval = 1ms;

constexpr Nanos sleep_max = 10s;

timespec timespec_of(Nanos span) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(span);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((span - seconds).count())};
}

}  // namespace

// ---- sending ----

std::span<std::byte> AfXdpPort::lend(std::size_t frame_bytes) noexcept {
  if (!has_path_ || frame_bytes > frame_bytes_max_) return {};
  RxQueue& queue = queues_.front();
  std::uint64_t offset_bytes = 0;
  if (!chunks_.lend(queue.socket.completion, offset_bytes)) return {};
  lent_slot_ = offset_bytes + xdp::tx_payload_offset_bytes;
  return {queue.umem.at(lent_slot_), frame_bytes};
}

void AfXdpPort::commit(std::size_t frame_bytes) noexcept {
  ONEHOP_CHECK(chunks_.has_lent());
  ONEHOP_CHECK(frame_bytes > 0 && frame_bytes <= frame_bytes_max_);
  const std::uint64_t start = lent_slot_ - template_.size();
  std::byte* headers = queues_.front().umem.at(start);
  template_.write(headers, {headers + template_.size(), frame_bytes});
  chunks_.commit(sender_.tx, start, static_cast<std::uint32_t>(template_.size() + frame_bytes));
  ++unpublished_frames_;
}

// kick_tx tells the kernel that frames wait. Returns 0 or errno. Syscalls: sendto.
int AfXdpPort::kick_tx() noexcept {
  ++syscalls_total_;
  if (::sendto(sender_.fd(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0) return 0;
  return errno;
}

// In copy mode a sendto() ends early with EAGAIN (budget used up, or the send buffer is full) or with EBUSY for exactly
// one frame that the device or the queue below it threw away; that frame is completed like any other. In zero-copy
// mode it only wakes the driver.
std::size_t AfXdpPort::flush(Instant) noexcept {
  if (unpublished_frames_ > 0) sender_.tx.publish();
  unpublished_frames_ = 0;
  std::uint32_t left_frames = sender_.tx.unconsumed();
  if (last_error_ == ENXIO) return left_frames;
  for (std::uint32_t kick = 0; kick < kicks_per_flush_max && left_frames > 0; ++kick) {
    if (!sender_.tx.needs_wakeup()) break;
    const int error = kick_tx();
    const bool is_one_dropped = error == EBUSY && mode_ != XdpMode::zero_copy;
    if (is_one_dropped) ++counters_.tx_refused_total;
    if (error == 0 || error == EAGAIN || error == EBUSY || error == ENOBUFS || error == EINTR) {
      if (last_error_ == ENETDOWN) last_error_ = 0;
    } else {
      last_error_ = error;
    }
    const std::uint32_t left_before = std::exchange(left_frames, sender_.tx.unconsumed());
    if (mode_ == XdpMode::zero_copy) break;
    if (!is_one_dropped && left_frames >= left_before) break;  // no progress: the next flush tries again
  }
  return left_frames;
}

QueueTelemetry AfXdpPort::tx_queue(Instant now) noexcept {
  chunks_.reclaim(queues_.front().socket.completion);
  return {.at = now,
          .occupancy = chunks_.occupancy(),
          .drained_total = chunks_.drained_total(),
          .capacity = Bytes{wire_frame_bytes_} * static_cast<std::int64_t>(chunks_.slots()),
          .refused_total = counters_.tx_refused_total,
          .scope = scope_,
          .is_backlogged = chunks_.take_backlogged()};
}

// ---- receiving ----

std::size_t AfXdpPort::receive(std::span<RxFrame> views) noexcept {
  ONEHOP_CHECK(!is_holding_);  // views of the last batch are given back first
  views = views.first(std::min(views.size(), rx_batch_max));
  std::size_t count = 0;
  for (std::size_t tried = 0; tried < queues_.size() && count < views.size(); ++tried) {
    count += receive_from(queues_[next_queue_], views.subspan(count));
    next_queue_ = next_queue_ + 1 == queues_.size() ? 0 : next_queue_ + 1;
  }
  is_holding_ = true;
  if (count == 0) release();  // nothing is lent, but dropped frames may be held
  return count;
}

std::size_t AfXdpPort::receive_from(RxQueue& queue, std::span<RxFrame> views) noexcept {
  const std::span<std::byte> memory{queue.umem.data(), static_cast<std::size_t>(queue.umem.memory().count)};
  const auto taken = queue.chunks.take(queue.socket.rx, memory, views);
  received_total_ += taken.bytes;
  counters_.malformed_total += taken.malformed_frames;
  counters_.oversize_total += taken.oversize_frames;
  return taken.views;
}

void AfXdpPort::release() noexcept {
  for (RxQueue& queue : queues_) {
    if (queue.chunks.has_held()) release_to(queue);
  }
  is_holding_ = false;
}

// Syscalls: recvfrom, where the driver asks to be woken (zero-copy only).
void AfXdpPort::release_to(RxQueue& queue) noexcept {
  queue.chunks.give_back(queue.socket.fill, queue.umem.chunk_bytes());
  if (queue.socket.fill.needs_wakeup()) {
    ++syscalls_total_;
    (void)::recvfrom(queue.socket.fd(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
  }
}

// In copy mode a frame that finds no chunk counts in rx_dropped and in rx_fill_ring_empty_descs; taking both would
// count it twice. In zero-copy mode only the second one is kept. Syscalls: getsockopt per queue.
void AfXdpPort::read_statistics() noexcept {
  std::uint64_t refused_frames = 0;
  for (const RxQueue& queue : queues_) {
    xdp_statistics statistics{};
    socklen_t length = sizeof statistics;
    ++syscalls_total_;
    if (::getsockopt(queue.socket.fd(), SOL_XDP, XDP_STATISTICS, &statistics, &length) != 0) return;
    refused_frames += statistics.rx_dropped + statistics.rx_ring_full;
    if (mode_ == XdpMode::zero_copy) refused_frames += statistics.rx_fill_ring_empty_descs;
  }
  rx_refused_total_ = std::max(rx_refused_total_, rx_refused_before_ + refused_frames);
}

// One flow comes in on one queue, so the ring that matters is the fullest, and another queue's room is no room: credit
// for both overran one of them.
QueueTelemetry AfXdpPort::rx_ring(Instant now) noexcept {
  std::int64_t waiting_chunks = 0, frame_chunks = 1;
  for (RxQueue& queue : queues_) {
    waiting_chunks = std::max<std::int64_t>(waiting_chunks, queue.socket.rx.waiting());
    frame_chunks = std::max<std::int64_t>(frame_chunks, xdp::chunks_of(wire_frame_bytes_, queue.chunks.chunk_room(queue.umem.chunk_bytes())));
  }
  if (now - statistics_at_ >= statistics_interval) {
    read_statistics();
    statistics_at_ = now;
  }
  // A waiting chunk counts as a full one: a ring holds chunks, whatever is in them.
  return {.at = now,
          .occupancy = Bytes{wire_frame_bytes_ * waiting_chunks / frame_chunks},
          .drained_total = received_total_,
          .capacity = Bytes{wire_frame_bytes_ * (std::int64_t{queues_.front().socket.rx.size()} / frame_chunks)},
          .refused_total = rx_refused_total_,
          .scope = QueueScope::own_ring};
}

// ---- waiting, path, reports ----

// POLLIN only: POLLOUT is set while the TX ring is at most half full, so it would end every sleep at once.
// Syscalls: ppoll, read.
std::uint32_t AfXdpPort::wait(Instant deadline, bool is_rx_wanted) noexcept {
  const Instant now = monotonic_now();
  if (deadline <= now) return 0;
  const timespec timeout = timespec_of(std::min(deadline - now, sleep_max));
  std::uint32_t calls = 1;
  const int ready = ::ppoll(poll_fds_.data(), is_rx_wanted ? poll_fds_.size() : 1, &timeout, nullptr);
  if (ready > 0 && (poll_fds_.front().revents & POLLIN) != 0) {
    eventfd_t value = 0;
    (void)::eventfd_read(wake_fd_.get(), &value);
    ++calls;
  }
  syscalls_total_ += calls;
  return calls;
}

void AfXdpPort::wake() noexcept { (void)::eventfd_write(wake_fd_.get(), 1); }

void AfXdpPort::take_over(AfXdpPort& fresh) noexcept {
  ONEHOP_CHECK(!is_holding_);
  fresh.chunks_.continue_from(chunks_);
  counters_.tx_refused_total += chunks_.in_flight() / frame_chunks_;
  std::swap(interface_, fresh.interface_);
  std::swap(steer_, fresh.steer_);
  std::swap(queues_, fresh.queues_);
  std::swap(sender_, fresh.sender_);
  std::swap(poll_fds_, fresh.poll_fds_);
  std::swap(poll_fds_.front(), fresh.poll_fds_.front());  // each keeps its own wake-up descriptor
  std::swap(mode_, fresh.mode_);
  std::swap(scope_, fresh.scope_);
  std::swap(frame_bytes_max_, fresh.frame_bytes_max_);
  std::swap(wire_frame_bytes_, fresh.wire_frame_bytes_);
  std::swap(frame_chunks_, fresh.frame_chunks_);
  std::swap(chunks_, fresh.chunks_);
  rx_refused_before_ = rx_refused_total_;
  unpublished_frames_ = next_queue_ = 0;
  last_error_ = 0;
}

void AfXdpPort::update_path(const PathUpdate& update) noexcept {
  if (AfXdpPort* const fresh = offered_.exchange(nullptr, std::memory_order_acquire)) take_over(*fresh);
  if (update.has_neighbour) {
    ONEHOP_CHECK(update.header_bytes == wire_overhead_bytes_);
    template_ = wire::HeaderTemplate{std::span{update.header}.first(update.header_bytes)};
  }
  has_path_ = update.has_neighbour && update.is_link_up;
  const std::uint32_t chunk_bytes = queues_.front().umem.chunk_bytes();
  if (update.mtu_bytes > 0) wire_frame_bytes_ = xdp::wire_frame_bytes(update.mtu_bytes, chunk_bytes, frame_chunks_);
}

PortInfo AfXdpPort::info() const noexcept {
  return {.io = "afxdp",
          .mode = to_string(mode_),
          .frame_bytes_max = frame_bytes_max_,
          .memory = memory_,
          .wire_overhead = Bytes{wire_overhead_bytes_},
          .has_back_pressure = scope_ == QueueScope::lower_queue || scope_ == QueueScope::driver};
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
