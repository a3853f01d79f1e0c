// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/file_io_uring.hpp"

#include <array>
#include <cerrno>

#include "engine/base/check.hpp"

#if ONEHOP_HAS_IO_URING
#include <liburing.h>
#endif

namespace onehop::file {

#if ONEHOP_HAS_IO_URING

namespace {

/// UringIo: one ring without registered files or buffers. It is touched by one thread only.
class UringIo final : public FileIo {
 public:
  /// Returns 0 or -errno. Syscalls: io_uring_setup, mmap, io_uring_register (probe).
  int start() {
    const int rc = io_uring_queue_init(io_depth_max, &ring_, 0);
    if (rc < 0) return rc;
    is_open_ = true;
    io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
    const bool is_complete = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                             io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0 &&
                             io_uring_opcode_supported(probe, IORING_OP_FSYNC) != 0;
    io_uring_free_probe(probe);
    return is_complete ? 0 : -EOPNOTSUPP;
  }
  ~UringIo() override {
    if (is_open_) io_uring_queue_exit(&ring_);
  }

  FileIoKind kind() const noexcept override { return FileIoKind::io_uring; }
  std::size_t depth() const noexcept override { return io_depth_max; }
  std::size_t in_flight() const noexcept override { return in_flight_; }

  void submit_read(int fd, std::byte* buffer, std::uint32_t bytes, std::uint64_t offset, std::uint64_t tag) override {
    start_operation({.buffer = buffer, .offset = offset, .tag = tag, .fd = fd, .bytes = bytes, .code = Code::read});
  }
  void submit_write(int fd, const std::byte* buffer, std::uint32_t bytes, std::uint64_t offset,
                    std::uint64_t tag) override {
    // The ring takes one pointer type for both directions; a write only reads through it.
    start_operation({.buffer = const_cast<std::byte*>(buffer), .offset = offset, .tag = tag, .fd = fd, .bytes = bytes,
                     .code = Code::write});
  }
  void submit_sync(int fd, std::uint64_t tag) override {
    start_operation({.tag = tag, .fd = fd, .code = Code::sync});
  }

  std::size_t collect(std::span<IoCompletion> done) override {
    std::size_t count = 0;
    io_uring_cqe* cqe = nullptr;
    while (count < done.size() && io_uring_peek_cqe(&ring_, &cqe) == 0) {
      const std::uint64_t index = cqe->user_data;
      const int result = cqe->res;
      io_uring_cqe_seen(&ring_, cqe);
      if (finish(index, result, done[count])) ++count;
    }
    return count;
  }

  void wait_one() override {
    ONEHOP_CHECK(in_flight_ > 0);
    io_uring_cqe* cqe = nullptr;
    ++totals_.syscalls;
    const int rc = io_uring_wait_cqe(&ring_, &cqe);
    ONEHOP_CHECK(rc == 0 || rc == -EINTR);
  }

  IoTotals totals() const noexcept override { return totals_; }

 private:
  enum class Code : std::uint8_t { none, read, write, sync };
  struct Operation {
    std::byte* buffer = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t tag = 0;
    int fd = -1;
    std::uint32_t bytes = 0;
    std::uint32_t done_bytes = 0;
    Code code = Code::none;
  };

  void start_operation(const Operation& operation) {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (operations_[i].code != Code::none) continue;
      operations_[i] = operation;
      ++in_flight_;
      ++totals_.operations;
      return push(i);
    }
    ONEHOP_CHECK(false);  // more operations than depth(): the caller did not ask in_flight()
  }

  void push(std::size_t index) {
    const Operation& o = operations_[index];
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    ONEHOP_CHECK(sqe != nullptr);  // the queue has a place for each operation, and each submit empties it
    const std::uint32_t left = o.bytes - o.done_bytes;
    if (o.code == Code::read) io_uring_prep_read(sqe, o.fd, o.buffer + o.done_bytes, left, o.offset + o.done_bytes);
    if (o.code == Code::write) io_uring_prep_write(sqe, o.fd, o.buffer + o.done_bytes, left, o.offset + o.done_bytes);
    if (o.code == Code::sync) io_uring_prep_fsync(sqe, o.fd, IORING_FSYNC_DATASYNC);
    io_uring_sqe_set_data64(sqe, index);
    int rc = 0;
    do {
      ++totals_.syscalls;
      rc = io_uring_submit(&ring_);
    } while (rc == -EINTR || rc == -EAGAIN);
    ONEHOP_CHECK(rc == 1);
  }

  /// True: the operation is over and `done` is filled. False: its rest was submitted again.
  bool finish(std::uint64_t index, int result, IoCompletion& done) {
    ONEHOP_CHECK(index < operations_.size());
    Operation& o = operations_[index];
    ONEHOP_CHECK(o.code != Code::none);
    const bool is_again = result == -EINTR || result == -EAGAIN;
    if (result > 0) o.done_bytes += static_cast<std::uint32_t>(result);
    ONEHOP_CHECK(o.done_bytes <= o.bytes);
    if (is_again || (result > 0 && o.done_bytes < o.bytes)) {
      push(index);
      return false;
    }
    done = {o.tag, result < 0 ? result : static_cast<std::int64_t>(o.done_bytes)};
    o.code = Code::none;
    --in_flight_;
    return true;
  }

  io_uring ring_{};
  bool is_open_ = false;
  std::array<Operation, io_depth_max> operations_{};
  std::size_t in_flight_ = 0;
  IoTotals totals_{};
};

}  // namespace

Result<std::unique_ptr<FileIo>> make_uring_io() {
  auto io = std::make_unique<UringIo>();
  const int rc = io->start();
  if (rc < 0)
    return errno_error(ExitCode::io_unavailable, "set up io_uring for files",
                       "See /proc/sys/kernel/io_uring_disabled, or use threads", -rc);
  return std::unique_ptr<FileIo>{std::move(io)};
}

#else

Result<std::unique_ptr<FileIo>> make_uring_io() {
  return Error{ExitCode::io_unavailable, "set up io_uring for files", "this build has no liburing", "Use threads", 0};
}

#endif

}  // namespace onehop::file
