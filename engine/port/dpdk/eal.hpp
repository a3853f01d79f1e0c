// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Eal: DPDK's environment, started once per process and kept as long as a device of it is used.
//
// Bring-up takes about 0.2 s, most of it for loading every driver that is installed. It must happen
// while the privileges are there that the devices need. EAL's own threads (interrupts, and the
// drivers') keep off its lcore, the engine's CPU; its pin of the starting thread is undone.
//
// Nothing stays behind: memory belongs to the process, and the runtime folder is removed as soon as
// EAL has made it. What EAL and its drivers print is seen only when bring-up fails, as the cause.
#pragma once

#include <memory>
#include <string>

#include "engine/base/result.hpp"
#include "engine/port/dpdk/eal_arguments.hpp"

namespace onehop::dpdk {

class Eal {
 public:
  /// start runs EAL with the arguments as complete() left them. Errors: 2 for wrong ones, 9 with
  /// EAL's reason where no device came up, 1 for a second start. Syscalls: many, for up to 1 s.
  [[nodiscard]] static Result<std::unique_ptr<Eal>> start(const EalArguments& arguments);
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;
  ~Eal();

  /// is_huge: frames lie in huge pages.
  [[nodiscard]] bool is_huge() const noexcept { return is_huge_; }

 private:
  Eal() = default;
  bool is_huge_ = false;
};

/// dpdk_version is that of the library in use: "DPDK 22.11.11".
[[nodiscard]] std::string dpdk_version();

}  // namespace onehop::dpdk
