// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sampler: reads the indices of all AF_XDP rings of another process, with one process_vm_readv()
// for all of them. The process does not notice: it is not stopped, no descriptor of it is kept, and
// its memory is only read.
//
//   /proc/PID/maps   ─▶ where each ring lies    ─┐
//   XDP_MMAP_OFFSETS ─▶ where its indices are   ─┴─▶ process_vm_readv ─▶ RingUse, per ring
//
// Sockets may come and go, and rings move: rescan() looks again. One thread.
#pragma once

#include <linux/if_xdp.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "tools/onehop/rings/program.hpp"
#include "tools/onehop/rings/ring.hpp"
#include "tools/onehop/rings/socket_facts.hpp"

namespace onehop::rings {

struct Ring {
  RingMapping mapping;
  RingUse use;                  ///< since the last begin_interval()
  LogLinearHistogram all_held;  ///< in all intervals before
};

struct Socket {
  std::uint64_t inode = 0;
  SocketFacts facts;
  std::array<std::optional<Ring>, ring_kinds> rings;  ///< by RingKind; those that are mapped
};

class Sampler {
 public:
  /// open begins with a rescan(). Errors: 3, no such process, or it has no rings; 10, not
  /// permitted; 9, this kernel lets no user read rings from outside. Syscalls: pidfd_open, and
  /// those of rescan().
  [[nodiscard]] static Result<Sampler> open(pid_t pid);

  /// sample reads all indices once. False: the process has ended. Where a ring has gone since the
  /// last rescan() it does that again first. Syscalls: process_vm_readv.
  [[nodiscard]] Result<bool> sample();
  /// rescan looks which sockets there are, and reads their facts. False: the process has ended.
  /// Syscalls: those of read_program(), read_facts(), process_vm_readv.
  [[nodiscard]] Result<bool> rescan();
  /// begin_interval clears what was seen, but for the totals.
  void begin_interval() noexcept;

  [[nodiscard]] const std::vector<Socket>& sockets() const noexcept { return sockets_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// samples since begin_interval().
  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  /// ended_fd is readable when the process has ended.
  [[nodiscard]] int ended_fd() const noexcept { return process_.get(); }

 private:
  enum class Read { whole, ended, gone };
  Sampler() = default;
  Result<Read> read_indices();
  void prepare();
  void narrow(Ring& ring) const;

  pid_t pid_ = 0;
  std::string name_;
  Fd process_;
  xdp_mmap_offsets layout_{};
  std::vector<Socket> sockets_;
  std::vector<iovec> from_;           // producer, consumer, flags of each ring
  std::vector<std::uint32_t> words_;  // what they were
  std::uint64_t samples_ = 0;
};

}  // namespace onehop::rings
