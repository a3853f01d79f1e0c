// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/units.hpp"

namespace onehop::file {

namespace {

/// Sizes are a peer's claims, of any number.
std::uint64_t left_of(Wide free, std::uint64_t taken, std::uint64_t reserve) {
  return static_cast<std::uint64_t>(
      std::max<Wide>(0, free - static_cast<Wide>(taken) - static_cast<Wide>(reserve)));
}

Error too_little(std::string attempt, std::string cause) {
  return {ExitCode::local_file_error, std::move(attempt), std::move(cause),
          "Free some space there, or choose another folder with --dir; recv --no-space-check does "
          "not look at it",
          ENOSPC};
}

}  // namespace

Result<void> check_room(const Room& needed, const Room& taken, const Room& reserve,
                        const struct statvfs& disk) {
  const std::uint64_t bytes_left =
      left_of(static_cast<Wide>(disk.f_bavail) * disk.f_frsize, taken.bytes, reserve.bytes);
  if (needed.bytes > 0 && needed.bytes > bytes_left)
    return too_little(fmt::format("receive {} bytes", needed.bytes),
                      fmt::format("the disk has room for {} bytes beside its reserve", bytes_left));
  const std::uint64_t files_left = left_of(disk.f_favail, taken.files, reserve.files);
  if (needed.files > 0 && disk.f_files > 0 && needed.files > files_left)
    return too_little(
        fmt::format("receive {} files and folders", needed.files),
        fmt::format("the disk has inodes for {} of them beside its reserve", files_left));
  return success();
}

}  // namespace onehop::file
