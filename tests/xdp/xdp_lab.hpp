// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// XdpLab: two network namespaces joined by a veth pair, for tests of the AF_XDP port. They have no
// names, so the kernel removes them with the process, also when a check aborts it. Needs root:
// tests ask has_root() first.
//
//   namespace a: va (10.77.0.1, fd77::1)  ◀── veth ──▶  namespace b: vb (10.77.0.2, fd77::2)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/message.hpp"
#include "tests/support/net_namespace.hpp"
#include "xdp/afxdp_port.hpp"

namespace onehop::test {

enum class Host : std::uint8_t { a, b };
enum class Family : std::uint8_t { ipv4, ipv6 };

/// shell runs a command and fails the test where it fails; try_shell returns its exit status;
/// output_of its stdout.
void shell(const std::string& command);
int try_shell(const std::string& command);
[[nodiscard]] std::string output_of(const std::string& command);

/// InNetns moves the calling thread into a network namespace, given by its path, for its lifetime.
class InNetns {
 public:
  explicit InNetns(const std::string& path);
  InNetns(const InNetns&) = delete;
  InNetns& operator=(const InNetns&) = delete;
  ~InNetns();

 private:
  Fd home_;
};

struct XdpLabOptions {
  int mtu_bytes = 1500;
  int queues = 1;
  std::string macvlan_shaper;  ///< not empty: a macvlan "mv" carries a's addresses, and this qdisc
                               ///< is below it on va
};

class XdpLab {
 public:
  explicit XdpLab(XdpLabOptions options = {});
  XdpLab(const XdpLab&) = delete;
  XdpLab& operator=(const XdpLab&) = delete;

  /// netns is the path of a host's namespace.
  [[nodiscard]] std::string netns(Host host) const {
    return (host == Host::a ? netns_a_ : netns_b_).path();
  }
  [[nodiscard]] std::string interface(Host host) const {
    return host == Host::a ? (has_macvlan_ ? "mv" : "va") : "vb";
  }
  void run(Host host, const std::string& command) const;
  [[nodiscard]] std::string output(Host host, const std::string& command) const;

  /// make_link makes the link between the hosts: at the start, and again when a test has deleted
  /// it.
  void make_link() const;
  /// wait_operational: the kernel starts a device's queue a moment after its carrier is there, and
  /// drops until then.
  void wait_operational() const;

  [[nodiscard]] Endpoint address(Host host, Family family, std::uint16_t port) const;
  [[nodiscard]] Result<std::unique_ptr<AfXdpPort>> open(Host host, AfXdpConfig config) const;
  [[nodiscard]] AfXdpConfig config(Host host, Family family, std::uint16_t port,
                                   XdpMode mode) const;
  /// path is what the session would send: from host:source_port to the other host:target_port.
  [[nodiscard]] PathUpdate path(Host from, Family family, std::uint16_t source_port,
                                std::uint16_t target_port, std::uint16_t mtu_bytes = 1500) const;
  /// udp_socket is a plain kernel socket of that host, bound, with a receive timeout of two
  /// seconds.
  [[nodiscard]] Fd udp_socket(Host host, Family family, std::uint16_t port) const;

 private:
  NetNamespace netns_a_, netns_b_;
  XdpLabOptions options_;
  bool has_macvlan_ = false;
};

/// has_root says whether namespaces and XDP programs can be made here; the reason is printed
/// otherwise.
[[nodiscard]] bool has_root();

/// send_frame puts one frame of `bytes` times `fill` into the port and rings. False: the queue was
/// full.
bool send_frame(AfXdpPort& port, std::size_t bytes, std::uint8_t fill);

/// receive_all takes frames until `count` have come or `patience` is over; returns the payloads.
[[nodiscard]] std::vector<std::string> receive_all(AfXdpPort& port, std::size_t count,
                                                   Nanos patience = 3s);

/// wait_until polls `condition` for at most `patience`.
template <class Condition>
[[nodiscard]] bool wait_until(Condition condition, Nanos patience = 5s);

}  // namespace onehop::test

#include <chrono>
#include <thread>

template <class Condition>
bool onehop::test::wait_until(Condition condition, Nanos patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}
