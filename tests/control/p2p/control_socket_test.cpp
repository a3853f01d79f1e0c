// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what wpa_supplicant answers is taken for the command that it belongs to.
// Method: a socket that answers when it is told to. Bounds: none but equality.
#include "control/p2p/control_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <thread>

using namespace onehop;
using namespace onehop::p2p;

namespace {

/// ControlService is the other end of a control socket, wlan0 in a folder of its own.
class ControlService {
 public:
  ControlService() {
    std::string made = (std::filesystem::temp_directory_path() / "onehop-control-XXXXXX").string();
    folder = ::mkdtemp(made.data());
    sockaddr_un here{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string path = folder + "/wlan0";
    std::memcpy(here.sun_path, path.data(), path.size());
    REQUIRE(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0);
  }
  ~ControlService() { std::filesystem::remove_all(folder); }
  ControlService(const ControlService&) = delete;
  ControlService& operator=(const ControlService&) = delete;

  /// answer waits for a command and returns it.
  std::string answer(const std::string& text) {
    std::array<char, 100> command{};
    sockaddr_un from{};
    socklen_t length = sizeof from;
    auto* address = reinterpret_cast<sockaddr*>(&from);
    (void)!::recvfrom(fd_.get(), command.data(), command.size() - 1, 0, address, &length);
    (void)!::sendto(fd_.get(), text.data(), text.size(), 0, address, length);
    return command.data();
  }

  std::string folder;

 private:
  Fd fd_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

}  // namespace

TEST_CASE("an answer that comes too late is not taken for the next one", "[control][p2p]") {
  ControlService service;
  const auto fd = open_control("DIR=" + service.folder + " GROUP=netdev", "wlan0", 200ms);
  REQUIRE(fd.has_value());
  const auto first = ask_control(fd.value(), "P2P_CONNECT", "connect");
  REQUIRE(first.has_error());
  CHECK(first.error().code == ExitCode::timed_out);
  CHECK(service.answer("FAIL\n") == "P2P_CONNECT");
  std::string command;
  std::jthread other{[&] { command = service.answer("OK\n"); }};
  const auto second = ask_control(fd.value(), "P2P_GROUP_ADD", "start a group");
  other.join();
  CHECK(command == "P2P_GROUP_ADD");
  REQUIRE(second.has_value());
  CHECK(second.value() == "OK");
}

TEST_CASE("a control socket that is not there is told of", "[control][p2p]") {
  CHECK(open_control("", "wlan0").error().errno_value == ENOENT);
  const auto opened = open_control("/nowhere", "wlan0");
  REQUIRE(opened.has_error());
  CHECK(opened.error().attempt == "open wpa_supplicant's control socket /nowhere/wlan0");
}
