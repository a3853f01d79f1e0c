// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// See virtual_link.hpp.
#include "tools/labs/world/virtual_link.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/check.hpp"

namespace onehop {
namespace {

constexpr Wide ns_per_s = 1'000'000'000;
// Specification constant: IPv4 20 + UDP 8.
constexpr std::size_t ip_udp_bytes = 28;

}  // namespace

VirtualLink::VirtualLink(const Options& options)
    : frame_bytes_max_{options.frame_bytes_max},
      storage_(options.frames_max * options.frame_bytes_max),
      frames_(options.frames_max),
      random_{options.seed} {
  free_.reserve(options.frames_max);
  for (std::size_t i = options.frames_max; i > 0; --i)
    free_.push_back(static_cast<FrameIndex>(i - 1));
  ways_.reserve(2);
  for (const VirtualLinkConfig& config : options.directions)
    ways_.emplace_back(config, options.frames_max);
}

bool VirtualLink::happens(std::uint32_t ppm) noexcept {
  return ppm != 0 && random_() % 1'000'000 < ppm;
}

VirtualLink::FrameIndex VirtualLink::take_free() noexcept {
  if (free_.empty()) return no_frame;
  const FrameIndex frame = free_.back();
  free_.pop_back();
  frames_[frame] = {};
  return frame;
}

std::span<std::byte> VirtualLink::slot(FrameIndex frame) noexcept {
  return {storage_.data() + std::size_t{frame} * frame_bytes_max_, frame_bytes_max_};
}

void VirtualLink::set_length(FrameIndex frame, std::size_t length_bytes) noexcept {
  ONEHOP_CHECK(length_bytes <= frame_bytes_max_);
  frames_[frame].length_bytes = length_bytes;
}

Bytes VirtualLink::wire_of(std::size_t direction, std::size_t length_bytes) const noexcept {
  return Bytes{static_cast<std::int64_t>(length_bytes)} + ways_[direction].config.wire_overhead;
}

int VirtualLink::accept(std::size_t direction, FrameIndex frame) noexcept {
  Way& w = way(direction);
  const std::size_t length_bytes = frames_[frame].length_bytes;
  if (!is_up_) return ENETDOWN;
  if (length_bytes + ip_udp_bytes > w.config.mtu_bytes) return EMSGSIZE;
  const Bytes wire = wire_of(direction, length_bytes);
  if (w.occupancy + wire > w.config.queue_capacity) return w.config.is_drop_tail ? ENOBUFS : EAGAIN;
  if (w.config.ce_threshold.count > 0 && w.occupancy > w.config.ce_threshold)
    frames_[frame].is_ce = true;
  w.queue.push(frame);
  w.occupancy += wire;
  if (w.queue.size() == 1) {
    w.served_at = now_;
    start_head(w);
  }
  return 0;
}

void VirtualLink::start_head(Way& w) noexcept {
  const std::int64_t wire_bytes = static_cast<std::int64_t>(frames_[w.queue.front()].length_bytes) +
                                  w.config.wire_overhead.count;
  w.head_left = wire_bytes * ns_per_s;
}

Instant VirtualLink::head_done_at(const Way& w) noexcept {
  if (w.queue.is_empty() || w.config.rate.count <= 0) return Instant::max();
  const Wide span_ns = (w.head_left + w.config.rate.count - 1) / w.config.rate.count;
  return w.served_at + Nanos{static_cast<Nanos::rep>(span_ns)};
}

void VirtualLink::serve(Way& w, Instant now) noexcept {
  while (!w.queue.is_empty()) {
    const Instant done_at = head_done_at(w);
    if (done_at > now) {
      w.head_left = std::max<Wide>(
          1, w.head_left - static_cast<Wide>(w.config.rate.count) * (now - w.served_at).count());
      w.served_at = now;
      return;
    }
    w.served_at = done_at;
    send_head(w, done_at);
  }
  w.served_at = now;
}

void VirtualLink::send_head(Way& w, Instant at) noexcept {
  const FrameIndex frame = w.queue.pop();
  const Bytes wire =
      Bytes{static_cast<std::int64_t>(frames_[frame].length_bytes)} + w.config.wire_overhead;
  w.occupancy -= wire;
  w.drained += wire;
  if (!w.queue.is_empty()) start_head(w);
  depart(w, frame, at);
}

void VirtualLink::take_opportunity(std::size_t direction, std::size_t frames_max) noexcept {
  Way& w = way(direction);
  for (std::size_t i = 0; i < frames_max && !w.queue.is_empty(); ++i) send_head(w, now_);
}

// depart decides what the medium does to a frame that has left the queue.
void VirtualLink::depart(Way& w, FrameIndex frame, Instant at) noexcept {
  const VirtualLinkConfig& config = w.config;
  if (w.is_in_burst) {
    w.is_in_burst = !happens(config.burst_leave_ppm);
  } else {
    w.is_in_burst = happens(config.burst_enter_ppm);
  }
  const bool is_in_hole =
      config.hole_bytes > 0 && frames_[frame].length_bytes + ip_udp_bytes > config.hole_bytes;
  if (w.is_in_burst || happens(config.loss_ppm) || !is_up_ || is_in_hole) {
    put_free(frame);
    return;
  }
  if (happens(config.duplicate_ppm)) {
    const FrameIndex twin = take_free();
    if (twin != no_frame) {
      frames_[twin] = frames_[frame];
      std::memcpy(slot(twin).data(), slot(frame).data(), frames_[frame].length_bytes);
      fly(w, twin, at + config.delay);
    }
  }
  std::size_t& length_bytes = frames_[frame].length_bytes;
  if (happens(config.corrupt_ppm)) {
    const std::uint64_t bit = random_() % (length_bytes * 8);
    slot(frame)[bit / 8] ^= std::byte{static_cast<unsigned char>(1U << (bit % 8))};
  }
  if (happens(config.truncate_ppm) && length_bytes > 1)
    length_bytes = 1 + random_() % (length_bytes - 1);
  fly(w, frame,
      at + config.delay + (happens(config.reorder_ppm) ? config.reorder_delay : Nanos{0}));
}

namespace {
constexpr auto lands_later = [](const auto& a, const auto& b) noexcept {
  return a.at != b.at ? a.at > b.at : a.order > b.order;
};
}  // namespace

void VirtualLink::fly(Way& w, FrameIndex frame, Instant at) noexcept {
  w.flights.push_back({.at = at, .order = order_++, .frame = frame});
  std::push_heap(w.flights.begin(), w.flights.end(), lands_later);
}

void VirtualLink::land(Way& w, Instant now) noexcept {
  while (!w.flights.empty() && w.flights.front().at <= now) {
    const FrameIndex frame = w.flights.front().frame;
    std::pop_heap(w.flights.begin(), w.flights.end(), lands_later);
    w.flights.pop_back();
    if (w.ring.size() >= w.config.ring_frames) {
      w.ring_refused += 1;
      put_free(frame);
      continue;
    }
    w.ring_bytes +=
        Bytes{static_cast<std::int64_t>(frames_[frame].length_bytes)} + w.config.wire_overhead;
    w.ring.push(frame);
  }
}

void VirtualLink::run_until(Instant now) noexcept {
  if (now < now_) return;
  for (Way& w : ways_) {
    serve(w, now);
    land(w, now);
  }
  now_ = now;
}

Instant VirtualLink::next_event() const noexcept {
  Instant next = Instant::max();
  for (const Way& w : ways_) {
    next = std::min(next, head_done_at(w));
    if (!w.flights.empty()) next = std::min(next, w.flights.front().at);
  }
  return next;
}

void VirtualLink::set_rate(std::size_t direction, BytesPerSecond rate) noexcept {
  serve(way(direction), now_);
  way(direction).config.rate = rate;
}

VirtualLink::FrameIndex VirtualLink::pop(std::size_t end) noexcept {
  Way& w = way(1 - end);
  if (w.ring.is_empty()) return no_frame;
  const FrameIndex frame = w.ring.pop();
  const Bytes wire =
      Bytes{static_cast<std::int64_t>(frames_[frame].length_bytes)} + w.config.wire_overhead;
  w.ring_bytes -= wire;
  w.taken += wire;
  return frame;
}

QueueTelemetry VirtualLink::lower_queue(std::size_t direction) const noexcept {
  const Way& w = ways_[direction];
  return {.at = now_,
          .occupancy = w.occupancy,
          .drained_total = w.drained,
          .capacity = w.config.queue_capacity,
          .scope = QueueScope::lower_queue};
}

QueueTelemetry VirtualLink::ring(std::size_t end) const noexcept {
  const Way& w = ways_[1 - end];
  const auto frame_bytes =
      static_cast<std::int64_t>(w.config.mtu_bytes - ip_udp_bytes) + w.config.wire_overhead.count;
  return {.at = now_,
          .occupancy = w.ring_bytes,
          .drained_total = w.taken,
          .capacity = Bytes{frame_bytes * static_cast<std::int64_t>(w.config.ring_frames)},
          .refused_total = w.ring_refused,
          .scope = QueueScope::own_ring};
}

}  // namespace onehop
