// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/lab_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace onehop::lab {

namespace {

constexpr const char* lock_ending = ".lock";
constexpr const char* state_ending = ".state";

Fd open_folder(const std::string& folder) {
  return Fd{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
}

// Who held a file may have removed it after we opened it: then the lock is of a file that nobody
// else will find.
bool has_name(int fd, const std::string& path) noexcept {
  struct stat held {
  }, named{};
  return ::fstat(fd, &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

int lock_patiently(int fd, int how) noexcept {
  int rc = 0;
  do rc = ::flock(fd, how);
  while (rc != 0 && errno == EINTR);
  return rc;
}

// sweep_one: the caller has the folder for itself.
bool sweep_one(const std::filesystem::path& path) noexcept {
  const Fd file{::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (!file.is_open() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return false;
  // Under the lock: the state file is written by who holds it.
  std::filesystem::path state = path;
  state.replace_extension(state_ending);
  return ::access(state.c_str(), F_OK) != 0 && errno == ENOENT && has_name(file.get(), path) &&
         ::unlink(path.c_str()) == 0;
}

}  // namespace

Result<LabLock> LabLock::take(const std::string& folder, const std::string& name) {
  std::string path = folder + "/" + name + lock_ending;
  const Fd gate = open_folder(folder);
  if (!gate.is_open() || lock_patiently(gate.get(), LOCK_SH) != 0)
    return errno_error(ExitCode::local_file_error, "lock " + folder);
  for (;;) {
    Fd file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (!file.is_open()) return errno_error(ExitCode::local_file_error, "open " + path);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
      return Error{ExitCode::refused_by_peer, "take the lab " + name,
                   "another onehop lab is at work in it",
                   "Wait for it, end it, or take another --name"};
    if (has_name(file.get(), path)) return LabLock{std::move(path), std::move(file)};
  }
}

void LabLock::remove() const noexcept { (void)::unlink(path_.c_str()); }

std::size_t sweep_locks(const std::string& folder) noexcept {
  const Fd gate = open_folder(folder);
  if (!gate.is_open() || ::flock(gate.get(), LOCK_EX | LOCK_NB) != 0) return 0;
  std::size_t swept = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry{folder, error}, end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == lock_ending && sweep_one(entry->path())) ++swept;
  return swept;
}

}  // namespace onehop::lab
