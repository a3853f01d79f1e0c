// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LastFolder: the folder that was looked at last, open or known to be missing. The files of a
// folder come one after the other in a list, so each folder is opened once and not once per file.
//
// Paths are a validated manifest's. One thread. Somebody else may make a missing folder meanwhile:
// whoever writes there finds that out (rename_new).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::file {

class LastFolder {
 public:
  /// root outlives this.
  explicit LastFolder(int root) noexcept : root_{root} {}

  /// open gives the folder of `name` below the root; it stays open until the next call. Nothing: it
  /// is missing. Error: it cannot be opened, as of open_place(). Syscalls: openat2.
  [[nodiscard]] Result<std::optional<int>> open(std::string_view name);

 private:
  const int root_;
  std::string path_;  // of the folder, without a slash at its end
  Fd folder_;         // not open: it is missing
  bool has_path_ = false;
};

}  // namespace onehop::file
