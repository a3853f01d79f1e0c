// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DpdkDevice: one port of DPDK (an "ethdev"), one queue each way, and what its driver tells.
//
// A device is one of two kinds. Where it drives a kernel interface (net_af_xdp, net_af_packet,
// mlx5), the kernel keeps its addresses, routes and neighbours. Where DPDK owns the link whole
// (net_memif, net_virtio_user, a card given to vfio-pci), there is no kernel interface, and the
// port itself answers and asks for link addresses.
//
// Set-up and tear-down only; the data path is dpdk_port.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/result.hpp"
#include "engine/base/system/address.hpp"
#include "engine/port/dpdk/eal.hpp"
#include "engine/port/dpdk/frame_pool.hpp"
#include "engine/port/dpdk/interrupt_gate.hpp"
#include "engine/port/dpdk/module.hpp"

struct rte_flow;

namespace onehop::dpdk {

struct DpdkDeviceConfig {
  std::string name;  ///< of the device; empty: the only one there is
  /// How far down its frees see, where the caller knows better than the driver's name.
  std::optional<QueueScope> scope;
};

class DpdkDevice {
 public:
  /// open sets the device up and starts it. `eal` outlives it. Errors: 2 where several devices
  /// leave open which one, 9 with the driver's reason. Syscalls: as its driver needs.
  [[nodiscard]] static Result<std::unique_ptr<DpdkDevice>> open(Eal& eal,
                                                                const DpdkDeviceConfig& config);
  ~DpdkDevice();

  /// steer asks the device to give us only UDP frames to `local`; false where it has no such rules,
  /// and every frame has to be looked at. It replaces the rule before. Set-up only.
  bool steer(const Endpoint& local) noexcept;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] const DeviceFacts& facts() const noexcept { return facts_; }
  [[nodiscard]] FramePool& pool() noexcept { return pool_; }
  /// gate holds the driver's control thread back, where the driver needs that; else nullptr.
  [[nodiscard]] InterruptGate* gate() noexcept {
    return facts_.driver == "net_memif" ? &gate_ : nullptr;
  }

 private:
  explicit DpdkDevice(std::uint16_t port) : port_{port} {}
  [[nodiscard]] Result<void> bring_up(const DpdkDeviceConfig& config);
  [[nodiscard]] Result<void> set_up_queues();
  void find_telemetry(const DpdkDeviceConfig& config) noexcept;

  std::uint16_t port_;
  DeviceFacts facts_;
  FramePool pool_;
  InterruptGate gate_;
  rte_flow* rule_ = nullptr;
  bool is_configured_ = false;
};

}  // namespace onehop::dpdk
