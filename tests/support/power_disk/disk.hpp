// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Disk: a disk with a volatile write cache, whose power can be cut.
//
//   write ─▶ live (what reads see) + log (what a cut may take) ─▶ flush ─▶ durable
//
// After the cut nothing is taken any more: durable and log are what a test makes the outcomes from,
// none, a part or all of the log applied. A cut happens between two requests, so every state that a
// disk can be left in is reached by a number of requests. One thread; it knows nothing of FUSE.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/fd.hpp"

namespace onehop::power_disk {

struct Files {
  std::string durable, live;  ///< images of one size, equal at the start
  std::string log;  ///< made anew: [offset 8][bytes 8][data] each, as the machine has them
};

class Disk {
 public:
  /// open: 0 or errno. Syscalls: open, fstat.
  [[nodiscard]] int open(const Files& files);
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }

  /// read: bytes or -errno; a disk without power still answers, as its cache has it.
  [[nodiscard]] int read(std::span<char> out, std::uint64_t offset) const noexcept;
  /// write, flush: bytes or 0, or -errno; -EIO after the cut. Syscalls: pread, pwrite, ftruncate.
  [[nodiscard]] int write(std::span<const char> bytes, std::uint64_t offset);
  [[nodiscard]] int flush();

  /// cut_at cuts before the `requests`-th write or flush from now; 0: now.
  void cut_at(std::uint64_t requests) noexcept;
  /// report: "cut=0 requests=17 flushes=3 unflushed_bytes=4096\n".
  [[nodiscard]] std::string report() const;

 private:
  struct Record {
    std::uint64_t offset = 0, bytes = 0;
  };
  [[nodiscard]] bool is_cut_now() noexcept;
  [[nodiscard]] int make_durable(const Record& record) noexcept;

  Fd durable_, live_, log_;
  std::uint64_t size_bytes_ = 0, log_bytes_ = 0;
  std::vector<Record> unflushed_;
  std::vector<char> buffer_;
  std::uint64_t requests_total_ = 0, flushes_total_ = 0, unflushed_bytes_ = 0;
  std::uint64_t cut_at_ = UINT64_MAX;
  bool is_cut_ = false;
};

}  // namespace onehop::power_disk
