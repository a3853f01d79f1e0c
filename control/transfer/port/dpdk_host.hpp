// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DpdkHost: what --io dpdk needs of the machine, for the life of the process: EAL, its one device,
// and the steering program where net_af_xdp drives a kernel interface. Opened while the privileges
// are there; ports come and go on it.
//
//   --eal ARGS ─▶ complete ─▶ [net_af_xdp: our steering program] ─▶ EAL ─▶ device
//                                                                          └─▶ DpdkPort per address
//
// All of it is in a module that open() loads (engine/port/dpdk/module.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "control/transfer/settings.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/port/dpdk/module.hpp"

namespace onehop::transfer {

/// check_eal refuses --eal without --io dpdk, and arguments that no device can come of. Error: 2.
[[nodiscard]] Result<void> check_eal(const Settings& options);

/// kernel_interface_of names the kernel interface that --eal's device drives, as far as its
/// arguments tell; empty: none.
[[nodiscard]] Result<std::string> kernel_interface_of(const Settings& options);

class DpdkHost {
 public:
  /// open starts EAL and the device. `local` is the address that frames will come to, with its
  /// port; net_af_xdp is steered by it and needs it now. Errors: 2 wrong --eal; 9 no DPDK
  /// here, EAL or its driver failed; 10 privileges.
  [[nodiscard]] static Result<std::unique_ptr<DpdkHost>> open(
      const Settings& options, const std::optional<onehop::Endpoint>& local);

  /// open_port makes the port for `local`. One at a time. Error: 9 where the device is steered to
  /// another address.
  [[nodiscard]] Result<std::unique_ptr<dpdk::ModulePort>> open_port(const onehop::Endpoint& local);

  /// interface is the kernel's that the device drives; empty: DPDK owns the link whole.
  [[nodiscard]] const std::string& interface() const { return interface_; }
  /// label names the link for people and for what is remembered of it: "va" or "net_memif0".
  [[nodiscard]] const std::string& label() const {
    return interface_.empty() ? device_name_ : interface_;
  }
  /// summary is what the user should know of it once, in one line.
  [[nodiscard]] const std::string& summary() const { return summary_; }

 private:
  DpdkHost() = default;

  std::string interface_, device_name_, summary_;
  /// steer puts our program into net_af_xdp's arguments and reserves the port that it steers by.
  [[nodiscard]] Result<void> steer(std::vector<std::string>& words,
                                   const std::optional<onehop::Endpoint>& local);

  Fd steer_file_, steer_link_;
  UdpReservation reservation_;  // until the first port takes it over
  std::optional<onehop::Endpoint> steered_;
  std::optional<QueueScope> scope_;
  std::unique_ptr<dpdk::Device> device_;
};

}  // namespace onehop::transfer
