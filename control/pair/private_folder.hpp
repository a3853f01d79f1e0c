// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PrivateFolder: small files of one user alone: the device's key, the paired devices.
//
// A key authenticates any program that can read it. So a folder that others can change, or a file
// that others can read, is refused instead of repaired, because the key may have been read already.
// A file is written beside its place and renamed, so it is whole at any time.
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
  /// open makes the folder if `is_made` is set. nullopt: it does not exist. Error 8: it is not
  /// `owner`'s, or others can write to it. Syscalls: mkdir, open, fstat.
  [[nodiscard]] static Result<std::optional<PrivateFolder>> open(const std::string& path,
                                                                 uid_t owner, bool is_made);

  /// read: nullopt if there is no such file. Syscalls: openat, fstat, read.
  [[nodiscard]] Result<std::optional<std::string>> read(const std::string& name) const;
  /// write replaces the whole file; `is_new`: it must not exist. Syscalls: openat, write, fsync,
  /// linkat, renameat, unlinkat.
  [[nodiscard]] Result<void> write(const std::string& name, std::string_view text,
                                   bool is_new = false) const;
  [[nodiscard]] Result<void> remove(const std::string& name) const;
  /// lock waits until no other process holds it; the returned fd holds it. Syscalls: openat, flock.
  [[nodiscard]] Result<Fd> lock() const;
  /// names returns the files with that ending, sorted. Syscalls: those of opendir(), readdir().
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
/// value. write_values writes them. A repeated key, or any other line, is an Error 8 that names
/// `where`.
using Values = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] Result<Values> read_values(std::string_view text, const std::string& where);
[[nodiscard]] std::string write_values(std::string_view comment, const Values& values);
/// value_of: empty if there is none.
[[nodiscard]] std::string value_of(const Values& values, std::string_view key);

[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
/// from_hex fills `out`; false: the text is not a hexadecimal number of that length.
[[nodiscard]] bool from_hex(std::string_view text, std::span<std::byte> out);

}  // namespace onehop::pair
