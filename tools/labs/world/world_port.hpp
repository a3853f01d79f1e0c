// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// WorldPort: one end of a world's link, over a VirtualPort or over AF_XDP's rings, and an eye on
// every frame that passes. One type for both, so that the loops are compiled once. One thread.
#pragma once

#include <optional>
#include <span>

#include "tools/labs/world/ring_port.hpp"
#include "tools/labs/world/virtual_port.hpp"

namespace onehop::scenario {

/// PortWatch sees frames as they are handed over, header in clear, body sealed.
class PortWatch {
 public:
  virtual ~PortWatch() = default;
  virtual void on_commit(std::span<const std::byte> frame) = 0;
  virtual void on_receive(std::size_t frame_bytes) = 0;
};

class WorldPort {
 public:
  WorldPort(VirtualLink& link, std::size_t end, const std::optional<RingShape>& shape)
      : plain_{link, end} {
    if (shape) rings_.emplace(link, end, *shape);
  }
  WorldPort(const WorldPort&) = delete;  // the rings refer to their own memory
  WorldPort& operator=(const WorldPort&) = delete;

  [[nodiscard]] std::span<std::byte> lend(std::size_t n) noexcept {
    lent_ = rings_ ? rings_->lend(n) : plain_.lend(n);
    return lent_;
  }
  void commit(std::size_t n) noexcept {
    if (watch_ != nullptr) watch_->on_commit(lent_.first(n));
    rings_ ? rings_->commit(n) : plain_.commit(n);
  }
  [[nodiscard]] std::size_t flush(Instant now) noexcept {
    return rings_ ? rings_->flush(now) : plain_.flush(now);
  }
  [[nodiscard]] std::size_t receive(std::span<RxFrame> views) noexcept {
    const std::size_t count = rings_ ? rings_->receive(views) : plain_.receive(views);
    if (watch_ != nullptr)
      for (const RxFrame& frame : views.first(count)) watch_->on_receive(frame.bytes().size());
    return count;
  }
  void release() noexcept { rings_ ? rings_->release() : plain_.release(); }
  [[nodiscard]] QueueTelemetry tx_queue(Instant now) noexcept {
    return rings_ ? rings_->tx_queue(now) : plain_.tx_queue(now);
  }
  [[nodiscard]] QueueTelemetry rx_ring(Instant now) noexcept {
    return rings_ ? rings_->rx_ring(now) : plain_.rx_ring(now);
  }
  std::uint32_t wait(Instant deadline, bool is_rx_wanted) noexcept {
    return rings_ ? rings_->wait(deadline, is_rx_wanted) : plain_.wait(deadline, is_rx_wanted);
  }
  void update_path(const PathUpdate& update) noexcept {
    rings_ ? rings_->update_path(update) : plain_.update_path(update);
  }
  [[nodiscard]] std::uint64_t syscalls_total() const noexcept { return 0; }
  [[nodiscard]] PortInfo info() const noexcept { return rings_ ? rings_->info() : plain_.info(); }
  [[nodiscard]] int last_error() const noexcept {
    return rings_ ? rings_->last_error() : plain_.last_error();
  }
  [[nodiscard]] Instant ready_at() const noexcept {
    return rings_ ? rings_->ready_at() : plain_.ready_at();
  }

  /// play lets the kernel's side of the rings follow the link.
  void play() noexcept {
    if (rings_) rings_->play();
  }
  void set_watch(PortWatch* watch) noexcept { watch_ = watch; }
  [[nodiscard]] RingPort* rings() noexcept { return rings_ ? &*rings_ : nullptr; }

 private:
  VirtualPort plain_;
  std::optional<RingPort> rings_;
  PortWatch* watch_ = nullptr;
  std::span<std::byte> lent_;
};

static_assert(Port<WorldPort>);

}  // namespace onehop::scenario
