// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/service/announcer.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "control/find/avahi_entry.hpp"
#include "control/find/links.hpp"
#include "tools/onehop/confine/helper_process.hpp"

namespace onehop::tool {

namespace {

/// What comes: port, interface, protocol, instance, name.
void serve(Fd socket) {
  std::array<char, 256> room;
  const ssize_t got = ::recv(socket.get(), room.data(), room.size(), 0);
  if (got <= 0) return;
  std::istringstream lines{std::string{room.data(), static_cast<std::size_t>(got)}};
  find::AvahiEntry::Service service;
  lines >> service.port >> service.ifindex >> service.protocol >> service.instance;
  lines.ignore();
  std::getline(lines, service.name);
  auto entry = find::AvahiEntry::open(std::move(service));
  if (entry.has_error()) return;
  for (;;) {
    if (!entry.value().process()) return;
    pollfd waits[] = {{socket.get(), POLLIN, 0}, {entry.value().fd(), entry.value().events(), 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) return;
  }
}

/// As sd-bus looks for it.
bool is_bus_there() {
  return ::secure_getenv("DBUS_SYSTEM_BUS_ADDRESS") != nullptr ||
         ::access("/run/dbus/system_bus_socket", F_OK) == 0;
}

/// interface_of is its number for Avahi; -1: all; 0: none.
int interface_of(const find::Responder::Options& found) {
  if (!found.interface.empty()) return static_cast<int>(::if_nametoindex(found.interface.c_str()));
  if (!found.address) return -1;
  for (const find::Link& link : find::list_links())
    if (link.has_address(*found.address)) return static_cast<int>(link.ifindex);
  return 0;
}

}  // namespace

Result<Announcer> Announcer::start(const find::Responder::Options& found,
                                   const find::Instance& instance) {
  const int interface = interface_of(found);
  if (interface == 0 || !is_bus_there()) return Announcer{Fd{}, {}};
  const int protocol = found.address ? (found.address->is_v6 ? 1 : 0) : found.has_v6 ? -1 : 0;
  std::string digits;
  for (const std::byte one : instance) digits += fmt::format("{:02x}", static_cast<unsigned>(one));
  std::string name = found.name;
  std::ranges::replace(name, '\n', ' ');
  ONEHOP_TRY(socket, confine::start_powerless_helper("onehop-avahi", serve));
  return Announcer{std::move(socket),
                   fmt::format("{} {} {} {}", interface, protocol, digits, name)};
}

void Announcer::announce(std::uint16_t port) const {
  const std::string message = fmt::format("{} {}", port, message_);
  if (socket_.is_open())
    static_cast<void>(
        ::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace onehop::tool
