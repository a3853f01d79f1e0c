// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FallbackPort: a port that may turn out to lose what it sends, and another one to replace it.
//
//   engine core:  lend, commit ... ─▶ First                    (AF_XDP under --io auto)
//   other thread: offer(second), wait_taken(), close_first()
//   engine core:  receive() ─▶ takes it ─▶ lend, commit ... ─▶ Second
//
// The engine core continues unchanged: the same keys, and packet numbers that continue (threat K1),
// so the other end neither takes part nor notices. What First had accepted and not sent is lost, as
// on the link. Once; there is no way back.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/base/system/address.hpp"
#include "engine/base/time.hpp"
#include "engine/port/link_status.hpp"
#include "engine/port/port.hpp"

namespace onehop {

template <Port First, Port Second>
class FallbackPort {
 public:
  explicit FallbackPort(std::unique_ptr<First> first) : first_{std::move(first)} {}

  // --- Other than the engine core, one thread at a time.
  /// has_fallen: offer() was called.
  [[nodiscard]] bool has_fallen() const noexcept { return second_ != nullptr; }
  [[nodiscard]] First* first() noexcept { return first_.get(); }
  [[nodiscard]] Second* second() noexcept { return second_.get(); }
  /// offer gives the engine core the other port, connected already.
  void offer(std::unique_ptr<Second> second) noexcept {
    ONEHOP_CHECK(!has_fallen());
    second_ = std::move(second);
    offered_.store(second_.get());  // acquired in receive()
  }
  /// wait_taken returns when the engine core has switched, which takes one of its turns, or at once
  /// without an engine core (`is_running`).
  void wait_taken(bool is_running) noexcept {
    constexpr std::chrono::microseconds poll_interval{200};
    while (is_running && !is_taken_.load()) std::this_thread::sleep_for(poll_interval);
    if (!is_running) take_offered();
  }
  /// close_first comes after wait_taken(): it frees First's memory and device.
  void close_first() noexcept {
    ONEHOP_CHECK(is_taken_.load());
    first_.reset();
  }
  [[nodiscard]] Result<std::uint16_t> local_port() const {
    return has_fallen() ? Result<std::uint16_t>{second_->local_port()}
                        : Result<std::uint16_t>{first_->local_port()};
  }
  [[nodiscard]] Result<void> connect(const Endpoint& peer) {
    if constexpr (requires { second_->connect(peer); })
      if (has_fallen()) return second_->connect(peer);
    return success();  // a raw port learns the peer from the header template
  }
  [[nodiscard]] Result<void> move_to(const std::string& interface) {
    if constexpr (requires { first_->move_to(interface); })
      if (!has_fallen()) return first_->move_to(interface);
    return success();
  }

  // --- The Port concept.
  [[nodiscard]] std::span<std::byte> lend(std::size_t n) noexcept {
    return used_ ? used_->lend(n) : first_->lend(n);
  }
  void commit(std::size_t n) noexcept { used_ ? used_->commit(n) : first_->commit(n); }
  std::size_t flush(Instant now) noexcept { return used_ ? used_->flush(now) : first_->flush(now); }
  [[nodiscard]] std::size_t receive(std::span<RxFrame> views) noexcept {
    if (!used_ && offered_.load(std::memory_order_relaxed) != nullptr) take_offered();
    return used_ ? used_->receive(views) : first_->receive(views);
  }
  void release() noexcept { used_ ? used_->release() : first_->release(); }
  [[nodiscard]] QueueTelemetry tx_queue(Instant now) noexcept {
    if (!used_) return first_->tx_queue(now);
    QueueTelemetry queue = used_->tx_queue(now);
    queue.drained_total += tx_before_.drained_total + tx_before_.occupancy;
    queue.refused_total += tx_before_.refused_total;
    return queue;
  }
  [[nodiscard]] QueueTelemetry rx_ring(Instant now) noexcept {
    if (!used_) return first_->rx_ring(now);
    QueueTelemetry ring = used_->rx_ring(now);
    ring.drained_total += rx_before_.drained_total;
    ring.refused_total += rx_before_.refused_total;
    return ring;
  }
  std::uint32_t wait(Instant deadline, bool is_rx_wanted) noexcept {
    return used_ ? used_->wait(deadline, is_rx_wanted) : first_->wait(deadline, is_rx_wanted);
  }
  void update_path(const PathUpdate& update) noexcept {
    path_ = update;
    used_ ? used_->update_path(update) : first_->update_path(update);
  }
  [[nodiscard]] std::uint64_t syscalls_total() const noexcept {
    return used_ ? syscalls_before_ + used_->syscalls_total() : first_->syscalls_total();
  }
  [[nodiscard]] PortInfo info() const noexcept { return used_ ? used_->info() : first_->info(); }
  [[nodiscard]] int last_error() const noexcept {
    return used_ ? used_->last_error() : first_->last_error();
  }

  // --- Optional parts of a port.
  [[nodiscard]] std::uint64_t malformed_total() const noexcept {
    return used_ ? malformed_before_ + malformed_of(*used_) : malformed_of(*first_);
  }
  [[nodiscard]] const LinkStatus& link_status() const noexcept {
    static const LinkStatus none{};
    if constexpr (requires { used_->link_status(); })
      if (used_) return used_->link_status();
    return none;
  }
  [[nodiscard]] std::optional<RxFrame> receive_elsewhere(Endpoint& source) noexcept {
    if constexpr (requires { used_->receive_elsewhere(source); })
      if (used_) return used_->receive_elsewhere(source);
    return std::nullopt;
  }
  [[nodiscard]] std::optional<Endpoint> source_elsewhere(const RxFrame& view) const noexcept {
    if constexpr (requires { first_->source_elsewhere(view); })
      if (!used_) return first_->source_elsewhere(view);
    return std::nullopt;
  }
  bool send_to(const Endpoint& to, std::span<const std::byte> frame) noexcept {
    if constexpr (requires { first_->send_to(to, frame); })
      if (!used_) return first_->send_to(to, frame);
    if constexpr (requires { used_->send_to(to, frame); })
      if (used_) return used_->send_to(to, frame);
    return false;
  }
  bool move_peer(const Endpoint& peer) noexcept {
    if constexpr (requires { first_->move_peer(peer); })
      if (!used_) return first_->move_peer(peer);
    if constexpr (requires { used_->move_peer(peer); })
      if (used_) return used_->move_peer(peer);
    return false;
  }

 private:
  [[nodiscard]] static std::uint64_t malformed_of(const auto& port) noexcept {
    if constexpr (requires { port.malformed_total(); })
      return port.malformed_total();
    else
      return 0;
  }
  void take_offered() noexcept {
    const Instant now = monotonic_now();
    tx_before_ = first_->tx_queue(now);
    rx_before_ = first_->rx_ring(now);
    syscalls_before_ = first_->syscalls_total();
    malformed_before_ = malformed_of(*first_);
    used_ = offered_.load();
    used_->update_path(path_);
    is_taken_.store(true);  // acquired in wait_taken()
  }

  std::unique_ptr<First> first_;
  std::unique_ptr<Second> second_;
  std::atomic<Second*> offered_{nullptr};
  std::atomic<bool> is_taken_{false};

  // Written by the engine core.
  Second* used_ = nullptr;  // null: First is in use
  PathUpdate path_;
  QueueTelemetry tx_before_, rx_before_;  // of First, when it was left
  std::uint64_t syscalls_before_ = 0, malformed_before_ = 0;
};

}  // namespace onehop
