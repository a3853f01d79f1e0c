// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the interface is: kind, driver, carrier, MTU, addresses, queues, speed, queue discipline.
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <memory>

#include "control/link/qdisc_source.hpp"
#include "control/transfer/port/noack_record.hpp"
#include "engine/base/time.hpp"
#include "engine/wire/frame.hpp"
#include "tools/onehop/doctor/doctor.hpp"
#include "tools/onehop/text/quantity.hpp"

namespace onehop::tool {

namespace {

constexpr std::uint32_t ip_udp_bytes = 28;

struct FreeAddresses {
  void operator()(ifaddrs* list) const noexcept { ::freeifaddrs(list); }
};

std::unique_ptr<ifaddrs, FreeAddresses> read_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return nullptr;
  return std::unique_ptr<ifaddrs, FreeAddresses>{list};
}

Json addresses_of(const std::string& interface) {
  Json out = Json::array();
  const auto list = read_addresses();
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_name != interface) continue;
    auto found = Endpoint::from_sockaddr(entry->ifa_addr, sizeof(sockaddr_storage));
    if (!found) continue;
    found->address.scope_id = 0;  // the interface is said above
    out.push_back(found->address.text());
  }
  return out;
}

Finding find_addresses(const std::string& interface) {
  const Json addresses = addresses_of(interface);
  std::string text;
  for (const auto& address : addresses)
    text += (text.empty() ? "" : ", ") + address.get<std::string>();
  if (!addresses.empty()) return {"interface", "addresses", Verdict::good, text, addresses};
  return {"interface", "addresses", Verdict::bad,
          "none",      addresses,   "give it one: ip addr add 192.168.49.2/24 dev " + interface};
}

Finding find_speed(const Interface& link) {
  const BytesPerSecond rate = read_link_rate(link.name);
  if (rate == BytesPerSecond{})
    return {"interface", "speed", Verdict::info, "not told by the driver", nullptr};
  std::string text = format_rate(rate);
  if (is_software(link)) text += " claimed, and ignored: it is a device of software";
  return {"interface", "speed", Verdict::info, text, bps(rate)};
}

Finding find_qdisc(int ifindex) {
  auto source = link::QdiscSource::open(ifindex);
  if (!source) return {"interface", "qdisc", Verdict::bad, source.error().message(), nullptr};
  (void)source.value().queue(monotonic_now());
  const std::string kind = source.value().root_kind();
  if (kind.empty()) return {"interface", "qdisc", Verdict::info, "none", nullptr};
  const bool is_queue = kind != "noqueue";
  return {"interface", "qdisc", Verdict::info,
          is_queue ? kind : "noqueue: frames wait below it (Wi-Fi: in mac80211) or nowhere", kind};
}

// The kernel tells nobody which map is set, so only what onehop has noted can be known.
void find_noack(int ifindex, Diagnosis& out) {
  const transfer::NoAckTrace trace =
      transfer::find_noack_record(transfer::noack_record_folder, ifindex);
  if (trace == transfer::NoAckTrace::held)
    out.findings.push_back({"interface", "no-ack-map", Verdict::info,
                            "set by an onehop that runs, and undone when it ends", "held"});
  if (trace == transfer::NoAckTrace::left_over)
    out.findings.push_back(
        {"interface", "no-ack-map", Verdict::bad,
         "left over by an onehop that was killed: the MAC acknowledges none of "
         "the frames of one priority",
         "left-over",
         "iw dev " + out.interface + " set noack_map 0x0000; rm " +
             transfer::noack_record_path(transfer::noack_record_folder, ifindex)});
}

}  // namespace

std::vector<std::string> interfaces_up() {
  std::vector<std::string> names;
  std::string loopback;
  const auto list = read_addresses();
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0)
      loopback = entry->ifa_name;
    else if (std::ranges::find(names, entry->ifa_name) == names.end())
      names.emplace_back(entry->ifa_name);
  }
  if (names.empty() && !loopback.empty()) names.push_back(loopback);
  return names;
}

void find_interface(int ifindex, Diagnosis& out) {
  const auto link = read_interface(ifindex);
  if (!link) {
    out.findings.push_back({"interface", "state", Verdict::bad, link.error().message(), nullptr});
    return;
  }
  const Interface& info = link.value();
  const auto facts = read_interface_facts(out.interface);
  const bool is_up = facts.has_value() && facts.value().is_up;
  out.is_usable = info.is_running;
  out.findings.push_back({"interface", "state", info.is_running ? Verdict::good : Verdict::bad,
                          info.is_running ? "up, with a carrier"
                          : is_up         ? "up, without a carrier"
                                          : "down",
                          info.is_running ? "running"
                          : is_up         ? "no-carrier"
                                          : "down",
                          info.is_running ? ""
                          : is_up         ? "connect the cable, or join the Wi-Fi group"
                                          : "ip link set " + out.interface + " up"});
  const std::string kind = !info.kind.empty() ? info.kind : info.is_loopback ? "loopback" : "";
  out.findings.push_back({"interface", "kind", Verdict::info,
                          kind.empty() ? "hardware, or what looks like it" : kind,
                          kind.empty() ? Json(nullptr) : Json(kind)});
  const std::string driver = facts.has_value() ? facts.value().driver : "";
  out.findings.push_back({"interface", "driver", Verdict::info,
                          driver.empty() ? "not told" : driver,
                          driver.empty() ? Json(nullptr) : Json(driver)});
  const std::int64_t body =
      std::int64_t{info.mtu_bytes} - ip_udp_bytes - static_cast<std::int64_t>(wire::overhead_bytes);
  out.findings.push_back({"interface", "mtu", Verdict::info,
                          fmt::format("{} bytes: a frame over IPv4 carries {} bytes of a file",
                                      info.mtu_bytes, std::max<std::int64_t>(body, 0)),
                          info.mtu_bytes});
  out.findings.push_back(find_addresses(out.interface));
  if (facts.has_value())
    out.findings.push_back({"interface", "receive-queues", Verdict::info,
                            std::to_string(facts.value().rx_queues), facts.value().rx_queues});
  out.findings.push_back(find_speed(info));
  out.findings.push_back(find_qdisc(ifindex));
  find_noack(ifindex, out);
  find_driver(ifindex, driver, out);
}

}  // namespace onehop::tool
