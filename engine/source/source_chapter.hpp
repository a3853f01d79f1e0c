// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SourceChapter: a chapter of the list of files, as the receiver answered it, for the Source. Plain
// values; made by the session's side.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/disk/journal.hpp"
#include "engine/list/pack.hpp"
#include "engine/list/pack_roots.hpp"
#include "engine/list/source_files.hpp"

namespace onehop::source {

/// The vectors are by entry, in the order of the manifest.
struct SourceChapter {
  std::uint32_t first_file = 0;  ///< index on the wire of entry 0; see engine/base/block.hpp
  /// Never null; may have no entry. The session reads manifest and names at the same time: the
  /// Source changes descriptors alone.
  std::shared_ptr<list::SourceFiles> files = std::make_shared<list::SourceFiles>();
  /// What the receiver says it has, each block once and ascending; empty: nothing.
  std::vector<std::vector<Claim>> claims;
  /// A file without has_digests() is neither read nor mentioned; of one that is compared only
  /// digests are handed over, as `skipped`. Empty: all are sent.
  std::vector<list::FileAction> actions;
  /// Of the wanted files, those that go in shared blocks; null: none.
  std::shared_ptr<const list::Pack> pack;
  std::shared_ptr<list::PackRoots> pack_roots;  ///< of `pack`; null: nobody asks for them
  bool is_last = false;                         ///< end_of_files follows it

  [[nodiscard]] std::size_t entries() const noexcept { return files->files.size(); }
  /// claim_of a block of an entry; null: the receiver says nothing of it.
  [[nodiscard]] const Claim* claim_of(std::size_t entry, std::uint64_t block) const {
    const auto at = std::ranges::lower_bound(claims[entry], block, {}, &Claim::block);
    return at == claims[entry].end() || at->block != block ? nullptr : &*at;
  }
  /// contains: `file` is the index of an entry.
  [[nodiscard]] bool contains(std::uint32_t file) const noexcept {
    return file - first_file < entries();  // below first_file it wraps around
  }
};

}  // namespace onehop::source
