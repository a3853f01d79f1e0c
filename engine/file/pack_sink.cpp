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

namespace {
// A batch is due at the first of these. Smaller: more syncs, each a pause of the disk. Larger: a
// power cut loses more, and it is sent again.
constexpr std::size_t batch_files_max = 4096;
constexpr std::uint64_t batch_bytes_max = std::uint64_t{64} << 20;
constexpr Nanos batch_span = 1s;
}  // namespace

PackSink::PackSink(const Manifest& manifest, Pack pack, PackOptions options)
    : manifest_{manifest},
      pack_{std::move(pack)},
      options_{std::move(options)},
      commit_{manifest_, pack_, options_, stage_},
      scratch_(packed_bytes_max),
      tree_{options_.digest_kind} {}

std::optional<PackFailure> PackSink::open_stage() {
  if (has_started_) return std::nullopt;
  has_started_ = true;
  if (const int errno_value = stage_.open(options_.root); errno_value != 0)
    return failed(0, FileFailure::write_error, errno_value);
  if (const auto started = commit_.start(); !started)
    return failed(0, FileFailure::write_error, started.error().errno_value);
  return std::nullopt;
}

std::optional<PackFailure> PackSink::take(Instant now, const BlockRef& block) {
  if (auto failure = open_stage()) return failure;
  if (batch_.empty()) batch_at_ = now;
  const std::uint64_t index = block.offset / block_bytes, end = block.offset + block.length;
  std::uint32_t ordinal = pack_.first_of(index);
  PackPlace place = pack_.place_of_first(manifest_, index);
  while (true) {
    const std::uint64_t from = std::max(place.offset, block.offset);
    const std::uint64_t to = std::min(place.end(), end);
    const std::span bytes{block.data + (from - block.offset), static_cast<std::size_t>(to - from)};
    const bool is_whole = bytes.size() == place.end() - place.offset;
    if (auto failure =
            is_whole ? take_whole(ordinal, bytes) : take_half(ordinal, place, from, bytes))
      return failure;
    if (place.end() >= end) break;
    place = pack_.next(manifest_, ordinal++, place);
  }
  return std::nullopt;
}

std::optional<PackFailure> PackSink::check(std::uint32_t ordinal,
                                           std::span<const std::byte> content,
                                           std::span<const std::byte> root) {
  const Digest own = record_root(options_.digest_kind, content);
  if (std::memcmp(own.data(), root.data(), root.size()) != 0)
    return failed(ordinal, FileFailure::root_mismatch, 0);
  add_leaf(ordinal, own);
  return std::nullopt;
}

std::optional<PackFailure> PackSink::take_whole(std::uint32_t ordinal,
                                                std::span<const std::byte> record) {
  const ManifestEntry& entry = entry_of(ordinal);
  const auto content = record.first(static_cast<std::size_t>(entry.size));
  if (auto failure = check(ordinal, content, record.subspan(content.size()))) return failure;
  if (entry.is_folder) return end_file(ordinal, Fd{});
  const Fd file = stage_.create(ordinal, entry.mode & 0777);
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
  const ManifestEntry& entry = entry_of(ordinal);
  Half& half = halves_[ordinal];
  if (half.bytes == 0 && !entry.is_folder) {
    half.file = stage_.create(ordinal, entry.mode & 0777);
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
  const std::span whole{scratch_.data(), place.size};
  if (place.size > 0 && read_at(half.file.get(), whole, 0) != static_cast<std::int64_t>(place.size))
    return failed(ordinal, FileFailure::write_error, EIO);
  if (auto failure = check(ordinal, whole, std::span{half.root}.first(place.digest_bytes)))
    return failure;
  const Fd file = std::move(half.file);
  halves_.erase(ordinal);
  return end_file(ordinal, file);
}

/// The file is whole and verified: its time, then its place in the batch.
std::optional<PackFailure> PackSink::end_file(std::uint32_t ordinal, const Fd& file) {
  const ManifestEntry& entry = entry_of(ordinal);
  if (file.is_open() && set_mtime(file.get(), entry.mtime_ns) != 0)
    return failed(ordinal, FileFailure::write_error, errno);
  const std::uint32_t index = pack_.entries()[ordinal];
  if (file.is_open() && options_.policy(index) == OnExist::rename)
    if (const int errno_value = options_.mark(index, file.get()); errno_value != 0)
      return failed(ordinal, FileFailure::write_error, errno_value);
  const bool is_due_now = file.is_open() && !is_readable(entry);
  if (is_due_now && options_.durability != Durability::none && ::fsync(file.get()) != 0)
    return failed(ordinal, FileFailure::sync_error, errno);
  batch_.push_back(ordinal);
  batch_bytes_ += entry.size;
  ++whole_;
  return whole_ == pack_.entries().size() ? check_all() : std::nullopt;
}

void PackSink::add_leaf(std::uint32_t ordinal, const Digest& root) {
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
  if (!root_ || whole_ < pack_.entries().size() || tree_.root() == *root_) return std::nullopt;
  return failed(0, FileFailure::root_mismatch, 0);
}

bool PackSink::is_full() const noexcept {
  return batch_.size() >= batch_files_max || batch_bytes_ >= batch_bytes_max;
}

std::optional<PackFailure> PackSink::turn(Instant now) {
  if (auto failure = commit_.failure()) return failure;
  if (batch_.empty()) return std::nullopt;
  // A file of its own each: what came with one block is a batch.
  const bool is_due = is_full() || now - batch_at_ >= batch_span ||
                      options_.durability == Durability::file || whole_ == pack_.entries().size();
  if (!is_due) return std::nullopt;
  // Two batches are all that a power cut may take; then the disk holds the sender back.
  if (is_full()) commit_.wait_idle();
  return commit_.is_idle() ? hand_over() : std::nullopt;
}

std::optional<PackFailure> PackSink::hand_over() {
  if (options_.durability != Durability::none)
    if (const int errno_value = options_.sync_marks(); errno_value != 0)
      return failed(batch_.front(), FileFailure::sync_error, errno_value);
  commit_.commit(std::exchange(batch_, {}));
  batch_bytes_ = 0;
  return std::nullopt;
}

std::optional<PackFailure> PackSink::commit_all() {
  commit_.wait_idle();
  if (!batch_.empty())
    if (auto failure = hand_over()) return failure;
  commit_.wait_idle();
  return commit_.failure();
}

void PackSink::close() {
  if (!stage_.is_open()) return;
  static_cast<void>(commit_all());  // what failed was told, or ends only the keeping
  halves_.clear();
  stage_.remove();
}

}  // namespace onehop::file
