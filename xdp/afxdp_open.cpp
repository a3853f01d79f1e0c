// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Bring-up of AfXdpPort. Runs once, before the engine core starts; everything the data path needs is allocated here.
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "engine/base/check.hpp"
#include "xdp/afxdp_layout.hpp"
#include "xdp/afxdp_port.hpp"

namespace onehop {

namespace {

// A driver that rebuilds its queues for XDP takes its link down for 1 to 3 s (igb). Too low: the first frames are lost.
constexpr Nanos link_patience = 5s;
constexpr Nanos link_poll_interval = 20ms;
constexpr std::uint32_t unused_completion_frames = 16;  // the kernel wants a completion ring even where nothing is sent

bool is_power_of_two(std::uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

Result<void> check_sizes(const AfXdpConfig& config) {
  const bool is_chunk_good = config.chunk_bytes == 0 || config.chunk_bytes == 2048 || config.chunk_bytes == 4096;
  if (is_chunk_good && is_power_of_two(config.rx_frames) && is_power_of_two(config.tx_frames) &&
      config.rx_frames >= rx_batch_max && config.tx_frames >= 32)
    return success();
  return Error{ExitCode::usage, "size the AF_XDP rings",
               "a ring is not a power of two (receive 64 or more, send 32 or more), or a chunk not 2048 or 4096 bytes"};
}

}  // namespace

Result<std::unique_ptr<AfXdpPort>> AfXdpPort::open(const AfXdpConfig& config) {
  ONEHOP_TRYV(check_sizes(config));
  std::unique_ptr<AfXdpPort> port{new AfXdpPort};
  ONEHOP_TRYV(port->bring_up(config));
  return port;
}

Result<std::unique_ptr<AfXdpPort>> AfXdpPort::open_on(const std::string& interface) const {
  AfXdpConfig config = config_;
  config.interface = interface;
  config.mode = mode_;
  std::unique_ptr<AfXdpPort> port{new AfXdpPort};
  port->reservation_ = reservation_.share();
  ONEHOP_TRYV(port->bring_up(config));
  return port;
}

Result<void> AfXdpPort::bring_up(const AfXdpConfig& config) {
  config_ = config;
  // 1. The interface and the port number.
  ONEHOP_TRY(facts, xdp::read_interface(config.interface));
  interface_ = std::move(facts);
  if (!interface_.is_up)
    return Error{ExitCode::io_unavailable, "use interface " + config.interface, "it is down", "ip link set up"};
  if (!reservation_.is_open()) {
    ONEHOP_TRY(reservation, UdpReservation::bind(config.local));
    reservation_ = std::move(reservation);
  }
  wire_overhead_bytes_ = reservation_.is_ipv6() ? wire::ethernet_ipv6_udp_bytes : wire::ethernet_ipv4_udp_bytes;

  // 2. The mode asked, or the first of all that works. What is not about the mode ends the search.
  if (config.mode != XdpMode::automatic) return bring_up_mode(config, config.mode);
  Error last;
  for (const XdpMode mode : {XdpMode::zero_copy, XdpMode::copy, XdpMode::skb}) {
    auto tried = bring_up_mode(config, mode);
    if (tried) return success();
    last = std::move(tried).error();
    if (last.code != ExitCode::io_unavailable || last.errno_value == EBUSY || last.errno_value == EEXIST) break;
    if (!refusals_.empty()) refusals_ += ", ";
    refusals_ += "no " + std::string{to_string(mode)} + " (" + last.cause + ")";
  }
  return last;
}

Result<void> AfXdpPort::bring_up_mode(const AfXdpConfig& config, XdpMode mode) {
  const bool is_zero_copy = mode == XdpMode::zero_copy;
  const std::uint32_t chunk_bytes =
      config.chunk_bytes != 0 ? config.chunk_bytes : xdp::chunk_bytes_for(interface_.mtu_bytes, is_zero_copy);

  // 1. The program comes first: some drivers send in zero-copy mode only while one is attached. A native program that
  //    an attempt at zero-copy left is kept, because attaching may bounce the link.
  const bool is_attached = mode == XdpMode::copy && config.mode == XdpMode::automatic && steer_.is_attached();
  if (!is_attached) {
    steer_ = xdp::Steer{};
    const xdp::SteerOptions options{
        .frames = xdp::steer_frames(reservation_.address(), config.peer),
        .mode = mode == XdpMode::skb ? xdp::AttachMode::generic : xdp::AttachMode::native,
        .has_fragments = xdp::is_fragmented(interface_.mtu_bytes, chunk_bytes)};
    ONEHOP_TRY(steer, xdp::Steer::attach(interface_, options));
    steer_ = std::move(steer);
  }

  // 2. Sockets.
  mode_ = mode;
  sender_ = {};
  queues_.clear();
  ONEHOP_TRYV(open_queues(config, is_zero_copy));
  return finish_set_up(config);
}

Result<void> AfXdpPort::open_queues(const AfXdpConfig& config, bool is_zero_copy) {
  const std::uint32_t chunk_bytes =
      config.chunk_bytes != 0 ? config.chunk_bytes : xdp::chunk_bytes_for(interface_.mtu_bytes, is_zero_copy);
  xdp::BindTarget target{.interface = interface_.name,
                         .ifindex = interface_.ifindex,
                         .queue = 0,
                         .is_zero_copy = is_zero_copy,
                         .has_fragments = xdp::is_fragmented(interface_.mtu_bytes, chunk_bytes)};
  queues_.reserve(interface_.rx_queues);
  for (target.queue = 0; target.queue < interface_.rx_queues; ++target.queue) {
    ONEHOP_TRYV(open_queue(config, target, chunk_bytes));
  }
  target.queue = 0;
  ONEHOP_TRYV(open_sender(config, target));
  frame_chunks_ = xdp::frame_chunks(interface_.mtu_bytes, chunk_bytes);
  frame_bytes_max_ = xdp::payload_bytes_max(chunk_bytes, frame_chunks_, wire_overhead_bytes_);
  wire_frame_bytes_ = xdp::wire_frame_bytes(interface_.mtu_bytes, chunk_bytes, frame_chunks_);
  return success();
}

Result<void> AfXdpPort::open_queue(const AfXdpConfig& config, const xdp::BindTarget& target,
                                   std::uint32_t chunk_bytes) {
  const bool has_sender = target.queue == 0;
  RxQueue& queue = queues_.emplace_back();
  ONEHOP_TRY(umem, xdp::Umem::create(config.rx_frames + (has_sender ? config.tx_frames : 0), chunk_bytes));
  queue.umem = std::move(umem);
  const std::uint32_t completion_frames = has_sender ? config.tx_frames : unused_completion_frames;
  ONEHOP_TRY(socket, xdp::XskSocket::open_rx(queue.umem, config.rx_frames, completion_frames));
  queue.socket = std::move(socket);
  ONEHOP_CHECK(queue.socket.fill.size() >= xdp::fill_entries(config.rx_frames));
  // The fill ring is full before the bind: a driver that finds it empty then may never look again (igb).
  for (std::uint32_t chunk = 0; chunk < config.rx_frames; ++chunk) {
    const bool is_taken = queue.socket.fill.push(queue.umem.offset_of(chunk));
    ONEHOP_CHECK(is_taken);
  }
  queue.socket.fill.publish();
  ONEHOP_TRYV(queue.socket.wait_bind(target));
  if (queue.socket.is_zero_copy() != target.is_zero_copy) {
    return Error{ExitCode::io_unavailable, "bind AF_XDP socket to " + target.interface,
                 "the kernel gave another mode than asked", "take another --xdp-mode", EOPNOTSUPP};
  }
  return success();
}

Result<void> AfXdpPort::open_sender(const AfXdpConfig& config, const xdp::BindTarget& target) {
  ONEHOP_TRY(sender, xdp::XskSocket::open_tx(config.tx_frames));
  sender_ = std::move(sender);
  ONEHOP_TRYV(sender_.bind_shared(target, queues_.front().socket.fd()));
  const std::uint32_t chunk_bytes = queues_.front().umem.chunk_bytes();
  const int sndbuf_bytes = config.sndbuf_bytes > 0
                               ? config.sndbuf_bytes
                               : static_cast<int>(config.tx_frames) * xdp::copy_truesize_bytes(chunk_bytes);
  xdp::set_tx_limits(sender_.fd(), config.tx_frames, sndbuf_bytes, config.priority);
  // An empty send says whether the driver can be woken at all; some accept the bind and fail here.
  const int error = kick_tx();
  if (error == 0 || error == EAGAIN || error == ENETDOWN) return success();
  return errno_error(ExitCode::io_unavailable, "wake the driver of " + target.interface,
                     "this driver cannot send from AF_XDP: take another --xdp-mode or --io udp", error);
}

Result<void> AfXdpPort::finish_set_up(const AfXdpConfig& config) {
  // 1. The data path's own memory.
  chunks_.set_up(config.rx_frames, config.tx_frames, queues_.front().umem.chunk_bytes(), frame_chunks_);
  wake_fd_ = Fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!wake_fd_.is_open()) return errno_error(ExitCode::internal_error, "make an eventfd");
  poll_fds_.assign(1, {.fd = wake_fd_.get(), .events = POLLIN, .revents = 0});
  memory_ = sender_.memory();
  for (const RxQueue& queue : queues_) {
    poll_fds_.push_back({.fd = queue.socket.fd(), .events = POLLIN, .revents = 0});
    memory_ += queue.umem.memory() + queue.socket.memory();
  }
  scope_ = xdp::tx_scope(interface_, mode_ == XdpMode::zero_copy);

  // 2. Only now frames are steered here: every queue can take them.
  for (std::uint32_t queue = 0; queue < queues_.size(); ++queue) {
    ONEHOP_TRYV(steer_.set_socket(queue, queues_[queue].socket.fd()));
  }

  // 3. A link that the driver took down for this comes back by itself.
  for (Nanos waited{0}; interface_.is_running && !xdp::is_running(interface_.name) && waited < link_patience;
       waited += link_poll_interval)
    std::this_thread::sleep_for(link_poll_interval);
  return success();
}

}  // namespace onehop
