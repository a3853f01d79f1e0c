// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// OpenPort: the port that the command line, the interface and the privileges led to, and why.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/port/udp_port.hpp"
#include "tools/onehop/dpdk_host.hpp"
#include "tools/onehop/engine.hpp"
#include "tools/onehop/options.hpp"
#if ONEHOP_HAS_XDP
#include "xdp/afxdp_port.hpp"
#endif

namespace onehop::tool {

/// PortRole: which way the data goes. `auto` asks, because receiving and sending are cheapest over different ports.
enum class PortRole : std::uint8_t { sending, receiving };

/// is_cheap_in_copy_mode: small frames that no receive offload coalesces, for which receiving over AF_XDP without zero-copy was
/// measured to cost less than over a socket. It may block while the kernel holds rtnl_lock.
[[nodiscard]] bool is_cheap_in_copy_mode(const std::string& interface);

class OpenPort {
 public:
  /// check_fragments refuses a named io that cannot carry datagrams of 64 KB in IP fragments, before anything is started.
  [[nodiscard]] static Result<void> check_fragments(const CommonOptions& options);
  /// open opens what --io asks for on `interface`, bound to `local` (its port may be 0). A named io that is not to be had
  /// is an error; auto takes AF_XDP where that is cheaper in this `role`, else UDP, and says why. `has_fragments`: for datagrams of
  /// 64 KB, which UDP alone can. `dpdk` is there for --io dpdk, and outlives the port. Needs the privileges of the io; no file is
  /// touched.
  [[nodiscard]] static Result<OpenPort> open(const CommonOptions& options, const std::string& interface,
                                             const sockaddr_storage& local, PortRole role, bool has_fragments, DpdkHost* dpdk);

  [[nodiscard]] PortInfo info() const;
  [[nodiscard]] Result<std::uint16_t> local_port() const;
  [[nodiscard]] const std::string& reason() const { return reason_; }

  /// connect names the one peer that frames come from and go to.
  [[nodiscard]] Result<void> connect(const sockaddr_storage& peer);

  /// move_to opens on `interface` what only one interface has, for the running engine, which takes it with the next path update. A port
  /// that the kernel routes for has nothing to do.
  [[nodiscard]] Result<void> move_to(const std::string& interface);

  /// visit calls `work` with the port itself, for what drives it without an engine.
  template <class Work>
  void visit(Work work) {
    std::visit([&](auto& port) { work(*port); }, port_);
  }

  [[nodiscard]] std::unique_ptr<Engine> make_sender(const run::GateKeys& keys, const run::SenderLoopConfig& config,
                                                    run::EngineLinks links);
  [[nodiscard]] std::unique_ptr<Engine> make_receiver(const run::GateKeys& keys, const run::ReceiverLoopConfig& config,
                                                      run::EngineLinks links);

 private:
  using Any = std::variant<std::unique_ptr<UdpPort>
#if ONEHOP_HAS_XDP
                           , std::unique_ptr<AfXdpPort>
#endif
#if ONEHOP_HAS_DPDK
                           , std::unique_ptr<DpdkPort>
#endif
                           >;
#if ONEHOP_HAS_XDP
  std::vector<std::unique_ptr<AfXdpPort>> moved_;  // what the port had on the interfaces before; outlives it
#endif
  Any port_;
  std::string reason_;
};

}  // namespace onehop::tool
