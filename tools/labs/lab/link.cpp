// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/link.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>

#include "engine/base/fd.hpp"
#include "tools/labs/lab/loss.hpp"
#include "tools/labs/lab/process/netns.hpp"
#include "tools/labs/lab/process/run_tool.hpp"

namespace onehop::lab {

namespace {

constexpr const char* middle_b = "mb";
constexpr const char* middle_bridge = "br0";
// A veth is usable when the kernel's link watch has seen its carrier, which it does once a second
// at worst.
constexpr Nanos running_patience = 5s;
constexpr Nanos running_poll = 5ms;

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

// make_bridge joins the middle's two veths. A tc program could send each frame on for less, but
// generic XDP would not see it (lossy.bpf.c). The bridge is to be a piece of wire: no spanning
// tree, which would wait 30 s before it forwards, no snooping, which would hold multicast back, no
// learning, which would trust a test's invented addresses.
Result<void> make_bridge(const std::string& host) {
  ONEHOP_TRYV(run("ip -n {} link add name {} type bridge stp_state 0 mcast_snooping 0", host,
                  middle_bridge));
  for (const char* const port : {middle_a, middle_b}) {
    ONEHOP_TRYV(run("ip -n {} link set dev {} master {}", host, port, middle_bridge));
    ONEHOP_TRYV(run("ip -n {} link set dev {} type bridge_slave learning off", host, port));
  }
  return success();
}

Result<void> make_devices(const HostNames& hosts, const Profile& profile) {
  for (const std::string& name : {hosts.a, hosts.m, hosts.b}) {
    if (profile.is_direct && name == hosts.m) continue;
    ONEHOP_TRYV(run("ip netns add {}", name));
    ONEHOP_TRYV(run("ip -n {} link set lo up", name));
  }
  const int mtu = profile.mtu_bytes;
  const auto join = [mtu](const std::string& host, const char* device, const std::string& peer_host,
                          const char* peer) {
    return run("ip -n {} link add name {} mtu {} type veth peer name {} mtu {} netns {}", host,
               device, mtu, peer, mtu, peer_host);
  };
  if (profile.is_direct) {
    ONEHOP_TRYV(join(hosts.a, lower_a, hosts.b, interface_b));
  } else {
    ONEHOP_TRYV(join(hosts.a, lower_a, hosts.m, middle_a));
    ONEHOP_TRYV(join(hosts.b, interface_b, hosts.m, middle_b));
    ONEHOP_TRYV(make_bridge(hosts.m));
  }
  return run("ip -n {} link add link {} name {} mtu {} type macvlan mode bridge", hosts.a, lower_a,
             interface_a, mtu);
}

// Frames on the wire have MTU size and whole checksums, as on most Wi-Fi NICs. The macvlan keeps
// its GSO, so that what a sender saves in system calls it saves here as well; the veth below it
// cuts. GRO is off unless the profile wants it.
Result<void> switch_offloads_off(const std::string& host, const char* device,
                                 const Profile& profile) {
  return run("ip netns exec {} ethtool -K {} tso off gso off gro {} tx off tx-udp-segmentation off",
             host, device, profile.is_gro_on ? "on" : "off");
}

Result<void> write_setting(const std::string& host, const char* path, std::string_view value) {
  const Result<InNetns> inside = InNetns::enter(host);
  if (inside.has_error()) return inside.error();
  const Fd file{::open(path, O_WRONLY | O_CLOEXEC)};
  if (file.is_open() &&
      ::write(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size()))
    return success();
  return errno_error(ExitCode::io_unavailable, std::string{"write "} + path + " of " + host);
}

// By default Linux answers for an address on any of its devices. va would then offer its own MAC
// for mv0's address, and whenever b took that answer, its frames would pass by an XDP program on
// mv0.
Result<void> answer_on_own_device_only(const std::string& host) {
  return write_setting(host, "/proc/sys/net/ipv4/conf/all/arp_ignore", "1");
}

// A TCP socket that was made under BBR keeps its pacing timers under whatever it is told to use
// later; one timer per packet then costs the sender more than the link. Programs ask for the
// congestion control that they mean.
Result<void> start_tcp_with_reno(const std::string& host) {
  return write_setting(host, "/proc/sys/net/ipv4/tcp_congestion_control", "reno");
}

Result<void> wait_running(const std::string& host, const char* device) {
  const Result<InNetns> inside = InNetns::enter(host);
  if (inside.has_error()) return inside.error();
  const Fd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  for (Nanos waited{0}; waited < running_patience; waited += running_poll) {
    ifreq request{};
    std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
    if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0 &&
        (request.ifr_flags & IFF_RUNNING) != 0)
      return success();
    std::this_thread::sleep_for(running_poll);
  }
  return Error{ExitCode::timed_out, fmt::format("wait for {} of {}", device, host),
               "it has no carrier", ""};
}

Result<void> bring_up(const HostNames& hosts, const Profile& profile) {
  for (const auto& [host, device] :
       {std::pair{hosts.a, lower_a}, {hosts.m, middle_a}, {hosts.m, middle_b}}) {
    if (profile.is_direct && host == hosts.m) continue;
    ONEHOP_TRYV(switch_offloads_off(host, device, profile));
    ONEHOP_TRYV(run("ip -n {} link set dev {} addrgenmode none up", host, device));
  }
  ONEHOP_TRYV(switch_offloads_off(hosts.b, interface_b, profile));
  ONEHOP_TRYV(answer_on_own_device_only(hosts.a));
  ONEHOP_TRYV(run("ip -n {} addr add {}/24 dev {}", hosts.a, address_a4, interface_a));
  ONEHOP_TRYV(run("ip -n {} addr add {}/24 dev {}", hosts.b, address_b4, interface_b));
  ONEHOP_TRYV(run("ip -n {} addr add {}/64 dev {} nodad", hosts.a, address_a6, interface_a));
  ONEHOP_TRYV(run("ip -n {} addr add {}/64 dev {} nodad", hosts.b, address_b6, interface_b));
  ONEHOP_TRYV(run("ip -n {} link set dev {} up", hosts.b, interface_b));
  ONEHOP_TRYV(run("ip -n {} link set dev {} up", hosts.a, interface_a));
  ONEHOP_TRYV(wait_running(hosts.b, interface_b));
  return wait_running(hosts.a, interface_a);
}

// open_bridge comes after its ports are seen running: a port without carrier stays closed until the
// link watch has told the bridge, up to a second later, and a bridge that comes up opens those that
// have one at once.
Result<void> open_bridge(const std::string& host) {
  // Where the module br_netfilter is loaded, which Docker does, a new namespace sends bridged
  // packets through the IP hooks: they cost CPU and may put fragments together. Without the module
  // there is nothing to switch off.
  for (const char* const path : {"/proc/sys/net/bridge/bridge-nf-call-iptables",
                                 "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
                                 "/proc/sys/net/bridge/bridge-nf-call-arptables"}) {
    if (::access(path, F_OK) != 0) continue;
    ONEHOP_TRYV(write_setting(host, path, "0"));
  }
  ONEHOP_TRYV(wait_running(host, middle_a));
  ONEHOP_TRYV(wait_running(host, middle_b));
  return run("ip -n {} link set dev {} addrgenmode none up", host, middle_bridge);
}

enum class Verb : std::uint8_t { add, change };

// kick makes a queue look at its packets again. A shaper sleeps until its first packet may leave at
// the rate of the moment when it looked: 1.5 s for a full frame at 8 kbit/s. A change of the rate
// does not wake it, only the next packet does, and a sender that waits for room sends none. So the
// lab sends one: a frame of an experimental type (IEEE 802) to nobody.
Result<void> kick(const std::string& host, const char* device) {
  const Result<InNetns> inside = InNetns::enter(host);
  if (inside.has_error()) return inside.error();
  const Fd socket{::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)};
  if (!socket.is_open()) return errno_error(ExitCode::internal_error, "open a packet socket");
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = static_cast<int>(::if_nametoindex(device));
  std::array<std::uint8_t, ETH_ZLEN> frame{
      0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, ETH_P_802_EX1 >> 8, ETH_P_802_EX1 & 0xff};
  const auto sent = ::sendto(socket.get(), frame.data(), frame.size(), 0,
                             reinterpret_cast<const sockaddr*>(&to), sizeof to);
  // A full queue drops the frame, and has looked all the same.
  if (sent < 0 && errno != ENOBUFS)
    return errno_error(ExitCode::internal_error, "wake the shaper on " + std::string{device});
  return success();
}

