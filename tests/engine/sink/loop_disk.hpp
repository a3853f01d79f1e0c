// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LoopDisk: a file system of a kind, in a file, mounted for as long as the object lives. Needs root
// and mkfs.
#pragma once

#include <sys/mount.h>

#include <cstdlib>
#include <string>

#include "tests/engine/sink/file_support.hpp"

namespace onehop::sink::test {

class LoopDisk {
 public:
  /// options are those of mount(8).
  explicit LoopDisk(const std::string& kind, const std::string& options = "loop") {
    fs::create_directory(path());
    const std::string image = (folder_ / "image").string(), quiet = " >/dev/null 2>&1";
    write_file(image, "");
    fs::resize_file(image, std::uintmax_t{400} << 20);  // XFS takes no less than 300
    const std::string made = "mkfs." + kind + (kind == "ext4" ? " -q " : " -q -f ") + image + quiet;
    is_mounted_ =
        ::geteuid() == 0 && std::system(made.c_str()) == 0 &&
        std::system(
            ("mount -o " + options + " " + image + " " + path().string() + quiet).c_str()) == 0;
  }
  ~LoopDisk() {
    if (is_mounted_) ::umount2(path().c_str(), MNT_DETACH);
  }
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;
  [[nodiscard]] bool is_mounted() const noexcept { return is_mounted_; }
  [[nodiscard]] fs::path path() const { return folder_ / "at"; }

 private:
  const TempFolder folder_;
  bool is_mounted_ = false;
};

}  // namespace onehop::sink::test
