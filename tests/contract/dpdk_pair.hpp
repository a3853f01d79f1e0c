// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DpdkEnd: a DPDK port on a device of its own, plugged in for a test's time. EAL itself is started
// once per process.
#pragma once

#include <memory>
#include <string>

#include "engine/port/dpdk/dpdk_port.hpp"
#include "tests/contract/dpdk_plug.hpp"
#include "tests/contract/pairs.hpp"

namespace onehop::test {

inline dpdk::Eal& eal() {
  static const std::unique_ptr<dpdk::Eal> started = [] {
    dpdk::HostFacts host = dpdk::read_host(0);
    host.huge_bytes_free = 0;  // the same on every machine
    return take_or_throw(dpdk::Eal::start(dpdk::complete({"-m", "512"}, host)));
  }();
  return *started;
}

inline Endpoint loopback(bool is_ipv6) {
  return {*IpAddress::parse(is_ipv6 ? "::1" : "127.0.0.1"), 0};
}

struct DpdkEnd {
  static std::unique_ptr<DpdkEnd> open(const std::string& name, const std::string& arguments,
                                       const Endpoint& local,
                                       std::optional<QueueScope> scope = {}) {
    std::unique_ptr<DpdkEnd> end{new DpdkEnd{name}};
    dpdk::Eal& started = eal();
    plug(name, arguments);
    end->device = take_or_throw(dpdk::DpdkDevice::open(started, {.name = name, .scope = scope}));
    end->port = take_or_throw(DpdkPort::open(*end->device, {.local = local, .tx_frames_max = 512}));
    return end;
  }
  DpdkEnd(const DpdkEnd&) = delete;
  DpdkEnd& operator=(const DpdkEnd&) = delete;
  ~DpdkEnd() {
    port.reset();
    device.reset();
    unplug(name);
  }

  std::string name;
  std::unique_ptr<dpdk::DpdkDevice> device;
  std::unique_ptr<DpdkPort> port;

 private:
  explicit DpdkEnd(std::string name_used) : name{std::move(name_used)} {}
};

}  // namespace onehop::test
