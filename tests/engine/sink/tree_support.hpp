// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A tree of files and folders for tests, and whether it arrived as it is.
#pragma once

#include "engine/list/tree_scan.hpp"
#include "tests/engine/sink/file_support.hpp"

namespace onehop::sink::test {

using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;

/// A tree of small files, larger ones and folders, from a seed.
struct Tree {
  TempFolder folder{in_memory()};

  explicit Tree(std::uint64_t seed, std::size_t files = 150) {
    std::mt19937_64 random{seed};
    fs::create_directory(folder / "empty");
    for (std::size_t i = 0; i < files; ++i) {
      const std::string below = "d" + std::to_string(i / 20);
      fs::create_directory(folder / below);
      // Every sixth is empty, some are a byte below and above the largest that is packed.
      const std::size_t sizes[] = {0,    random() % 5000, random() % packed_bytes_max,
                                   4096, random() % 300,  packed_bytes_max + i % 3 - 1};
      write_file(folder / below / ("f" + std::to_string(i)), random_bytes(sizes[i % 6], random()));
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator{folder.path()})
      if (entry.is_directory()) {
        const timespec times[2] = {{1, 0}, {1'000'000'000, 7}};
        ::chmod(entry.path().c_str(), 0750);
        ::utimensat(AT_FDCWD, entry.path().c_str(), times, 0);
      }
  }
  /// list is what the sender would offer of it now.
  [[nodiscard]] SourceFiles list() const {
    const std::string path = folder.path().string() + "/";
    Result<ScanVolume> found = scan({&path, 1}, {});
    if (found.has_error()) FAIL(found.error().message());
    return std::move(found.value().source);
  }
};

inline void check_equal(const Tree& tree, const fs::path& to) {
  CHECK(names_in(to) == names_in(tree.folder.path()));
  const SourceFiles source = tree.list();
  for (const ManifestEntry& entry : source.manifest.files) {
    struct stat is {};
    REQUIRE(::stat((to / entry.name).c_str(), &is) == 0);
    INFO(entry.name);
    CHECK((is.st_mode & 07777) == (entry.mode & ~read_umask()));
    CHECK(is.st_mtim.tv_sec * 1'000'000'000 + is.st_mtim.tv_nsec == entry.mtime_ns);
    if (!entry.is_folder())
      CHECK(read_file(to / entry.name) == read_file(tree.folder / entry.name));
  }
}

}  // namespace onehop::sink::test
