// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/sink/pack_sink.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/disk/file_bytes.hpp"
#include "engine/disk/holes.hpp"

namespace onehop::sink {

PackSink::PackSink(SinkVolume& list, PackCommit& commit)
    : list_{list}, commit_{commit}, tree_{commit.destination().options().digest_kind} {
  for (std::uint32_t i = 0; i < list_.pack().entries().size() && !has_folders_; ++i)
    has_folders_ = list_.packed_entry(i).is_folder();
}

MaybeFailure PackSink::take(const BlockRef& block) {
  if (const int errno_value = commit_.open(); errno_value != 0)
    return failed(0, FileFailure::write_error, errno_value);
  const list::Pack& pack = list_.pack();
  const std::uint64_t end = block.offset + block.length;
  for (std::uint32_t ordinal = pack.first_of(block.offset / block_bytes);; ++ordinal) {
    const list::PackPlace place = pack.place_of(ordinal);
    const std::uint64_t from = std::max(place.begin, block.offset);
    const std::uint64_t to = std::min(place.end, end);
    const std::span bytes{block.data + (from - block.offset), static_cast<std::size_t>(to - from)};
    const bool is_whole = bytes.size() == place.end - place.begin;
    if (auto failure =
            is_whole ? take_whole(ordinal, bytes) : take_half(ordinal, place, from, bytes))
      return failure;
    if (place.end >= end) return std::nullopt;
  }
}

MaybeFailure PackSink::take_whole(std::uint32_t ordinal, std::span<const std::byte> record) {
  if (!list_.pack().is_whole(ordinal)) return compare(ordinal, record);
  const list::ManifestEntry& entry = list_.packed_entry(ordinal);
  const auto content = record.first(static_cast<std::size_t>(entry.size));
  const auto root = record.subspan(content.size());
  const Digest own = list::record_root(commit_.destination().options().digest_kind, content);
  if (std::memcmp(own.data(), root.data(), root.size()) != 0)
    return failed(ordinal, FileFailure::root_mismatch, 0);
  add_leaf(ordinal, own, own);
  if (entry.is_folder()) return end_file(ordinal, Fd{});
  if (entry.is_symlink()) return end_symlink(ordinal, content);
  const Fd file = commit_.stage().create(list_.packed_file(ordinal), entry.mode & 0777);
  if (!file.is_open()) return failed(ordinal, FileFailure::write_error, errno);
  list_.count_made(list_.pack().entries()[ordinal]);
  // Zeros need no room on the disk.
  const bool is_hole = content.size() >= disk::hole_bytes_min && disk::is_all_zero(content);
  const int errno_value =
      is_hole ? (::ftruncate(file.get(), static_cast<off_t>(content.size())) == 0 ? 0 : errno)
              : disk::write_at(file.get(), content, 0);
  if (errno_value != 0) return failed(ordinal, FileFailure::write_error, errno_value);
  return end_file(ordinal, file);
}

MaybeFailure PackSink::take_half(std::uint32_t ordinal, const list::PackPlace& place,
                                 std::uint64_t from, std::span<const std::byte> bytes) {
  PackHalf& half = commit_.halves()[list_.packed_file(ordinal)];
  if (commit_.halves().size() > halves_max) return failed(ordinal, FileFailure::protocol, 0);
  half.record.resize(static_cast<std::size_t>(place.end - place.begin));
  std::memcpy(half.record.data() + (from - place.begin), bytes.data(), bytes.size());
  half.bytes += bytes.size();
  if (half.bytes < half.record.size()) return std::nullopt;
  const std::vector<std::byte> record = std::move(half.record);
  commit_.halves().erase(list_.packed_file(ordinal));
  return take_whole(ordinal, record);
}

/// An honest sender leaves out a link that leads out of what it sends.
MaybeFailure PackSink::end_symlink(std::uint32_t ordinal, std::span<const std::byte> target) {
  const list::ManifestEntry& entry = list_.packed_entry(ordinal);
  const std::string text{reinterpret_cast<const char*>(target.data()), target.size()};
  const list::SymlinkFault fault = commit_.destination().symlinks().fault_of(entry.name, text);
  if (fault != list::SymlinkFault::none) {
    ++whole_;
    commit_.add({.list = &list_,
                 .ordinal = ordinal,
                 .outcome = FileOutcome::name_refused,
                 .fault = static_cast<int>(fault)});
    return check_all();
  }
  const Fd link = commit_.stage().create_symlink(list_.packed_file(ordinal), text, entry.mtime_ns);
  if (!link.is_open()) return failed(ordinal, FileFailure::write_error, errno);
  list_.count_made(list_.pack().entries()[ordinal]);
  return end_file(ordinal, link);
}

/// The file is whole and verified: its time, then its place in the batch.
MaybeFailure PackSink::end_file(std::uint32_t ordinal, const Fd& file) {
  const list::ManifestEntry& entry = list_.packed_entry(ordinal);
  const bool is_file = entry.kind == list::EntryKind::file;
  if (is_file && disk::set_mtime(file.get(), entry.mtime_ns) != 0)
    return failed(ordinal, FileFailure::write_error, errno);
  if (file.is_open() && needs_record(list_.policy_of(list_.pack().entries()[ordinal])))
    if (const int errno_value =
            commit_.destination().session().add(list::entry_hash(entry), file.get());
        errno_value != 0)
      return failed(ordinal, FileFailure::write_error, errno_value);
  const bool is_due_now = is_file && !is_readable(entry, commit_.destination().umask_bits());
  if (is_due_now && commit_.destination().is_synced() && ::fsync(file.get()) != 0)
    return failed(ordinal, FileFailure::sync_error, errno);
  ++whole_;
  commit_.add({.list = &list_, .ordinal = ordinal});
  return check_all();
}

/// The tag alone came: the file is there, and this tells whether it is the one that was offered.
MaybeFailure PackSink::compare(std::uint32_t ordinal, std::span<const std::byte> tag) {
  const std::uint32_t entry = list_.pack().entries()[ordinal];
  const Existing& there = list_.existing(entry);
  const auto held = there.blocks.find(0);  // nothing: it could not be read
  Digest told{};
  std::ranges::copy(tag, told.begin());
  const bool is_same = held && held->tag == told;
  if (!is_same && list_.actions()[entry] != list::FileAction::compare)
    return failed(ordinal, FileFailure::differs, 0);
  add_leaf(ordinal, told,
           is_same ? list::record_root(commit_.destination().options().digest_kind,
                                       list_.entry(entry).size, held->digest)
                   : Digest{});
  ++whole_;
  commit_.add({.list = &list_,
               .ordinal = ordinal,
               .outcome = is_same ? FileOutcome::there : FileOutcome::kept,
               .name_number = there.number});
  return check_all();
}

void PackSink::add_leaf(std::uint32_t ordinal, const Digest& leaf, const Digest& root) {
  list_.pack_roots()->set(ordinal, root);
  early_.emplace(ordinal, leaf);
  for (auto next = early_.find(static_cast<std::uint32_t>(tree_.leaves())); next != early_.end();
       next = early_.find(static_cast<std::uint32_t>(tree_.leaves()))) {
    tree_.add(next->second);
    early_.erase(next);
  }
}

MaybeFailure PackSink::on_root(const Digest& root) {
  if (root_ && *root_ != root) return failed(0, FileFailure::protocol, 0);
  root_ = root;
  return check_all();
}

MaybeFailure PackSink::check_all() {
  if (!root_ || whole_ < list_.pack().entries().size()) return std::nullopt;
  is_verified_ = tree_.root() == *root_;
  if (is_verified_) return std::nullopt;
  return failed(0, FileFailure::root_mismatch, 0);
}

}  // namespace onehop::sink
