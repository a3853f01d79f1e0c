// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How frames can leave: the UDP port, and each AF_XDP mode, tried as `onehop send --io afxdp` would
// and given back.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>
#include <thread>

#include "control/transfer/port/ports.hpp"
#include "engine/base/system/driver_quirks.hpp"
#include "engine/base/time.hpp"
#include "engine/port/dpdk/module.hpp"
#include "engine/port/udp_port.hpp"
#include "tools/onehop/doctor/doctor.hpp"
#include "tools/onehop/text/quantity.hpp"

namespace onehop::tool {

namespace {

Endpoint any_loopback() { return {*IpAddress::parse("127.0.0.1"), 0}; }

Finding find_buffer(const char* key, const char* limit, std::int64_t granted_bytes,
                    std::int64_t asked_bytes) {
  // The kernel doubles what it grants, to account for its own structures.
  const bool is_full = granted_bytes >= 2 * asked_bytes;
  return {"limits",
          key,
          is_full ? Verdict::good : Verdict::bad,
          fmt::format("{} granted of {} asked for",
                      format_bytes(static_cast<std::uint64_t>(granted_bytes / 2)),
                      format_bytes(static_cast<std::uint64_t>(asked_bytes))),
          granted_bytes / 2,
          is_full
              ? ""
              : fmt::format("a burst may overrun it: sysctl -w net.core.{}={}, or run with sudo",
                            limit, asked_bytes)};
}

void find_udp(Probe probe, Diagnosis& out) {
  UdpPortConfig config;
  config.local = any_loopback();
  if (probe == Probe::spare_queue) config.interface = out.interface;
  auto socket = UdpSocket::open(config);
  if (!socket) {
    out.findings.push_back({"io", "udp", Verdict::bad, socket.error().message(), false});
    return;
  }
  const bool has_gso = socket.value().is_gso_known(), has_gro = socket.value().set_gro(true);
  out.findings.push_back(
      {"io", "udp", Verdict::good,
       fmt::format("yes, without privilege; sends 44 frames a call: {}; takes bursts: {}",
                   has_gso ? "yes (UDP_SEGMENT)" : "no (Linux before 4.18)",
                   has_gro ? "yes (UDP_GRO)" : "no (Linux before 5.0)"),
       Json{{"gso", has_gso}, {"gro", has_gro}}});
  const MemInfo info = socket.value().mem_info();
  out.findings.push_back(
      find_buffer("receive-buffer", "rmem_max", info.rcvbuf_bytes, config.rcvbuf_bytes));
  out.findings.push_back(
      find_buffer("send-buffer", "wmem_max", info.sndbuf_bytes, config.sndbuf_bytes));
}

#if ONEHOP_HAS_XDP
/// without_name leaves the interface's name out of what was attempted.
std::string without_name(const std::string& attempt, const std::string& name) {
  std::istringstream words{attempt};
  std::string out;
  for (std::string word; words >> word;)
    out += (out.empty() ? "" : " ") + (word == name ? "it" : word);
  return out;
}

/// send_frame sends one frame to this interface's own address, which no switch passes on. Nothing:
/// it has not left in time.
std::optional<Nanos> send_frame(AfXdpPort& port, const MacAddress& own) {
  constexpr Nanos patience = 1s, poll_interval = 100us;
  wire::UdpFlow flow{.source_mac = own,
                     .target_mac = own,
                     .source_port = port.local_port(),
                     .target_port = port.local_port()};
  const std::uint32_t loopback = htonl(INADDR_LOOPBACK);
  std::memcpy(flow.source_ip.data(), &loopback, sizeof loopback);
  std::memcpy(flow.target_ip.data(), &loopback, sizeof loopback);
  PathUpdate path{.has_neighbour = true};
  path.header_bytes = static_cast<std::uint16_t>(wire::build_headers(flow, path.header));
  port.update_path(path);
  constexpr std::size_t frame_bytes = 64;
  const std::span<std::byte> frame = port.lend(frame_bytes);
  if (frame.empty()) return std::nullopt;
  std::ranges::fill(frame, std::byte{0});
  port.commit(frame_bytes);
  const Instant start = monotonic_now();
  for (Instant now = start; now - start < patience; now = monotonic_now()) {
    (void)port.flush(now);
    if (port.tx_queue(now).occupancy == Bytes{0}) return monotonic_now() - start;
    std::this_thread::sleep_for(poll_interval);
  }
  return std::nullopt;
}

Finding try_mode(const InterfaceFacts& facts, XdpMode mode, Probe probe) {
  const bool is_on_spare_queue = probe == Probe::spare_queue;
  const std::string key = "afxdp-" + std::string{to_string(mode)};
  auto port = AfXdpPort::open({.interface = facts.name,
                               .local = any_loopback(),
                               .mode = mode,
                               .is_on_spare_queue = is_on_spare_queue});
  if (!port) {
    const Error& error = port.error();
    const bool is_refused = error.code == ExitCode::privilege_missing;
    return {"io",
            key,
            Verdict::bad,
            "no: " + error.attempt + ": " + error.cause,
            is_refused ? Json(nullptr) : Json(false),
            is_refused ? error.hint : quirk_remedy(facts.driver, error.errno_value, ""),
            without_name(error.attempt, facts.name) + ": " + errno_text(error.errno_value)};
  }
  if (!is_on_spare_queue)
    return {"io", key, Verdict::good, fmt::format("yes, on {} queue(s)", port.value()->rx_queues()),
            true};
  const std::string where =
      fmt::format("on queue {}, the last of {}", facts.rx_queues - 1, facts.rx_queues);
  if (const auto span = send_frame(*port.value(), facts.mac))
    return {"io", key, Verdict::good,
            fmt::format("yes, {}; a frame left in {} us", where, *span / 1us), true};
  return {"io",
          key,
          Verdict::bad,
          "no: it opens " + where + ", and a frame does not leave in 1 s",
          false,
          "",
          "a frame does not leave"};
}

void probe_modes(const InterfaceFacts& facts, Probe probe, Diagnosis& out) {
  bool is_refused = false;  // for lack of privilege: the other modes would only say so again
  const CopyTransmit& kernel = read_copy_transmit();
  out.findings.push_back(
      {"io", "copy-transmit", kernel.is_sound ? Verdict::good : Verdict::bad,
       kernel.is_sound ? "sound (" + kernel.told_by + ")"
                       : "what AF_XDP sends in copy mode may panic this kernel (" + kernel.told_by +
                             ", CVE-2025-40290)",
       kernel.is_sound,
       kernel.is_sound ? "" : "take Linux 6.17.11, 6.18 or later; until then --io udp"});
  for (const XdpMode mode : {XdpMode::zero_copy, XdpMode::copy, XdpMode::skb}) {
    if (mode != XdpMode::zero_copy && !kernel.is_sound) {
      out.findings.push_back({"io", "afxdp-" + std::string{to_string(mode)}, Verdict::bad,
                              "not tried: see copy-transmit", nullptr});
      continue;
    }
    if (is_refused) {
      out.findings.push_back({"io", "afxdp-" + std::string{to_string(mode)}, Verdict::bad,
                              "not tried: see above", nullptr});
      continue;
    }
    out.findings.push_back(try_mode(facts, mode, probe));
    is_refused = out.findings.back().verdict == Verdict::bad && out.findings.back().value.is_null();
  }
}

void find_afxdp(const std::string& interface, Probe probe, Diagnosis& out) {
  const auto facts = read_interface_facts(interface);
  if (!facts.has_value()) return;
  const std::string attached = xdp::attached_program(facts.value().ifindex);
  if (!attached.empty()) {
    out.findings.push_back(
        {"io", "xdp-program", Verdict::bad, "the interface has " + attached, attached,
         "AF_XDP needs its place: ip link set " + interface + " xdp off, where nobody needs it"});
  }
  if (probe == Probe::none || !out.is_usable) {
    out.findings.push_back(
        {"io", "afxdp", Verdict::info,
         probe == Probe::none ? "not tried: --no-probe" : "not tried: the interface has no carrier",
         nullptr});
    return;
  }
  if (attached.empty()) probe_modes(facts.value(), probe, out);
}
#endif

struct AutoChoice {
  const char* send;
  const char* receive;
  const char* text;
};

// auto_choice: as open_auto() decides (control/transfer/port/ports.cpp), of what was found.
AutoChoice auto_choice(const std::string& interface, const Diagnosis& found) {
  const auto has = [&](std::string_view key) {
    return std::ranges::any_of(found.findings, [&](const Finding& finding) {
      return finding.section == "io" && finding.key == key && finding.verdict == Verdict::good;
    });
  };
  if (has("afxdp-zero-copy"))
    return {"afxdp", "afxdp", "--io auto takes afxdp, because it has zero-copy"};
  if (has("afxdp-copy") && transfer::is_cheap_in_copy_mode(interface))
    return {
        "udp", "afxdp",
        "--io auto sends over udp and receives over afxdp, the cheapest pair without zero-copy"};
  return {"udp", "udp", "--io auto takes udp: AF_XDP is no cheaper here, or not to be had"};
}

// Whether a device comes up only EAL can tell, and it takes 0.2 s and privileges: not tried here.
void find_dpdk(const std::string& interface, Diagnosis& out) {
  const auto module = dpdk::load();
  if (module.has_error()) {
    const Error& error = module.error();
    out.findings.push_back({"io", "dpdk", Verdict::bad,
                            fmt::format("no DPDK port: {}", error.cause), false, error.hint});
    return;
  }
  const std::string version = module.value()->library_version();
  const std::uint64_t huge_bytes = dpdk::read_host(0).huge_bytes_free;
  const std::string example =
      interface == "lo" ? "--vdev=net_memif0,role=client" : "--vdev=net_af_xdp0,iface=" + interface;
  out.findings.push_back(
      {"io", "dpdk", Verdict::good,
       fmt::format("{}; {} of huge pages free; for example --io dpdk --eal \"{}\"", version,
                   huge_bytes == 0 ? "none" : format_bytes(huge_bytes), example),
       Json{{"version", version}, {"huge_bytes_free", huge_bytes}},
       huge_bytes == 0 ? "small pages serve (--no-huge, added by itself); with zero-copy and "
                         "cards: sysctl -w vm.nr_hugepages=128"
                       : ""});
}

/// find_port says what is known of a port here; of most, that this build has it.
void find_port(const transfer::PortKind& kind, const std::string& interface, Probe probe,
               Diagnosis& out) {
  const std::string name{kind.name};
  if (!kind.missing.empty()) {
    out.findings.push_back({"io", name, Verdict::bad,
                            fmt::format("this build has no {} port: {}", kind.name, kind.missing),
                            false, fmt::format("install {} and build again", kind.packages)});
    return;
  }
  if (name == "udp") return find_udp(probe, out);
#if ONEHOP_HAS_XDP
  if (name == "afxdp") return find_afxdp(interface, probe, out);
#endif
  if (name == "dpdk") return find_dpdk(interface, out);
  out.findings.push_back({"io", name, Verdict::good, "in this build", true});
}

}  // namespace

void find_io(const std::string& interface, Probe probe, Diagnosis& out) {
  const auto find_all = [&](bool is_in_auto) {
    for (const transfer::PortKind& kind : transfer::port_kinds)
      if (kind.is_in_auto == is_in_auto) find_port(kind, interface, probe, out);
  };
  find_all(true);
  const AutoChoice choice = auto_choice(interface, out);
  out.findings.push_back({"io", "auto", Verdict::info, choice.text,
                          Json{{"send", choice.send}, {"recv", choice.receive}}});
  find_all(false);
}

}  // namespace onehop::tool
