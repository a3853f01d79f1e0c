// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Bring-up of AfXdpPort. Before the engine core starts; it allocates all that the data path needs.
#include <bit>
#include <cerrno>
#include <thread>

#include "engine/base/check.hpp"
#include "xdp/afxdp_layout.hpp"
#include "xdp/afxdp_port.hpp"
#include "xdp/local_rights.hpp"

namespace onehop {

namespace {

// A driver that rebuilds its queues for XDP takes its link down for 1 to 3 s (igb). Too low: the
// first frames are lost. Too high: a cable that was pulled just now delays the start.
constexpr Nanos link_patience = 5s;
constexpr Nanos link_poll_interval = 20ms;

// Taking over is a few microseconds of the engine core's. Too high: a move takes longer.
constexpr Nanos taking_poll_interval = 1ms;

Result<InterfaceFacts> facts_of(const std::string& interface) {
  ONEHOP_TRY(facts, read_interface_facts(interface));
  if (facts.is_up) return facts;
  return Error{ExitCode::io_unavailable, "use interface " + interface, "it is down",
               "ip link set up", ENETDOWN};
}

}  // namespace

Result<std::unique_ptr<AfXdpPort>> AfXdpPort::open(const AfXdpConfig& config) {
  ONEHOP_CHECK(std::has_single_bit(config.rx_frames) && config.rx_frames >= rx_batch_max);
  ONEHOP_CHECK(std::has_single_bit(config.tx_frames) && config.tx_frames >= 32);
  std::unique_ptr<AfXdpPort> port{new AfXdpPort{config}};
  ONEHOP_TRY(facts, facts_of(config.interface));
  ONEHOP_TRY(reservation, UdpReservation::bind(config.local));
  port->reservation_ = std::move(reservation);
  port->wire_overhead_bytes_ =
      port->reservation_.is_ipv6() ? wire::ethernet_ipv6_udp_bytes : wire::ethernet_ipv4_udp_bytes;
  ONEHOP_TRY(wake, WakeFd::open());
  port->wake_ = std::move(wake);
  ONEHOP_TRYV(port->open_device(facts, port->device_));
  return port;
}

Result<void> AfXdpPort::move_to(const std::string& interface) {
  // 1. Take back what the engine core has not taken, and wait for what it takes right now.
  offered_ = nullptr;
  while (is_taking_) std::this_thread::sleep_for(taking_poll_interval);

  // 2. Close it, or what was left: an interface has room for one program, and may be the one asked
  //    for.
  other_.reset();

  // 3. Open and offer.
  ONEHOP_TRY(facts, facts_of(interface));
  ONEHOP_TRYV(open_device(facts, other_));
  offered_ = &other_;
  return success();
}

Result<void> AfXdpPort::open_device(const InterfaceFacts& facts, std::unique_ptr<Device>& device) {
  // An error that is not about the mode ends the search.
  if (config_.mode != XdpMode::automatic) return open_mode(facts, config_.mode, device);
  Error last;
  for (const XdpMode mode : {XdpMode::zero_copy, XdpMode::copy, XdpMode::skb}) {
    if (mode == XdpMode::skb && !config_.has_generic) break;
    auto tried = open_mode(facts, mode, device);
    if (tried) {
      config_.mode = mode;
      return success();
    }
    last = std::move(tried).error();
    if (last.code != ExitCode::io_unavailable || last.errno_value == EBUSY ||
        last.errno_value == EEXIST)
      break;
    if (!refusals_.empty()) refusals_ += ", ";
    refusals_ += "no " + std::string{to_string(mode)} + " (" + last.cause + ")";
  }
  return last;
}

Result<void> AfXdpPort::open_mode(const InterfaceFacts& facts, XdpMode mode,
                                  std::unique_ptr<Device>& device) {
  const std::uint32_t chunk_bytes =
      xdp::chunk_bytes_for(facts.mtu_bytes, mode == XdpMode::zero_copy);

  // 1. The program comes first: some drivers send in zero-copy mode only while one is attached.
  //    The native program of an attempt at zero-copy is kept, because attaching may bounce the
  //    link.
  SteerFds steer;
  if (device && mode == XdpMode::copy) steer = std::move(device->steer);
  device.reset();
  if (!steer.link.is_open()) {
    ONEHOP_TRY(attached,
               xdp::rights().attach_program(
                   {.ifindex = facts.ifindex,
                    .udp_socket = reservation_.fd(),
                    .is_generic = mode == XdpMode::skb,
                    .has_fragments = xdp::frame_chunks(facts.mtu_bytes, chunk_bytes) > 1}));
    steer = std::move(attached);
  }
  // The last queue is the spare one: drivers put what goes to one queue on the first.
  device = std::make_unique<Device>();
  device->queues = std::vector<RxQueue>(config_.is_on_spare_queue ? 1 : facts.rx_queues);
  if (config_.is_on_spare_queue) device->queue_first = facts.rx_queues - 1;
  device->steer = std::move(steer);

  // 2. Memory, rings and sockets.
  ONEHOP_TRYV(open_queues(facts, mode, chunk_bytes, *device));
  ONEHOP_TRYV(prepare_sending(facts.name, *device));

  // 3. The rest.
  device->scope = tx_scope(facts, mode == XdpMode::zero_copy);
  return finish_set_up(facts, *device);
}

Result<void> AfXdpPort::open_queues(const InterfaceFacts& facts, XdpMode mode,
                                    std::uint32_t chunk_bytes, Device& device) const {
  device.frame_chunks = xdp::frame_chunks(facts.mtu_bytes, chunk_bytes);
  xdp::XskOptions options{.interface = facts.name,
                          .driver = facts.driver,
                          .queue = device.queue_first,
                          .chunk_bytes = chunk_bytes,
                          .rx_frames = config_.rx_frames,
                          .tx_frames = config_.tx_frames,
                          .is_zero_copy = mode == XdpMode::zero_copy,
                          .has_fragments = device.frame_chunks > 1};
  for (RxQueue& queue : device.queues) {
    ONEHOP_TRYV(queue.xsk.open(options));
    device.memory += queue.xsk.memory();
    ++options.queue;
    options.tx_frames = 0;
  }
  device.frame_bytes_max =
      xdp::payload_bytes_max(chunk_bytes, device.frame_chunks, wire_overhead_bytes_);
  device.wire_frame_bytes =
      xdp::wire_frame_bytes(facts.mtu_bytes, chunk_bytes, device.frame_chunks);
  device.tx.set_up(config_.rx_frames, config_.tx_frames, chunk_bytes, device.frame_chunks);
  return success();
}

Result<void> AfXdpPort::prepare_sending(const std::string& interface, Device& device) const {
  const int sndbuf_bytes = config_.sndbuf_bytes > 0
                               ? config_.sndbuf_bytes
                               : static_cast<int>(config_.tx_frames) *
                                     xdp::copy_truesize_bytes(device.sender().chunk_bytes());
  xdp::set_tx_limits(device.sender().tx_fd(), {.budget_frames = config_.tx_frames,
                                               .sndbuf_bytes = sndbuf_bytes,
                                               .priority = config_.priority});
  // An empty send says whether the driver can be woken at all; some accept the bind and fail here.
  const int error = device.sender().kick_tx();
  if (error == 0 || error == EAGAIN || error == ENETDOWN) return success();
  return errno_error(ExitCode::io_unavailable, "wake the driver of " + interface,
                     "this driver cannot send from AF_XDP: take another --xdp-mode or --io udp",
                     error);
}

Result<void> AfXdpPort::finish_set_up(const InterfaceFacts& facts, Device& device) const {
  // 1. Only now frames are steered here: every queue can take them.
  device.poll_fds.push_back({.fd = wake_.get(), .events = POLLIN, .revents = 0});
  for (std::uint32_t queue = 0; queue < device.queues.size(); ++queue) {
    const int fd = device.queues[queue].xsk.rx_fd();
    device.poll_fds.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    ONEHOP_TRYV(xdp::rights().set_socket(device.steer.map.get(), device.queue_first + queue, fd));
  }

  // 2. A link that the driver took down for this comes back by itself.
  for (Nanos waited{0}; facts.is_running && waited < link_patience; waited += link_poll_interval) {
    ONEHOP_TRY(now, read_interface_facts(facts.name));
    if (now.is_running) break;
    std::this_thread::sleep_for(link_poll_interval);
  }
  return success();
}

}  // namespace onehop
