// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FileIo: reads, writes and syncs of one file thread, submitted and collected later, in any order.
//
//   submit(operation) ─▶ [ at most depth() at once ] ─▶ collect() ─▶ {tag, bytes or -errno}
//
// Every implementation finishes short transfers and EINTR itself: a completion covers the whole
// length, or ended at the end of the file, or failed. One file thread owns it.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"

namespace onehop::disk {

/// Blocks of one operation, at most: a mebibyte. Lower: under direct I/O the disk idles more often
/// and has to be woken for less. Higher: a block has left the cache when it is hashed. What this
/// gains a ring with several operations under way gains as well, and one with registered buffers no
/// more, since the pool is of huge pages; but a process that parses a stranger's bytes is better
/// without a ring, and many systems forbid it.
inline constexpr std::size_t operation_blocks_max = 4;

/// FileOperation is one transfer between buffers and a place in a file, or a sync of the file.
struct FileOperation {
  /// sync is fdatasync. It covers the writes whose completion was collected before.
  enum class Kind : std::uint8_t { none, read, write, sync };
  Kind kind = Kind::none;
  int fd = -1;
  std::byte* buffer = nullptr;  ///< the caller's; untouched by others until the completion
  /// Where the transfer goes on: each buffer but the last is a whole block's.
  std::array<std::byte*, operation_blocks_max - 1> more{};
  std::uint32_t bytes = 0;   ///< over all buffers
  std::uint64_t offset = 0;  ///< in the file
  /// Of a read: so many bytes behind them may be read, too, for which the buffer has room.
  std::uint32_t spare_bytes = 0;
  std::uint64_t tag = 0;  ///< comes back in the completion
};

/// Pieces are what is left of an operation's buffers behind the first `done` bytes.
struct Pieces {
  Pieces(const FileOperation& operation, std::uint32_t done) noexcept;
  std::array<iovec, operation_blocks_max> list{};
  std::size_t count = 0;
};

struct IoCompletion {
  std::uint64_t tag = 0;
  std::int64_t result = 0;  ///< bytes moved (sync: 0), or -errno
};

/// Operations at once. 1: the disk idles while the thread hashes. Above 8: more blocks leave the
/// cache between hash and write, and a disk gains nothing at 256 KiB each.
inline constexpr std::size_t io_depth_max = 8;

class FileIo {
 public:
  virtual ~FileIo() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;  ///< as in --file-io
  /// depth: how many operations may be submitted and not yet collected.
  [[nodiscard]] virtual std::size_t depth() const noexcept = 0;
  /// in_flight: submitted and not yet collected.
  [[nodiscard]] virtual std::size_t in_flight() const noexcept = 0;

  /// submit starts an operation. Submitting beyond depth() stops the program.
  virtual void submit(const FileOperation& operation) = 0;
  /// collect takes finished operations, at most done.size(), without waiting.
  [[nodiscard]] virtual std::size_t collect(std::span<IoCompletion> done) = 0;
  /// wait_one blocks until collect() has something. Do not call it with nothing in flight.
  virtual void wait_one() = 0;
  /// syscalls_total counts submits and waits. A transfer that the kernel cut short may count once.
  [[nodiscard]] virtual std::uint64_t syscalls_total() const noexcept = 0;

  /// wait_all blocks until nothing is in flight, and drops the results. The owner of the buffers
  /// calls it before it unmaps them: the kernel may still use them.
  void wait_all() {
    std::array<IoCompletion, io_depth_max> done;
    while (in_flight() > 0) {
      wait_one();
      static_cast<void>(collect(done));
    }
  }
};

/// make_file_io probes at run time. io_uring is exit 9 where the build or the running kernel does
/// not have it. "auto" takes threads, which was measured to be cheaper. An unknown kind is exit 2.
///
/// Measured on a 2-core VM shared with others, Linux 6.18, fresh files, 8 interleaved rounds,
/// median (best) CPU ns/byte of the whole program, threads | io_uring:
///   file_copy_bench SRC FOLDER KIND        tmpfs, 512 MiB    0.92 (0.88) | 1.00 (0.85)
///   file_copy_bench SRC FOLDER KIND 600    tmpfs, 150 MiB    2.18 (1.83) | 2.24 (1.94)
///   file_copy_bench SRC FOLDER KIND 600    ext4, 150 MiB     2.69 (1.98) | 2.88 (2.34)
/// Alone the kinds hardly differ. Inside a transfer they do: the kernel hands buffered writes on
/// tmpfs and ext4 to its io-wq workers. These copy on the other core what the file thread has just
/// had in its cache (perf: 23 % of a run over an unshaped link was one worker in
/// copy_folio_from_iter_atomic). The price of threads: a checkpoint's fdatasync stops the writes
/// for as long as the disk takes. The receiver's buffers have to bridge that time.
[[nodiscard]] Result<std::unique_ptr<FileIo>> make_file_io(std::string_view kind);

/// make_uring_io is for make_file_io alone (file_io_uring.cpp).
[[nodiscard]] Result<std::unique_ptr<FileIo>> make_uring_io();

/// file_io_names lists the kinds: what --file-io takes.
[[nodiscard]] std::vector<std::string> file_io_names();

}  // namespace onehop::disk
