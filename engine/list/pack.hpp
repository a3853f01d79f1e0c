// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Pack: where the small files, folders and symbolic links of a manifest lie in one stream of
// blocks, so that a hundred thousand of them are as few frames, digests and messages as one file
// of their sum.
//
//   manifest   a/x         a/y         a/z       a/        big      b
//   pack       [x|digest]  [y|digest]  [tag]     [digest]           [b|digest]
//
// A record is a file's bytes and its root; a link's bytes are its target, and a folder's record is
// the root of nothing. Of a file that the receiver may have, it is the tag of its bytes alone
// (crypto::ContentMac): a/z is compared, as cheaply as it is sent. The root over a pack has a leaf
// for each record: its root, or its tag. The records are cut into blocks, as a file's bytes are.
// Both ends work the layout out from the manifest and from what the receiver wants, so a change of
// it is a change of the protocol. Each volume has a pack of its own. The engine sees one more
// file, whose index is the one behind the volume's entries. A record is shorter than a block and
// so lies in two blocks at most. Plain values; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/crypto/digest.hpp"
#include "engine/list/manifest.hpp"

namespace onehop::list {

// --- Specification: both ends agree on these.
/// Larger files have blocks, digests and a journal of their own.
inline constexpr std::uint32_t packed_bytes_max = block_bytes / 2;
/// Fewer small files, no folder and no link: each goes by itself, and is resumed by itself.
inline constexpr std::size_t packed_files_min = 32;

/// PackPlace: a record's bytes in the pack: those of the file that are sent, then its root.
struct PackPlace {
  std::uint64_t begin = 0, end = 0;
  bool operator==(const PackPlace&) const = default;
};

class Pack {
 public:
  Pack() = default;
  /// make packs the packable entries that the receiver wants, by its action of each: bytes and root
  /// of what it has not, the tag alone where it has a file that may be it. Nothing is packed where
  /// the manifest as a whole is not worth it.
  [[nodiscard]] static Pack make(const Manifest& manifest, crypto::DigestKind kind,
                                 std::span<const FileAction> actions);

  [[nodiscard]] bool is_empty() const noexcept { return entries_.empty(); }
  /// entries: their manifest indices, in order. A place in it is an entry's ordinal.
  [[nodiscard]] const std::vector<std::uint32_t>& entries() const noexcept { return entries_; }
  [[nodiscard]] bool contains(std::uint32_t file) const noexcept;
  /// is_whole: the record at this ordinal has the file's bytes.
  [[nodiscard]] bool is_whole(std::uint32_t ordinal) const { return is_whole_[ordinal]; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return ends_.empty() ? 0 : ends_.back(); }

  /// first_of is the ordinal of the first record with a byte in block `block`; place_of is where a
  /// record lies.
  [[nodiscard]] std::uint32_t first_of(std::uint64_t block) const noexcept;
  [[nodiscard]] PackPlace place_of(std::uint32_t ordinal) const noexcept {
    return {ordinal == 0 ? 0 : ends_[ordinal - 1], ends_[ordinal]};
  }

 private:
  std::vector<std::uint32_t> entries_;
  std::vector<bool> is_whole_;       // by ordinal
  std::vector<std::uint64_t> ends_;  // by ordinal: where the next record begins
};

/// PackRoots: the roots of a volume's packed records. Messages report runs of records, not their
/// roots, so the file thread stores them here for the code that reports each file's outcome.
class PackRoots {
 public:
  explicit PackRoots(std::size_t records) : slots_(records) {}

  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
  /// set is for the file thread. A record has one root: another call changes nothing.
  void set(std::uint32_t ordinal, const Digest& root) noexcept {
    Slot& slot = slots_[ordinal];
    if (slot.is_set.load(std::memory_order_relaxed)) return;
    slot.root = root;
    slot.is_set.store(true, std::memory_order_release);  // acquire in find()
  }
  /// find: nullopt if the record was not read yet. Any thread.
  [[nodiscard]] std::optional<Digest> find(std::uint32_t ordinal) const noexcept {
    const Slot& slot = slots_[ordinal];
    if (!slot.is_set.load(std::memory_order_acquire)) return std::nullopt;
    return slot.root;
  }

 private:
  struct Slot {
    Digest root{};
    std::atomic<bool> is_set = false;
  };
  std::vector<Slot> slots_;
};

/// record_root is a packed file's root: that of its one block, or of nothing; by its content, or by
/// the digest of its one block.
[[nodiscard]] Digest record_root(crypto::DigestKind kind,
                                 std::span<const std::byte> content) noexcept;
[[nodiscard]] Digest record_root(crypto::DigestKind kind, std::uint64_t size,
                                 const Digest& block_digest) noexcept;

/// is_packable: small enough, in a manifest that is worth a pack (has_pack).
[[nodiscard]] bool has_pack(const Manifest& manifest) noexcept;
[[nodiscard]] inline bool is_packable(const ManifestEntry& entry) noexcept {
  return entry.size <= packed_bytes_max && !entry.is_piece();
}
/// pack_file is the pack's index on the wire, in a volume that begins with `first_file`.
[[nodiscard]] inline std::uint32_t pack_file(const Manifest& manifest,
                                             std::uint32_t first_file = 0) noexcept {
  return first_file + static_cast<std::uint32_t>(manifest.files.size());
}

/// block_sizes are a volume's files as the engine counts them: entries that are packed or unwanted
/// have no blocks, and the last size is the pack's, file_without_blocks where nothing is packed.
[[nodiscard]] std::vector<std::uint64_t> block_sizes(const Manifest& manifest, const Pack& pack,
                                                     std::span<const FileAction> actions);

}  // namespace onehop::list
