// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/replace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "engine/base/fd.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/disk/own_names.hpp"

namespace onehop::disk {

int replace_file(const std::string& file, std::string_view text, mode_t mode) {
  const auto create = [mode](const std::string& name) {
    return Fd{::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)};
  };
  struct stat there {};
  // Root could replace /dev/null.
  if (::lstat(file.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode))
    return EEXIST;
  std::string temporary = file + "." + std::to_string(::gettid());
  (void)::unlink(temporary.c_str());  // of a run that was killed, whose number came round
  Fd fd = create(temporary);
  // Another user's, in a folder that others may write to. The other name cannot be guessed.
  if (!fd.is_open() && errno == EEXIST) fd = create(temporary = file + random_tag());
  if (!fd.is_open()) return errno;
  (void)::fchmod(fd.get(), mode);  // whatever the umask
  int errno_value = write_at(fd.get(), std::as_bytes(std::span{text}), 0);
  if (errno_value == 0 && ::rename(temporary.c_str(), file.c_str()) != 0) errno_value = errno;
  if (errno_value != 0) (void)::unlink(temporary.c_str());
  return errno_value;
}

}  // namespace onehop::disk
