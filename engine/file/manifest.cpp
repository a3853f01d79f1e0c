// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/manifest.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "engine/crypto/digest.hpp"

namespace onehop::file {

namespace {

Error refusal(const ManifestEntry& entry, std::string_view cause) {
  return {ExitCode::local_file_error, "take '" + display_name(entry.name) + "' into the list of files",
          std::string{cause}, "Nothing was written", 0};
}

std::string_view leaf_of(std::string_view name) noexcept {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

/// The cause for which a name is refused, or empty.
std::string_view name_fault(std::string_view name, const ManifestLimits& limits) noexcept {
  if (name.empty()) return "the name is empty";
  if (name.size() > limits.path_bytes_max) return "the path is too long";
  if (name.find('\0') != std::string_view::npos) return "the name holds a NUL byte";
  if (name.front() == '/') return "the path is absolute";
  std::size_t depth = 0;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = name.substr(begin, end - begin);
    if (component.empty()) return "the path has an empty component";
    if (component == "." || component == "..") return "the path has a component '.' or '..'";
    if (component.size() > limits.component_bytes_max) return "a component of the path is too long";
    if (++depth > limits.depth_max) return "the path is too deep";
    begin = end + 1;
  }
  // The receiver keeps its own state under these suffixes; a peer that could write there could plant a journal.
  if (leaf_of(name).ends_with(journal_suffix)) return "the name ends in .onehop-journal, which is reserved";
  if (leaf_of(name).ends_with(session_suffix)) return "the name ends in .onehop-session, which is reserved";
  return {};
}

/// Orders paths so that "a" is directly followed by everything below "a/".
bool path_less(std::string_view a, std::string_view b) noexcept {
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
  return std::ranges::lexicographical_compare(a, b, {}, rank, rank);
}

void append_u64(std::string& out, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

void append_entry(std::string& out, const ManifestEntry& entry) {
  append_u64(out, entry.name.size());
  out += entry.name;
  append_u64(out, entry.size);
  append_u64(out, entry.mode);
  append_u64(out, static_cast<std::uint64_t>(entry.mtime_ns));
}

Digest sha256(const std::string& bytes) {
  return crypto::block_digest(crypto::DigestKind::sha256, std::as_bytes(std::span{bytes}));
}

}  // namespace

Result<void> validate(const Manifest& manifest, const ManifestLimits& limits) {
  const std::vector<ManifestEntry>& files = manifest.files;
  const auto list_error = [](std::string cause) {
    return Error{ExitCode::local_file_error, "take the list of files", std::move(cause), "Nothing was written", 0};
  };
  if (files.empty()) return list_error("it is empty");
  if (files.size() > limits.entries_max)
    return list_error("more than " + std::to_string(limits.entries_max) + " entries");

  std::uint64_t sum_bytes = 0;
  for (const ManifestEntry& entry : files) {
    if (const std::string_view fault = name_fault(entry.name, limits); !fault.empty()) return refusal(entry, fault);
    if ((entry.mode & ~0777U) != 0) return refusal(entry, "the mode has bits other than permissions");
    if (entry.size > limits.total_bytes_max) return refusal(entry, "the size is beyond any file system");
    if (__builtin_add_overflow(sum_bytes, entry.size, &sum_bytes) || sum_bytes > limits.total_bytes_max)
      return refusal(entry, "the sum of the sizes is beyond any file system");
  }

  std::vector<std::uint32_t> order(files.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, path_less, [&](std::uint32_t i) { return std::string_view{files[i].name}; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const ManifestEntry& before = files[order[i - 1]];
    const ManifestEntry& entry = files[order[i]];
    if (entry.name == before.name) return refusal(entry, "the name appears twice");
    if (entry.name.size() > before.name.size() && entry.name.starts_with(before.name) &&
        entry.name[before.name.size()] == '/')
      return refusal(entry, "'" + display_name(before.name) + "' cannot be both a file and a folder");
  }
  // A file named as the temporary of its sibling could be renamed over it, and end up under the sibling's name.
  for (const ManifestEntry& entry : files) {
    const std::string_view leaf = leaf_of(entry.name);
    const std::string folder = entry.name.substr(0, entry.name.size() - leaf.size());
    const std::string temporary = folder + temporary_name(leaf, part_suffix);
    const auto at = std::ranges::lower_bound(order, std::string_view{temporary}, path_less,
                                             [&](std::uint32_t i) { return std::string_view{files[i].name}; });
    if (at != order.end() && files[*at].name == temporary)
      return refusal(files[*at], "the name is the temporary name of '" + display_name(entry.name) + "'");
  }
  return success();
}

std::uint64_t total_bytes(const Manifest& manifest) noexcept {
  std::uint64_t sum_bytes = 0;
  for (const ManifestEntry& entry : manifest.files) sum_bytes += entry.size;
  return sum_bytes;
}

Digest manifest_hash(const Manifest& manifest) {
  std::string bytes = "onehop manifest 1";
  append_u64(bytes, manifest.files.size());
  for (const ManifestEntry& entry : manifest.files) append_entry(bytes, entry);
  return sha256(bytes);
}

Digest entry_hash(const ManifestEntry& entry) {
  std::string bytes = "onehop entry 1";
  append_entry(bytes, entry);
  return sha256(bytes);
}

std::string temporary_name(std::string_view leaf, std::string_view suffix) {
  constexpr std::size_t name_max = 255, hash_digits = 16;
  std::string name{"."};
  // Both suffixes of a name are cut alike, so that a part and its journal always sit side by side.
  constexpr std::size_t number = 2;  // ".1" to ".9", where a part of that name is another session's
  const std::size_t room = name_max - 1 - journal_suffix.size() - number;
  if (leaf.size() <= room) return name.append(leaf).append(suffix);
  std::size_t kept = room - hash_digits - 1;
  while (kept > 0 && (static_cast<unsigned char>(leaf[kept]) & 0xC0) == 0x80) --kept;  // do not cut a UTF-8 sequence
  const Digest hash = crypto::block_digest(crypto::DigestKind::sha256, std::as_bytes(std::span{leaf}));
  name.append(leaf.substr(0, kept)).append("~");
  constexpr std::string_view digits = "0123456789abcdef";
  for (std::size_t i = 0; i < hash_digits / 2; ++i) {
    const auto byte = std::to_integer<unsigned>(hash[i]);
    name.push_back(digits[byte >> 4]);
    name.push_back(digits[byte & 15]);
  }
  return name.append(suffix);
}

}  // namespace onehop::file