// shape sets one direction's queue: `host` and `device` say where it stands.
Result<void> shape(const std::string& host, const char* device, const Profile& profile,
                   BytesPerSecond rate, Verb verb) {
  const char* const verb_text = verb == Verb::add ? "add" : "change";
  const Bytes burst = profile.burst;
  if (shaper_of(profile) != Shaper::htb) {
    ONEHOP_TRYV(run("tc -n {} qdisc {} dev {} root handle 1: tbf rate {}bit burst {} limit {}",
                    host, verb_text, device, bps(rate), burst.count, profile.queue.count));
    return verb == Verb::change ? kick(host, device) : success();
  }
  if (verb == Verb::add) {
    ONEHOP_TRYV(run("tc -n {} qdisc add dev {} root handle 1: htb default 1", host, device));
  }
  ONEHOP_TRYV(
      run("tc -n {} class {} dev {} parent 1: classid 1:1 htb rate {}bit ceil {}bit burst {} "
          "cburst {} quantum {}",
          host, verb_text, device, bps(rate), bps(rate), burst.count, burst.count,
          2 * profile.mtu_bytes));
  if (verb == Verb::change) return kick(host, device);
  return run("tc -n {} qdisc add dev {} parent 1:1 handle 10: bfifo limit {}", host, device,
             profile.queue.count);
}

