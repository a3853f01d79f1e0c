// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/destination.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/file/confined.hpp"

namespace onehop::file {

namespace {

/// Small files are open from their first byte to their root, which is announced a round trip later:
/// more than the 1024 descriptors that a shell allows. The hard limit stays.
void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Destination::Destination(DestinationOptions options)
    : options_{std::move(options)}, umask_bits_{read_umask()} {}

Result<std::shared_ptr<Destination>> Destination::open(DestinationOptions options) {
  raise_descriptor_limit();
  std::shared_ptr<Destination> self{new Destination{std::move(options)}};
  if (!self->is_output()) {
    ONEHOP_TRYV(self->open_folder());
  }
  self->names_.emplace(self->root());
  if (self->is_output()) return self;
  self->session_.adopt(self->root(), self->options_.is_again);
  return self;
}

/// The folder's own path may go through links: the user named it. Nothing below it may.
Result<void> Destination::open_folder() {
  const std::string attempt = "receive into '" + display_name(options_.folder) + "'";
  root_ = Fd{::open(options_.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!root_.is_open())
    return errno_error(ExitCode::local_file_error, attempt, "Choose an existing folder with --dir");
  // A file without a name proves that files can be made here, and leaves nothing behind.
  Fd probe{::openat(root_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
  if (!probe.is_open() && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
    const std::string name = ".onehop-probe-" + std::to_string(::getpid());
    probe = open_beneath(root_.get(), name, O_RDWR | O_CREAT | O_EXCL, 0600);
    unlink_same(root_.get(), name, probe.get());
  }
  if (!probe.is_open())
    return errno_error(ExitCode::local_file_error, attempt,
                       "Choose a folder that can be written to");
  return success();
}

PartOptions Destination::part_options() noexcept {
  return {.digest_kind = options_.digest_kind,
          .durability = options_.durability,
          .umask_bits = umask_bits_,
          .session = &session_};
}

Result<void> Destination::take_room(std::uint64_t bytes) {
  // Read before the disk is asked: what is written in between counts twice, and never not at all.
  const std::uint64_t taken_bytes = room_taken_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes == 0 || is_output()) return success();
  struct statvfs disk {};
  if (::fstatvfs(root_.get(), &disk) != 0) {
    give_room(bytes);
    return errno_error(ExitCode::local_file_error,
                       "ask for the free space of '" + display_name(options_.folder) + "'");
  }
  const Wide free_bytes = static_cast<Wide>(disk.f_bavail) * disk.f_frsize -
                          static_cast<Wide>(options_.reserve_bytes) -
                          static_cast<Wide>(taken_bytes);
  if (static_cast<Wide>(bytes) <= free_bytes) return success();
  give_room(bytes);
  return Error{ExitCode::local_file_error, "receive " + std::to_string(bytes) + " bytes",
               "the disk has room for " +
                   std::to_string(static_cast<std::uint64_t>(std::max<Wide>(0, free_bytes))) +
                   " bytes beside its reserve",
               "Free some space, or choose another folder with --dir", ENOSPC};
}

}  // namespace onehop::file
