// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The note of a no-ack map. What sets the map needs Wi-Fi: tests/vm/noack.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>

#include "control/transfer/port/noack_record.hpp"

namespace onehop::transfer {
namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/onehop-noack-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = std::string{name} + "/run";
  }
  ~Folder() { std::filesystem::remove_all(std::filesystem::path{path}.parent_path()); }
  std::string path;
};

}  // namespace

TEST_CASE(
    "a note is held while its maker lives, left over when it dies, and gone when it is removed",
    "[noack]") {
  const Folder folder;
  CHECK(find_noack_record(folder.path, 3) == NoAckTrace::none);
  {
    auto made = NoAckRecord::make(folder.path, 3);
    REQUIRE(made);
    CHECK(find_noack_record(folder.path, 3) == NoAckTrace::held);
    CHECK(find_noack_record(folder.path, 4) == NoAckTrace::none);
    const auto second = NoAckRecord::make(folder.path, 3);
    REQUIRE_FALSE(second);
    CHECK(second.error().code == ExitCode::io_unavailable);
  }
  CHECK(find_noack_record(folder.path, 3) == NoAckTrace::left_over);
  auto again = NoAckRecord::make(folder.path, 3);  // the next run takes it over, and undoes it
  REQUIRE(again);
  CHECK(find_noack_record(folder.path, 3) == NoAckTrace::held);
  again.value().remove();
  CHECK(find_noack_record(folder.path, 3) == NoAckTrace::none);
}

TEST_CASE("a note that cannot be written is an error, and a link is not followed", "[noack]") {
  const Folder folder;
  CHECK_FALSE(NoAckRecord::make("/proc/nowhere", 3));
  REQUIRE(NoAckRecord::make(folder.path, 3));
  const std::string file = noack_record_path(folder.path, 3);
  const std::string target = folder.path + "/elsewhere";
  std::filesystem::rename(file, target);
  std::filesystem::create_symlink(target, file);
  CHECK_FALSE(NoAckRecord::make(folder.path, 3));
  CHECK(find_noack_record(folder.path, 3) == NoAckTrace::none);
}

}  // namespace onehop::transfer
