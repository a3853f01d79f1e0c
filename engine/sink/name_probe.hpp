// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NameProbe: which offered names the destination's file system cannot hold. It asks the file system
// itself, by empty files, for no table of ours would know what each of them refuses or folds.
//
//   "Photos/a:b" ─▶ ".onehop-stage/HASH of Photos/" + "a:b" ─▶ made: free
//                                                          ─▶ EINVAL, EILSEQ, ENAMETOOLONG: refused
//                                                          ─▶ EEXIST: an entry before it has it
//
// A few odd names are tried first, once per session. Where all of them can stand side by side, as
// on ext4 and XFS, nothing else is tried. Elsewhere each name of the session leaves an empty file
// until the last volume was looked at, so that entries of different volumes are held against each
// other and no memory grows with the tree. All of it lies in a Stage of its own, and so goes with
// the session, or with the next one after a kill.
//
// What the destination had before is no matter of this: such a name is a conflict like any other.
// One thread at a time.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/disk/stage.hpp"
#include "engine/list/manifest.hpp"

namespace onehop::sink {

class NameProbe {
 public:
  /// root outlives it.
  explicit NameProbe(int root) noexcept : root_{root} {}
  ~NameProbe() { close(); }
  NameProbe(const NameProbe&) = delete;
  NameProbe& operator=(const NameProbe&) = delete;

  /// check gives by entry why it cannot have its name: 0, it can; EEXIST, an earlier entry of the
  /// session has that name here; else the file system's errno: of a symbolic link EPERM where it
  /// has none. What is below a folder goes with it. Empty: all can. Once per volume, in order. An
  /// error that is not about names is none here: whoever writes the file meets it. It ends early
  /// when it is withdrawn. Syscalls: openat2, mkdirat, symlinkat, unlinkat, flock, fstatat,
  /// getdents64.
  [[nodiscard]] std::vector<int> check(const list::Manifest& volume,
                                       const std::stop_token& withdrawn);
  /// is_folding: check() found that the file system does not keep every name as it is.
  [[nodiscard]] bool is_folding() const noexcept { return has_looked_ && !is_plain_; }
  /// close removes what was tried, after the last volume.
  void close() noexcept { stage_.remove(); }

 private:
  void look();
  [[nodiscard]] bool holds_odd_names();
  [[nodiscard]] int check_entry(const list::ManifestEntry& entry);
  [[nodiscard]] int open_folder(std::string_view path, Fd& folder);

  const int root_;
  disk::Stage stage_;
  bool has_looked_ = false, is_plain_ = false, has_symlinks_ = true, has_piece_ = false;
  // The folder of the entry before, and why it cannot be.
  std::optional<std::string> path_;
  Fd folder_;
  int fault_ = 0;
};

}  // namespace onehop::sink
