// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The table of ports, and OpenPort: the port that the options, the interface and the privileges led
// to, and the reason. A new port is a member of AnyPort and a row of port_kinds; options, doctor,
// --version and the opening read them. Set-up code, one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "control/transfer/engine.hpp"
#include "control/transfer/port/dpdk_host.hpp"
#include "control/transfer/settings.hpp"
#include "engine/base/result.hpp"
#include "engine/port/fallback_port.hpp"
#include "engine/port/udp_port.hpp"
#if ONEHOP_HAS_XDP
#include "xdp/afxdp_port.hpp"
#endif

namespace onehop::run {
struct SessionKeys;
struct SenderLoopConfig;
struct ReceiverLoopConfig;
}  // namespace onehop::run

namespace onehop::transfer {

#if ONEHOP_HAS_XDP
using AutoPort = FallbackPort<AfXdpPort, UdpPort>;
#endif
using AnyPort = std::variant<std::unique_ptr<UdpPort>
#if ONEHOP_HAS_XDP
                             ,
                             std::unique_ptr<AfXdpPort>, std::unique_ptr<AutoPort>
#endif
                             ,
                             std::unique_ptr<dpdk::ModulePort>>;

/// Below this size AF_XDP does not pay: its program and memory take 46 million instructions and 50
/// to 100 ms, and save 0.1 instructions a byte (tests/vm/cpu.json). Too low: a small transfer takes
/// as long as a larger one. Too high: larger transfers miss the saving.
inline constexpr std::uint64_t small_bytes_max = 16 << 20;

/// PortRequest: what a port is opened for. `local` may have port 0. `dpdk` is there for dpdk alone,
/// and outlives the port. has_fragments: for datagrams of 64 KB. is_small: for no more than
/// small_bytes_max in all.
struct PortRequest {
  const Settings& settings;
  const std::string& interface;
  const onehop::Endpoint& local;
  /// `auto` asks for it: receiving and sending are cheapest over different ports.
  api::Role role = api::Role::sending;
  bool has_fragments = false;
  bool is_small = false;
  DpdkHost* dpdk = nullptr;
};

struct Opened {
  AnyPort port;
  std::string reason = "asked for";
};

struct PortKind {
  std::string_view name;      ///< the word of --io, and PortInfo::io
  std::string_view missing;   ///< why this build does not have it; empty: it does
  std::string_view packages;  ///< what to install for it
  bool is_in_auto = false;    ///< `auto` may take it
  /// Frames pass the interface's queue discipline as a socket's do, which sees them leave.
  bool has_own_qdisc = false;
  bool can_fragment = false;  ///< carries datagrams of 64 KB in IP fragments
  /// Bound to one interface, so a receiver opens it before it listens.
  bool is_bound = false;
  Result<Opened> (*open)(const PortRequest&) = nullptr;
};

[[nodiscard]] Result<Opened> open_udp(const PortRequest& request);
[[nodiscard]] Result<Opened> open_afxdp(const PortRequest& request);
[[nodiscard]] Result<Opened> open_dpdk(const PortRequest& request);

inline constexpr std::array port_kinds{
    PortKind{.name = "udp",
             .missing = "",
             .packages = "",
             .is_in_auto = true,
             .has_own_qdisc = true,
             .can_fragment = true,
             .open = open_udp},
    PortKind{.name = "afxdp",
             .missing = ONEHOP_HAS_XDP ? "" : "libxdp, libbpf or clang was missing",
             .packages = "libbpf-dev and clang",
             .is_in_auto = true,
             .is_bound = true,
             .open = open_afxdp},
    PortKind{.name = "dpdk",
             .missing = "",  // whether its module is installed, load() tells
             .packages = "onehop-dpdk",
             .is_bound = true,
             .open = open_dpdk},
};

/// port_kind gives the row of a name; null: `auto`, or there is none.
[[nodiscard]] const PortKind* port_kind(std::string_view name) noexcept;
[[nodiscard]] std::vector<std::string> port_words();

/// is_cheap_in_copy_mode: small frames that no receive offload coalesces, for which receiving over
/// AF_XDP without zero-copy was measured to cost less than over a socket. It may block while the
/// kernel holds rtnl_lock.
[[nodiscard]] bool is_cheap_in_copy_mode(const std::string& interface);

/// check_fragments refuses a named io that cannot carry datagrams in IP fragments, before anything
/// is started.
[[nodiscard]] Result<void> check_fragments(const Settings& settings);

/// opening_warnings: what a user who names --io afxdp, or DPDK over it, should know before it is
/// opened on `interface`. Syscalls: those of read_copy_transmit() and read_interface_facts().
[[nodiscard]] std::vector<std::string> opening_warnings(const Settings& settings,
                                                        const std::string& interface);

class OpenPort {
 public:
  /// open opens what --io asks for. A named io that is unavailable is an error; auto chooses AF_XDP
  /// if that is cheaper in this role, else UDP, and says why. It needs the privileges of the io,
  /// and touches no file.
  [[nodiscard]] static Result<OpenPort> open(const PortRequest& request);

  [[nodiscard]] PortInfo info() const;
  [[nodiscard]] Result<std::uint16_t> local_port() const;
  [[nodiscard]] const std::string& reason() const { return opened_.reason; }

  /// connect names the one peer that frames come from and go to.
  [[nodiscard]] Result<void> connect(const onehop::Endpoint& peer);

  /// move_to reopens a port that is bound to one interface on `interface`, for the running engine,
  /// which switches to it with the next path update. A port that the kernel routes for has nothing
  /// to do.
  [[nodiscard]] Result<void> move_to(const std::string& interface);

  /// other_io is what fall_back() would take; empty: this port has no other.
  [[nodiscard]] std::string_view other_io() const;
  /// fall_back switches the engine to UDP on the same port number, if --io auto chose AF_XDP and
  /// frames are lost there. `is_running`: there is an engine.
  [[nodiscard]] Result<void> fall_back(const PortRequest& request, const onehop::Endpoint& peer,
                                       bool is_running);

  /// visit calls `work` with the port itself, for callers that drive it without an engine.
  template <class Work>
  void visit(Work work) {
    std::visit([&](auto& port) { work(*port); }, opened_.port);
  }

  [[nodiscard]] std::unique_ptr<Engine> make_sender(const run::SessionKeys& keys,
                                                    const run::SenderLoopConfig& config,
                                                    run::EngineLinks links);
  [[nodiscard]] std::unique_ptr<Engine> make_receiver(const run::SessionKeys& keys,
                                                      const run::ReceiverLoopConfig& config,
                                                      run::EngineLinks links);

 private:
  explicit OpenPort(Opened opened) : opened_{std::move(opened)} {}
  Opened opened_;
};

}  // namespace onehop::transfer
