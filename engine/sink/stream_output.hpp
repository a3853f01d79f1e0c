// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// StreamOutput: where a session that is one stream of bytes is written, piece after piece.
//
//   pieces ─▶ a file in the Stage, each block at its place ─▶ finish(): sync, rename
//          └▶ DestinationOptions::output_fd, blocks in order, as fast as it takes them
//
// What a session that ends early wrote of a file is removed: a stream cannot go on. The Sink owns
// it; its file thread calls it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

#include "engine/base/block.hpp"
#include "engine/base/fd.hpp"
#include "engine/disk/stage.hpp"
#include "engine/sink/destination.hpp"
#include "engine/sink/part_file.hpp"

namespace onehop::sink {

class StreamOutput {
 public:
  /// destination outlives it.
  explicit StreamOutput(Destination& destination) : destination_{destination} {}

  /// open makes the file, in the stage under the name of `file`, or takes the descriptor.
  /// 0 or errno. Syscalls: those of Stage::open() and create(); of a pipe open, fcntl.
  [[nodiscard]] int open(std::uint32_t file);
  /// is_ordered: blocks are to be given to hold(). Else they are written to fd() at their place.
  [[nodiscard]] bool is_ordered() const noexcept { return destination_.is_output(); }
  [[nodiscard]] int fd() const noexcept { return file_.get(); }

  // --- in order
  /// hold keeps a block, or a hole, which has no data, until all before it are written. `at` is its
  /// place in the stream.
  void hold(std::uint64_t at, const BlockRef& block) { held_.emplace(at, block); }
  struct Written {
    BlockRef block;
    int errno_value = 0;
  };
  /// write_next writes what the descriptor takes now and gives a block of which all is written, or
  /// that failed. Syscalls: write; poll for at most a millisecond where it takes nothing.
  [[nodiscard]] std::optional<Written> write_next();
  [[nodiscard]] std::size_t held_total() const noexcept { return held_.size(); }
  /// drop gives a block that will not be written.
  [[nodiscard]] std::optional<BlockRef> drop();

  /// finish gives the file its name; not for a descriptor. `number` as give_name(). Syscalls:
  /// futimens, fsync, openat2, mkdirat, renameat2.
  [[nodiscard]] FinishResult finish(const list::ManifestEntry& piece, OnExist on_exist,
                                    unsigned& number);
  /// close removes what has no name.
  void close() noexcept { stage_.remove(); }

 private:
  void take_output(int fd);

  Destination& destination_;
  disk::Stage stage_;
  std::uint32_t staged_as_ = 0;
  Fd file_;
  std::size_t write_bytes_max_ = block_bytes;  // what a write may wait for
  std::map<std::uint64_t, BlockRef> held_;
  std::uint64_t next_ = 0;  // bytes written, in order
};

}  // namespace onehop::sink
