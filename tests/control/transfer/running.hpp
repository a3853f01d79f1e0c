// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Running: whole transfers over loopback on free ports, each run() on a thread of its own.
#pragma once

#include "control/transfer/api/transfer.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

namespace onehop::api::test {

namespace fs = std::filesystem;
inline constexpr const char* code = "a-code-of-the-tests-0123456789";

inline std::string free_address() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in in4{};
  in4.sin_family = AF_INET;
  in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof in4;
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&in4), length) == 0);
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&in4), &length) == 0);
  ::close(fd);
  return "127.0.0.1:" + std::to_string(ntohs(in4.sin_port));
}

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "onehop-transfer-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
    fs::create_directory(path / "in");
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name, std::size_t bytes, unsigned seed) const {
    std::mt19937 random{seed};
    std::string text(bytes, '\0');
    for (char& c : text) c = static_cast<char>(random());
    std::ofstream{path / name, std::ios::binary} << text;
    return (path / name).string();
  }
  fs::path path;
};

inline std::string content_of(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

/// Running: a Transfer that runs on a thread of its own, and all that it said.
template <class Options>
class Running {
 public:
  explicit Running(Options options, std::function<void(Transfer&, const Event&)> hook = {})
      : hook_{std::move(hook)}, transfer_{std::move(options), [this](const Event& event) {
                                            if (hook_) hook_(transfer_, event);
                                            const std::lock_guard lock{mutex_};
                                            events_.push_back(event);
                                            changed_.notify_all();
                                          }} {
    REQUIRE_FALSE(transfer_.set_code(code));
    thread_ = std::thread{[this] { error_ = transfer_.run(); }};
  }
  ~Running() {
    if (!thread_.joinable()) return;
    transfer_.interrupt();
    thread_.join();
  }
  template <class Kind>
  Kind wait_for() {
    std::unique_lock lock{mutex_};
    const Kind* found = nullptr;
    const bool is_there = changed_.wait_for(lock, std::chrono::minutes{1}, [&] {
      for (const Event& event : events_)
        if (found == nullptr) found = std::get_if<Kind>(&event);
      return found != nullptr;
    });
    REQUIRE(is_there);
    return *found;
  }
  template <class Kind>
  std::size_t count() {
    const std::lock_guard lock{mutex_};
    return static_cast<std::size_t>(std::ranges::count_if(
        events_, [](const Event& event) { return std::holds_alternative<Kind>(event); }));
  }
  Error end() {
    thread_.join();
    return error_;
  }
  Transfer& transfer() { return transfer_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
  std::function<void(Transfer&, const Event&)> hook_;
  Transfer transfer_;
  Error error_;
  std::thread thread_;
};

inline ReceiveOptions receive_into(const Folder& folder, const std::string& address) {
  ReceiveOptions options;
  options.listen = address;
  options.directory = (folder.path / "in").string();
  options.is_once = true;
  return options;
}

inline SendOptions send_to(const std::string& address, std::string path) {
  SendOptions options;
  options.to = address;
  options.paths = {std::move(path)};
  return options;
}

}  // namespace onehop::api::test
