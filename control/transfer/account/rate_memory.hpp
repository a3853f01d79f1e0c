// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RateMemory stores the rate that the last run reached, per peer and interface, as the start rate
// of the next one.
//
// It is only a hint: without it, or with a damaged or foreign file, the transfer starts slower.
// Set-up code and the end of a run, one thread; two programs at once may lose one of the two
// entries, never the file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::transfer {

struct RememberedRate {
  std::string peer;  ///< address as text
  std::string interface;
  BytesPerSecond rate{};  ///< file bytes
  bool operator==(const RememberedRate&) const = default;
};

class RateMemory {
 public:
  static constexpr std::size_t entries_max = 64;            ///< the least recently used goes first
  static constexpr std::size_t file_bytes_max = 64 * 1024;  ///< a longer file is not ours
  static constexpr BytesPerSecond rate_min{125'000},
      rate_max{12'500'000'000};  // 1 Mbit/s, 100 Gbit/s

  /// An empty `file` remembers nothing.
  explicit RateMemory(std::string file) : file_{std::move(file)} {}

  /// recall gives the rate within rate_min and rate_max, or nothing. Error: the file is there and
  /// cannot be used. Syscalls: open, pread.
  [[nodiscard]] Result<std::optional<BytesPerSecond>> recall(const std::string& peer,
                                                             const std::string& interface) const;

  /// remember puts the entry first and replaces the whole file; it drops what cannot be read.
  /// Syscalls: mkdir, open, pwrite, rename.
  [[nodiscard]] Result<void> remember(const RememberedRate& path) const;
  /// make_folder creates the file's folder and its parents, for this user alone; an error shows
  /// when the file is opened. Syscalls: mkdir.
  void make_folder() const;

 private:
  [[nodiscard]] Result<std::vector<RememberedRate>> read() const;
  std::string file_;
};

}  // namespace onehop::transfer
