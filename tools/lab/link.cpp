// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/lab/link.hpp"

#include <fmt/format.h>
#include <net/if.h>

#include "tools/lab/loss.hpp"
#include "tools/lab/netns.hpp"
#include "tools/lab/run_tool.hpp"

namespace onehop::lab {

namespace {

constexpr const char* to_a = "to-a";
constexpr const char* to_b = "to-b";

Arguments words(std::string_view line) {
  Arguments out;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) out.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

template <class... T>
Result<void> run(fmt::format_string<T...> format, T&&... values) {
  ONEHOP_TRYV(run_tool(words(fmt::format(format, std::forward<T>(values)...))));
  return success();
}

Result<void> make_devices(const HostNames& hosts, const Profile& profile) {
  for (const std::string& name : {hosts.a, hosts.m, hosts.b}) {
    ONEHOP_TRYV(run("ip netns add {}", name));
    ONEHOP_TRYV(run("ip -n {} link set lo up", name));
  }
  const int mtu = profile.mtu_bytes;
  ONEHOP_TRYV(run("ip -n {} link add {} mtu {} type veth peer name {} mtu {} netns {}", hosts.a, shaped_interface, mtu,
                  to_a, mtu, hosts.m));
  ONEHOP_TRYV(run("ip -n {} link add {} mtu {} type veth peer name {} mtu {} netns {}", hosts.b, host_interface, mtu,
                  to_b, mtu, hosts.m));
  return run("ip -n {} link add link {} name {} mtu {} type macvlan mode bridge", hosts.a, shaped_interface,
             host_interface, mtu);
}

// Frames on the wire have MTU size and whole checksums, as on most Wi-Fi NICs. The macvlan keeps its GSO, so that what a sender
// saves in system calls it saves here as well; the veth below it cuts.
Result<void> switch_offloads_off(const std::string& host, const char* device) {
  return run("ip netns exec {} ethtool -K {} tso off gso off gro off tx off tx-udp-segmentation off", host, device);
}

Result<void> bring_up(const HostNames& hosts) {
  for (const auto& [host, device] : {std::pair{hosts.a, shaped_interface}, {hosts.m, to_a}, {hosts.m, to_b}}) {
    ONEHOP_TRYV(switch_offloads_off(host, device));
    ONEHOP_TRYV(run("ip -n {} link set {} addrgenmode none up", host, device));
  }
  ONEHOP_TRYV(switch_offloads_off(hosts.b, host_interface));
  ONEHOP_TRYV(run("ip -n {} addr add {}/24 dev {}", hosts.a, address_a4, host_interface));
  ONEHOP_TRYV(run("ip -n {} addr add {}/24 dev {}", hosts.b, address_b4, host_interface));
  ONEHOP_TRYV(run("ip -n {} addr add {}/64 dev {} nodad", hosts.a, address_a6, host_interface));
  ONEHOP_TRYV(run("ip -n {} addr add {}/64 dev {} nodad", hosts.b, address_b6, host_interface));
  ONEHOP_TRYV(run("ip -n {} link set {} up", hosts.a, host_interface));
  return run("ip -n {} link set {} up", hosts.b, host_interface);
}

enum class Verb : std::uint8_t { add, change };

// shape sets one direction's queue: `host` and `device` say where it stands.
Result<void> shape(const std::string& host, const char* device, const Profile& profile, BytesPerSecond rate, Verb verb) {
  const char* const verb_text = verb == Verb::add ? "add" : "change";
  const Bytes burst = profile.burst;
  if (shaper_of(profile) != Shaper::htb) {
    return run("tc -n {} qdisc {} dev {} root handle 1: tbf rate {}bit burst {} limit {}", host, verb_text, device,
               bps(rate), burst.count, profile.queue.count);
  }
  if (verb == Verb::add) {
    ONEHOP_TRYV(run("tc -n {} qdisc add dev {} root handle 1: htb default 1", host, device));
  }
  ONEHOP_TRYV(run("tc -n {} class {} dev {} parent 1: classid 1:1 htb rate {}bit ceil {}bit burst {} cburst {} quantum {}",
                  host, verb_text, device, bps(rate), bps(rate), burst.count, burst.count, 2 * profile.mtu_bytes));
  if (verb == Verb::change) return success();
  return run("tc -n {} qdisc add dev {} parent 1:1 handle 10: bfifo limit {}", host, device, profile.queue.count);
}

Result<void> inject_loss(const HostNames& hosts, const Profile& profile) {
  const Result<InNetns> inside = InNetns::enter(hosts.m);
  if (inside.has_error()) return inside.error();
  return attach_loss({.to_a_ifindex = static_cast<int>(::if_nametoindex(to_a)),
                      .to_b_ifindex = static_cast<int>(::if_nametoindex(to_b)),
                      .loss_ppm = profile.loss_ppm,
                      .reverse_loss_ppm = profile.reverse_loss_ppm});
}

}  // namespace

Result<void> build_link(const HostNames& hosts, const Profile& profile) {
  ONEHOP_TRYV(make_devices(hosts, profile));
  ONEHOP_TRYV(bring_up(hosts));
  ONEHOP_TRYV(inject_loss(hosts, profile));
  if (profile.rate) {
    ONEHOP_TRYV(shape(hosts.a, shaped_interface, profile, *profile.rate, Verb::add));
  }
  if (profile.is_reverse_shaped) {
    ONEHOP_TRYV(shape(hosts.m, to_a, profile, profile.reverse_rate, Verb::add));
  }
  return success();
}

Result<void> set_link_rate(const HostNames& hosts, const Profile& profile, BytesPerSecond rate) {
  ONEHOP_TRYV(shape(hosts.a, shaped_interface, profile, rate, Verb::change));
  if (!profile.is_reverse_shaped || !profile.is_reverse_same) return success();
  return shape(hosts.m, to_a, profile, rate, Verb::change);
}

Result<void> tear_down_link(const HostNames& hosts) {
  for (const std::string& name : {hosts.a, hosts.b, hosts.m}) {
    if (has_netns(name)) {
      ONEHOP_TRYV(run("ip netns del {}", name));
    }
  }
  return success();
}

}  // namespace onehop::lab
