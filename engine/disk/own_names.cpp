// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/own_names.hpp"

#include <fmt/ranges.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <span>

#include "engine/base/check.hpp"
#include "engine/crypto/digest.hpp"

namespace onehop::disk {

namespace {

constexpr std::size_t hash_digits = 16;
// Longer names are cut to so much of them. Shorter: people know fewer parts by their names. Longer:
// fewer file systems have room for tag and suffix behind it; of those in use eCryptfs has the
// shortest names, 143 bytes.
constexpr std::size_t stem_leaf_max = 64, stem_head_max = stem_leaf_max - hash_digits - 1;

/// The first `bytes` of a name and its hash.
std::string cut_stem(std::string_view leaf, std::size_t bytes) {
  const Digest hash =
      crypto::block_digest(crypto::DigestKind::sha256, std::as_bytes(std::span{leaf}));
  return fmt::format(".{}~{:02x}", head_of(leaf, bytes),
                     fmt::join(std::span{hash}.first(hash_digits / 2), ""));
}

}  // namespace

std::string_view head_of(std::string_view name, std::size_t bytes) noexcept {
  while (bytes > 0 && bytes < name.size() &&
         (static_cast<unsigned char>(name[bytes]) & 0xC0) == 0x80)
    --bytes;
  return name.substr(0, bytes);
}

std::string temporary_stem(std::string_view leaf, std::string_view tag) {
  if (leaf.size() <= stem_leaf_max) return std::string{"."}.append(leaf).append(tag);
  return cut_stem(leaf, stem_head_max).append(tag);
}

std::string temporary_name(std::string_view leaf, std::string_view suffix) {
  return temporary_stem(leaf, {}).append(suffix);
}

std::string short_stem(std::string_view leaf, std::string_view tag) {
  return cut_stem(leaf, 0).append(tag);
}

std::vector<Stem> stems_for(std::string_view leaf) {
  const std::string stem = temporary_stem(leaf, {}), brief = short_stem(leaf, {});
  std::vector<Stem> stems{{stem, false}, {stem, true}, {brief, false}, {brief, true}};
  if (leaf.size() <= stem_leaf_max) return stems;
  // Earlier versions cut a name where it would not fit into NAME_MAX.
  for (const bool has_tag : {false, true}) {
    const std::size_t rest = has_tag ? tag_digits + 1 : 2;  // ".1" to ".9": they numbered them
    const std::size_t room = name_max - 1 - journal_suffix.size() - rest;
    stems.push_back({leaf.size() <= room ? std::string{"."}.append(leaf)
                                         : cut_stem(leaf, room - hash_digits - 1),
                     has_tag});
  }
  return stems;
}

std::string random_tag() {
  std::array<std::uint8_t, tag_digits / 2> bytes{};
  ONEHOP_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == std::ssize(bytes));
  return fmt::format(".{:02x}", fmt::join(bytes, ""));
}

bool is_tag(std::string_view text) noexcept {
  return text.size() == tag_digits + 1 && text.front() == '.' &&
         text.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

bool is_own_name(std::string_view name, std::string_view suffix) noexcept {
  if (!name.ends_with(suffix)) return false;
  name.remove_suffix(suffix.size());
  // Earlier versions numbered them: ".7.onehop-stage".
  const bool is_number = name.size() > 1 && name.size() <= 3 && name[0] == '.' && name[1] != '0' &&
                         name.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return name.empty() || is_number || is_tag(name);
}

bool is_same_leaf(const Digest& entry, const Digest& other) noexcept {
  return std::equal(entry.begin(), entry.begin() + leaf_hash_bytes, other.begin());
}

bool is_same_path(const Digest& entry, const Digest& other) noexcept {
  constexpr auto end = leaf_hash_bytes + path_hash_bytes;
  return std::equal(entry.begin() + leaf_hash_bytes, entry.begin() + end,
                    other.begin() + leaf_hash_bytes);
}

bool is_same_entry(const Digest& entry, const Digest& other) noexcept {
  constexpr auto begin = leaf_hash_bytes + path_hash_bytes;
  return std::equal(entry.begin() + begin, entry.end(), other.begin() + begin);
}

}  // namespace onehop::disk
