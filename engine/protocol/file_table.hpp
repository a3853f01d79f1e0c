// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FileTable: the volumes of files that the receiving engine knows now. A volume whose blocks are
// all whole leaves it, the oldest first, so a session of any number of files takes the same memory.
//
//   indices   0 ...   │ first_file() ...              │ end_file() ...
//             over    │ volume │ volume │ volume      │ not known yet
//
// Pure. The engine core calls it, through Receiver.
#pragma once

#include <boost/circular_buffer.hpp>
#include <cstddef>
#include <cstdint>

#include "engine/base/check.hpp"
#include "engine/protocol/file_volume.hpp"

namespace onehop::protocol {

class FileTable {
 public:
  /// Volumes at a time. Fewer: one file that takes long keeps the sender from those behind it.
  /// More: more lists in memory; at 4096 entries each, 32 of them are 2 MB here.
  static constexpr std::size_t volumes_max = 32;

  /// add takes the volume that follows the last one. False: it does not follow it, or the table is
  /// full; nothing has changed then.
  [[nodiscard]] bool add(FileVolume& volume) noexcept {
    const bool is_next = !has_any_ || volume.first_file() == end_file_;
    if (!is_next || volumes_.full()) return false;
    if (!has_any_) first_file_ = volume.first_file();
    has_any_ = true;
    end_file_ = volume.end_file();
    volumes_.push_back(&volume);
    blocks_left_ += volume.blocks_left();
    release_front();
    return true;
  }

  /// is_over: `file` was in a volume that has left the table.
  [[nodiscard]] bool is_over(std::uint32_t file) const noexcept { return file < first_file_; }
  /// find gives the volume of `file`; null: it is over, or not known yet.
  [[nodiscard]] FileVolume* find(std::uint32_t file) noexcept {
    if (last_found_ != nullptr && last_found_->contains(file)) return last_found_;
    for (FileVolume* const volume : volumes_)
      if (volume->contains(file)) return last_found_ = volume;
    return nullptr;
  }
  /// mark_done: a block of a known volume is whole. The volume may have left the table after it.
  /// Where the volume has no room nothing is marked.
  void mark_done(std::uint32_t file, std::uint64_t offset) noexcept {
    FileVolume* const volume = find(file);
    ONEHOP_CHECK(volume != nullptr);
    if (!volume->mark_done(file, offset)) return;
    --blocks_left_;
    release_front();
  }
  /// is_complete: all blocks of all volumes that were added are whole.
  [[nodiscard]] bool is_complete() const noexcept { return blocks_left_ == 0; }

 private:
  void release_front() noexcept {
    while (!volumes_.empty() && volumes_.front()->blocks_left() == 0) {
      FileVolume* const over = volumes_.front();
      if (last_found_ == over) last_found_ = nullptr;
      first_file_ = over->end_file();
      volumes_.pop_front();
      over->release();  // from here on its owner may free it
    }
  }

  boost::circular_buffer<FileVolume*> volumes_{volumes_max};
  FileVolume* last_found_ = nullptr;  // nearly every frame is of the same volume as the last one
  std::uint32_t first_file_ = 0, end_file_ = 0;
  std::uint64_t blocks_left_ = 0;  // of all volumes here
  bool has_any_ = false;
};

}  // namespace onehop::protocol
