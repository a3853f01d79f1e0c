// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/udp_port.hpp"

#include <poll.h>

#include <algorithm>

#include "engine/base/time.hpp"

namespace onehop {
namespace {

// Implementation constants. Readings below this many bytes say little about truesize per wire byte;
// the ratio is held to what a frame can cost: 1 (all payload) to 16 (44 bytes in 768, and slack).
constexpr std::int64_t learn_bytes_min = 32 * 1024;
constexpr std::int64_t truesize_permille_min = 1000;
constexpr std::int64_t truesize_permille_max = 16'000;
// Implementation constant: 1 ms of single frames at 50 kpps are 50 reports. Too low: a system call
// per turn. Too high: the receive buffer fills with reports, and the kernel throws the newest away.
constexpr Nanos reports_interval{1ms};

}  // namespace

UdpPort::UdpPort(const UdpPortConfig& config, UdpSocket socket, WakeFd wake, bool is_gso_on,
                 bool is_gro_on)
    : config_{config},
      socket_{std::move(socket)},
      has_fragments_{config.has_fragments},
      wake_{std::move(wake)},
      wire_overhead_{static_cast<std::int64_t>(socket_.is_ipv6() ? wire::ethernet_ipv6_udp_bytes
                                                                 : wire::ethernet_ipv4_udp_bytes)},
      tx_{{.frame_bytes_max = config.frame_bytes_max,
           .wire_overhead = wire_overhead_,
           .is_gso_on = is_gso_on}},
      rx_{config.frame_bytes_max, wire_overhead_, is_gro_on} {
  const MemInfo info = socket_.mem_info();
  sndbuf_ = Bytes{info.sndbuf_bytes};
  memory_ = Bytes{info.rcvbuf_bytes} + Bytes{info.sndbuf_bytes} + UdpTx::memory() + rx_.memory();
  tx_.set_charge_read(scope() != QueueScope::own_ring);
}

Result<std::unique_ptr<UdpPort>> UdpPort::open(const UdpPortConfig& config) {
  if (config.frame_bytes_max == 0 || config.frame_bytes_max > wire::datagram_bytes_max)
    return Error{ExitCode::usage, "open the data socket", "a UDP frame holds 1 to 65507 bytes"};
  ONEHOP_TRY(socket, UdpSocket::open(config));
  ONEHOP_TRY(wake, WakeFd::open());
  // A segment above the MTU is refused, and with fragments most frames are.
  const bool is_gso_on = config.is_gso_allowed && !config.has_fragments && socket.is_gso_known();
  const bool is_gro_on = socket.set_gro(true);
  std::unique_ptr<UdpPort> port{
      new UdpPort{config, std::move(socket), std::move(wake), is_gso_on, is_gro_on}};
  if (config.follows_peer) {
    ONEHOP_TRY(elsewhere, UdpElsewhere::open(port->socket_, config));
    port->elsewhere_.emplace(std::move(elsewhere));
  }
  return port;
}

Result<void> UdpPort::connect(const Endpoint& peer) {
  ONEHOP_TRYV(socket_.connect(peer));
  config_.peer = peer;
  tx_.set_charge_read(scope() != QueueScope::own_ring);
  return success();
}

QueueScope UdpPort::scope() const noexcept {
  // Loopback hands a frame to the peer's socket within the call: no charge can be read.
  return socket_.is_loopback() ? QueueScope::own_ring : config_.scope;
}

void UdpPort::end_large_frames() noexcept {
  has_fragments_ = false;
  tx_.set_gso(config_.is_gso_allowed && socket_.is_gso_known());
  (void)socket_.set_fragments(false);  // where it fails single frames leave all the same
  own_syscalls_total_ += 2;
}

QueueTelemetry UdpPort::tx_queue(Instant now) noexcept {
  // Reports of the link take the socket's receive memory, and a nap does not look at them.
  if (socket_.link_status().state() != LinkStatus::State::off &&
      now - reports_read_at_ >= reports_interval) {
    reports_read_at_ = now;
    own_syscalls_total_ += socket_.drain_errors();
  }
  // What drained stays drained: the charge grows again when the kernel segments below us.
  const Bytes accepted = tx_.accepted_total();
  const Bytes occupancy = std::min(tx_.occupancy(socket_, now), accepted - tx_drained_);
  tx_drained_ = accepted - occupancy;
  return {.at = tx_.read_at(),
          .occupancy = occupancy,
          .drained_total = tx_drained_,
          .capacity = Bytes{sndbuf_.count * 1000 / tx_.truesize_permille()},
          .refused_total = tx_.refused_total(),
          .scope = scope()};
}

// learn_truesize compares what was queued with what has come out, once the socket is empty. More
// may have come in, so a sample is a lower bound: it raises the ratio fast, lowers it slowly.
void UdpPort::learn_truesize() noexcept {
  if (rmem_read_bytes_ < learn_bytes_min || !rx_.is_drained()) return;
  const Bytes out = rx_.received_total() - received_at_reading_;
  if (out.count <= 0) return;
  const std::int64_t sample =
      std::clamp(rmem_read_bytes_ * 1000 / out.count, truesize_permille_min, truesize_permille_max);
  rx_truesize_permille_ +=
      (sample - rx_truesize_permille_) / (sample > rx_truesize_permille_ ? 4 : 64);
}

QueueTelemetry UdpPort::rx_ring(Instant now) noexcept {
  learn_truesize();
  const MemInfo info = socket_.mem_info();
  own_syscalls_total_ += 1;
  // The kernel counts as one the datagrams that found the buffer full and those that the filter
  // dropped. The buffer was full only if about so much lies there or was read since the last
  // reading.
  const Bytes out = rx_.received_total() - received_at_reading_;
  const bool may_be_full =
      std::int64_t{info.rmem_bytes} + out.count * rx_truesize_permille_ / 1000 >=
      std::int64_t{info.rcvbuf_bytes} / 2;
  if (may_be_full) drops_total_ += info.drops - drops_seen_;  // wraps as the kernel's counter does
  drops_seen_ = info.drops;
  // Within a batch the kernel has not taken off all that was read (udp_rmem_release()).
  rmem_read_bytes_ = rx_.is_drained() ? info.rmem_bytes : 0;
  received_at_reading_ = rx_.received_total();
  return {.at = now,
          .occupancy =
              Bytes{std::int64_t{info.rmem_bytes} * 1000 / rx_truesize_permille_} + rx_.backlog(),
          .drained_total = rx_.handed_total(),
          .capacity = Bytes{std::int64_t{info.rcvbuf_bytes} * 1000 / rx_truesize_permille_},
          .refused_total = drops_total_,
          .scope = QueueScope::own_ring};
}

std::uint32_t UdpPort::wait(Instant deadline, bool is_rx_wanted) noexcept {
  if (is_rx_wanted && rx_.has_backlog()) return 0;
  const Nanos left = deadline - monotonic_now();
  if (left <= Nanos{0}) return 0;
  const bool is_room_wanted = tx_.is_room_wanted();
  pollfd fds[2] = {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                   {.fd = socket_.fd(), .events = 0, .revents = 0}};
  if (is_rx_wanted) fds[1].events |= POLLIN;
  if (is_room_wanted) fds[1].events |= POLLOUT;
  // A socket that is polled at all reports ICMP errors, which must not end a nap: leave it out.
  const nfds_t count = is_rx_wanted || is_room_wanted ? 2 : 1;
  const timespec timeout = timespec_of(left);
  std::uint32_t syscalls = 1;
  const int ready = ::ppoll(fds, count, &timeout, nullptr);
  if (ready > 0 && (fds[0].revents & POLLIN) != 0) {
    syscalls += 1;
    wake_.clear();
  }
  if (ready > 0 && (fds[1].revents & POLLERR) != 0) syscalls += socket_.drain_errors();
  own_syscalls_total_ += syscalls;
  return syscalls;
}

void UdpPort::update_path(const PathUpdate& update) noexcept {
  // The kernel routes for us; on another path an earlier refusal may be over.
  socket_.follow_link(update.ifindex);
  if (!config_.interface.empty() && update.ifindex != bound_ifindex_ && config_.peer) {
    const bool is_anew = bound_ifindex_ != 0;
    if (!is_anew ||
        (socket_.follow_device(config_.interface, config_.peer) &&
         (!elsewhere_ || elsewhere_->socket().follow_device(config_.interface, std::nullopt))))
      bound_ifindex_ = update.ifindex;
  }
  if (update.is_link_up) tx_.forget_error();
}

std::optional<RxFrame> UdpPort::receive_elsewhere(Endpoint& source) noexcept {
  if (!elsewhere_) return std::nullopt;
  return elsewhere_->receive(source);
}

bool UdpPort::send_to(const Endpoint& to, std::span<const std::byte> frame) noexcept {
  return elsewhere_ && elsewhere_->send(to, frame);
}

bool UdpPort::move_peer(const Endpoint& peer) noexcept {
  own_syscalls_total_ += 1;
  if (!socket_.move_peer(peer)) return false;
  config_.peer = peer;
  tx_.forget_error();
  return true;
}

std::uint64_t UdpPort::syscalls_total() const noexcept {
  return own_syscalls_total_ + (elsewhere_ ? elsewhere_->syscalls_total() : 0) +
         tx_.syscalls_total() + rx_.syscalls_total();
}

PortInfo UdpPort::info() const noexcept {
  return {.io = "udp",
          .mode = has_fragments_    ? "fragments"
                  : tx_.is_gso_on() ? "gso"
                                    : "plain",
          .frame_bytes_max = config_.frame_bytes_max,
          .memory = memory_,
          .wire_overhead = wire_overhead_,
          .has_back_pressure = scope() == QueueScope::lower_queue};
}

}  // namespace onehop
