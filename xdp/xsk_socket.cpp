// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/xsk_socket.hpp"

#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <thread>

#include "engine/base/units.hpp"
#include "xdp/rx_chunks.hpp"

namespace onehop::xdp {

namespace {

// The pool of a closed socket is freed asynchronously, on veth within 20 ms; with a deep lower queue only when that has
// drained (17 of 87 immediate re-binds gave EBUSY). Too low: a second run fails. Too high: a real conflict is told
// late.
constexpr Nanos bind_patience = 2s;
constexpr Nanos bind_retry_interval = 10ms;

struct RingPlace {
  off_t page_offset;
  std::size_t entry_bytes;
  xdp_ring_offset offset;
};

RingPlace place_of(int option, const xdp_mmap_offsets& offsets) {
  switch (option) {
    case XDP_UMEM_FILL_RING:
      return {static_cast<off_t>(XDP_UMEM_PGOFF_FILL_RING), sizeof(std::uint64_t), offsets.fr};
    case XDP_UMEM_COMPLETION_RING:
      return {static_cast<off_t>(XDP_UMEM_PGOFF_COMPLETION_RING), sizeof(std::uint64_t), offsets.cr};
    case XDP_RX_RING: return {XDP_PGOFF_RX_RING, sizeof(xdp_desc), offsets.rx};
    default: return {static_cast<off_t>(XDP_PGOFF_TX_RING), sizeof(xdp_desc), offsets.tx};
  }
}

Error bind_error(const BindTarget& target, int errno_value) {
  const std::string attempt = "bind AF_XDP socket to " + target.interface + " queue " + std::to_string(target.queue) +
                              (target.is_zero_copy ? " (zero-copy)" : " (copy)");
  if (errno_value == EPERM)
    return errno_error(ExitCode::privilege_missing, attempt, "CAP_NET_RAW is missing: run as root or grant it", EPERM);
  if (errno_value == EBUSY)
    return errno_error(ExitCode::io_unavailable, attempt, "another AF_XDP program holds this queue", EBUSY);
  return errno_error(ExitCode::io_unavailable, attempt, "take another --xdp-mode or --io udp", errno_value);
}

}  // namespace

Result<void> XskSocket::open_fd() {
  fd_ = Fd{::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)};
  if (fd_.is_open()) return success();
  if (errno == EPERM) {
    return errno_error(ExitCode::privilege_missing, "open an AF_XDP socket",
                       "CAP_NET_RAW is missing: run as root, grant it, or take --io udp", EPERM);
  }
  return errno_error(ExitCode::io_unavailable, "open an AF_XDP socket", "The kernel lacks it: take --io udp");
}

Result<void> XskSocket::set_ring(int option, std::uint32_t entries, const char* name) {
  if (::setsockopt(fd_.get(), SOL_XDP, option, &entries, sizeof entries) == 0) return success();
  return errno_error(ExitCode::io_unavailable,
                     "make the AF_XDP " + std::string{name} + " ring of " + std::to_string(entries) + " entries");
}

Result<RingMemory> XskSocket::map_ring(Mapping& mapping, int option, std::uint32_t entries) {
  xdp_mmap_offsets offsets{};
  socklen_t length = sizeof offsets;
  if (::getsockopt(fd_.get(), SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) != 0 || length != sizeof offsets)
    return errno_error(ExitCode::io_unavailable, "read the AF_XDP ring layout", "The kernel is older than 5.4");
  const RingPlace place = place_of(option, offsets);
  const std::size_t bytes = place.offset.desc + entries * place.entry_bytes;
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_.get(),
                         place.page_offset);
  if (address == MAP_FAILED) return errno_error(ExitCode::io_unavailable, "map an AF_XDP ring");
  mapping = Mapping{address, bytes};
  const auto word = [&](std::uint64_t offset) { return reinterpret_cast<std::uint32_t*>(mapping.data() + offset); };
  return RingMemory{word(place.offset.producer), word(place.offset.consumer), word(place.offset.flags),
                    mapping.data() + place.offset.desc, entries};
}

