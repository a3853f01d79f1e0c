// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FileIo: reads, writes and syncs of one file thread, submitted and collected later, in any order.
//
//   submit_read/write/sync(tag) ─▶ [ at most depth() at once ] ─▶ collect() ─▶ {tag, bytes or -errno}
//
// Both implementations finish short transfers and EINTR themselves: a completion covers the whole length, or ended at
// the end of the file, or failed. One FileIo belongs to one file thread; it owns no descriptor and no buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "engine/base/result.hpp"

namespace onehop::file {

/// automatic takes what was measured to be cheaper, see make_file_io(). A named kind is taken or refused.
enum class FileIoKind : std::uint8_t { automatic, io_uring, threads };
[[nodiscard]] std::string_view name(FileIoKind kind) noexcept;

struct IoCompletion {
  std::uint64_t tag = 0;
  std::int64_t result = 0;  ///< bytes moved (sync: 0), or -errno
};

struct IoTotals {
  std::uint64_t syscalls = 0;
  std::uint64_t operations = 0;
};

class FileIo {
 public:
  virtual ~FileIo() = default;
  [[nodiscard]] virtual FileIoKind kind() const noexcept = 0;
  /// depth: how many operations may be submitted and not yet collected.
  [[nodiscard]] virtual std::size_t depth() const noexcept = 0;
  /// in_flight: submitted and not yet collected. Submitting beyond depth() stops the program.
  [[nodiscard]] virtual std::size_t in_flight() const noexcept = 0;

  virtual void submit_read(int fd, std::byte* buffer, std::uint32_t bytes, std::uint64_t offset, std::uint64_t tag) = 0;
  virtual void submit_write(int fd, const std::byte* buffer, std::uint32_t bytes, std::uint64_t offset,
                            std::uint64_t tag) = 0;
  /// submit_sync is fdatasync: it covers writes whose completion was collected before.
  virtual void submit_sync(int fd, std::uint64_t tag) = 0;

  /// collect takes finished operations, at most done.size(), without waiting.
  [[nodiscard]] virtual std::size_t collect(std::span<IoCompletion> done) = 0;
  /// wait_one blocks until collect() has something. Do not call with nothing in flight.
  virtual void wait_one() = 0;

  [[nodiscard]] virtual IoTotals totals() const noexcept = 0;
};

/// make_file_io probes at run time. io_uring where the kernel forbids it is exit 9; automatic takes threads, and kind()
/// says which.
///
/// Measured on a 2-core VM shared with others, Linux 6.18, fresh files, 8 interleaved rounds, median (best) CPU ns/byte
/// of the whole program, threads | io_uring:
///   file_copy_bench SRC FOLDER KIND        tmpfs, 512 MiB    0.92 (0.88) | 1.00 (0.85)
///   file_copy_bench SRC FOLDER KIND 600    tmpfs, 150 MiB    2.18 (1.83) | 2.24 (1.94)
///   file_copy_bench SRC FOLDER KIND 600    ext4, 150 MiB     2.69 (1.98) | 2.88 (2.34)
/// Alone the kinds hardly differ. Inside a transfer they do: buffered writes on tmpfs and ext4 are handed to the kernel's
/// io-wq workers, which copy on the other core what the file thread has just had in its cache (perf: 23 % of a run over
/// an unshaped link was one worker in copy_folio_from_iter_atomic). The price of threads: a checkpoint's fdatasync stops
/// the writes for as long as the disk takes, which the receiver's buffers have to bridge.
[[nodiscard]] Result<std::unique_ptr<FileIo>> make_file_io(FileIoKind kind);

/// Operations at once. 1: the disk idles while the thread hashes. Above 8: more blocks leave the cache between hash and
/// write, and a disk gains nothing at 256 KiB each.
inline constexpr std::size_t io_depth_max = 8;

}  // namespace onehop::file
