// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/lab/work_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "engine/base/block.hpp"
#include "engine/base/fd.hpp"
#include "tools/labs/stress/random.hpp"

namespace onehop::stress {

namespace {

Result<void> write_random(const std::string& path, std::size_t bytes, Random& random) {
  std::ofstream out{path, std::ios::binary};
  for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    out.write(reinterpret_cast<const char*>(&word),
              static_cast<std::streamsize>(std::min(bytes - i, sizeof word)));
  }
  if (!out.flush()) return errno_error(ExitCode::local_file_error, "write " + path);
  return success();
}

}  // namespace

Result<WorkFolder> WorkFolder::make() {
  std::error_code error;
  std::string path = std::filesystem::is_directory("/dev/shm", error) ? "/dev/shm" : "/tmp";
  path += "/onehop-stress-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return errno_error(ExitCode::local_file_error, "make a folder for the run's files");
  WorkFolder work{path};
  if (!std::filesystem::create_directory(work.target(), error))
    return errno_error(ExitCode::local_file_error, "make " + work.target());
  return work;
}

WorkFolder WorkFolder::borrow(const std::string& path) {
  WorkFolder work{path};
  work.is_ours_ = false;
  return work;
}

WorkFolder::WorkFolder(WorkFolder&& other) noexcept
    : path_{std::exchange(other.path_, {})}, is_ours_{other.is_ours_} {}

WorkFolder::~WorkFolder() {
  std::error_code error;
  if (is_ours_ && !path_.empty()) std::filesystem::remove_all(path_, error);
}

Result<void> WorkFolder::make_file(std::size_t bytes) const {
  Random random{1, 0};
  return write_random(file(), bytes, random);
}

Result<void> WorkFolder::make_tree(std::size_t bytes) const {
  constexpr std::size_t files_per_folder = 100;
  Random random{2, 0};
  std::error_code error;
  std::string folder;
  for (std::size_t i = 0; bytes > 0; ++i) {
    if (i % files_per_folder == 0) {
      folder = fmt::format("{}/{}", tree(), i / files_per_folder);
      if (!std::filesystem::create_directories(folder, error))
        return errno_error(ExitCode::local_file_error, "make " + folder);
    }
    const std::size_t size =
        std::min(bytes, random.below(random.below(16) == 0 ? 2'000'000 : 30'000));
    ONEHOP_TRYV(write_random(fmt::format("{}/{}", folder, i), size, random));
    bytes -= size;
  }
  return success();
}

Result<void> WorkFolder::empty_target() const {
  std::error_code error;
  std::filesystem::remove_all(target(), error);
  if (!error) std::filesystem::create_directory(target(), error);
  if (error)
    return Error{
        ExitCode::local_file_error, "empty " + target(), error.message(), {}, error.value()};
  return success();
}

Result<void> WorkFolder::make_sparse(std::int64_t bytes) const {
  const Fd out{::open(file().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
  bool is_made = out.is_open() && ::ftruncate(out.get(), bytes) == 0;
  for (std::int64_t at = 0; is_made && at < bytes; at += block_bytes)
    is_made = ::pwrite(out.get(), "x", 1, at) == 1;
  if (is_made) return success();
  return errno_error(ExitCode::local_file_error, "make " + file());
}

}  // namespace onehop::stress
