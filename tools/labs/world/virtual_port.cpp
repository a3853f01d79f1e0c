// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// See virtual_port.hpp.
#include "tools/labs/world/virtual_port.hpp"

#include <algorithm>
#include <cerrno>

#include "engine/base/check.hpp"

namespace onehop {

std::span<std::byte> VirtualPort::lend(std::size_t n) noexcept {
  ONEHOP_CHECK(n > 0);
  if (n > link_->frame_bytes_max() || pending_tail_ == pending_frames_max) return {};
  if (lent_ == VirtualLink::no_frame) lent_ = link_->take_free();
  if (lent_ == VirtualLink::no_frame) return {};
  lent_bytes_ = n;
  return link_->slot(lent_).first(n);
}

void VirtualPort::commit(std::size_t n) noexcept {
  ONEHOP_CHECK(n > 0);
  ONEHOP_CHECK(n <= lent_bytes_);
  ONEHOP_CHECK(lent_ != VirtualLink::no_frame);
  link_->set_length(lent_, n);
  pending_[pending_tail_++] = lent_;
  lent_ = VirtualLink::no_frame;
  lent_bytes_ = 0;
  accepted_ += link_->wire_of(end_, n);
  pending_wire_ += link_->wire_of(end_, n);
}

std::size_t VirtualPort::flush(Instant now) noexcept {
  link_->run_until(now);
  while (pending_head_ != pending_tail_) {
    const VirtualLink::FrameIndex frame = pending_[pending_head_];
    const Bytes wire = link_->wire_of(end_, link_->length(frame));
    const int error = link_->accept(end_, frame);
    if (error == EAGAIN) return pending_tail_ - pending_head_;
    pending_head_ += 1;
    pending_wire_ -= wire;
    if (error == 0) {
      last_error_ = 0;
      continue;
    }
    if (error != ENOBUFS) last_error_ = error;
    refused_total_ += 1;
    refused_ += wire;
    link_->put_free(frame);
  }
  pending_head_ = pending_tail_ = 0;
  return 0;
}

std::size_t VirtualPort::receive(std::span<RxFrame> views) noexcept {
  ONEHOP_CHECK(views_lent_ == 0);  // the views of the last receive() were not released
  const std::size_t views_max = std::min(views.size(), rx_batch_max);
  while (views_lent_ < views_max) {
    const VirtualLink::FrameIndex frame = link_->pop(end_);
    if (frame == VirtualLink::no_frame) break;
    views[views_lent_] = {.data = link_->slot(frame).data(),
                          .length = static_cast<std::uint32_t>(link_->length(frame)),
                          .is_ce = link_->is_ce(frame)};
    views_[views_lent_++] = frame;
  }
  return views_lent_;
}

void VirtualPort::release() noexcept {
  for (std::size_t i = 0; i < views_lent_; ++i) link_->put_free(views_[i]);
  views_lent_ = 0;
}

QueueTelemetry VirtualPort::tx_queue(Instant now) noexcept {
  link_->run_until(now);
  QueueTelemetry queue = link_->lower_queue(end_);
  queue.at = now;
  queue.occupancy += pending_wire_;
  queue.drained_total += refused_;
  queue.refused_total = refused_total_;
  ONEHOP_CHECK(accepted_ == queue.drained_total + queue.occupancy);
  return queue;
}

QueueTelemetry VirtualPort::rx_ring(Instant now) noexcept {
  link_->run_until(now);
  QueueTelemetry ring = link_->ring(end_);
  ring.at = now;
  return ring;
}

std::uint32_t VirtualPort::wait(Instant deadline, bool is_rx_wanted) noexcept {
  deadline_ = deadline;
  is_rx_wanted_ = is_rx_wanted;
  if (is_woken_) deadline_ = link_->now();
  is_woken_ = false;
  return 0;
}

Instant VirtualPort::ready_at() const noexcept {
  if (is_woken_ || (is_rx_wanted_ && link_->has_arrived(end_))) return link_->now();
  return deadline_;
}

void VirtualPort::update_path(const PathUpdate& update) noexcept {
  if (update.is_link_up) last_error_ = 0;
}

PortInfo VirtualPort::info() const noexcept {
  return {.io = "virtual",
          .mode = "virtual",
          .frame_bytes_max = link_->frame_bytes_max(),
          .memory = link_->memory(),
          .wire_overhead = link_->wire_of(end_, 0),
          .has_back_pressure = true};
}

}  // namespace onehop
