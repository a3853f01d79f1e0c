// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// BusServer: a system bus of one thread for a fuzz target, with a wpa_supplicant and a
// NetworkManager on it whose answers an input decides. It stands where dbus-daemon does: what it
// sends is well formed, as a daemon would see to, and of any type and content.
//
// Each connection takes the input that was set before it was made. A byte per call says whether the
// answer is a healthy one; an input that has ended gives healthy ones.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "control/p2p/supplicant_names.hpp"
#include "engine/base/check.hpp"
#include "engine/base/fd.hpp"

namespace onehop::fuzz {

/// Feed hands out an input; behind its end are zeros.
class Feed {
 public:
  explicit Feed(std::vector<std::uint8_t> bytes = {}) : bytes_{std::move(bytes)} {}
  [[nodiscard]] bool is_empty() const { return at_ >= bytes_.size(); }
  std::uint8_t byte() { return is_empty() ? 0 : bytes_[at_++]; }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  std::string text() {
    std::string text;
    for (std::size_t left = byte() % 40; left > 0 && !is_empty(); --left)
      text.push_back(static_cast<char>(1 + byte() % 127));  // sd-bus sends UTF-8 without a zero
    return text;
  }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

/// Writer puts values of any type into a message, as a feed says.
class Writer {
 public:
  Writer(sd_bus_message* message, Feed& feed) : message_{message}, feed_{feed} {}

  /// any appends one value; its type is drawn down to `depth` containers.
  void any(int depth) { of_type(draw_type(depth)); }

  void of_type(const std::string& type) {
    const std::string inner = type.substr(1);
    switch (type.front()) {
      case 'y': return basic('y', feed_.byte());
      case 'b': return basic('b', static_cast<int>(feed_.byte() % 2));
      case 'n': return basic('n', static_cast<std::int16_t>(feed_.number()));
      case 'q': return basic('q', static_cast<std::uint16_t>(feed_.number()));
      case 'i': return basic('i', static_cast<std::int32_t>(feed_.number()));
      case 'u': return basic('u', static_cast<std::uint32_t>(feed_.number()));
      case 'x': return basic('x', static_cast<std::int64_t>(feed_.number()));
      case 't': return basic('t', feed_.number());
      case 'd': return basic('d', static_cast<double>(feed_.number()));
      case 's': return text('s', feed_.text());
      case 'o': return text('o', "/fi/w1/wpa_supplicant1/" + std::to_string(feed_.byte()));
      case 'v': {
        const std::string held = draw_type(1);
        open('v', held);
        of_type(held);
        return close();
      }
      case '{':
        open('e', type.substr(1, type.size() - 2));
        text('s', draw_key());
        of_type(type.substr(2, type.size() - 3));
        return close();
      default:
        open('a', inner);
        for (int left = feed_.byte() % 6; left > 0; --left) of_type(inner);
        return close();
    }
  }

 private:
  template <class T>
  void basic(char type, T value) {
    ONEHOP_CHECK(sd_bus_message_append_basic(message_, type, &value) >= 0);
  }
  void text(char type, const std::string& value) {
    ONEHOP_CHECK(sd_bus_message_append_basic(message_, type, value.c_str()) >= 0);
  }
  void open(char type, const std::string& contents) {
    ONEHOP_CHECK(sd_bus_message_open_container(message_, type, contents.c_str()) >= 0);
  }
  void close() { ONEHOP_CHECK(sd_bus_message_close_container(message_) >= 0); }

  std::string draw_type(int depth) {
    constexpr std::array basics{"y", "b", "n", "q", "i", "u", "x", "t", "d", "s", "o"};
    const std::uint8_t drawn = feed_.byte();
    if (depth <= 0 || drawn % 4 == 0) return basics[drawn / 4 % basics.size()];
    switch (drawn / 4 % 8) {
      case 0: return "v";
      case 1: return "ay";
      case 2: return "aay";
      case 3: return "as";
      case 4: return "ao";
      case 5: return "a" + draw_type(depth - 1);
      default: return "a{sv}";
    }
  }
  /// A key that a reader looks for, or any.
  std::string draw_key() {
    constexpr std::array keys{
        "DeviceName",       "DeviceAddress", "level", "groupcapability", "frequency", "status",
        "interface_object", "group_object",  "role",  "persistent",      "id_str",    "mode",
        p2p::marks_key};
    const std::uint8_t drawn = feed_.byte();
    return drawn % 4 == 0 ? feed_.text() : keys[drawn % keys.size()];
  }

