// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <unordered_map>

#include "engine/base/display_name.hpp"
#include "engine/crypto/digest.hpp"
#include "engine/crypto/sha256.hpp"

namespace onehop::list {

namespace {

/// A name within a sentence, whose end has to reach the peer: a refusal is cut at 1024 bytes.
std::string in_sentence(std::string_view name) {
  constexpr std::size_t name_bytes_max = 128;
  return fmt::format("'{}{}'", display_name(name.substr(0, name_bytes_max)),
                     name.size() > name_bytes_max ? "..." : "");
}

Error refusal(const ManifestEntry& entry, std::string_view cause) {
  return {ExitCode::local_file_error, "take " + in_sentence(entry.name) + " into the list of files",
          std::string{cause}, "Nothing was written"};
}

std::string beyond(std::string_view what, std::uint64_t value, std::string_view unit,
                   std::uint64_t limit) {
  return fmt::format("{} has {} {}, the limit is {}", what, value, unit, limit);
}

/// Orders paths so that "a" is directly followed by everything below "a/".
bool path_less(std::string_view a, std::string_view b) noexcept {
  const auto [at_a, at_b] = std::ranges::mismatch(a, b);
  if (at_a == a.end() || at_b == b.end()) return a.size() < b.size();
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
  return rank(*at_a) < rank(*at_b);
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
  // A file's bytes, and so its journal, stay as they were.
  if (entry.is_folder()) out.push_back('/');
  if (entry.is_symlink()) out.push_back('@');
  if (entry.is_piece()) out.push_back('+');
}

/// Why a name is hidden, and so unexpected; or empty.
std::string hidden_fault(std::string_view name) {
  if (!name.starts_with('.')) return {};
  return in_sentence(name.substr(0, name.find('/'))) +
         " begins with a dot, which hides it and may make it a setting of a program";
}

}  // namespace

std::string_view name_of(EntryKind kind) noexcept {
  constexpr std::array<std::string_view, 4> names{"file", "folder", "symlink", "piece"};
  return names[static_cast<std::size_t>(kind)];
}

std::string name_fault(std::string_view name, const ManifestLimits& limits) {
  if (name.empty()) return "the name is empty";
  if (name.size() > limits.path_bytes_max)
    return beyond("the path", name.size(), "bytes", limits.path_bytes_max);
  if (name.find('\0') != std::string_view::npos) return "the name holds a NUL byte";
  if (name.front() == '/') return "the path is absolute";
  std::size_t depth = 0;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = name.substr(begin, end - begin);
    if (component.empty()) return "the path has an empty component";
    if (component == "." || component == "..") return "the path has a component '.' or '..'";
    if (component.size() > limits.component_bytes_max)
      return beyond("a component of the path", component.size(), "bytes",
                    limits.component_bytes_max);
    if (component.ends_with(disk::stage_suffix))
      return fmt::format("a component of the path ends in {}, which is reserved",
                         disk::stage_suffix);
    if (++depth > limits.depth_max)
      return beyond("the path", depth, "components", limits.depth_max);
    begin = end + 1;
  }
  // The receiver keeps its own state under these suffixes; a peer could plant a journal there.
  for (const std::string_view suffix : {disk::journal_suffix, disk::session_suffix})
    if (name.ends_with(suffix))
      return fmt::format("the name ends in {}, which is reserved", suffix);
  return {};
}

