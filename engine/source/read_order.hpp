// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ReadOrder: in which order the blocks of a volume are read. What the receiver has nothing of goes
// first, and what it seems to have is compared after that: it reads it meanwhile, and tells tags.
//
//   entry          a            b                 c
//   blocks    new           held | new | held    held
//   order      1             4      2     5       6         c has nothing that is new
//
// With very many runs of held blocks the volume is read in parts of entries, each in this order:
// between two runs the receiving engine keeps a range (protocol::FileVolume). File thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/source/source_volume.hpp"

namespace onehop::source {

class ReadOrder {
 public:
  /// Runs of held blocks that are passed over before they are read.
  static constexpr std::size_t passed_max = 2 * list::held_runs_max;

  struct Piece {
    std::size_t entry = 0;
    BlockRun run;
    bool is_held = false;
  };
  /// `volume` outlives it.
  explicit ReadOrder(const SourceVolume& volume) : volume_{volume} {}

  /// next piece; nothing: that was all. A packed entry is one piece.
  [[nodiscard]] std::optional<Piece> next() {
    for (;;) {
      const bool is_end = entry_ == (is_held_ ? part_.end : volume_.entries());
      const auto held = is_end ? std::span<const BlockRun>{} : volume_.held_of(entry_);
      if (is_held_ && is_end) {
        if (part_.end == volume_.entries()) return std::nullopt;
        part_ = {.first = part_.end, .end = part_.end};
        is_held_ = false;
        passed_ = 0;
      } else if (is_held_) {
        if (run_ < held.size()) return Piece{.entry = entry_, .run = held[run_++], .is_held = true};
        next_entry();
      } else if (is_end || (run_ == 0 && passed_ > 0 && passed_ + held.size() > passed_max)) {
        is_held_ = true;
        part_.end = entry_;
        entry_ = part_.first;
        run_ = 0;
      } else if (const Piece piece = next_new(held); piece.run.first < piece.run.end) {
        return piece;
      }
    }
  }

 private:
  /// next_new: what is before the next run of held blocks; it may be empty.
  [[nodiscard]] Piece next_new(std::span<const BlockRun> held) {
    Piece piece{.entry = entry_, .run = {}};
    if (!list::has_digests(volume_.action(entry_))) {
      next_entry();
      return piece;
    }
    piece.run = {.first = run_ == 0 ? 0 : held[run_ - 1].end,
                 .end = run_ < held.size() ? held[run_].first
                                           : blocks_of(volume_.files->manifest.files[entry_].size)};
    if (run_++ == held.size()) {
      passed_ += held.size();
      next_entry();
    }
    return piece;
  }
  void next_entry() noexcept {
    ++entry_;
    run_ = 0;
  }

  const SourceVolume& volume_;
  struct {
    std::size_t first = 0, end = 0;
  } part_;  // entries
  std::size_t entry_ = 0, run_ = 0, passed_ = 0;
  bool is_held_ = false;
};

}  // namespace onehop::source
