// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a run remembers of a path's rate: one small file that nothing can make the program fail
// with.
#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "control/transfer/account/rate_memory.hpp"
#include "tools/onehop/privilege.hpp"

using namespace onehop;
using namespace onehop::transfer;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Folder() { fs::remove_all(path); }
  std::string path = (fs::temp_directory_path() / "onehop-memory-XXXXXX").string();
  [[nodiscard]] std::string file() const { return path + "/a/b/start-rates.json"; }
  void write(const std::string& text) const {
    fs::create_directories(path + "/a/b");
    std::ofstream{file()} << text;
  }
};

/// Environment sets or (null) unsets variables for its lifetime.
struct Environment {
  explicit Environment(std::initializer_list<std::pair<const char*, const char*>> changes) {
    for (const auto& [name, value] : changes) {
      const char* before = std::getenv(name);
      before_.emplace_back(name,
                           before == nullptr ? std::nullopt : std::optional<std::string>{before});
      set(name, value);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) set(name.c_str(), value ? value->c_str() : nullptr);
  }
  static void set(const char* name, const char* value) {
    if (value == nullptr)
      ::unsetenv(name);
    else
      ::setenv(name, value, 1);
  }
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

}  // namespace

TEST_CASE("a rate is remembered per peer and interface", "[tools][memory]") {
  const Folder folder;
  const RateMemory memory{folder.file()};
  CHECK(memory.recall("10.0.0.2", "wlan0").value() == std::nullopt);
  REQUIRE(memory.remember({"10.0.0.2", "wlan0", mbit_per_s(600)}));
  REQUIRE(memory.remember({"10.0.0.2", "eth0", mbit_per_s(900)}));
  REQUIRE(memory.remember({"fe80::1%wlan0", "wlan0", mbit_per_s(300)}));
  CHECK(memory.recall("10.0.0.2", "wlan0").value() == mbit_per_s(600));
  CHECK(memory.recall("10.0.0.2", "eth0").value() == mbit_per_s(900));
  CHECK(memory.recall("fe80::1%wlan0", "wlan0").value() == mbit_per_s(300));
  CHECK(memory.recall("10.0.0.3", "wlan0").value() == std::nullopt);
  REQUIRE(memory.remember({"10.0.0.2", "wlan0", mbit_per_s(100)}));
  CHECK(memory.recall("10.0.0.2", "wlan0").value() == mbit_per_s(100));
  struct stat status {};
  REQUIRE(::stat(folder.file().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(std::distance(fs::directory_iterator{folder.path + "/a/b"}, {}) ==
        1);  // the temporary file has gone
}

TEST_CASE("a path whose names are no UTF-8 is remembered like any other, and for itself alone",
          "[tools][memory]") {
  const Folder folder;
  const RateMemory memory{folder.file()};
  const std::string odd(15, '\xff');
  const std::string peer = "fe80::1234:5678:9abc:def0%" + odd;
  REQUIRE(memory.remember({peer, odd, mbit_per_s(600)}));
  REQUIRE(memory.remember({"10.0.0.2", "eth\xc3", mbit_per_s(300)}));
  REQUIRE(memory.remember({"10.0.0.2", "eth\xe2\x80", mbit_per_s(200)}));
  REQUIRE(memory.remember({"10.0.0.2", "eth\\xc3", mbit_per_s(100)}));
  CHECK(memory.recall(peer, odd).value() == mbit_per_s(600));
  CHECK(memory.recall("10.0.0.2", "eth\xc3").value() == mbit_per_s(300));
  CHECK(memory.recall("10.0.0.2", "eth\xe2\x80").value() == mbit_per_s(200));
  CHECK(memory.recall("10.0.0.2", "eth\\xc3").value() == mbit_per_s(100));
}

TEST_CASE("the memory is bounded in entries and in rates", "[tools][memory]") {
  const Folder folder;
  const RateMemory memory{folder.file()};
  for (std::size_t i = 0; i < RateMemory::entries_max + 5; ++i)
    REQUIRE(memory.remember({"10.0.0." + std::to_string(i), "eth0", mbit_per_s(100)}));
  CHECK(memory.recall("10.0.0.4", "eth0").value() == std::nullopt);
  CHECK(memory.recall("10.0.0.5", "eth0").value() == mbit_per_s(100));
  CHECK(fs::file_size(folder.file()) < RateMemory::file_bytes_max);
  REQUIRE(memory.remember({"slow", "eth0", {1}}));
  REQUIRE(memory.remember({"fast", "eth0", {1'000'000'000'000}}));
  CHECK(memory.recall("slow", "eth0").value() == RateMemory::rate_min);
  CHECK(memory.recall("fast", "eth0").value() == RateMemory::rate_max);
}

TEST_CASE("a damaged memory is told, gives nothing, and the next run replaces it",
          "[tools][memory]") {
  const std::string good =
      R"({"schema_version":1,"rates":[{"peer":"p","interface":"i","rate_bytes_per_s":75000000}]})";
  const auto entry = [](const std::string& fields) {
    return R"({"schema_version":1,"rates":[)" + fields + "]}";
  };
  const std::string text =
      GENERATE_COPY(std::string{}, std::string{"{"}, std::string{"[]"}, std::string{"\0\xff", 2},
                    good.substr(0, good.size() / 2), good + good,
                    std::string{R"({"schema_version":2,"rates":[]})"},
                    std::string{R"({"schema_version":1,"rates":7})"}, entry("7"),
                    entry(R"({"peer":"p","interface":"i"})"),
                    entry(R"({"peer":"p","interface":"i","rate_bytes_per_s":-1})"),
                    entry(R"({"peer":"p","interface":"i","rate_bytes_per_s":1e9})"),
                    entry(R"({"peer":"p","interface":"i","rate_bytes_per_s":0})"),
                    entry(R"({"peer":"p","interface":"i","rate_bytes_per_s":99999999999999})"),
                    entry(R"({"peer":7,"interface":"i","rate_bytes_per_s":75000000})"),
                    std::string(RateMemory::file_bytes_max + 1, ' '));
  CAPTURE(text.substr(0, 200));
  const Folder folder;
  const RateMemory memory{folder.file()};
  folder.write(good);
  CHECK(memory.recall("p", "i").value() == mbit_per_s(600));
  folder.write(text);
  const auto recalled = memory.recall("p", "i");
  REQUIRE_FALSE(recalled);
  CHECK(recalled.error().message().find(folder.file()) != std::string::npos);
  REQUIRE(memory.remember({"p", "i", mbit_per_s(50)}));
  CHECK(memory.recall("p", "i").value() == mbit_per_s(50));
}

TEST_CASE("a memory that cannot be written is an error that names the file", "[tools][memory]") {
  const Folder folder;
  std::ofstream{folder.path + "/a"} << "a file where the folder should be";
  const auto kept = RateMemory{folder.file()}.remember({"p", "i", mbit_per_s(50)});
  REQUIRE_FALSE(kept);
  CHECK(kept.error().message().find(folder.file()) != std::string::npos);
}

TEST_CASE("the memory is in the user's state folder, and nowhere where it is switched off",
          "[tools][memory]") {
  const char* const name = "/start-rates.json";
  {
    const Environment set{{"ONEHOP_STATE_DIR", "/x"}, {"XDG_STATE_HOME", "/y"}};
    CHECK(tool::rate_memory_file() == std::string{"/x"} + name);
  }
  {
    const Environment set{{"ONEHOP_STATE_DIR", ""}, {"XDG_STATE_HOME", "/y"}};
    CHECK(tool::rate_memory_file().empty());
    const RateMemory none{tool::rate_memory_file()};
    CHECK(none.remember({"p", "i", mbit_per_s(50)}));
    CHECK(none.recall("p", "i").value() == std::nullopt);
  }
  {
    const Environment set{{"ONEHOP_STATE_DIR", nullptr}, {"XDG_STATE_HOME", "/y"}};
    CHECK(tool::rate_memory_file() == std::string{"/y/onehop"} + name);
  }
  const Environment set{{"ONEHOP_STATE_DIR", nullptr},
                        {"XDG_STATE_HOME", "relative"},
                        {"HOME", "/h"},
                        {"SUDO_UID", nullptr}};
  CHECK(tool::rate_memory_file() == std::string{"/h/.local/state/onehop"} + name);
  const Environment sudo{{"SUDO_UID", "1000"}};
  CHECK(tool::rate_memory_file() !=
        std::string{"/h/.local/state/onehop"} + name);  // of whoever this process is now
}
