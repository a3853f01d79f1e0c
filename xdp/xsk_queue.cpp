// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/xsk_queue.hpp"

#include <sys/socket.h>

#include <charconv>
#include <filesystem>

#include "engine/base/driver_quirks.hpp"
#include "xdp/afxdp_layout.hpp"
#include "xdp/rx_chunks.hpp"

namespace onehop::xdp {

namespace {

constexpr std::uint32_t unused_completion_frames = 16;  // no UMEM comes without a completion ring

Error register_error(std::size_t bytes, int errno_value) {
  if (errno_value == EPERM)
    return errno_error(ExitCode::privilege_missing, "open an AF_XDP socket",
                       "CAP_NET_RAW is missing: run as root, grant it, or take --io udp", EPERM);
  if (errno_value == EAFNOSUPPORT)
    return errno_error(ExitCode::io_unavailable, "open an AF_XDP socket",
                       "The kernel lacks it: take --io udp", errno_value);
  const bool is_limit = errno_value == ENOBUFS;
  return errno_error(
      is_limit ? ExitCode::privilege_missing : ExitCode::io_unavailable,
      "register " + std::to_string(bytes >> 20) + " MiB of AF_XDP memory",
      is_limit ? "raise the limit on locked memory (ulimit -l) or grant CAP_IPC_LOCK" : "",
      errno_value);
}

Error bind_error(const XskOptions& options, int errno_value) {
  const std::string attempt = "bind AF_XDP socket to " + options.interface + " queue " +
                              std::to_string(options.queue) +
                              (options.is_zero_copy ? " (zero-copy)" : " (copy)");
  if (errno_value == EPERM)
    return errno_error(ExitCode::privilege_missing, attempt,
                       "CAP_NET_RAW is missing: run as root or grant it", EPERM);
  if (errno_value == EBUSY)
    // In copy mode a frame that the driver has not let go keeps its socket, which keeps the queue.
    return errno_error(ExitCode::io_unavailable, attempt,
                       "another AF_XDP program holds this queue, or the driver still has frames of "
                       "one that ended: wait, or take --io udp",
                       EBUSY);
  const std::string otherwise = "take another --xdp-mode or --io udp";
  return errno_error(
      ExitCode::io_unavailable, attempt,
      options.is_zero_copy ? quirk_remedy(options.driver, errno_value, otherwise) : otherwise,
      errno_value);
}

bool is_zero_copy(int fd) {
  xdp_options options{};
  socklen_t length = sizeof options;
  return ::getsockopt(fd, SOL_XDP, XDP_OPTIONS, &options, &length) == 0 &&
         (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
}

}  // namespace

XskQueue::~XskQueue() {
  xsk_socket__delete(sender_);
  xsk_socket__delete(receiver_);
  if (umem_ != nullptr) delete_umem(umem_);
}

Result<void> XskQueue::open(const XskOptions& options) {
  ONEHOP_TRYV(register_memory(options));
  // The fill ring is full before the bind: a driver that finds it empty may never look again (igb).
  std::uint32_t index = 0;
  ONEHOP_CHECK(xsk_ring_prod__reserve(&fill, options.rx_frames, &index) == options.rx_frames);
  for (std::uint32_t chunk = 0; chunk < options.rx_frames; ++chunk)
    *xsk_ring_prod__fill_addr(&fill, index + chunk) = std::uint64_t{chunk} * chunk_bytes_;
  xsk_ring_prod__submit(&fill, options.rx_frames);
  return bind_sockets(options);
}

Result<void> XskQueue::register_memory(const XskOptions& options) {
  chunk_bytes_ = options.chunk_bytes;
  const std::size_t chunks = options.rx_frames + options.tx_frames;
  ONEHOP_TRY(memory, Mapping::frame_memory(chunks * chunk_bytes_));
  memory_ = std::move(memory);
  const xsk_umem_config config{
      .fill_size = fill_entries(options.rx_frames),
      .comp_size = options.tx_frames > 0 ? options.tx_frames : unused_completion_frames,
      .frame_size = chunk_bytes_,
      .frame_headroom = 0,
      .flags = 0};
  const int rc =
      xsk_umem__create(&umem_, memory_.data(), memory_.size(), &fill, &completion, &config);
  if (rc != 0) return register_error(memory_.size(), -rc);
  rx_fd_ = xsk_umem__fd(umem_);  // the receiving socket is the UMEM's own
  close_on_exec(rx_fd_);
  read_indices(fill);
  read_indices(completion);
  return success();
}

Result<void> XskQueue::bind_sockets(const XskOptions& options) {
  // Copy or zero-copy is always asked for by name: the kernel's own choice would be silent.
  const auto bind_flags =
      static_cast<std::uint16_t>((options.is_zero_copy ? XDP_ZEROCOPY : XDP_COPY) |
                                 XDP_USE_NEED_WAKEUP | (options.has_fragments ? XDP_USE_SG : 0));
  xsk_socket_config config{};
  config.rx_size = options.rx_frames;
  config.tx_size = options.tx_frames;
  config.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD;
  config.bind_flags = bind_flags;
  const char* const interface = options.interface.c_str();
  int rc = wait_while_busy([&] {
    return xsk_socket__create(&receiver_, interface, options.queue, umem_, &rx, nullptr, &config);
  });
  if (rc != 0) return bind_error(options, -rc);
  if (is_zero_copy(rx_fd_) != options.is_zero_copy)
    return Error{ExitCode::io_unavailable, "bind AF_XDP socket to " + options.interface,
                 "the kernel gave another mode than asked", "take another --xdp-mode", EOPNOTSUPP};
  if (options.tx_frames == 0) return success();
  // libxdp passes no bind flags for a shared UMEM: mode and wake-up flag are the receiver's.
  rc = xsk_socket__create_shared(&sender_, interface, options.queue, umem_, nullptr, &tx, &fill,
                                 &completion, &config);
  if (rc != 0) return bind_error(options, -rc);
  tx_fd_ = xsk_socket__fd(sender_);
  close_on_exec(tx_fd_);
  return success();
}

Bytes XskQueue::memory() const noexcept {
  const std::size_t ring_bytes = (fill.size + completion.size) * sizeof(std::uint64_t) +
                                 (rx.size + tx.size) * sizeof(xdp_desc);
  return {static_cast<std::int64_t>(memory_.size() + ring_bytes)};
}

void set_tx_limits(int xsk_fd, std::uint32_t budget_frames, int sndbuf_bytes, int priority) {
  (void)::setsockopt(xsk_fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget_frames, sizeof budget_frames);
  if (::setsockopt(xsk_fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf_bytes, sizeof sndbuf_bytes) != 0)
    (void)::setsockopt(xsk_fd, SOL_SOCKET, SO_SNDBUF, &sndbuf_bytes, sizeof sndbuf_bytes);
  if (priority != 0)
    (void)::setsockopt(xsk_fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
}

void widen_sockets(std::uint32_t tx_frames, std::uint32_t frame_bytes, int priority) {
  std::error_code ignored;  // without /proc nothing is found, and nothing is lost but speed
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd", ignored}) {
    const std::string name = entry.path().filename();
    int fd = -1, domain = 0;
    (void)std::from_chars(name.data(), name.data() + name.size(), fd);
    socklen_t length = sizeof domain;
    if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_XDP)
      set_tx_limits(fd, tx_frames, static_cast<int>(tx_frames) * copy_truesize_bytes(frame_bytes),
                    priority);
  }
}

}  // namespace onehop::xdp
