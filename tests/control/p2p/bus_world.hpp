// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// BusWorld: a real dbus-daemon on a socket of its own, and Service: a program on it that answers as
// it is told. The daemon is what sits between onehop and wpa_supplicant on a machine; the service
// stands in for answers that a healthy wpa_supplicant does not give. What a healthy one does is
// played by itself, in tests/vm/p2p_connect.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

namespace onehop::p2p {

class BusWorld {
 public:
  /// policy: what stands between <policy context="default"> and its end, behind "allow all".
  explicit BusWorld(const std::string& policy = "") {
    std::string name = (std::filesystem::temp_directory_path() / "onehop-bus-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    const std::string socket = folder_ + "/bus", config = folder_ + "/bus.conf";
    std::ofstream{config} << "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-BUS Bus "
                             "Configuration 1.0//EN\" "
                             "\"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
                             "<busconfig><listen>unix:path="
                          << socket
                          << "</listen><auth>EXTERNAL</auth><policy context=\"default\">"
                             "<allow user=\"*\"/><allow own=\"*\"/><allow send_destination=\"*\"/>"
                             "<allow send_type=\"signal\"/><allow receive_sender=\"*\"/>"
                          << policy << "</policy></busconfig>\n";
    pid_ = ::fork();
    if (pid_ == 0) {
      const std::string option = "--config-file=" + config;
      ::execlp("dbus-daemon", "dbus-daemon", option.c_str(), "--nofork", nullptr);
      ::_exit(127);
    }
    ::setenv("DBUS_SYSTEM_BUS_ADDRESS", ("unix:path=" + socket).c_str(), 1);
    sd_bus* bus = nullptr;  // the socket is there before it takes a connection
    for (int i = 0; i < 500 && sd_bus_open_system(&bus) < 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    sd_bus_flush_close_unref(bus);
  }
  ~BusWorld() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(folder_);
    ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
  }
  BusWorld(const BusWorld&) = delete;
  BusWorld& operator=(const BusWorld&) = delete;

 private:
  std::string folder_;
  pid_t pid_ = 0;
};

class Service {
 public:
  /// Answer fills the reply to one call; a negative value is an error, and so is error_name.
  using Answer = std::function<void(sd_bus_message* reply)>;
  struct Reply {
    Answer answer;
    std::string error_name;
  };

  /// Keys: "PATH INTERFACE.METHOD", and of a property "PATH INTERFACE.NAME".
  Service(const std::string& name, std::map<std::string, Reply> replies)
      : replies_{std::move(replies)} {
    sd_bus_open_system(&bus_);
    sd_bus_add_filter(bus_, nullptr, &Service::on_message, this);
    sd_bus_request_name(bus_, name.c_str(), 0);
    thread_ = std::jthread{[this](const std::stop_token& stop) { serve(stop); }};
  }
  ~Service() {
    thread_ = {};
    sd_bus_flush_close_unref(bus_);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// emit has the service send a signal, after the call that it answers next.
  std::function<void(sd_bus*)> emit;
  std::map<std::string, int> calls;  ///< how often each was asked for
  std::map<std::string, bool> set;   ///< properties of type b that were written
  /// on_write reads what else is written; the service's thread.
  std::function<void(const std::string& key, sd_bus_message*)> on_write;

 private:
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      while (sd_bus_process(bus_, nullptr) > 0) {
      }
      sd_bus_wait(bus_, 20'000);
    }
  }
  static int on_message(sd_bus_message* message, void* self, sd_bus_error*) {
    return static_cast<Service*>(self)->answer(message);
  }
  int answer(sd_bus_message* message) {
    std::uint8_t type = 0;
    if (sd_bus_message_get_type(message, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL) return 0;
    std::string interface = sd_bus_message_get_interface(message);
    std::string member = sd_bus_message_get_member(message);
    bool is_write = false;
    if (interface == "org.freedesktop.DBus.Properties") {
      const char *of = "", *name = "";
      sd_bus_message_read(message, "ss", &of, &name);
      interface = of;
      is_write = member == "Set";
      member = name;
    }
    const std::string key =
        std::string{sd_bus_message_get_path(message)} + " " + interface + "." + member;
    int flag = 0;
    if (is_write && sd_bus_message_read(message, "v", "b", &flag) > 0) set[key] = flag != 0;
    if (is_write && on_write) on_write(key, message);
    ++calls[key];
    const auto found = replies_.find(key);
    if (found == replies_.end())
      return sd_bus_reply_method_errorf(message, "org.freedesktop.DBus.Error.UnknownMethod", "%s",
                                        key.c_str());
    const Reply& reply = found->second;
    if (!reply.error_name.empty())
      return sd_bus_reply_method_errorf(message, reply.error_name.c_str(), "as it was told");
    sd_bus_message* made = nullptr;
    sd_bus_message_new_method_return(message, &made);
    if (reply.answer) reply.answer(made);
    const auto signal = std::exchange(emit, nullptr);  // the caller goes on with the reply
    sd_bus_send(bus_, made, nullptr);
    sd_bus_message_unref(made);
    if (signal) signal(bus_);
    return 1;
  }

  sd_bus* bus_ = nullptr;
  std::map<std::string, Reply> replies_;
  std::jthread thread_;
};

}  // namespace onehop::p2p
