// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/file_io.hpp"

#include <array>
#include <cerrno>

#include "engine/base/check.hpp"

#if ONEHOP_HAS_IO_URING
#include <liburing.h>
#endif

namespace onehop::disk {

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
    const bool is_complete = probe != nullptr &&
                             io_uring_opcode_supported(probe, IORING_OP_READV) != 0 &&
                             io_uring_opcode_supported(probe, IORING_OP_WRITEV) != 0 &&
                             io_uring_opcode_supported(probe, IORING_OP_FSYNC) != 0;
    io_uring_free_probe(probe);
    return is_complete ? 0 : -EOPNOTSUPP;
  }
  ~UringIo() override {
    if (is_open_) io_uring_queue_exit(&ring_);
  }

  std::string_view name() const noexcept override { return "io_uring"; }
  std::size_t depth() const noexcept override { return io_depth_max; }
  std::size_t in_flight() const noexcept override { return in_flight_; }

  void submit(const FileOperation& operation) override {
    ONEHOP_CHECK(operation.kind != Kind::none);
    ONEHOP_CHECK(in_flight_ < operations_.size());
    std::size_t free = 0;
    while (operations_[free].kind != Kind::none) ++free;
    operations_[free] = operation;
    done_bytes_[free] = 0;
    ++in_flight_;
    push(free);
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
    ++syscalls_total_;
    const int rc = io_uring_wait_cqe(&ring_, &cqe);
    ONEHOP_CHECK(rc == 0 || rc == -EINTR);
  }

  std::uint64_t syscalls_total() const noexcept override { return syscalls_total_; }

 private:
  using Kind = FileOperation::Kind;

  void push(std::size_t index) {
    const FileOperation& o = operations_[index];
    const std::uint32_t done = done_bytes_[index];
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    // The queue has a place for each operation, and each submit empties it.
    ONEHOP_CHECK(sqe != nullptr);
    // The kernel copies the list before the submit returns.
    const Pieces pieces{o, done};
    const auto count = static_cast<unsigned>(pieces.count);
    if (o.kind == Kind::read)
      io_uring_prep_readv(sqe, o.fd, pieces.list.data(), count, o.offset + done);
    if (o.kind == Kind::write)
      io_uring_prep_writev(sqe, o.fd, pieces.list.data(), count, o.offset + done);
    if (o.kind == Kind::sync) io_uring_prep_fsync(sqe, o.fd, IORING_FSYNC_DATASYNC);
    io_uring_sqe_set_data64(sqe, index);
    int rc = 0;
    do {
      ++syscalls_total_;
      rc = io_uring_submit(&ring_);
    } while (rc == -EINTR || rc == -EAGAIN);
    ONEHOP_CHECK(rc == 1);
  }

  /// True: the operation is over and `done` is filled. False: its rest was submitted again.
  bool finish(std::uint64_t index, int result, IoCompletion& done) {
    ONEHOP_CHECK(index < operations_.size());
    FileOperation& o = operations_[index];
    std::uint32_t& done_bytes = done_bytes_[index];
    ONEHOP_CHECK(o.kind != Kind::none);
    const bool is_again = result == -EINTR || result == -EAGAIN;
    if (result > 0) done_bytes += static_cast<std::uint32_t>(result);
    ONEHOP_CHECK(done_bytes <= o.bytes + o.spare_bytes);
    if (is_again || (result > 0 && done_bytes < o.bytes)) {
      push(index);
      return false;
    }
    done = {o.tag, result < 0 ? result : static_cast<std::int64_t>(done_bytes)};
    o.kind = Kind::none;
    --in_flight_;
    return true;
  }

  io_uring ring_{};
  bool is_open_ = false;
  std::array<FileOperation, io_depth_max> operations_{};  // Kind::none: the place is free
  std::array<std::uint32_t, io_depth_max> done_bytes_{};  // of each, where it was cut short
  std::size_t in_flight_ = 0;
  std::uint64_t syscalls_total_ = 0;
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
  return Error{ExitCode::io_unavailable, "set up io_uring for files", "this build has no liburing",
               "Use threads"};
}

#endif

}  // namespace onehop::disk
