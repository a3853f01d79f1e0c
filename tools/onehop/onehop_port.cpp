// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/onehop_port.hpp"

#include <type_traits>

#include "engine/base/check.hpp"
#include "engine/wire/frame.hpp"
#include "tools/onehop/set_up.hpp"
#if ONEHOP_HAS_XDP
#include "xdp/afxdp_layout.hpp"
#include "xdp/probe.hpp"
#endif

namespace onehop::tool {

namespace {

Result<UdpPortConfig> udp_config(const CommonOptions& options, const sockaddr_storage& local, bool has_fragments) {
  UdpPortConfig config;
  config.local = local;
  config.interface = options.interface;
  config.priority = priority_of(options);
  config.dscp = dscp_of(options);
  config.has_fragments = has_fragments;
  config.has_frames_only = true;
  if (has_fragments) config.frame_bytes_max = wire::datagram_bytes_max;
  return config;
}

#if ONEHOP_HAS_XDP
XdpMode xdp_mode_of(const CommonOptions& options) {
  if (options.xdp_mode == "zero-copy") return XdpMode::zero_copy;
  if (options.xdp_mode == "copy") return XdpMode::copy;
  if (options.xdp_mode == "skb") return XdpMode::skb;
  return XdpMode::automatic;
}

Result<std::unique_ptr<AfXdpPort>> open_afxdp(const CommonOptions& options, const std::string& interface,
                                              const sockaddr_storage& local, XdpMode mode) {
  AfXdpConfig config;
  config.interface = interface;
  config.local = local;
  config.mode = mode;
  config.priority = priority_of(options);
  return AfXdpPort::open(config);
}

// take_afxdp opens AF_XDP where it is cheaper than UDP in this role; where not, `reason` says why. Measured by tools/compare --case cpu
// and --case ports (docs/results.md): sending in copy mode hands each frame to the queue below by itself, where UDP hands down
// 44 at once; receiving in copy mode leaves out socket, checksum and a system call's share per frame. The program steers our
// own frames alone, past the firewall: what they carry is authenticated, and nothing else is taken.
std::unique_ptr<AfXdpPort> take_afxdp(const CommonOptions& options, const std::string& interface, const sockaddr_storage& local,
                                      PortRole role, std::string& reason) {
  auto zero_copy = open_afxdp(options, interface, local, XdpMode::zero_copy);
  if (zero_copy.has_value()) {
    reason = interface + " has AF_XDP zero-copy";
    return std::move(zero_copy).value();
  }
  reason = "no AF_XDP zero-copy on " + interface + " (" + zero_copy.error().cause + ")";
  if (zero_copy.error().code == ExitCode::privilege_missing) return nullptr;
  if (role == PortRole::sending) {
    reason += ", and sending in copy mode costs more than UDP";
    return nullptr;
  }
  if (!is_cheap_in_copy_mode(interface)) {
    reason += ", and receiving in copy mode pays for frames of 1500 bytes without GRO alone";
    return nullptr;
  }
  auto copy = open_afxdp(options, interface, local, XdpMode::copy);
  if (copy.has_value()) {
    reason = "receiving through " + interface + "'s driver is cheaper than through a socket";
    return std::move(copy).value();
  }
  reason = "no AF_XDP in the driver of " + interface + " (" + copy.error().cause + ")";
  return nullptr;
}
#endif

}  // namespace

bool is_cheap_in_copy_mode(const std::string& interface) {
#if ONEHOP_HAS_XDP
  const auto facts = xdp::read_interface(interface);
  return facts.has_value() && !facts.value().has_gro && xdp::chunk_bytes_for(facts.value().mtu_bytes, false) == 2048;
#else
  (void)interface;
  return false;
#endif
}

Result<void> OpenPort::check_fragments(const CommonOptions& options) {
  if (options.io == "auto" || options.io == "udp") return success();
  return Error{ExitCode::io_unavailable, "send and receive datagrams in IP fragments (--fragment) over --io " + options.io,
               "only the kernel's UDP makes fragments and puts them together", "Use --io udp on both machines, or send without --fragment"};
}

Result<OpenPort> OpenPort::open(const CommonOptions& options, const std::string& interface,
                                const sockaddr_storage& local, PortRole role, bool has_fragments, DpdkHost* dpdk) {
  OpenPort opened;
#if ONEHOP_HAS_DPDK
  if (options.io == "dpdk") {
    ONEHOP_CHECK(dpdk != nullptr);
    if (!dpdk->interface().empty() && dpdk->interface() != interface)
      return Error{ExitCode::usage, "open --io dpdk", "--eal names " + dpdk->interface() + ", and the way to the peer leads over " + interface,
                   "Name the interface in both: --iface " + dpdk->interface()};
    ONEHOP_TRY(made, dpdk->open_port(local));
    opened.port_ = std::move(made);
    opened.reason_ = "asked for; " + dpdk->summary();
    return opened;
  }
#else
  (void)dpdk;
#endif
#if ONEHOP_HAS_XDP
  if (options.io == "afxdp") {
    ONEHOP_TRY(made, open_afxdp(options, interface, local, xdp_mode_of(options)));
    opened.reason_ = made->refusals().empty() ? "asked for" : "asked for; " + made->refusals();
    opened.port_ = std::move(made);
    return opened;
  }
  if (has_fragments) {
    opened.reason_ = "fragments need the kernel's UDP";
  } else if (options.io == "auto" && !interface.empty() && interface != "lo") {
    if (auto port = take_afxdp(options, interface, local, role, opened.reason_)) {
      opened.port_ = std::move(port);
      return opened;
    }
  }
#else
  if (options.io == "afxdp")
    return Error{ExitCode::io_unavailable, "open --io afxdp", "this build has no AF_XDP port (libbpf or clang was missing)", "Use --io udp"};
  (void)interface;
  (void)role;
#endif
  if (opened.reason_.empty()) opened.reason_ = options.io == "udp" ? "asked for" : "AF_XDP has nothing to offer on this interface";
  ONEHOP_TRY(config, udp_config(options, local, has_fragments));
  ONEHOP_TRY(made, UdpPort::open(config));
    opened.port_ = std::move(made);
  return opened;
}

PortInfo OpenPort::info() const {
  return std::visit([](const auto& port) { return port->info(); }, port_);
}

Result<std::uint16_t> OpenPort::local_port() const {
  return std::visit([](const auto& port) -> Result<std::uint16_t> { return port->local_port(); }, port_);
}

Result<void> OpenPort::connect(const sockaddr_storage& peer) {
  if (auto* udp = std::get_if<std::unique_ptr<UdpPort>>(&port_)) return (*udp)->connect(reinterpret_cast<const sockaddr&>(peer));
  return success();  // raw ports learn the peer from the header template
}

Result<void> OpenPort::move_to(const std::string& interface) {
#if ONEHOP_HAS_XDP
  if (auto* port = std::get_if<std::unique_ptr<AfXdpPort>>(&port_)) {
    ONEHOP_TRY(fresh, (*port)->open_on(interface));
    moved_.push_back(std::move(fresh));
    (*port)->offer(*moved_.back());
  }
#else
  (void)interface;
#endif
  return success();
}

std::unique_ptr<Engine> OpenPort::make_sender(const run::GateKeys& keys, const run::SenderLoopConfig& config,
                                              run::EngineLinks links) {
  return std::visit([&](auto& port) -> std::unique_ptr<Engine> {
    using PortType = std::remove_reference_t<decltype(*port)>;
    if constexpr (requires { port->ask_link_status(); }) port->ask_link_status();
    return std::make_unique<PortEngine<run::SenderLoop<PortType>, PortType>>(*port, keys, config, links);
  }, port_);
}

std::unique_ptr<Engine> OpenPort::make_receiver(const run::GateKeys& keys, const run::ReceiverLoopConfig& config,
                                                run::EngineLinks links) {
  return std::visit([&](auto& port) -> std::unique_ptr<Engine> {
    using PortType = std::remove_reference_t<decltype(*port)>;
    return std::make_unique<PortEngine<run::ReceiverLoop<PortType>, PortType>>(*port, keys, config, links);
  }, port_);
}

}  // namespace onehop::tool
