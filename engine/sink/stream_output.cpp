// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/sink/stream_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "engine/disk/confined.hpp"
#include "engine/disk/file_bytes.hpp"

namespace onehop::sink {

namespace {

constexpr int wait_ms = 1;
/// As much as anybody may ask for (pipe(7)). Less: more pauses for the same bytes.
constexpr int pipe_bytes = 1 << 20;
/// What a terminal or socket that polls as writable takes without a wait.
constexpr std::size_t polled_bytes = 4096;

}  // namespace

int StreamOutput::open(std::uint32_t file) {
  if (is_ordered()) {
    take_output(destination_.options().output_fd);
    return file_.is_open() ? 0 : errno;
  }
  staged_as_ = file;
  if (const int errno_value = stage_.open(destination_.root()); errno_value != 0)
    return errno_value;
  file_ = stage_.create(file, 0666);
  return file_.is_open() ? 0 : errno;
}

/// A pipe is opened again: O_NONBLOCK on the one that was given would be everybody's who has it.
void StreamOutput::take_output(int fd) {
  struct stat status {};
  const bool is_known = ::fstat(fd, &status) == 0;
  if (is_known && S_ISFIFO(status.st_mode)) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    file_ = Fd{::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)};
    if (file_.is_open()) ::fcntl(file_.get(), F_SETPIPE_SZ, pipe_bytes);
  }
  if (file_.is_open()) return;
  if (!is_known || !S_ISREG(status.st_mode)) write_bytes_max_ = polled_bytes;
  file_ = Fd{::fcntl(fd, F_DUPFD_CLOEXEC, 0)};
}

std::optional<StreamOutput::Written> StreamOutput::write_next() {
  if (held_.empty() || held_.begin()->first > next_) return std::nullopt;
  static const std::vector<std::byte> zeros(block_bytes);
  const auto [at, block] = *held_.begin();
  while (next_ < at + block.length) {
    pollfd look{.fd = file_.get(), .events = POLLOUT, .revents = 0};
    const std::uint64_t from = next_ - at;
    const std::size_t bytes = std::min<std::size_t>(block.length - from, write_bytes_max_);
    const std::byte* const data = block.data != nullptr ? block.data + from : zeros.data();
    const ssize_t count = ::poll(&look, 1, wait_ms) > 0 ? ::write(file_.get(), data, bytes) : 0;
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      const int errno_value = errno;
      held_.erase(held_.begin());
      return Written{block, errno_value};
    }
    if (count <= 0) return std::nullopt;
    next_ += static_cast<std::uint64_t>(count);
  }
  held_.erase(held_.begin());
  return Written{block, 0};
}

std::optional<BlockRef> StreamOutput::drop() {
  if (held_.empty()) return std::nullopt;
  const BlockRef block = held_.begin()->second;
  held_.erase(held_.begin());
  return block;
}

FinishResult StreamOutput::finish(const list::ManifestEntry& piece, OnExist on_exist,
                                  unsigned& number) {
  const bool is_synced = destination_.is_synced();
  if (disk::set_mtime(file_.get(), piece.mtime_ns) != 0) return {FileFailure::write_error, errno};
  if (is_synced && ::fsync(file_.get()) != 0) return {FileFailure::sync_error, errno};
  const Result<disk::Place> place = disk::open_place(destination_.root(), piece.name, true);
  if (place.has_error()) return {FileFailure::write_error, place.error().errno_value};
  const int folder = place.value().folder.get();
  const int errno_value = give_name(stage_.fd(), disk::Stage::name_of(staged_as_), folder,
                                    place.value().leaf, on_exist, number);
  if (errno_value != 0)
    return {errno_value == EEXIST ? FileFailure::exists : FileFailure::rename_error, errno_value};
  if (is_synced && disk::sync_folder(folder) != 0) return {FileFailure::sync_error, errno};
  return {};
}

}  // namespace onehop::sink
