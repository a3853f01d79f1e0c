// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/pack_sink.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/file/file_bytes.hpp"
#include "engine/file/holes.hpp"

namespace onehop::file {

PackSink::PackSink(SinkChapter& list, PackCommit& commit)
    : list_{list}, commit_{commit}, tree_{commit.destination().options().digest_kind} {
  for (std::uint32_t i = 0; i < list_.pack().entries().size() && !has_folders_; ++i)
    has_folders_ = list_.packed_entry(i).is_folder();
}

std::optional<PackFailure> PackSink::take(const BlockRef& block) {
  if (const int errno_value = commit_.open(); errno_value != 0)
    return failed(0, FileFailure::write_error, errno_value);
  const Pack& pack = list_.pack();
  const std::uint64_t index = block.offset / block_bytes, end = block.offset + block.length;
  std::uint32_t ordinal = pack.first_of(index);
  PackPlace place = pack.place_of_first(list_.manifest(), index);
  while (true) {
    const std::uint64_t from = std::max(place.offset, block.offset);
    const std::uint64_t to = std::min(place.end(), end);
    const std::span bytes{block.data + (from - block.offset), static_cast<std::size_t>(to - from)};
    const bool is_whole = bytes.size() == place.end() - place.offset;
    if (auto failure =
            is_whole ? take_whole(ordinal, bytes) : take_half(ordinal, place, from, bytes))
      return failure;
    if (place.end() >= end) break;
    place = pack.next(list_.manifest(), ordinal++, place);
  }
  return std::nullopt;
}

std::optional<PackFailure> PackSink::check(std::uint32_t ordinal,
                                           std::span<const std::byte> content,
                                           std::span<const std::byte> root) {
  const Digest own = record_root(commit_.destination().options().digest_kind, content);
  if (std::memcmp(own.data(), root.data(), root.size()) != 0)
    return failed(ordinal, FileFailure::root_mismatch, 0);
  add_leaf(ordinal, own);
  return std::nullopt;
}

std::optional<PackFailure> PackSink::take_whole(std::uint32_t ordinal,
                                                std::span<const std::byte> record) {
  if (!list_.pack().is_whole(ordinal)) return compare(ordinal, record);
  const ManifestEntry& entry = list_.packed_entry(ordinal);
  const auto content = record.first(static_cast<std::size_t>(entry.size));
  if (auto failure = check(ordinal, content, record.subspan(content.size()))) return failure;
  if (entry.is_folder()) return end_file(ordinal, Fd{});
  if (entry.is_symlink()) return end_symlink(ordinal, content);
  const Fd file = create(ordinal);
  if (!file.is_open()) return failed(ordinal, FileFailure::write_error, errno);
  // Zeros need no room on the disk.
  const bool is_hole = content.size() >= hole_bytes_min && is_all_zero(content);
  const int errno_value =
      is_hole ? (::ftruncate(file.get(), static_cast<off_t>(content.size())) == 0 ? 0 : errno)
              : write_at(file.get(), content, 0);
  if (errno_value != 0) return failed(ordinal, FileFailure::write_error, errno_value);
  return end_file(ordinal, file);
}

std::optional<PackFailure> PackSink::take_half(std::uint32_t ordinal, const PackPlace& place,
                                               std::uint64_t from,
                                               std::span<const std::byte> bytes) {
  const ManifestEntry& entry = list_.packed_entry(ordinal);
  Half& half = halves_[ordinal];
  if (half.bytes == 0 && has_content(ordinal)) {
    half.file = create(ordinal);
    if (!half.file.is_open()) return failed(ordinal, FileFailure::write_error, errno);
  }
  half.bytes += static_cast<std::uint32_t>(bytes.size());
  const std::uint64_t content_end = std::max(from, place.content_end());
  const auto content = bytes.first(
      static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), content_end - from)));
  if (!content.empty())
    if (const int errno_value = write_at(half.file.get(), content, from - place.offset);
        errno_value != 0)
      return failed(ordinal, FileFailure::write_error, errno_value);
  const auto root = bytes.subspan(content.size());
  if (!root.empty())
    std::memcpy(half.root.data() + (from + content.size() - place.content_end()), root.data(),
                root.size());
  if (half.bytes < place.end() - place.offset) return std::nullopt;
  if (!list_.pack().is_whole(ordinal)) {
    const Digest told = half.root;
    halves_.erase(ordinal);
    return compare(ordinal, std::span{told}.first(place.digest_bytes));
  }
  const std::span whole = commit_.scratch().first(place.size);
  if (place.size > 0 && read_at(half.file.get(), whole, 0) != static_cast<std::int64_t>(place.size))
    return failed(ordinal, FileFailure::write_error, EIO);
  if (auto failure = check(ordinal, whole, std::span{half.root}.first(place.digest_bytes)))
    return failure;
  const Fd file = std::move(half.file);
  halves_.erase(ordinal);
  return entry.is_symlink() ? end_symlink(ordinal, whole) : end_file(ordinal, file);
}

