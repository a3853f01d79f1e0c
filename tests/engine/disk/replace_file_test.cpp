// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A small file that is replaced as a whole: its mode, and what is not replaced.
#include "engine/disk/replace_file.hpp"

#include <sys/stat.h>

#include "tests/engine/sink/file_support.hpp"

using namespace onehop::disk;
using namespace onehop::sink::test;

TEST_CASE("a file that is replaced has its mode under any umask", "[engine][file]") {
  const TempFolder folder;
  const std::string file = folder.path() / "file";
  const mode_t before = ::umask(0077);
  CHECK(replace_file(file, "first", 0644) == 0);
  CHECK(replace_file(file, "second", 0644) == 0);
  (void)::umask(before);
  struct stat is {};
  REQUIRE(::stat(file.c_str(), &is) == 0);
  CHECK((is.st_mode & 07777) == 0644);
  CHECK(read_file(file) == "second");
}

TEST_CASE("what is no file is not replaced, and nothing is left beside it", "[engine][file]") {
  const TempFolder folder;
  const std::string pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(replace_file(pipe, "text", 0644) == EEXIST);
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(std::distance(std::filesystem::directory_iterator{folder.path()}, {}) == 1);
}
