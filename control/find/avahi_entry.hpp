// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AvahiEntry: a receiver as the DNS-SD service _onehop._tcp, which avahi-daemon publishes for us on
// the links of this machine for as long as we are on its bus. It is never started by us; where it
// starts later, or anew, the service is published then.
//
//   Avahi: "laptop" is taken on the link, or on this machine ─▶ "laptop #2" is published
//
// One thread.
#pragma once

#include <cstdint>
#include <string>

#include "control/bus/bus.hpp"

namespace onehop::find {

inline const std::string avahi = "org.freedesktop.Avahi";
inline const bus::Bus::Target avahi_server{avahi, "/", avahi + ".Server", false};
//= RFC 6763 section 4.1.2
inline constexpr const char* avahi_type = "_onehop._tcp";
/// What stands before a receiver's number in the service's text, in hexadecimal digits: our own
/// answers have it as well, so that one receiver is listed once.
inline constexpr const char* instance_key = "instance=";

class AvahiEntry {
 public:
  struct Service {
    std::string name;  ///< at most 63 bytes of UTF-8
    std::uint16_t port = 0;
    int ifindex = -1;      ///< -1: all links
    int protocol = -1;     ///< 0: IPv4 alone; 1: IPv6 alone; -1: both
    std::string instance;  ///< in hexadecimal digits
  };

  /// open connects to the system bus. Error: Bus::open()'s. Syscalls: those of Bus.
  [[nodiscard]] static Result<AvahiEntry> open(Service service);

  /// process takes what has come. False: the bus is gone.
  [[nodiscard]] bool process();
  [[nodiscard]] int fd() const { return bus_.fd(); }
  [[nodiscard]] short events() const { return bus_.events(); }

 private:
  AvahiEntry(bus::Bus bus, Service service)
      : bus_{std::move(bus)}, service_{std::move(service)}, name_{service_.name} {}
  void publish();
  void rename();
  [[nodiscard]] Result<void> add();
  void on(const bus::Bus::Signal& signal);

  bus::Bus bus_;
  Service service_;
  std::string name_;   // that is published
  std::string group_;  // its path; empty: nothing is published
  int renamed_total_ = 0;
};

}  // namespace onehop::find
