// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Volume: a part of the list that is offered as a whole, and Answer: what the receiver wants of it.
//
//   file index   0 .. 2047 | 2048 | 2049 .. 4096 | 4097 | 4098 ..
//                entries     pack   entries        pack
//
// Manifests and answers are immutable: all threads share one, and keep the outcomes of its entries
// separately. So a session's memory does not grow with the tree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/list/pack.hpp"

namespace onehop::list {

struct Volume {
  std::shared_ptr<const Manifest> manifest;
  bool is_last = false;          ///< of the session
  std::uint32_t first_file = 0;  ///< index on the wire of entry 0; see engine/base/block.hpp
  Digest manifest_hash{};
};

/// Held: by entry of a volume, what the receiver seems to hold of a file, in ascending runs. It
/// tells the tags of these blocks (HeldBlock) while others are sent. Empty for files that it does
/// not resume; empty altogether: none.
using Held = std::vector<std::vector<BlockRun>>;
/// Runs of one file. More: their blocks are sent again. The receiving engine keeps a range for each
/// (protocol::FileVolume).
inline constexpr std::size_t held_runs_max = 256;

struct Answer {
  std::vector<FileAction> actions;        ///< one per entry
  Held held;                              ///< for files with FileAction::resume
  std::string folder;                     ///< of the receiver, its bytes as they came
  std::vector<std::uint8_t> name_faults;  ///< one per FileAction::name_refused, an errno
  /// Of `pack`, by ordinal. The file side fills them. Null: it reports none.
  std::shared_ptr<PackRoots> pack_roots;
  /// The volume is refused, for what tells of the receiver's machine: the peer learns that alone.
  std::optional<Error> refusal;
  std::shared_ptr<const Pack> pack;  ///< what goes in shared blocks; null: nothing

  /// set_pack makes it of what is wanted of `manifest`, where it is not made yet.
  void set_pack(const Manifest& manifest, crypto::DigestKind kind) {
    if (pack == nullptr) pack = std::make_shared<const Pack>(Pack::make(manifest, kind, actions));
    if (!pack->is_empty()) return;
    pack = nullptr;
    pack_roots = nullptr;
  }
};

}  // namespace onehop::list
