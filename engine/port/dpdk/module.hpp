// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the program and DPDK's part of it share. That part is a shared module, onehop-dpdk.so, so
// that only its users load DPDK's libraries, or need them installed.
//
//   built      BUILD/tools/onehop/onehop    BUILD/engine/port/dpdk/onehop-dpdk.so
//   installed  PREFIX/bin/onehop            LIBDIR/onehop/onehop-dpdk.so
//
//   load() ─▶ dlopen ─▶ onehop_dpdk(version) ─▶ Module ─ open ─▶ Device ─ open_port ─▶ ModulePort
//
// The engine core calls a ModulePort through a table of functions, once or twice a frame: DPDK's
// own rte_eth_tx_burst() does the same.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/message.hpp"
#include "engine/base/result.hpp"
#include "engine/base/system/address.hpp"
#include "engine/base/telemetry.hpp"
#include "engine/port/dpdk/eal_arguments.hpp"
#include "engine/port/port.hpp"
#include "engine/port/udp_reservation.hpp"

namespace onehop {

struct DpdkPortConfig {
  Endpoint local;  ///< an address of this host, of the control connection; port 0: any
  /// Of `local`, where it was needed before the device was; else it is made.
  UdpReservation reservation;
  std::uint32_t tx_frames_max = 2048;  ///< accepted and not freed, a power of two
};

}  // namespace onehop

namespace onehop::dpdk {

/// TxCount says how the bytes of a TX queue are known.
enum class TxCount : std::uint8_t {
  freed,       ///< by frames that came back to the pool; the driver frees them when they have left
  descriptor,  ///< by the states of the ring's descriptors; the driver frees late
  handed,  ///< only what the driver did not take yet: it frees late and reports nothing, or copies
};

/// DeviceFacts: what was found at open.
struct DeviceFacts {
  std::string name;       ///< "net_memif0"
  std::string driver;     ///< "net_memif"
  std::string interface;  ///< of the kernel; empty: DPDK owns the link whole
  std::array<std::byte, 6> mac{};
  std::uint16_t mtu_bytes = 0;
  std::uint32_t rx_frames = 0;  ///< of the receive ring, as far as the driver tells
  std::uint32_t tx_frames = 0;
  bool is_virtual = true;  ///< software on both sides of the driver
  TxCount tx_count = TxCount::handed;
  QueueScope scope = QueueScope::own_ring;
  bool has_rx_count = false;      ///< the driver tells how many frames wait in the receive ring
  bool has_done_cleanup = false;  ///< frees on request what has left
  [[nodiscard]] bool has_own_link() const noexcept { return interface.empty(); }
};

/// ModulePort: a DpdkPort (dpdk_port.hpp), which says more of each call.
class ModulePort {
 public:
  virtual ~ModulePort() = default;
  [[nodiscard]] virtual std::span<std::byte> lend(std::size_t frame_bytes) noexcept = 0;
  virtual void commit(std::size_t frame_bytes) noexcept = 0;
  virtual std::size_t flush(Instant now) noexcept = 0;
  [[nodiscard]] virtual std::size_t receive(std::span<RxFrame> views) noexcept = 0;
  virtual void release() noexcept = 0;
  [[nodiscard]] virtual QueueTelemetry tx_queue(Instant now) noexcept = 0;
  [[nodiscard]] virtual QueueTelemetry rx_ring(Instant now) noexcept = 0;
  virtual std::uint32_t wait(Instant deadline, bool is_rx_wanted) noexcept = 0;
  virtual void update_path(const PathUpdate& update) noexcept = 0;
  [[nodiscard]] virtual std::uint64_t syscalls_total() const noexcept = 0;
  [[nodiscard]] virtual PortInfo info() const noexcept = 0;
  [[nodiscard]] virtual int last_error() const noexcept = 0;
  virtual void wake() noexcept = 0;
  [[nodiscard]] virtual std::uint16_t local_port() const noexcept = 0;
};
static_assert(Port<ModulePort>);

/// Device: EAL and its one device. It outlives its ports, of which it has one at a time.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceFacts& facts() const noexcept = 0;
  /// is_huge: frames lie in huge pages.
  [[nodiscard]] virtual bool is_huge() const noexcept = 0;
  /// open_port: as DpdkPort::open.
  [[nodiscard]] virtual Result<std::unique_ptr<ModulePort>> open_port(DpdkPortConfig config) = 0;
};

class Module {
 public:
  virtual ~Module() = default;
  /// library_version is that of the library in use: "DPDK 22.11.11".
  [[nodiscard]] virtual std::string library_version() const = 0;
  /// open starts EAL and the device, as Eal::start and DpdkDevice::open do. `scope` is how far down
  /// its frames see, where the caller knows better than the driver's name. Once per process.
  [[nodiscard]] virtual Result<std::unique_ptr<Device>> open(const EalArguments& arguments,
                                                             std::optional<QueueScope> scope) = 0;
};

/// load loads the module; it stays. Error 9: it is not installed, others could have written it, a
/// library of DPDK is missing, or it belongs to another version. Set-up only. Syscalls: those of
/// find_beside() and dlopen.
[[nodiscard]] Result<Module*> load();

/// What load() calls by its name: gives the module, or null to a program of another version.
using Entry = Module*(const char* version);
inline constexpr const char* entry_name = "onehop_dpdk";

}  // namespace onehop::dpdk