std::vector<RefusedName> temporaries_in(const Manifest& manifest) {
  const std::vector<ManifestEntry>& files = manifest.files;
  // By the name without tag and suffix. Few trees have one.
  std::unordered_multimap<std::string_view, std::size_t> alike;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::string_view name = files[i].name;
    if (!disk::leaf_of(name).starts_with('.') || !name.ends_with(disk::part_suffix)) continue;
    name.remove_suffix(disk::part_suffix.size());
    if (name.size() > disk::tag_digits &&
        disk::is_tag(name.substr(name.size() - disk::tag_digits - 1)))
      name.remove_suffix(disk::tag_digits + 1);
    alike.emplace(name, i);
  }
  std::vector<RefusedName> found;
  for (std::size_t i = 0; i < files.size() && !alike.empty(); ++i) {
    if (files[i].kind != EntryKind::file) continue;  // it has no temporary
    const std::string& name = files[i].name;
    const std::string_view leaf = disk::leaf_of(name);
    const std::string folder = name.substr(0, name.size() - leaf.size());
    for (const disk::Stem& stem : disk::stems_for(leaf)) {
      const auto [begin, end] = alike.equal_range(std::string{folder}.append(stem.text));
      const std::size_t bytes = folder.size() + stem.text.size() +
                                (stem.has_tag ? disk::tag_digits + 1 : 0) +
                                disk::part_suffix.size();
      for (auto at = begin; at != end; ++at)
        if (files[at->second].name.size() == bytes)
          found.push_back(
              {at->second, "the name is the temporary name of '" + display_name(name) + "'"});
    }
  }
  return found;
}

