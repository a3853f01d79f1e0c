// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/file_io.hpp"

#include <unistd.h>

#include <cerrno>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/file/file_io_uring.hpp"

namespace onehop::file {

namespace {

/// Moves the whole length by pread or pwrite; ends early only at the end of the file (read) or on an error.
template <class Call>
std::int64_t move_all(Call call, std::uint32_t bytes, std::uint64_t& syscalls) {
  std::uint32_t done_bytes = 0;
  while (done_bytes < bytes) {
    const ssize_t moved = call(done_bytes);
    ++syscalls;
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return -errno;
    if (moved == 0) break;
    done_bytes += static_cast<std::uint32_t>(moved);
  }
  return done_bytes;
}

/// ThreadIo works in the calling file thread: every operation is finished when submit returns.
class ThreadIo final : public FileIo {
 public:
  FileIoKind kind() const noexcept override { return FileIoKind::threads; }
  std::size_t depth() const noexcept override { return 1; }
  std::size_t in_flight() const noexcept override { return has_done_ ? 1 : 0; }

  void submit_read(int fd, std::byte* buffer, std::uint32_t bytes, std::uint64_t offset, std::uint64_t tag) override {
    finish(tag, move_all([&](std::uint32_t at) { return ::pread(fd, buffer + at, bytes - at, position(offset, at)); },
                         bytes, totals_.syscalls));
  }
  void submit_write(int fd, const std::byte* buffer, std::uint32_t bytes, std::uint64_t offset,
                    std::uint64_t tag) override {
    finish(tag, move_all([&](std::uint32_t at) { return ::pwrite(fd, buffer + at, bytes - at, position(offset, at)); },
                         bytes, totals_.syscalls));
  }
  void submit_sync(int fd, std::uint64_t tag) override {
    ++totals_.syscalls;
    finish(tag, ::fdatasync(fd) == 0 ? 0 : -errno);
  }
  std::size_t collect(std::span<IoCompletion> done) override {
    if (!has_done_ || done.empty()) return 0;
    has_done_ = false;
    done[0] = done_;
    return 1;
  }
  void wait_one() override { ONEHOP_CHECK(has_done_); }
  IoTotals totals() const noexcept override { return totals_; }

 private:
  static off_t position(std::uint64_t offset, std::uint32_t at) noexcept { return static_cast<off_t>(offset + at); }
  void finish(std::uint64_t tag, std::int64_t result) {
    ONEHOP_CHECK(!has_done_);
    ++totals_.operations;
    done_ = {tag, result};
    has_done_ = true;
  }

  IoCompletion done_{};
  bool has_done_ = false;
  IoTotals totals_{};
};

}  // namespace

std::string_view name(FileIoKind kind) noexcept {
  switch (kind) {
    case FileIoKind::io_uring: return "io_uring";
    case FileIoKind::threads: return "threads";
    case FileIoKind::automatic: break;
  }
  return "auto";
}

Result<std::unique_ptr<FileIo>> make_file_io(FileIoKind kind) {
  if (kind == FileIoKind::io_uring) return make_uring_io();
  return std::unique_ptr<FileIo>{std::make_unique<ThreadIo>()};
}

}  // namespace onehop::file