  sd_bus_message* message_;
  Feed& feed_;
};

class BusServer {
 public:
  BusServer() : listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    const std::string name = "onehop-fuzz-bus-" + std::to_string(::getpid());
    sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
    std::memcpy(at.sun_path + 1, name.data(), name.size());  // a name without a file
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    ONEHOP_CHECK(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&at), bytes) == 0);
    ONEHOP_CHECK(::listen(listener_.get(), 8) == 0);
    ::setenv("DBUS_SYSTEM_BUS_ADDRESS", ("unix:abstract=" + name).c_str(), 1);
    thread_ = std::jthread{[this] { serve(); }};
  }
  ~BusServer() { ::shutdown(listener_.get(), SHUT_RDWR); }
  BusServer(const BusServer&) = delete;
  BusServer& operator=(const BusServer&) = delete;

  /// answer_from sets what the next connections take.
  void answer_from(std::vector<std::uint8_t> input) {
    const std::scoped_lock lock{mutex_};
    input_ = std::move(input);
  }

 private:
  void serve() {
    for (;;) {
      const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      {
        const std::scoped_lock lock{mutex_};
        feed_ = Feed{input_};
      }
      serve_one(fd);
    }
  }
  void serve_one(int fd) {
    sd_bus* bus = nullptr;
    sd_id128_t id{};
    ONEHOP_CHECK(sd_bus_new(&bus) >= 0);
    ONEHOP_CHECK(sd_id128_randomize(&id) >= 0);
    ONEHOP_CHECK(sd_bus_set_fd(bus, fd, fd) >= 0);  // it is the bus's from here on
    ONEHOP_CHECK(sd_bus_set_server(bus, 1, id) >= 0);
    ONEHOP_CHECK(sd_bus_start(bus) >= 0);
    ONEHOP_CHECK(sd_bus_add_filter(bus, nullptr, &BusServer::on_message, this) >= 0);
    int code = 0;
    while ((code = sd_bus_process(bus, nullptr)) >= 0)
      if (code == 0 && sd_bus_wait(bus, UINT64_MAX) < 0) break;
    sd_bus_flush_close_unref(bus);
  }
  static int on_message(sd_bus_message* message, void* self, sd_bus_error*) {
    return static_cast<BusServer*>(self)->answer(message);
  }
  int answer(sd_bus_message* call) {
    std::uint8_t type = 0;
    if (sd_bus_message_get_type(call, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL) return 0;
    const std::string_view interface = sd_bus_message_get_interface(call);
    std::string member = sd_bus_message_get_member(call);
    const bool is_daemon = interface == "org.freedesktop.DBus" && member != "GetNameOwner";
    bool is_read = false;
    if (interface == "org.freedesktop.DBus.Properties") {
      const char *of = "", *name = "";
      sd_bus_message_read(call, "ss", &of, &name);
      is_read = member == "Get";
      member = name;
    }
    const std::uint8_t choice = is_daemon ? 0 : feed_.byte();
    if (choice % 16 == 7)
      return sd_bus_reply_method_errorf(call, error_name(feed_.byte()), "%s", feed_.text().c_str());
    sd_bus_message* reply = nullptr;
    ONEHOP_CHECK(sd_bus_message_new_method_return(call, &reply) >= 0);
    if (choice % 16 > 7)
      write_hostile(reply, is_read);
    else
      write_healthy(reply, member, is_read);
    sd_bus* bus = sd_bus_message_get_bus(call);
    if (choice >= 128) send_signal(bus);
    ONEHOP_CHECK(sd_bus_message_set_sender(reply, sd_bus_message_get_destination(call)) >= 0);
    (void)sd_bus_send(bus, reply, nullptr);  // the other end may be gone
    sd_bus_message_unref(reply);
    if (choice % 32 == 3) send_signal(bus);
    return 1;
  }
  void write_hostile(sd_bus_message* reply, bool is_read) {
    Writer writer{reply, feed_};
    if (is_read && feed_.byte() % 4 != 0) return writer.of_type("v");
    for (int left = feed_.byte() % 4; left > 0; --left) writer.any(3);
  }
  /// write_healthy answers as a wpa_supplicant with a radio and a group does.
  static void write_healthy(sd_bus_message* reply, const std::string& member, bool is_read) {
    const auto put = [&](const char* type, auto... values) {
      ONEHOP_CHECK(is_read ? sd_bus_message_append(reply, "v", type, values...) >= 0
                           : sd_bus_message_append(reply, type, values...) >= 0);
    };
    constexpr const char* path = "/fi/w1/wpa_supplicant1/1";
    if (member == "Hello") return put("s", ":1.1");
    if (member == "GetNameOwner") return put("s", ":1.2");
    if (member == "Interfaces" || member == "Networks" || member == "PersistentGroups")
      return put("ao", 1, path);
    if (member == "Ifname") return put("s", "wlan0");
    if (member == "Role") return put("s", "device");
    if (member == "State") return put("s", "completed");
    if (member == "Passphrase") return put("s", "secret12");
    if (member == "CtrlInterface") return put("s", "");
    if (member == "P2PDeviceConfig") return put("a{sv}", 1, "DeviceName", "s", "box");
    if (member == "Properties") return put("a{sv}", 1, "id_str", "s", "\"onehop managed\"");
    if (member == "SSID" || member == "BSSID") return put("ay", 6, 'a', 'b', 'c', 'd', 'e', 'f');
    if (member == "Frequency") return put("q", 5180);
    if (member == "Managed") return put("b", 1);
    if (member == "Group" || member == "CurrentNetwork" || member == "GetDeviceByIpIface" ||
        member == "CreateInterface")
      return put("o", path);
    if (is_read) put("s", "");
  }
  void send_signal(sd_bus* bus) {
    constexpr std::array names{"DeviceFoundProperties",
                               "DeviceLost",
                               "FindStopped",
                               "GONegotiationRequest",
                               "PeerJoined",
                               "GONegotiationSuccess",
                               "GONegotiationFailure",
                               "WpsFailed",
                               "GroupFinished",
                               "GroupStarted",
                               "GroupStarted",
                               "GroupFormationFailure",
                               "ProvisionDiscoveryPBCRequest"};
    sd_bus_message* signal = nullptr;
    ONEHOP_CHECK(
        sd_bus_message_new_signal(bus, &signal, "/fi/w1/wpa_supplicant1/1",
                                  feed_.byte() % 4 == 0 ? p2p::group_interface : p2p::p2p_interface,
                                  names[feed_.byte() % names.size()]) >= 0);
    Writer writer{signal, feed_};
    const std::uint8_t choice = feed_.byte();
    if (choice % 4 == 1) writer.of_type("o");
    if (choice % 4 != 3) writer.of_type("a{sv}");
    for (int left = choice % 4 == 3 ? choice / 4 % 4 : 0; left > 0; --left) writer.any(3);
    ONEHOP_CHECK(sd_bus_message_set_sender(signal, "fi.w1.wpa_supplicant1") >= 0);
    (void)sd_bus_send(bus, signal, nullptr);
    sd_bus_message_unref(signal);
  }
  static const char* error_name(std::uint8_t choice) {
    constexpr std::array names{"org.freedesktop.DBus.Error.AccessDenied",
                               "org.freedesktop.DBus.Error.ServiceUnknown",
                               "org.freedesktop.DBus.Error.NoReply",
                               "fi.w1.wpa_supplicant1.ConnectChannelUnavailable",
                               "org.freedesktop.NetworkManager.PermissionDenied",
                               "org.example.Unheard"};
    return names[choice % names.size()];
  }

  Fd listener_;
  std::mutex mutex_;
  std::vector<std::uint8_t> input_;  // guarded by mutex_
  Feed feed_;                        // the thread's
  std::jthread thread_;
};

}  // namespace onehop::fuzz
