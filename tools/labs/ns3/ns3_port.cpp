// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/ns3_port.hpp"

#include <algorithm>
#include <cstring>

#include "engine/base/check.hpp"

namespace onehop::sim {

namespace {
constexpr std::size_t full_frame_bytes = 1514;
constexpr std::size_t mtu_bytes = 1500, ip_bytes = 20, udp_bytes = 8, ethernet_bytes = 14;

/// What a datagram takes as Ethernet frames: one, or one for each of its fragments.
Bytes wire_of(std::size_t length) {
  constexpr std::size_t part_bytes = mtu_bytes - ip_bytes;
  const std::size_t frames = (length + udp_bytes + part_bytes - 1) / part_bytes;
  return Bytes{
      static_cast<std::int64_t>(length + udp_bytes + frames * (ip_bytes + ethernet_bytes))};
}
}  // namespace

Ns3Port::Ns3Port(Air& air, const Config& config)
    : air_{air},
      config_{config},
      ring_frames_{ring_bytes_max / config.frame_bytes_max},
      memory_{std::make_unique_for_overwrite<std::byte[]>((pending_frames_max + ring_frames_) *
                                                          config.frame_bytes_max)},
      ring_length_(ring_frames_) {}

Bytes Ns3Port::standing() const noexcept {
  const Bytes left =
      Bytes{static_cast<std::int64_t>(air_.left_bytes_total())} + send_refused_bytes_;
  ONEHOP_CHECK(left <= accepted_);
  return accepted_ - left;
}

std::span<std::byte> Ns3Port::lend(std::size_t n) noexcept {
  ONEHOP_CHECK(n > 0);
  if (n > config_.frame_bytes_max || pending_ == pending_frames_max ||
      (!config_.is_blind && standing() >= config_.capacity))
    return {};
  lent_bytes_ = n;
  return {slot_of(pending_), n};
}

void Ns3Port::commit(std::size_t n) noexcept {
  ONEHOP_CHECK(n > 0);
  ONEHOP_CHECK(n <= lent_bytes_);
  pending_length_[pending_++] = n;
  lent_bytes_ = 0;
  accepted_ += wire_of(n);
}

std::size_t Ns3Port::flush(Instant) noexcept {
  for (std::size_t i = 0; i < pending_; ++i) {
    last_error_ = air_.send(slot_of(i), static_cast<std::uint32_t>(pending_length_[i]));
    if (last_error_ == 0) continue;
    ++send_refused_;
    send_refused_bytes_ += wire_of(pending_length_[i]);
  }
  pending_ = 0;
  return 0;
}

void Ns3Port::arrive(const std::byte* frame, std::size_t length) noexcept {
  if (ring_tail_ - ring_head_ == ring_frames_ || length > config_.frame_bytes_max) {
    ++ring_refused_;
    return;
  }
  const std::size_t index = ring_tail_++ % ring_frames_;
  ring_length_[index] = length;
  ring_bytes_ += wire_of(length);
  std::memcpy(slot_of(pending_frames_max + index), frame, length);
}

std::size_t Ns3Port::receive(std::span<RxFrame> views) noexcept {
  ONEHOP_CHECK(views_lent_ == 0);
  const std::size_t count = std::min({views.size(), rx_batch_max, ring_tail_ - ring_head_});
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = (ring_head_ + i) % ring_frames_;
    views[i] = {.data = slot_of(pending_frames_max + index),
                .length = static_cast<std::uint32_t>(ring_length_[index])};
  }
  views_lent_ = count;
  return count;
}

void Ns3Port::release() noexcept {
  for (; views_lent_ > 0; --views_lent_) {
    const Bytes wire = wire_of(ring_length_[ring_head_++ % ring_frames_]);
    ring_bytes_ -= wire;
    taken_ += wire;
  }
}

QueueTelemetry Ns3Port::tx_queue(Instant now) noexcept {
  if (config_.is_blind)
    return {.at = now,
            .drained_total = accepted_,
            .refused_total = send_refused_,
            .scope = QueueScope::own_ring};
  const Bytes occupancy = standing();
  return {.at = now,
          .occupancy = occupancy,
          .drained_total = accepted_ - occupancy,
          .capacity = config_.capacity,
          .refused_total = send_refused_ + air_.refused_frames_total(),
          .scope = QueueScope::lower_queue};
}

QueueTelemetry Ns3Port::rx_ring(Instant now) noexcept {
  const std::size_t full_bytes =
      config_.frame_bytes_max > single_bytes_max ? config_.frame_bytes_max : full_frame_bytes;
  return {.at = now,
          .occupancy = ring_bytes_,
          .drained_total = taken_,
          .capacity = Bytes{static_cast<std::int64_t>(ring_frames_ * full_bytes)},
          .refused_total = ring_refused_,
          .scope = QueueScope::lower_queue};
}

std::uint32_t Ns3Port::wait(Instant, bool is_rx_wanted) noexcept {
  is_rx_wanted_ = is_rx_wanted;
  left_at_wait_ = air_.left_bytes_total();
  return 0;
}

PortInfo Ns3Port::info() const noexcept {
  return {.io = "ns3",
          .mode = "ns3",
          .frame_bytes_max = config_.frame_bytes_max,
          .memory = Bytes{static_cast<std::int64_t>((pending_frames_max + ring_frames_) *
                                                    config_.frame_bytes_max)},
          .wire_overhead = overhead,
          .has_back_pressure = !config_.is_blind};
}

}  // namespace onehop::sim
