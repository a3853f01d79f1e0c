// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// WorkFolder: where a run keeps the file that it sends and what the ends say; gone with it. One
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/result.hpp"

namespace onehop::stress {

class WorkFolder {
 public:
  /// make takes memory where there is some, so that no disk is measured. Syscalls: mkdtemp.
  [[nodiscard]] static Result<WorkFolder> make();
  /// borrow takes one that another process has made and will remove.
  [[nodiscard]] static WorkFolder borrow(const std::string& path);
  WorkFolder(WorkFolder&& other) noexcept;
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();

  /// make_file and make_tree write random bytes, the tree in many small files and a few larger
  /// ones; make_sparse writes one byte in each block: a block that is a hole is not sent.
  [[nodiscard]] Result<void> make_file(std::size_t bytes) const;
  [[nodiscard]] Result<void> make_tree(std::size_t bytes) const;
  [[nodiscard]] Result<void> make_sparse(std::int64_t bytes) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file() const { return path_ + "/file.bin"; }
  [[nodiscard]] std::string tree() const { return path_ + "/tree"; }
  [[nodiscard]] std::string target() const {
    return path_ + "/in";
  }  ///< to receive into; it exists
  /// empty_target removes what arrived, so that all of it is sent again.
  [[nodiscard]] Result<void> empty_target() const;

 private:
  explicit WorkFolder(std::string path) : path_{std::move(path)} {}
  std::string path_;
  bool is_ours_ = true;
};

}  // namespace onehop::stress
