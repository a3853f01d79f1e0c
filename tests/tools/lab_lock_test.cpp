// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LabLock and sweep_locks in a folder of the test's own.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tools/labs/lab/lab_lock.hpp"

namespace onehop::lab {
namespace {

struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "lab-lock-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  void make(const std::string& name) const { std::ofstream{path / name}.put('x'); }
  [[nodiscard]] bool has(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(path / name));
  }
  [[nodiscard]] std::string text() const { return path.string(); }
  std::filesystem::path path;
};

TEST_CASE("a sweep removes the locks that nobody holds, and nothing else", "[lab]") {
  const Folder folder;
  const auto held = LabLock::take(folder.text(), "held");
  REQUIRE(held);
  for (const char* name : {"killed.lock", "up.lock", "up.state", "killed.air", "target"})
    folder.make(name);
  std::filesystem::create_symlink("target", folder.path / "link.lock");
  CHECK(sweep_locks(folder.text()) == 1);
  CHECK_FALSE(folder.has("killed.lock"));
  for (const char* name : {"held.lock", "up.lock", "up.state", "killed.air", "target", "link.lock"})
    CHECK(folder.has(name));
  CHECK_FALSE(LabLock::take(folder.text(), "held"));
  CHECK(sweep_locks(folder.text() + "/none") == 0);
}

TEST_CASE("a lab is held once, and its file goes only when it is removed", "[lab]") {
  const Folder folder;
  {
    const auto held = LabLock::take(folder.text(), "lab");
    REQUIRE(held);
    const auto second = LabLock::take(folder.text(), "lab");
    REQUIRE_FALSE(second);
    CHECK(second.error().code == ExitCode::refused_by_peer);
    CHECK(LabLock::take(folder.text(), "other"));
  }
  CHECK(folder.has("lab.lock"));
  const auto again = LabLock::take(folder.text(), "lab");
  REQUIRE(again);
  again.value().remove();
  CHECK_FALSE(folder.has("lab.lock"));
}

// Goal:   a sweep never costs anybody a lab: neither is one refused because the sweep has its file,
// nor held by two. Method: two sweep without end while two others take a name each and a third name
// in common. Bounds: none of the takes of an own name is refused, whatever the order; of the common
// name at most one holder is seen.
TEST_CASE("labs are taken while others sweep", "[lab]") {
  const Folder folder;
  std::atomic<bool> is_over{false};
  std::atomic<int> refused{0}, holders{0}, doubles{0};
  const auto sweep = [&] {
    while (!is_over) (void)sweep_locks(folder.text());
  };
  const auto contend = [&](const std::string& own) {
    for (int i = 0; i < 3000; ++i) {
      if (!LabLock::take(folder.text(), own)) ++refused;
      const auto common = LabLock::take(folder.text(), "common");
      if (!common) continue;
      if (++holders > 1) ++doubles;
      std::this_thread::sleep_for(std::chrono::microseconds{10});
      --holders;
      if (i % 8 != 0)
        common.value().remove();  // the last that a holder does: from here on the name is free
    }
  };
  std::thread sweepers[]{std::thread{sweep}, std::thread{sweep}};
  std::thread labs[]{std::thread{contend, "one"}, std::thread{contend, "two"}};
  for (std::thread& lab : labs) lab.join();
  is_over = true;
  for (std::thread& sweeper : sweepers) sweeper.join();
  CHECK(refused == 0);
  CHECK(doubles == 0);
}

}  // namespace
}  // namespace onehop::lab
