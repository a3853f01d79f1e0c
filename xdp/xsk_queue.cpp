// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/xsk_queue.hpp"

#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>

#include "engine/base/system/driver_quirks.hpp"
#include "xdp/afxdp_layout.hpp"
#include "xdp/local_rights.hpp"
#include "xdp/rx_chunks.hpp"

namespace onehop::xdp {

namespace {

constexpr std::uint32_t unused_completion_frames = 16;  // no UMEM comes without a completion ring

Error register_error(std::size_t bytes, int errno_value) {
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

template <class Value>
bool set_option(int fd, int option, const Value& value) {
  return ::setsockopt(fd, SOL_XDP, option, &value, sizeof value) == 0;
}

struct RingRequest {
  int fd = -1, option = 0;
  std::uint64_t page_offset = 0;
  xdp_ring_offset xdp_mmap_offsets::*at = nullptr;
  std::uint32_t entries = 0;
  std::size_t entry_bytes = 0;
};

/// open_ring has the kernel make a ring, maps it, and takes over where it stands. False: see errno.
template <class Ring>
bool open_ring(const RingRequest& asked, RingMemory& memory, Ring& ring) {
  xdp_mmap_offsets offsets{};
  socklen_t length = sizeof offsets;
  if (!set_option(asked.fd, asked.option, asked.entries) ||
      ::getsockopt(asked.fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) != 0)
    return false;
  const xdp_ring_offset& at = offsets.*asked.at;
  const std::size_t bytes = at.desc + asked.entries * asked.entry_bytes;
  void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                               asked.fd, static_cast<off_t>(asked.page_offset));
  if (address == MAP_FAILED) return false;
  memory = {static_cast<std::byte*>(address), UnmapRing{bytes}};
  const auto word = [&](std::uint64_t offset) {
    return reinterpret_cast<std::uint32_t*>(memory.get() + offset);
  };
  ring.mask = asked.entries - 1;
  ring.size = asked.entries;
  ring.producer = word(at.producer);
  ring.consumer = word(at.consumer);
  ring.flags = word(at.flags);
  ring.ring = memory.get() + at.desc;
  read_indices(ring);
  return true;
}

/// bind_to returns an errno, or 0.
int bind_to(int fd, const sockaddr_xdp& address) {
  return -wait_while_busy([&] {
    return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0
                                                                                        : -errno;
  });
}

}  // namespace

void UnmapRing::operator()(std::byte* address) const noexcept { ::munmap(address, bytes); }

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
  ONEHOP_TRY(socket, rights().open_xdp_socket());
  receiver_ = std::move(socket);  // the UMEM's own
  xdp_umem_reg registration{};
  registration.addr = reinterpret_cast<std::uintptr_t>(memory_.data());
  registration.len = memory_.size();
  registration.chunk_size = chunk_bytes_;
  if (!set_option(rx_fd(), XDP_UMEM_REG, registration) ||
      !open_ring({rx_fd(), XDP_UMEM_FILL_RING, XDP_UMEM_PGOFF_FILL_RING, &xdp_mmap_offsets::fr,
                  fill_entries(options.rx_frames), sizeof(std::uint64_t)},
                 rings_[0], fill) ||
      !open_ring(
          {rx_fd(), XDP_UMEM_COMPLETION_RING, XDP_UMEM_PGOFF_COMPLETION_RING, &xdp_mmap_offsets::cr,
           options.tx_frames > 0 ? options.tx_frames : unused_completion_frames,
           sizeof(std::uint64_t)},
          rings_[1], completion))
    return register_error(memory_.size(), errno);
  return success();
}

Result<void> XskQueue::bind_sockets(const XskOptions& options) {
  if (!open_ring({rx_fd(), XDP_RX_RING, XDP_PGOFF_RX_RING, &xdp_mmap_offsets::rx, options.rx_frames,
                  sizeof(xdp_desc)},
                 rings_[2], rx))
    return bind_error(options, errno);
  // Copy or zero-copy is always asked for by name: the kernel's own choice would be silent.
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_flags =
      static_cast<std::uint16_t>((options.is_zero_copy ? XDP_ZEROCOPY : XDP_COPY) |
                                 XDP_USE_NEED_WAKEUP | (options.has_fragments ? XDP_USE_SG : 0));
  address.sxdp_ifindex = ::if_nametoindex(options.interface.c_str());
  address.sxdp_queue_id = options.queue;
  if (const int error = bind_to(rx_fd(), address); error != 0) return bind_error(options, error);
  if (is_zero_copy(rx_fd()) != options.is_zero_copy)
    return Error{ExitCode::io_unavailable, "bind AF_XDP socket to " + options.interface,
                 "the kernel gave another mode than asked", "take another --xdp-mode", EOPNOTSUPP};
  if (options.tx_frames == 0) return success();

  ONEHOP_TRY(socket, rights().open_xdp_socket());
  sender_ = std::move(socket);
  if (!open_ring({tx_fd(), XDP_TX_RING, XDP_PGOFF_TX_RING, &xdp_mmap_offsets::tx, options.tx_frames,
                  sizeof(xdp_desc)},
                 rings_[3], tx))
    return bind_error(options, errno);
  // The kernel takes no other flag beside this one: mode and wake-up flag are the receiver's.
  address.sxdp_flags = XDP_SHARED_UMEM;
  address.sxdp_shared_umem_fd = static_cast<std::uint32_t>(rx_fd());
  if (const int error = bind_to(tx_fd(), address); error != 0) return bind_error(options, error);
  return success();
}

int XskQueue::kick_tx() const noexcept {
  return ::sendto(tx_fd(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0 ? 0 : errno;
}

Bytes XskQueue::memory() const noexcept {
  const std::size_t ring_bytes = (fill.size + completion.size) * sizeof(std::uint64_t) +
                                 (rx.size + tx.size) * sizeof(xdp_desc);
  return {static_cast<std::int64_t>(memory_.size() + ring_bytes)};
}

void set_tx_limits(int xsk_fd, const TxLimits& limits) {
  (void)set_option(xsk_fd, XDP_MAX_TX_SKB_BUDGET, limits.budget_frames);
  const int bytes = limits.sndbuf_bytes;
  if (!rights().force_buffer(xsk_fd, SO_SNDBUFFORCE, bytes))
    (void)::setsockopt(xsk_fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  if (limits.priority != 0)
    (void)::setsockopt(xsk_fd, SOL_SOCKET, SO_PRIORITY, &limits.priority, sizeof limits.priority);
}

void widen_sockets(std::uint32_t tx_frames, std::uint32_t frame_bytes, int priority) {
  std::error_code ignored;  // without /proc nothing is found, and nothing is lost but speed
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd", ignored}) {
    const std::string name = entry.path().filename();
    int fd = -1, domain = 0;
    (void)std::from_chars(name.data(), name.data() + name.size(), fd);
    socklen_t length = sizeof domain;
    if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_XDP)
      set_tx_limits(fd,
                    {.budget_frames = tx_frames,
                     .sndbuf_bytes = static_cast<int>(tx_frames) * copy_truesize_bytes(frame_bytes),
                     .priority = priority});
  }
}

}  // namespace onehop::xdp
