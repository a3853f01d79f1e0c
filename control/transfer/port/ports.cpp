// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/port/ports.hpp"

#include <net/if.h>

#include <algorithm>
#include <type_traits>

#include "engine/base/check.hpp"
#include "engine/base/system/driver_quirks.hpp"
#include "engine/run/receiver_loop.hpp"
#include "engine/run/sender_loop.hpp"
#include "engine/wire/frame.hpp"
#if ONEHOP_HAS_XDP
#include "xdp/afxdp_layout.hpp"
#endif

namespace onehop::transfer {

namespace {

Error not_built(const PortKind& kind) {
  return {
      ExitCode::io_unavailable, "open --io " + std::string{kind.name},
      "this build has no " + std::string{kind.name} + " port (" + std::string{kind.missing} + ")",
      "Install " + std::string{kind.packages} + " and build again, or take --io udp"};
}

#if ONEHOP_HAS_XDP
Result<std::unique_ptr<AfXdpPort>> open_mode(const PortRequest& request, XdpMode mode) {
  AfXdpConfig config;
  config.interface = request.interface;
  config.local = request.local;
  config.mode = mode;
  config.priority = priority_of(request.settings);
  config.has_generic = request.settings.io == "afxdp";
  return AfXdpPort::open(config);
}

/// Why copy mode is not worth it, or not safe; empty: it is.
std::string why_no_copy(const PortRequest& request) {
  if (request.role == api::Role::sending) return "sending in copy mode costs more than UDP";
  if (!is_cheap_in_copy_mode(request.interface))
    return "receiving in copy mode pays for frames of 1500 bytes without GRO alone";
  if (const CopyTransmit& kernel = read_copy_transmit(); !kernel.is_sound)
    return "a frame that AF_XDP sends in copy mode may panic this kernel (" + kernel.told_by + ")";
  return {};
}

// take_afxdp opens AF_XDP where it is cheaper than UDP in this role; where not, `reason` says why.
// Measured by tools/measure/compare --case cpu and --case ports (docs/results): sending in copy
// mode hands each frame to the queue below by itself, where UDP hands down 44 at once; receiving in
// copy mode leaves out socket, checksum and a system call's share per frame. The program steers our
// own frames alone, past the firewall: what they carry is authenticated, and nothing else is taken.
//
// The program is attached once, for all modes that are tried, and for none that the driver says it
// does not have: attaching and detaching it take the kernel tens of milliseconds, and bounce some
// links.
std::unique_ptr<AfXdpPort> take_afxdp(const PortRequest& request, std::string& reason) {
  const std::string& interface = request.interface;
  if (request.is_small) {
    reason = "all of it is over before a steering program pays";
    return nullptr;
  }
  const auto ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  const bool may_zero_copy = read_has_zero_copy(ifindex).value_or(true);
  const std::string no_copy = why_no_copy(request);
  Result<std::unique_ptr<AfXdpPort>> opened =
      Error{ExitCode::io_unavailable, "open AF_XDP", "its driver says so"};
  if (may_zero_copy || no_copy.empty())
    opened = open_mode(request, !may_zero_copy    ? XdpMode::copy
                                : no_copy.empty() ? XdpMode::automatic
                                                  : XdpMode::zero_copy);
  if (opened.has_value()) {
    reason = opened.value()->mode_got() == XdpMode::zero_copy
                 ? interface + " has AF_XDP zero-copy"
                 : "receiving through " + interface + "'s driver is cheaper than through a socket";
    return std::move(opened).value();
  }
  reason = (no_copy.empty() ? "no AF_XDP in the driver of " : "no AF_XDP zero-copy on ") +
           interface + " (" + opened.error().cause + ")";
  if (opened.error().code != ExitCode::privilege_missing && !no_copy.empty())
    reason += ", and " + no_copy;
  return nullptr;
}
#endif

Result<Opened> open_auto(const PortRequest& request) {
  std::string reason = "AF_XDP has nothing to offer on this interface";
#if ONEHOP_HAS_XDP
  if (request.has_fragments) {
    reason = "fragments need the kernel's UDP";
  } else if (!request.interface.empty() && request.interface != "lo") {
    if (auto port = take_afxdp(request, reason))
      return Opened{std::make_unique<AutoPort>(std::move(port)), reason};
  }
#endif
  ONEHOP_TRY(opened, open_udp(request));
  opened.reason = reason;
  return std::move(opened);
}

/// The loops are compiled here alone.
template <class Loop>
std::unique_ptr<Engine> make_engine(auto& port, const run::SessionKeys& keys, const auto& config,
                                    run::EngineLinks links) {
  auto engine = std::make_unique<Engine>();
  engine->start = [&port, &thread = engine->thread,
                   loop = std::make_shared<Loop>(port, keys, config, links)](
                      const run::EngineThreadConfig& thread_config) {
    return thread.start(*loop, port, thread_config);
  };
  return engine;
}

}  // namespace

const PortKind* port_kind(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(port_kinds, name, &PortKind::name);
  return found == port_kinds.end() ? nullptr : found;
}

std::vector<std::string> port_words() {
  std::vector<std::string> words{"auto"};
  for (const PortKind& kind : port_kinds) words.emplace_back(kind.name);
  return words;
}

bool is_cheap_in_copy_mode(const std::string& interface) {
#if ONEHOP_HAS_XDP
  const auto facts = read_interface_facts(interface);
  return facts.has_value() && !facts.value().has_gro &&
         xdp::chunk_bytes_for(facts.value().mtu_bytes, false) == 2048;
#else
  (void)interface;
  return false;
#endif
}

namespace {

UdpPortConfig udp_config(const PortRequest& request) {
  UdpPortConfig config;
  config.local = request.local;
  config.interface = request.settings.interface;
  config.priority = priority_of(request.settings);
  config.dscp = dscp_of(request.settings);
  config.has_fragments = request.has_fragments;
  config.has_frames_only = true;
  config.follows_peer = request.role == api::Role::receiving;
  if (request.has_fragments) config.frame_bytes_max = wire::datagram_bytes_max;
  return config;
}

}  // namespace

Result<Opened> open_udp(const PortRequest& request) {
  ONEHOP_TRY(made, UdpPort::open(udp_config(request)));
  return Opened{std::move(made)};
}

Result<Opened> open_afxdp(const PortRequest& request) {
#if ONEHOP_HAS_XDP
  ONEHOP_TRY(made, open_mode(request, choice<XdpMode>("--xdp-mode", request.settings.xdp_mode)));
  std::string reason = made->refusals().empty() ? "asked for" : "asked for; " + made->refusals();
  return Opened{std::move(made), std::move(reason)};
#else
  (void)request;
  return not_built(*port_kind("afxdp"));
#endif
}

Result<Opened> open_dpdk(const PortRequest& request) {
  DpdkHost* const dpdk = request.dpdk;
  ONEHOP_CHECK(dpdk != nullptr);
  if (!dpdk->interface().empty() && dpdk->interface() != request.interface)
    return Error{ExitCode::usage, "open --io dpdk",
                 "--eal names " + dpdk->interface() + ", and the way to the peer leads over " +
                     request.interface,
                 "Name the interface in both: --iface " + dpdk->interface()};
  ONEHOP_TRY(made, dpdk->open_port(request.local));
  return Opened{std::move(made), "asked for; " + dpdk->summary()};
}

Result<void> check_fragments(const Settings& settings) {
  const PortKind* const kind = port_kind(settings.io);
  if (kind == nullptr || kind->can_fragment) return success();
  return Error{ExitCode::io_unavailable,
               "send and receive datagrams in IP fragments (--fragment) over --io " + settings.io,
               "only the kernel's UDP makes fragments and puts them together",
               "Use --io udp on both machines, or send without --fragment"};
}

std::vector<std::string> opening_warnings(const Settings& settings, const std::string& interface) {
  std::vector<std::string> warnings;
  const bool is_afxdp =
      settings.io == "afxdp" ||
      (settings.io == "dpdk" && settings.eal.find("net_af_xdp") != std::string::npos);
  if (!is_afxdp) return warnings;
  const CopyTransmit& kernel = read_copy_transmit();
  if (!kernel.is_sound && settings.xdp_mode != "zero-copy")
    warnings.push_back("without zero-copy, what AF_XDP sends may panic this kernel (" +
                       kernel.told_by + ", CVE-2025-40290): take --io udp, or a newer kernel");
  if (const auto facts = read_interface_facts(interface))
    if (std::string warning = link_warning(facts.value().driver, interface); !warning.empty())
      warnings.push_back(std::move(warning));
  return warnings;
}

Result<OpenPort> OpenPort::open(const PortRequest& request) {
  const PortKind* const kind = port_kind(request.settings.io);
  if (kind != nullptr && !kind->missing.empty()) return not_built(*kind);
  ONEHOP_TRY(opened, kind == nullptr ? open_auto(request) : kind->open(request));
  return OpenPort{std::move(opened)};
}

PortInfo OpenPort::info() const {
  return std::visit([](const auto& port) { return port->info(); }, opened_.port);
}

Result<std::uint16_t> OpenPort::local_port() const {
  return std::visit([](const auto& port) -> Result<std::uint16_t> { return port->local_port(); },
                    opened_.port);
}

Result<void> OpenPort::connect(const onehop::Endpoint& peer) {
  return std::visit(
      [&](auto& port) -> Result<void> {
        if constexpr (requires { port->connect(peer); }) return port->connect(peer);
        return success();  // raw ports learn the peer from the header template
      },
      opened_.port);
}

Result<void> OpenPort::move_to(const std::string& interface) {
  return std::visit(
      [&](auto& port) -> Result<void> {
        if constexpr (requires { port->move_to(interface); }) return port->move_to(interface);
        return success();
      },
      opened_.port);
}

std::string_view OpenPort::other_io() const {
#if ONEHOP_HAS_XDP
  const auto* const port = std::get_if<std::unique_ptr<AutoPort>>(&opened_.port);
  if (port != nullptr && !(*port)->has_fallen()) return "udp";
#endif
  return {};
}

Result<void> OpenPort::fall_back(const PortRequest& request, const onehop::Endpoint& peer,
                                 bool is_running) {
#if ONEHOP_HAS_XDP
  AutoPort& port = *std::get<std::unique_ptr<AutoPort>>(opened_.port);
  // 1. A socket on the same port number, which AF_XDP's reservation gives up at the end.
  port.first()->share_port();
  UdpPortConfig config = udp_config(request);
  config.is_port_shared = true;
  ONEHOP_TRY(udp, UdpPort::open(config));
  ONEHOP_TRYV(udp->connect(peer));
  if (request.role == api::Role::sending) udp->ask_link_status();
  // 2. The engine goes over.
  port.offer(std::move(udp));
  port.wait_taken(is_running);
  // 3. The program goes, and frames come to the socket.
  port.close_first();
  ONEHOP_TRYV(port.second()->claim_port());
  opened_.reason = "no sealed frame came back over AF_XDP within 2 s";
#else
  (void)request, (void)peer, (void)is_running;
#endif
  return success();
}

std::unique_ptr<Engine> OpenPort::make_sender(const run::SessionKeys& keys,
                                              const run::SenderLoopConfig& config,
                                              run::EngineLinks links) {
  return std::visit(
      [&](auto& port) {
        using PortType = std::remove_reference_t<decltype(*port)>;
        if constexpr (requires { port->ask_link_status(); }) port->ask_link_status();
        return make_engine<run::SenderLoop<PortType>>(*port, keys, config, links);
      },
      opened_.port);
}

std::unique_ptr<Engine> OpenPort::make_receiver(const run::SessionKeys& keys,
                                                const run::ReceiverLoopConfig& config,
                                                run::EngineLinks links) {
  return std::visit(
      [&](auto& port) {
        using PortType = std::remove_reference_t<decltype(*port)>;
        return make_engine<run::ReceiverLoop<PortType>>(*port, keys, config, links);
      },
      opened_.port);
}

}  // namespace onehop::transfer