Result<XskSocket> XskSocket::open_rx(const Umem& umem, std::uint32_t rx_frames, std::uint32_t completion_frames) {
  XskSocket self;
  ONEHOP_TRYV(self.open_fd());
  xdp_umem_reg registration{};
  registration.addr = reinterpret_cast<std::uintptr_t>(umem.data());
  registration.len = static_cast<std::uint64_t>(umem.memory().count);
  registration.chunk_size = umem.chunk_bytes();
  if (::setsockopt(self.fd(), SOL_XDP, XDP_UMEM_REG, &registration, sizeof registration) != 0) {
    const bool is_limit = errno == ENOBUFS || errno == EPERM;
    return errno_error(is_limit ? ExitCode::privilege_missing : ExitCode::io_unavailable,
                       "register " + std::to_string(umem.memory().count >> 20) + " MiB of AF_XDP memory",
                       is_limit ? "raise the limit on locked memory (ulimit -l) or grant CAP_IPC_LOCK" : "");
  }
  ONEHOP_TRYV(self.set_ring(XDP_UMEM_FILL_RING, fill_entries(rx_frames), "fill"));
  ONEHOP_TRYV(self.set_ring(XDP_UMEM_COMPLETION_RING, completion_frames, "completion"));
  ONEHOP_TRYV(self.set_ring(XDP_RX_RING, rx_frames, "receive"));
  ONEHOP_TRY(fill_memory, self.map_ring(self.fill_mapping_, XDP_UMEM_FILL_RING, fill_entries(rx_frames)));
  ONEHOP_TRY(done_memory, self.map_ring(self.completion_mapping_, XDP_UMEM_COMPLETION_RING, completion_frames));
  ONEHOP_TRY(rx_memory, self.map_ring(self.rx_mapping_, XDP_RX_RING, rx_frames));
  self.fill = ProducerRing<std::uint64_t>{fill_memory};
  self.completion = ConsumerRing<std::uint64_t>{done_memory};
  self.rx = ConsumerRing<xdp_desc>{rx_memory};
  return self;
}

Result<XskSocket> XskSocket::open_tx(std::uint32_t tx_frames) {
  XskSocket self;
  ONEHOP_TRYV(self.open_fd());
  ONEHOP_TRYV(self.set_ring(XDP_TX_RING, tx_frames, "send"));
  ONEHOP_TRY(tx_memory, self.map_ring(self.tx_mapping_, XDP_TX_RING, tx_frames));
  self.tx = ProducerRing<xdp_desc>{tx_memory};
  return self;
}

Result<void> XskSocket::wait_bind(const BindTarget& target) {
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_ifindex = static_cast<std::uint32_t>(target.ifindex);
  address.sxdp_queue_id = target.queue;
  // Copy or zero-copy is always said: the kernel's own choice would be silent.
  address.sxdp_flags = static_cast<std::uint16_t>((target.is_zero_copy ? XDP_ZEROCOPY : XDP_COPY) |
                                                  XDP_USE_NEED_WAKEUP | (target.has_fragments ? XDP_USE_SG : 0));
  for (Nanos waited{0};; waited += bind_retry_interval) {
    if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return success();
    if (errno != EBUSY || waited >= bind_patience) return bind_error(target, errno);
    std::this_thread::sleep_for(bind_retry_interval);
  }
}

Result<void> XskSocket::bind_shared(const BindTarget& target, int owner_fd) {
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_flags = XDP_SHARED_UMEM;  // mode and wake-up flags are the owner's
  address.sxdp_ifindex = static_cast<std::uint32_t>(target.ifindex);
  address.sxdp_queue_id = target.queue;
  address.sxdp_shared_umem_fd = static_cast<std::uint32_t>(owner_fd);
  if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return success();
  return bind_error(target, errno);
}

bool XskSocket::is_zero_copy() const {
  xdp_options options{};
  socklen_t length = sizeof options;
  return ::getsockopt(fd_.get(), SOL_XDP, XDP_OPTIONS, &options, &length) == 0 &&
         (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
}

void set_tx_limits(int xsk_fd, std::uint32_t budget_frames, int sndbuf_bytes, int priority) {
  (void)::setsockopt(xsk_fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget_frames, sizeof budget_frames);
  if (::setsockopt(xsk_fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf_bytes, sizeof sndbuf_bytes) != 0)
    (void)::setsockopt(xsk_fd, SOL_SOCKET, SO_SNDBUF, &sndbuf_bytes, sizeof sndbuf_bytes);
  if (priority != 0) (void)::setsockopt(xsk_fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
}

}  // namespace onehop::xdp
