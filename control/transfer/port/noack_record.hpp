// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NoAckRecord: the record that onehop has set an interface's no-ack map, since the kernel does not
// report which map is set.
//
//   /run/onehop-noack/NETNS-IFINDEX    there and locked: someone will undo it;
//                                      there and not locked: a map is left over
//
// The process holds the lock, so it ends with the process, however that ends. NoAckKeeper writes
// the record, `onehop doctor` reads it.
#pragma once

#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::transfer {

/// Not in /run/onehop, which `onehop watch` keeps closed to others: a user's doctor must find the
/// record, too.
inline constexpr const char* noack_record_folder = "/run/onehop-noack";

class NoAckRecord {
 public:
  /// make writes the record for `ifindex` of this network namespace and locks it. Error
  /// io_unavailable: another onehop has set the map and will clear it, which would clear ours.
  /// Syscalls: mkdir, stat, open, flock.
  [[nodiscard]] static Result<NoAckRecord> make(const std::string& folder, int ifindex);
  /// remove: the map has been cleared. Syscalls: unlink, close.
  void remove() noexcept;

 private:
  NoAckRecord(std::string path, Fd fd) : path_{std::move(path)}, fd_{std::move(fd)} {}
  std::string path_;
  Fd fd_;
};

/// noack_record_path is the note of an interface of this network namespace. Syscalls: stat.
[[nodiscard]] std::string noack_record_path(const std::string& folder, int ifindex);

enum class NoAckTrace { none, held, left_over };
/// find_noack_record needs no privilege. Syscalls: stat, open, flock.
[[nodiscard]] NoAckTrace find_noack_record(const std::string& folder, int ifindex);

}  // namespace onehop::transfer