/// A sender leaves out a link that leads out of what it sends.
std::optional<PackFailure> PackSink::end_symlink(std::uint32_t ordinal,
                                                 std::span<const std::byte> target) {
  const ManifestEntry& entry = list_.packed_entry(ordinal);
  const std::string text{reinterpret_cast<const char*>(target.data()), target.size()};
  if (!target_fault(entry.name, text).empty()) return failed(ordinal, FileFailure::protocol, 0);
  const Fd link = commit_.stage().create_symlink(list_.packed_file(ordinal), text, entry.mtime_ns);
  if (!link.is_open()) return failed(ordinal, FileFailure::write_error, errno);
  list_.count_made(list_.pack().entries()[ordinal]);
  return end_file(ordinal, link);
}

Fd PackSink::create(std::uint32_t ordinal) {
  Fd file =
      commit_.stage().create(list_.packed_file(ordinal), list_.packed_entry(ordinal).mode & 0777);
  if (file.is_open()) list_.count_made(list_.pack().entries()[ordinal]);
  return file;
}

/// The file is whole and verified: its time, then its place in the batch.
std::optional<PackFailure> PackSink::end_file(std::uint32_t ordinal, const Fd& file) {
  const ManifestEntry& entry = list_.packed_entry(ordinal);
  const bool is_file = entry.kind == EntryKind::file;
  if (is_file && set_mtime(file.get(), entry.mtime_ns) != 0)
    return failed(ordinal, FileFailure::write_error, errno);
  // With the announced name a comparison finds it; with another one only a record can.
  if (file.is_open() && list_.policy_of(list_.pack().entries()[ordinal]) == OnExist::rename)
    if (const int errno_value = commit_.destination().session().add(entry_hash(entry), file.get());
        errno_value != 0)
      return failed(ordinal, FileFailure::write_error, errno_value);
  const bool is_due_now = is_file && !is_readable(entry);
  if (is_due_now && commit_.destination().is_synced() && ::fsync(file.get()) != 0)
    return failed(ordinal, FileFailure::sync_error, errno);
  ++whole_;
  commit_.add({.list = &list_, .ordinal = ordinal});
  return check_all();
}

/// The root alone came: the file is there, and this tells whether it is the one that was offered.
std::optional<PackFailure> PackSink::compare(std::uint32_t ordinal,
                                             std::span<const std::byte> root) {
  const PackHeld held = list_.held(list_.pack().entries()[ordinal]);
  const bool is_same = std::memcmp(held.root.data(), root.data(), root.size()) == 0;
  if (!is_same && !held.is_kept) return failed(ordinal, FileFailure::differs, 0);
  Digest told{};
  std::ranges::copy(root, told.begin());
  add_leaf(ordinal, told);
  ++whole_;
  commit_.add({.list = &list_,
               .ordinal = ordinal,
               .outcome = is_same ? FileOutcome::there : FileOutcome::kept,
               .name_number = held.name_number});
  return check_all();
}

void PackSink::add_leaf(std::uint32_t ordinal, const Digest& root) {
  list_.pack_roots()->set(ordinal, root);
  early_.emplace(ordinal, root);
  for (auto next = early_.find(static_cast<std::uint32_t>(tree_.leaves())); next != early_.end();
       next = early_.find(static_cast<std::uint32_t>(tree_.leaves()))) {
    tree_.add(next->second);
    early_.erase(next);
  }
}

std::optional<PackFailure> PackSink::on_root(const Digest& root) {
  if (root_ && *root_ != root) return failed(0, FileFailure::protocol, 0);
  root_ = root;
  return check_all();
}

std::optional<PackFailure> PackSink::check_all() {
  if (!root_ || whole_ < list_.pack().entries().size()) return std::nullopt;
  is_verified_ = tree_.root() == *root_;
  if (is_verified_) return std::nullopt;
  return failed(0, FileFailure::root_mismatch, 0);
}

}  // namespace onehop::file
