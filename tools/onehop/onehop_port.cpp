// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/onehop_port.hpp"

#include <type_traits>

#include "engine/base/check.hpp"
#include "engine/wire/frame.hpp"
#include "tools/onehop/set_up.hpp"

namespace onehop::tool {

namespace {

Result<UdpPortConfig> udp_config(const CommonOptions& options, const sockaddr_storage& local, bool has_fragments) {
  UdpPortConfig config;
  config.local = local;
  config.interface = options.interface;
  config.priority = priority_of(options);
  config.dscp = dscp_of(options);
  config.has_fragments = has_fragments;
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
#endif

}  // namespace

Result<void> OpenPort::check_fragments(const CommonOptions& options) {
  if (options.io == "auto" || options.io == "udp") return success();
  return Error{ExitCode::io_unavailable, "send and receive datagrams in IP fragments (--fragment) over --io " + options.io,
               "only the kernel's UDP makes fragments and puts them together", "Use --io udp on both machines, or send without --fragment"};
}

Result<OpenPort> OpenPort::open(const CommonOptions& options, const std::string& interface,
                                const sockaddr_storage& local, bool has_fragments, DpdkHost* dpdk) {
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
    opened.port_ = std::move(made);
    opened.reason_ = "asked for";
    return opened;
  }
  if (has_fragments) {
    opened.reason_ = "fragments need the kernel's UDP";
  } else if (options.io == "auto" && !interface.empty() && interface != "lo") {
    // In copy mode AF_XDP costs about what UDP does or more ("When which I/O wins" in docs/results.md, by tools/compare --case
    // ports). It takes privileges, too, and hides the traffic from the firewall: only zero-copy is worth that unasked.
    auto zero_copy = open_afxdp(options, interface, local, XdpMode::zero_copy);
    if (zero_copy.has_value()) {
      opened.port_ = std::move(zero_copy).value();
      opened.reason_ = interface + " has AF_XDP zero-copy";
      return opened;
    }
    opened.reason_ = "no AF_XDP zero-copy on " + interface + " (" + zero_copy.error().cause + "), and copy mode is seldom cheaper than UDP";
  }
#else
  if (options.io == "afxdp")
    return Error{ExitCode::io_unavailable, "open --io afxdp", "this build has no AF_XDP port (libbpf or clang was missing)", "Use --io udp"};
  (void)interface;
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
