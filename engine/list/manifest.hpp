// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Manifest: the list of files and folders that one session carries, as the sender claims it and the
// receiver approves it.
//
//   command line ─▶ source_files ─▶ Manifest ─▶ offer ─▶ validate() ─▶ Sink
//                                                          └─▶ a person approves manifest_hash()
//
// Names are bytes, relative paths below the destination. Nothing here touches the disk. Any thread
// may call it; the values are plain. It never repairs a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/base/result.hpp"
#include "engine/disk/own_names.hpp"

namespace onehop::list {

/// EntryKind: the numbers are protocol.
enum class EntryKind : std::uint8_t {
  file = 0,
  folder = 1,   ///< its size is 0; what it holds has entries of its own
  symlink = 2,  ///< its content is its target, 1 to target_bytes_max bytes; see target_fault()
  piece = 3,    ///< of a stream: the pieces of a session, one to a volume, are one file's content
};
[[nodiscard]] std::string_view name_of(EntryKind kind) noexcept;

/// FileAction: what the receiver wants of a file. The numbers are protocol.
enum class FileAction : std::uint8_t {
  send = 0,          ///< all of it
  keep = 1,          ///< nothing: its name belongs to something else, which stays
  resume = 2,        ///< what the claims do not cover
  compare = 3,       ///< digests alone: its name belongs to a file of that size, which stays
  keep_unread = 4,   ///< as compare, but the receiver cannot read that file
  assume = 5,        ///< nothing: a file of that size and time has the name, and is taken for it
  name_refused = 6,  ///< nothing: the file system does not take the name, or it is barred there
  name_taken = 7,    ///< nothing: an earlier entry of the session has this name there
};
/// has_digests: the sender announces digests and root of such a file, and the receiver answers with
/// FileDone.
[[nodiscard]] constexpr bool has_digests(FileAction action) noexcept {
  return action == FileAction::send || action == FileAction::resume ||
         action == FileAction::compare;
}

struct ManifestEntry {
  std::string name;           ///< relative path, components separated by '/', any bytes but NUL
  std::uint64_t size = 0;     ///< bytes; a claim until the root digest agrees
  std::uint32_t mode = 0;     ///< permission bits, 0777; the receiver's umask applies
  std::int64_t mtime_ns = 0;  ///< since 1970, modulo 2^64 (file_bytes.hpp)
  EntryKind kind = EntryKind::file;
  [[nodiscard]] bool is_folder() const noexcept { return kind == EntryKind::folder; }
  [[nodiscard]] bool is_symlink() const noexcept { return kind == EntryKind::symlink; }
  [[nodiscard]] bool is_piece() const noexcept { return kind == EntryKind::piece; }
  bool operator==(const ManifestEntry&) const = default;
};

struct Manifest {
  std::vector<ManifestEntry> files;
  bool operator==(const Manifest&) const = default;
};

/// ManifestLimits are ours; a peer never moves them. The kernel's: NAME_MAX 255, PATH_MAX 4096.
struct ManifestLimits {
  /// Higher: a manifest of hostile size costs gigabytes before approval.
  std::size_t entries_max = disk::entries_max;
  std::size_t component_bytes_max = disk::name_max;
  std::size_t path_bytes_max = 4095;  ///< PATH_MAX counts the closing NUL
  std::size_t depth_max = disk::depth_max;
  /// Offsets are signed 64-bit in the kernel.
  std::uint64_t total_bytes_max = std::uint64_t{1} << 62;
};

/// too_many_entries is the refusal of a list of `count` files.
[[nodiscard]] Error too_many_entries(std::uint64_t count, const ManifestLimits& limits = {});

/// too_many_bytes is the refusal of files of `bytes` in all.
[[nodiscard]] Error too_many_bytes(std::uint64_t bytes, const ManifestLimits& limits = {});

/// name_fault is the cause for which no manifest may have this name, or empty.
[[nodiscard]] std::string name_fault(std::string_view name, const ManifestLimits& limits = {});

/// temporaries_in gives the entries that are named as the temporary of a file beside them: one
/// could end up under that file's name.
struct RefusedName {
  std::size_t entry = 0;  ///< index
  std::string cause;
};
[[nodiscard]] std::vector<RefusedName> temporaries_in(const Manifest& manifest);

/// validate accepts a manifest as a whole, or names the first entry that breaks a rule.
[[nodiscard]] Result<void> validate(const Manifest& manifest, const ManifestLimits& limits = {});

/// check_visible refuses names whose first component begins with a dot: a sender could put
/// ".ssh/authorized_keys" where a user expects a video. What is hidden deeper arrives below a
/// folder whose name the receiver sees. The Error names the first.
[[nodiscard]] Result<void> check_visible(const Manifest& manifest);

/// target_fault is why a symbolic link called `name`, a path below some folder, may not have this
/// target, or empty: it would lead out of that folder. It is absolute, climbs above the folder, or
/// climbs behind a name, which may be a link itself. What such links lead to is inside, through
/// whichever other such links it goes.
[[nodiscard]] std::string_view target_fault(std::string_view name,
                                            std::string_view target) noexcept;
/// PATH_MAX counts the closing NUL.
inline constexpr std::size_t target_bytes_max = 4095;

/// total_bytes is the sum of the sizes; for validated manifests only (which checks the sum).
[[nodiscard]] std::uint64_t total_bytes(const Manifest& manifest) noexcept;

/// manifest_hash chains SHA-256 over every field of every entry: what a person approves is what may
/// be written. It takes no memory that grows with the list.
[[nodiscard]] Digest manifest_hash(const Manifest& manifest);
/// entry_hash names one entry in a journal; any difference means another file.
[[nodiscard]] Digest entry_hash(const ManifestEntry& entry);

/// numbered_leaf is "name (2).txt" for "name.txt": what a file is called where its name is taken
/// and stays. A name that would become too long is cut. final_name does so with the last component
/// of a path; 0: the name as it is. Both ends work these out from the number: they are protocol.
[[nodiscard]] std::string numbered_leaf(const std::string& leaf, unsigned number);
[[nodiscard]] std::string final_name(const std::string& name, unsigned number);
inline constexpr unsigned name_number_max = 999;

}  // namespace onehop::list
