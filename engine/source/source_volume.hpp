// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SourceVolume: a volume of the list of files, as the receiver answered it, for the Source. Plain
// values; made by the session's side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/list/source_files.hpp"
#include "engine/list/volume.hpp"

namespace onehop::source {

/// The vectors are by entry, in the order of the manifest.
struct SourceVolume {
  std::uint32_t first_file = 0;  ///< index on the wire of entry 0; see engine/base/block.hpp
  /// Never null; may have no entry. The session reads manifest and names at the same time: the
  /// Source changes descriptors alone.
  std::shared_ptr<list::SourceFiles> files = std::make_shared<list::SourceFiles>();
  /// Without actions all entries are sent. A file without has_digests() is neither read nor
  /// mentioned; of one that is compared only digests are handed over, as `skipped`.
  std::shared_ptr<const list::Answer> answer = std::make_shared<const list::Answer>();
  bool is_last = false;  ///< end_of_files follows it

  [[nodiscard]] std::size_t entries() const noexcept { return files->files.size(); }
  /// held_of an entry: blocks whose tags the receiver tells; ascending.
  [[nodiscard]] std::span<const BlockRun> held_of(std::size_t entry) const {
    if (entry >= answer->held.size()) return {};
    return answer->held[entry];
  }
  /// action of an entry.
  [[nodiscard]] list::FileAction action(std::size_t entry) const {
    return answer->actions.empty() ? list::FileAction::send : answer->actions[entry];
  }
  /// contains: `file` is the index of an entry.
  [[nodiscard]] bool contains(std::uint32_t file) const noexcept {
    return file - first_file < entries();  // below first_file it wraps around
  }
};

}  // namespace onehop::source
