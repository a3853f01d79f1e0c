// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PrivateFolder: small files that are one user's alone: the device's key, the paired devices.
//
// Whoever else can read a key is this device. So a folder that somebody else could change, or a
// file that somebody else can read, is refused, and not mended in silence: what was open may have
// been read. A file is written beside its place and renamed, so it is whole at any time.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::pair {

class PrivateFolder {
 public:
  /// open makes the folder where `is_made` says so. Nothing: it is not there. Error 8: it is not
  /// `owner`'s, or others can write to it. Syscalls: mkdir, open, fstat.
  [[nodiscard]] static Result<std::optional<PrivateFolder>> open(const std::string& path,
                                                                 uid_t owner, bool is_made);

  /// read: nothing where there is no such file. Syscalls: openat, fstat, read.
  [[nodiscard]] Result<std::optional<std::string>> read(const std::string& name) const;
  /// write replaces the file as a whole; `is_new`: it must not be there. Syscalls: openat, write,
  /// fsync, linkat, renameat, unlinkat.
  [[nodiscard]] Result<void> write(const std::string& name, std::string_view text,
                                   bool is_new = false) const;
  [[nodiscard]] Result<void> remove(const std::string& name) const;
  /// lock waits until no other process has it; what is returned holds it. Syscalls: openat, flock.
  [[nodiscard]] Result<Fd> lock() const;
  /// names of files that end so, sorted. Syscalls: those of opendir(), readdir().
  [[nodiscard]] std::vector<std::string> names(std::string_view ending) const;
  [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + "/" + name; }

 private:
  PrivateFolder(std::string path, uid_t owner, Fd fd)
      : path_{std::move(path)}, owner_{owner}, fd_{std::move(fd)} {}
  std::string path_;
  uid_t owner_;
  Fd fd_;
};

/// read_values reads lines of `key = "value"`, a small part of TOML: comments, and \" and \\ in a
/// value. write_values writes them. A key that is there twice, or another line, is an Error 8 that
/// names `where`.
using Values = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] Result<Values> read_values(std::string_view text, const std::string& where);
[[nodiscard]] std::string write_values(std::string_view comment, const Values& values);
/// value_of: empty where there is none.
[[nodiscard]] std::string value_of(const Values& values, std::string_view key);

[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
/// from_hex fills `out`; false: it is no hexadecimal number of that length.
[[nodiscard]] bool from_hex(std::string_view text, std::span<std::byte> out);

}  // namespace onehop::pair
