// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tests/xdp/xdp_lab.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "engine/base/time.hpp"

namespace onehop::test {

namespace {

constexpr MacAddress mac_of(Host host) {
  return {std::byte{0x02}, std::byte{0x77}, std::byte{0},
          std::byte{0},    std::byte{0},    host == Host::a ? std::byte{0x0a} : std::byte{0x0b}};
}

const char* text_address(Host host, Family family) {
  if (family == Family::ipv4) return host == Host::a ? "10.77.0.1" : "10.77.0.2";
  return host == Host::a ? "fd77::1" : "fd77::2";
}

IpAddress ip_of(Host host, Family family) { return *IpAddress::parse(text_address(host, family)); }

}  // namespace

int try_shell(const std::string& command) {
  const int status = std::system((command + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void shell(const std::string& command) {
  const int status = std::system(command.c_str());
  if (status != 0) throw std::runtime_error{"failed: " + command};
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), n);
  ::pclose(pipe);
  return text;
}

InNetns::InNetns(const std::string& path)
    : home_{::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)} {
  const Fd target{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (::setns(target.get(), CLONE_NEWNET) != 0)
    throw std::runtime_error{"cannot enter netns " + path};
}

InNetns::~InNetns() {
  if (::setns(home_.get(), CLONE_NEWNET) != 0) std::abort();
}

XdpLab::XdpLab(XdpLabOptions options)
    : options_{std::move(options)}, has_macvlan_{!options_.macvlan_shaper.empty()} {
  make_link();
}

void XdpLab::make_link() const {
  const std::string queues = fmt::format("numrxqueues {0} numtxqueues {0}", options_.queues);
  run(Host::a,
      fmt::format("ip link add va mtu {0} {1} type veth peer name vb mtu {0} {1} netns {2}",
                  options_.mtu_bytes, queues, netns(Host::b)));
  run(Host::a, "ethtool -K va tso off gso off gro off tx off rx off >/dev/null");
  run(Host::b, "ethtool -K vb tso off gso off gro off tx off rx off >/dev/null");
  run(Host::b, "ip link set vb address 02:77:00:00:00:0b");
  if (has_macvlan_) {
    run(Host::a, "ip link add mv link va address 02:77:00:00:00:0a type macvlan mode private");
    run(Host::a, "tc qdisc add dev va root " + options_.macvlan_shaper);
    run(Host::a, "ip link set va up");
  } else {
    run(Host::a, "ip link set va address 02:77:00:00:00:0a");
  }
  for (const Host host : {Host::a, Host::b}) {
    const Host other = host == Host::a ? Host::b : Host::a;
    const std::string device = interface(host);
    const char* other_mac = other == Host::a ? "02:77:00:00:00:0a" : "02:77:00:00:00:0b";
    run(host, "sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0");
    run(host, fmt::format("ip link set {} up", device));
    run(host, fmt::format("ip addr add {}/24 dev {}", text_address(host, Family::ipv4), device));
    run(host,
        fmt::format("ip -6 addr add {}/64 dev {} nodad", text_address(host, Family::ipv6), device));
    for (const Family family : {Family::ipv4, Family::ipv6})
      run(host, fmt::format("ip neigh replace {} lladdr {} dev {}", text_address(other, family),
                            other_mac, device));
  }
  wait_operational();
}

void XdpLab::wait_operational() const {
  for (const Host host : {Host::a, Host::b}) {
    const auto is_operational = [&] {
      return output(host, "ip link show dev " + interface(host)).find("state UP") !=
             std::string::npos;
    };
    if (!wait_until(is_operational)) throw std::runtime_error{"the veth pair does not come up"};
  }
}

void XdpLab::run(Host host, const std::string& command) const {
  const InNetns inside{netns(host)};
  shell(command);
}

std::string XdpLab::output(Host host, const std::string& command) const {
  const InNetns inside{netns(host)};
  return output_of(command);
}

Endpoint XdpLab::address(Host host, Family family, std::uint16_t port) const {
  return {ip_of(host, family), port};
}

AfXdpConfig XdpLab::config(Host host, Family family, std::uint16_t port, XdpMode mode) const {
  AfXdpConfig config;
  config.interface = interface(host);
  config.local = address(host, family, port);
  config.mode = mode;
  return config;
}

Result<std::unique_ptr<AfXdpPort>> XdpLab::open(Host host, AfXdpConfig config) const {
  const InNetns inside{netns(host)};
  return AfXdpPort::open(config);
}

PathUpdate XdpLab::path(Host from, Family family, std::uint16_t source_port,
                        std::uint16_t target_port, std::uint16_t mtu_bytes) const {
  const Host to = from == Host::a ? Host::b : Host::a;
  const wire::UdpFlow flow{.source_mac = mac_of(from),
                           .target_mac = mac_of(to),
                           .is_ipv6 = family == Family::ipv6,
                           .source_ip = ip_of(from, family).bytes,
                           .target_ip = ip_of(to, family).bytes,
                           .source_port = source_port,
                           .target_port = target_port};
  PathUpdate update;
  update.header_bytes = static_cast<std::uint16_t>(wire::build_headers(flow, update.header));
  update.mtu_bytes = mtu_bytes;
  update.has_neighbour = true;
  return update;
}

Fd XdpLab::udp_socket(Host host, Family family, std::uint16_t port) const {
  const InNetns inside{netns(host)};
  const SocketAddress local = address(host, family, port).to_sockaddr();
  Fd fd{::socket(local.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const timeval patience{2, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::bind(fd.get(), local.get(), local.size_bytes) != 0)
    throw std::runtime_error{"cannot bind the test socket"};
  const Host other = host == Host::a ? Host::b : Host::a;
  const SocketAddress remote = address(other, family, port).to_sockaddr();
  if (::connect(fd.get(), remote.get(), remote.size_bytes) != 0)
    throw std::runtime_error{"cannot connect the test socket"};
  return fd;
}

bool has_root() {
  if (::geteuid() == 0 && try_shell("unshare -n true") == 0) return true;
  std::puts("skipped: needs root and iproute2 for network namespaces and XDP programs");
  return false;
}

bool send_frame(AfXdpPort& port, std::size_t bytes, std::uint8_t fill) {
  const auto slot = port.lend(bytes);
  if (slot.empty()) return false;
  std::memset(slot.data(), fill, bytes);
  port.commit(bytes);
  port.flush(monotonic_now());
  return true;
}

std::vector<std::string> receive_all(AfXdpPort& port, std::size_t count, Nanos patience) {
  std::vector<std::string> payloads;
  std::array<RxFrame, rx_batch_max> views;
  const Instant end = monotonic_now() + patience;
  while (payloads.size() < count && monotonic_now() < end) {
    const std::size_t n = port.receive(views);
    for (std::size_t i = 0; i < n; ++i) {
      std::string& payload = payloads.emplace_back(views[i].bytes().size(), '\0');
      views[i].bytes().copy_to(reinterpret_cast<std::byte*>(payload.data()), 0, payload.size());
    }
    if (n > 0) port.release();
    if (n == 0) (void)port.wait(monotonic_now() + 50ms, true);
  }
  return payloads;
}

}  // namespace onehop::test
