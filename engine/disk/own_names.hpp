// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Names that sessions use for their own files in the destination, and how a file is recognized.
//
//   ".onehop-session", ".onehop-stage"       in the root
//   ".NAME.part", ".NAME.onehop-journal"     beside NAME
//
// Anyone can guess these, and in a folder that others may write to another user may have them
// first. Then a tag goes before the suffix, 64 random bits: ".NAME.0123456789abcdef.part". A name
// never proves an owner: file owner, lock, journal and record of the inode do.
//
// Pure, but for random_tag(). Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/block.hpp"

namespace onehop::disk {

/// parent_of is the folder of a path, "" for a name without one; leaf_of its last component.
[[nodiscard]] inline std::string_view parent_of(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}
[[nodiscard]] inline std::string_view leaf_of(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

/// NAME_MAX, in bytes.
inline constexpr std::size_t name_max = 255;
/// Folders below each other, and entries, that a session takes (ManifestLimits).
inline constexpr std::size_t depth_max = 64, entries_max = 1'000'000;

inline constexpr std::string_view part_suffix = ".part";
inline constexpr std::string_view journal_suffix = ".onehop-journal";
inline constexpr std::string_view session_suffix = ".onehop-session";
inline constexpr std::string_view stage_suffix = ".onehop-stage";

inline constexpr std::size_t tag_digits = 16;

/// head_of is the first `bytes` of a name, or some less: a UTF-8 sequence is not cut.
[[nodiscard]] std::string_view head_of(std::string_view name, std::size_t bytes) noexcept;

/// temporary_stem is what part and journal of a name begin with, with an empty tag or another one:
/// 97 bytes at most with tag and suffix, for no file system says how long a name may be. Of a long
/// name it has the beginning and the hash. short_stem has the hash alone, 50 bytes at most, for a
/// file system that refuses the other.
[[nodiscard]] std::string temporary_stem(std::string_view leaf, std::string_view tag);
[[nodiscard]] std::string short_stem(std::string_view leaf, std::string_view tag);
/// temporary_name makes ".NAME<suffix>" within NAME_MAX: a long name is cut, and its hash appended.
[[nodiscard]] std::string temporary_name(std::string_view leaf, std::string_view suffix);
/// Stem: without its tag.
struct Stem {
  std::string text;
  bool has_tag = false;  ///< one follows, and otherwise a number or nothing
};
/// stems_for gives all by which sessions call what is of a name, those of earlier versions too.
[[nodiscard]] std::vector<Stem> stems_for(std::string_view leaf);
/// random_tag is ".0123456789abcdef". Syscalls: getrandom.
[[nodiscard]] std::string random_tag();
[[nodiscard]] bool is_tag(std::string_view text) noexcept;
/// is_own_name: `suffix` alone, or with a tag before it; or with a number, as earlier versions did.
[[nodiscard]] bool is_own_name(std::string_view name, std::string_view suffix) noexcept;

/// Of two entry_hash()es the first bytes tell the leaf and the path, the others all of the entry.
/// So a file is known again whose size, mode or time has changed; is_same_leaf() also where another
/// folder above it was sent. Those two have 32 bits: a hint beside a better proof.
inline constexpr std::ptrdiff_t leaf_hash_bytes = 4, path_hash_bytes = 4;
[[nodiscard]] bool is_same_leaf(const Digest& entry, const Digest& other) noexcept;
[[nodiscard]] bool is_same_path(const Digest& entry, const Digest& other) noexcept;
[[nodiscard]] bool is_same_entry(const Digest& entry, const Digest& other) noexcept;

}  // namespace onehop::disk
