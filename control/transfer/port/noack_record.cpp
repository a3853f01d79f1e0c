// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/port/noack_record.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace onehop::transfer {

namespace {

constexpr mode_t folder_mode = 0755, record_mode = 0644;

}  // namespace

// An interface's number means something in its namespace only.
std::string noack_record_path(const std::string& folder, int ifindex) {
  struct stat space {};
  (void)::stat("/proc/self/ns/net", &space);
  return folder + "/" + std::to_string(space.st_ino) + "-" + std::to_string(ifindex);
}

Result<NoAckRecord> NoAckRecord::make(const std::string& folder, int ifindex) {
  (void)::mkdir(folder.c_str(), folder_mode);  // what went wrong shows when the file is opened
  std::string path = noack_record_path(folder, ifindex);
  Fd fd{::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, record_mode)};
  if (!fd.is_open()) return errno_error(ExitCode::io_unavailable, "note the no-ack map in " + path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return NoAckRecord{std::move(path), std::move(fd)};
  if (errno != EWOULDBLOCK) return errno_error(ExitCode::io_unavailable, "lock " + path);
  return Error{ExitCode::io_unavailable, "set the no-ack map (--mac-noack)",
               "another onehop has set it on this interface",
               "Wait until it ends, since it undoes the map then", EWOULDBLOCK};
}

void NoAckRecord::remove() noexcept {
  (void)::unlink(path_.c_str());
  fd_ = Fd{};
}

NoAckTrace find_noack_record(const std::string& folder, int ifindex) {
  const Fd fd{
      ::open(noack_record_path(folder, ifindex).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  if (!fd.is_open()) return NoAckTrace::none;
  return ::flock(fd.get(), LOCK_SH | LOCK_NB) == 0 ? NoAckTrace::left_over : NoAckTrace::held;
}

}  // namespace onehop::transfer
