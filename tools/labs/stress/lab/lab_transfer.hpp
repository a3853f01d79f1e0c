// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LabTransfer: `onehop recv` on host b and `onehop send` on host a of a lab, as processes of ours,
// and what arrives at b.
//
//   onehop recv (b) ◀── the lab's link ◀── onehop send (a)
//                    └─ bytes_arrived(): what b's device has counted
//
// Owned by one thread; both processes end with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "tools/labs/lab/link.hpp"

namespace onehop::stress {

/// Child is a process on a host, or (empty name) in the namespace of this process; what it writes
/// goes to a file.
class Child {
 public:
  Child() = default;
  /// start forks and execs. The process must have one thread. Syscalls: fork, and those of
  /// become_host() and exec in the child.
  [[nodiscard]] static Result<Child> start(const std::string& host,
                                           const std::vector<std::string>& command,
                                           const std::string& output);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();  ///< kills it where it still runs

  void signal(int number) const noexcept;
  /// poll returns true once it has ended; code() is then its exit code.
  [[nodiscard]] bool poll() noexcept;
  [[nodiscard]] int code() const noexcept { return code_; }
  /// said is the end of what it wrote.
  [[nodiscard]] std::string said() const;

 private:
  pid_t pid_ = 0;
  int code_ = -1;
  std::string output_;
};

struct LabTransferOptions {
  lab::HostNames hosts;
  std::string program;  ///< onehop
  std::string folder;   ///< for the file, what arrives, and what the ends say
  std::string file;     ///< or folder
  std::string io, law;
};

class LabTransfer {
 public:
  /// start returns when data flows. Errors: what an end said where it ended instead.
  [[nodiscard]] static Result<LabTransfer> start(const LabTransferOptions& options);

  [[nodiscard]] std::uint64_t bytes_arrived() const;
  [[nodiscard]] bool is_running() noexcept { return !send_.poll() && !receive_.poll(); }
  void stop_receiver(bool is_stopped) const noexcept;
  void stop_sender(bool is_stopped) const noexcept;
  /// finish waits for both ends: an error where one did not end with 0.
  [[nodiscard]] Result<void> finish();

 private:
  Child receive_, send_;
  Fd counters_;  ///< /proc/net/dev of host b
};

}  // namespace onehop::stress