Result<void> validate(const Manifest& manifest, const ManifestLimits& limits) {
  const std::vector<ManifestEntry>& files = manifest.files;
  if (files.empty())
    return Error{ExitCode::local_file_error, "take the list of files", "it is empty",
                 "Nothing was written"};
  if (files.size() > limits.entries_max) return too_many_entries(files.size(), limits);

  std::uint64_t sum_bytes = 0;
  for (const ManifestEntry& entry : files) {
    if (const std::string fault = name_fault(entry.name, limits); !fault.empty())
      return refusal(entry, fault);
    if ((entry.mode & ~0777U) != 0)
      return refusal(entry, "the mode has bits other than permissions");
    if (entry.is_folder() && entry.size != 0) return refusal(entry, "a folder has a size");
    if (entry.is_symlink() && (entry.size == 0 || entry.size > target_bytes_max))
      return refusal(entry, "a symbolic link's target has 1 to 4095 bytes");
    if (entry.is_piece() && files.size() > 1)
      return refusal(entry, "a piece of a stream is alone in its volume");
    if (entry.size > limits.total_bytes_max)
      return refusal(entry, beyond("it", entry.size, "bytes", limits.total_bytes_max));
    sum_bytes += entry.size;  // both are at most 2^62
    if (sum_bytes > limits.total_bytes_max)
      return refusal(
          entry, beyond("the list up to it", sum_bytes, "bytes of files", limits.total_bytes_max));
  }

  std::vector<std::uint32_t> order(files.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, path_less,
                    [&](std::uint32_t i) { return std::string_view{files[i].name}; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const ManifestEntry& before = files[order[i - 1]];
    const ManifestEntry& entry = files[order[i]];
    const bool is_same = entry.name == before.name;
    if (is_same && entry.kind == before.kind) return refusal(entry, "the name appears twice");
    const bool is_below = entry.name.size() > before.name.size() &&
                          entry.name.starts_with(before.name) &&
                          entry.name[before.name.size()] == '/';
    if (is_same || (is_below && !before.is_folder()))
      return refusal(entry,
                     fmt::format("'{}' cannot be both a {} and a {}", display_name(before.name),
                                 name_of(before.kind), is_below ? "folder" : name_of(entry.kind)));
  }
  if (const std::vector<RefusedName> refused = temporaries_in(manifest); !refused.empty())
    return refusal(files[refused.front().entry], refused.front().cause);
  return success();
}

Error too_many_entries(std::uint64_t count, const ManifestLimits& limits) {
  return {ExitCode::local_file_error, "take the list of files",
          beyond("it", count, "files", limits.entries_max),
          "Nothing was written. Send them in several sessions, or in an archive"};
}

Error too_many_bytes(std::uint64_t bytes, const ManifestLimits& limits) {
  return {ExitCode::local_file_error, "take the list of files",
          beyond("it", bytes, "bytes of files", limits.total_bytes_max),
          "Send them in several sessions", 0};
}

Result<void> check_visible(const Manifest& manifest) {
  Error error;
  std::size_t count = 0;
  for (const ManifestEntry& entry : manifest.files) {
    std::string fault = hidden_fault(entry.name);
    if (fault.empty() || count++ > 0) continue;
    error = {ExitCode::local_file_error, "receive " + in_sentence(entry.name), std::move(fault),
             "Nothing was written. Start the receiver with --allow-hidden to take such names", 0};
  }
  if (count == 0) return success();
  if (count > 1) error.cause += " (and " + std::to_string(count - 1) + " more of such names)";
  return error;
}

std::string_view target_fault(std::string_view name, std::string_view target) noexcept {
  if (target.empty() || target.size() > target_bytes_max ||
      target.find('\0') != std::string_view::npos)
    return "it is a symbolic link that no system would make";
  if (target.front() == '/') return "it is a symbolic link with an absolute target";
  auto above = std::ranges::count(name, '/');  // folders around the link
  bool is_behind_name = false;
  for (std::size_t begin = 0; begin <= target.size();) {
    const std::size_t end = std::min(target.find('/', begin), target.size());
    const std::string_view component = target.substr(begin, end - begin);
    begin = end + 1;
    if (component.empty() || component == ".") continue;
    if (component != "..")
      is_behind_name = true;
    else if (is_behind_name)
      return "it is a symbolic link whose target goes up behind a name";
    else if (--above < 0)
      return "it is a symbolic link that leads out of the folder";
  }
  return {};
}

std::uint64_t total_bytes(const Manifest& manifest) noexcept {
  std::uint64_t sum_bytes = 0;
  for (const ManifestEntry& entry : manifest.files) sum_bytes += entry.size;
  return sum_bytes;
}

Digest manifest_hash(const Manifest& manifest) {
  std::string bytes = "onehop manifest 2";
  append_u64(bytes, manifest.files.size());
  Digest hash = crypto::sha256(std::as_bytes(std::span{bytes}));
  for (const ManifestEntry& entry : manifest.files) {
    bytes.clear();
    append_entry(bytes, entry);
    hash = crypto::sha256(hash, std::as_bytes(std::span{bytes}));
  }
  return hash;
}

Digest entry_hash(const ManifestEntry& entry) {
  std::string bytes = "onehop entry 1";
  append_entry(bytes, entry);
  Digest hash = crypto::sha256(std::as_bytes(std::span{bytes}));
  const std::string_view name = entry.name, leaf = disk::leaf_of(name);
  const Digest of_leaf = crypto::sha256(std::as_bytes(std::span{leaf})),
               of_path = crypto::sha256(std::as_bytes(std::span{name}));
  std::copy_n(of_leaf.begin(), disk::leaf_hash_bytes, hash.begin());
  std::copy_n(of_path.begin(), disk::path_hash_bytes, hash.begin() + disk::leaf_hash_bytes);
  return hash;
}

std::string numbered_leaf(const std::string& leaf, unsigned number) {
  const std::size_t dot = leaf.rfind('.');
  const bool has_extension =
      dot != std::string::npos && dot != 0 && leaf.size() - dot < disk::name_max / 2;
  const std::size_t cut = has_extension ? dot : leaf.size();
  const std::string suffix = " (" + std::to_string(number) + ")" + leaf.substr(cut);
  const std::size_t kept = std::min(cut, disk::name_max - std::min(disk::name_max, suffix.size()));
  return std::string{disk::head_of(std::string_view{leaf}.substr(0, cut), kept)}.append(suffix);
}

std::string final_name(const std::string& name, unsigned number) {
  if (number == 0) return name;
  const std::string_view leaf = disk::leaf_of(name);
  return name.substr(0, name.size() - leaf.size()) + numbered_leaf(std::string{leaf}, number);
}

}  // namespace onehop::list
