// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// desktop_daemon CAPABILITY...: owns the names of a notification daemon and of a file manager on
// the bus of $DBUS_SESSION_BUS_ADDRESS, and does with a notification what its standard input says.
//
//   stdout, a line each: "ready", and ["Notify", ARGUMENT...] of each call as JSON
//   stdin, a line each:  "action N KEY", "close N REASON"
#include <poll.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "control/bus/bus_message.hpp"

namespace {

using Json = nlohmann::json;
namespace bus = onehop::bus;

std::vector<std::string> capabilities;
std::uint32_t number = 0;  // of the newest notification

Json json_of(const bus::Value& value) {
  return std::visit(
      [](const auto& held) -> Json {
        using Held = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bus::Dict>) {
          Json dict = Json::object();
          for (const auto& [key, one] : held) dict[key] = json_of(one);
          return dict;
        } else if constexpr (std::is_same_v<Held, bus::ObjectPath>) {
          return held.text;
        } else if constexpr (std::is_same_v<Held, bus::Number>) {
          return held.value;
        } else {
          return held;
        }
      },
      value);
}

int on_message(sd_bus_message* message, void*, sd_bus_error*) {
  std::uint8_t type = 0;
  sd_bus_message_get_type(message, &type);
  if (type != SD_BUS_MESSAGE_METHOD_CALL) return 0;
  const std::string member = sd_bus_message_get_member(message);
  Json line = Json::array({member});
  for (bus::Value value; bus::read_value(message, value) > 0;) line.push_back(json_of(value));
  if (member == "Notify") line.push_back(++number);
  std::cout << line.dump() << std::endl;
  sd_bus_message* reply = nullptr;
  sd_bus_message_new_method_return(message, &reply);
  if (member == "GetCapabilities") {
    sd_bus_message_open_container(reply, 'a', "s");
    for (const std::string& word : capabilities) sd_bus_message_append(reply, "s", word.c_str());
    sd_bus_message_close_container(reply);
  } else if (member == "Notify") {
    sd_bus_message_append(reply, "u", number);
  }
  sd_bus_send(nullptr, reply, nullptr);
  sd_bus_message_unref(reply);
  return 1;
}

void obey(sd_bus* connection, const std::string& line) {
  std::istringstream words{line};
  std::string what, how;
  std::uint32_t which = 0;
  words >> what >> which >> how;
  constexpr const char *path = "/org/freedesktop/Notifications",
                       *interface = "org.freedesktop.Notifications";
  if (what == "action")
    sd_bus_emit_signal(connection, path, interface, "ActionInvoked", "us", which, how.c_str());
  else
    sd_bus_emit_signal(connection, path, interface, "NotificationClosed", "uu", which,
                       static_cast<std::uint32_t>(std::atoi(how.c_str())));
}

struct Close {
  void operator()(sd_bus* bus) const noexcept { sd_bus_flush_close_unref(bus); }
};

}  // namespace

int main(int count, char** words) {
  capabilities.assign(words + 1, words + count);
  sd_bus* connection = nullptr;
  if (sd_bus_open_user(&connection) < 0) return 1;
  const std::unique_ptr<sd_bus, Close> owner{connection};
  sd_bus_add_filter(connection, nullptr, on_message, nullptr);
  for (const char* name : {"org.freedesktop.Notifications", "org.freedesktop.FileManager1"})
    if (sd_bus_request_name(connection, name, 0) < 0) return 1;
  std::cout << "ready" << std::endl;
  std::string rest;
  for (;;) {
    while (sd_bus_process(connection, nullptr) > 0) {
    }
    pollfd waits[] = {{STDIN_FILENO, POLLIN, 0}, {sd_bus_get_fd(connection), POLLIN, 0}};
    if (poll(waits, 2, -1) < 0 || (waits[1].revents & POLLHUP) != 0) return 0;
    if (waits[0].revents == 0) continue;
    char room[256];
    const ssize_t got = read(STDIN_FILENO, room, sizeof room);
    if (got <= 0) return 0;
    rest.append(room, static_cast<std::size_t>(got));
    for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
      obey(connection, rest.substr(0, end));
  }
}
