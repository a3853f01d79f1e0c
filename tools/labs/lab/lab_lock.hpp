// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LabLock: the right to work in the lab of one name: a flock(2) on FOLDER/NAME.lock, which goes
// with the process. Called by one thread.
//
//   take:   shared lock on the folder ▸ open and lock the file, without waiting
//           ▸ is it still the one with the name?
//   sweep:  the folder for itself ▸ remove the files that nobody holds and whose lab has left no
//           state
//
// The file is removed only by who holds it, so nobody's lock is taken away. A sweep holds each file
// for a moment, in which its owner-to-be would be refused; so while one goes on nobody is between
// open and lock.
#pragma once

#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::lab {

class LabLock {
 public:
  /// take fails where another process, or another LabLock of this one, has the lab. It waits for a
  /// sweep and for nothing else. Syscalls: open, flock, fstat, lstat.
  [[nodiscard]] static Result<LabLock> take(const std::string& folder, const std::string& name);

  /// remove takes the file away, where nothing of the lab is left. The lock is held on. Syscalls:
  /// unlink.
  void remove() const noexcept;

 private:
  LabLock(std::string path, Fd&& file) : path_{std::move(path)}, file_{std::move(file)} {}
  std::string path_;
  Fd file_;
};

/// sweep_locks removes the lock files that processes which were killed have left in `folder`. A lab
/// with a state file is up, or `lab down` has something to remove: it keeps its own. Where another
/// lab is just being taken the next sweep will do. Returns how many went. Syscalls: as take, and
/// getdents, unlink.
std::size_t sweep_locks(const std::string& folder) noexcept;

}  // namespace onehop::lab