Result<void> shape_reverse(const HostNames& hosts, const Profile& profile, BytesPerSecond rate,
                           Verb verb) {
  return profile.is_direct ? shape(hosts.b, interface_b, profile, rate, verb)
                           : shape(hosts.m, middle_a, profile, rate, verb);
}

Result<void> inject_loss(const HostNames& hosts, const Profile& profile) {
  const Result<InNetns> inside = InNetns::enter(hosts.m);
  if (inside.has_error()) return inside.error();
  return attach_loss({.to_a_ifindex = static_cast<int>(::if_nametoindex(middle_a)),
                      .to_b_ifindex = static_cast<int>(::if_nametoindex(middle_b)),
                      .loss_ppm = profile.loss_ppm,
                      .reverse_loss_ppm = profile.reverse_loss_ppm});
}

}  // namespace

Result<void> build_link(const HostNames& hosts, const Profile& profile) {
  ONEHOP_TRYV(make_devices(hosts, profile));
  if (!profile.is_direct) {
    ONEHOP_TRYV(inject_loss(hosts, profile));
  }
  ONEHOP_TRYV(bring_up(hosts, profile));
  if (!profile.is_direct) {
    ONEHOP_TRYV(open_bridge(hosts.m));
  }
  if (profile.wifi) {
    ONEHOP_TRYV(start_tcp_with_reno(hosts.a));
    ONEHOP_TRYV(start_tcp_with_reno(hosts.b));
  }
  if (profile.rate) {
    ONEHOP_TRYV(shape(hosts.a, lower_a, profile, *profile.rate, Verb::add));
  }
  return profile.is_reverse_shaped ? shape_reverse(hosts, profile, profile.reverse_rate, Verb::add)
                                   : success();
}

Result<void> set_link_rate(const HostNames& hosts, const Profile& profile, BytesPerSecond rate) {
  ONEHOP_TRYV(shape(hosts.a, lower_a, profile, rate, Verb::change));
  if (!profile.is_reverse_shaped || !profile.is_reverse_same) return success();
  return shape_reverse(hosts, profile, rate, Verb::change);
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
