// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/pack_commit.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "engine/base/check.hpp"
#include "engine/base/cpu.hpp"
#include "engine/base/thread.hpp"
#include "engine/file/confined.hpp"
#include "engine/file/file_bytes.hpp"

namespace onehop::file {

namespace {

// Files or folders that are synced each. Above it one syncfs is cheaper, although it also writes
// what others left to be written. Higher: a tree of small files waits for its syncs. Lower: one
// small file waits for everybody's data.
constexpr std::size_t synced_singly_max = 4;

/// has_syncfs: syncfs reaches the disk. FUSE does not pass it on (linux fs/fuse/inode.c,
/// fuse_sync_fs), and there each file is synced.
bool has_syncfs(int folder) noexcept {
  constexpr long fuse_magic = 0x65735546;  // linux/magic.h FUSE_SUPER_MAGIC
  struct statfs status {};
  return ::fstatfs(folder, &status) != 0 || status.f_type != fuse_magic;
}

}  // namespace

PackCommit::PackCommit(const Manifest& manifest, const Pack& pack, const PackOptions& options,
                       const Stage& stage)
    : manifest_{manifest},
      pack_{pack},
      options_{options},
      stage_{stage},
      folders_{options.root},
      has_syncfs_{has_syncfs(options.root)} {}

PackCommit::~PackCommit() {
  {
    const std::lock_guard lock{mutex_};
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<void> PackCommit::start() {
  auto started = start_thread("commit", [this] { run(); });
  ONEHOP_TRYV(started);
  thread_ = std::move(started).value();
  return success();
}

bool PackCommit::is_idle() {
  const std::lock_guard lock{mutex_};
  return !has_batch_;
}

void PackCommit::wait_idle() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return !has_batch_; });
}

void PackCommit::commit(std::vector<std::uint32_t> ordinals) {
  const std::lock_guard lock{mutex_};
  ONEHOP_CHECK(!has_batch_);
  batch_ = std::move(ordinals);
  has_batch_ = true;
  changed_.notify_all();
}

std::optional<PackRun> PackCommit::pop() {
  const std::lock_guard lock{mutex_};
  if (runs_.empty()) return std::nullopt;
  const PackRun run = runs_.front();
  runs_.pop_front();
  return run;
}

std::optional<PackFailure> PackCommit::failure() {
  const std::lock_guard lock{mutex_};
  return failure_;
}

void PackCommit::run() {
  name_this_thread("onehop-commit");
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [this] { return has_batch_ || is_stopping_; });
    if (!has_batch_) return;
    std::vector<std::uint32_t> ordinals = std::move(batch_);
    const bool is_wanted = !failure_;
    std::vector<PackRun> runs;
    std::optional<PackFailure> failure;
    lock.unlock();
    if (is_wanted) failure = work(ordinals, runs);
    lock.lock();
    runs_.insert(runs_.end(), runs.begin(), runs.end());
    if (failure) failure_ = failure;
    has_batch_ = false;
    changed_.notify_all();
  }
}

/// What got its name before a failure is told all the same, unless its folder may not have it.
std::optional<PackFailure> PackCommit::work(std::vector<std::uint32_t>& ordinals,
                                            std::vector<PackRun>& runs) {
  std::ranges::sort(ordinals);
  if (auto failure = sync_files(ordinals)) return failure;
  std::optional<PackFailure> failure;
  for (std::size_t named = 0; named < ordinals.size(); ++named) {
    unsigned number = 0;
    const std::uint32_t ordinal = ordinals[named];
    if ((failure = name_file(ordinal, number))) {
      ordinals.resize(named);
      break;
    }
    const bool is_next = !runs.empty() && runs.back().first + runs.back().count == ordinal &&
                         runs.back().name_number == number;
    if (!is_next) runs.push_back({.first = ordinal, .count = 0, .name_number = number});
    ++runs.back().count;
  }
  if (auto unsynced = sync_folders(ordinals)) {
    runs.clear();
    return unsynced;
  }
  return failure;
}

std::optional<PackFailure> PackCommit::sync_all(std::uint32_t ordinal) const {
  if (::syncfs(options_.root) == 0) return std::nullopt;
  return failed(ordinal, FileFailure::sync_error, errno);
}

std::optional<PackFailure> PackCommit::sync_files(const std::vector<std::uint32_t>& ordinals) {
  if (options_.durability == Durability::none || ordinals.empty()) return std::nullopt;
  const bool is_each = options_.durability == Durability::file;
  if (has_syncfs_ && !is_each && ordinals.size() > synced_singly_max)
    return sync_all(ordinals.front());
  for (const std::uint32_t ordinal : ordinals) {
    if (entry_of(ordinal).is_folder || !is_readable(entry_of(ordinal))) continue;
    const Fd file = open_beneath(stage_.fd(), Stage::name_of(ordinal), O_RDONLY);
    if (!file.is_open() || ::fsync(file.get()) != 0)
      return failed(ordinal, FileFailure::sync_error, errno);
  }
  return std::nullopt;
}

std::optional<PackFailure> PackCommit::name_file(std::uint32_t ordinal, unsigned& number) {
  const ManifestEntry& entry = entry_of(ordinal);
  const int folder =
      folders_.open(entry.is_folder ? std::string_view{entry.name} : parent_of(entry.name), true);
  if (folder < 0) return failed(ordinal, FileFailure::write_error, errno);
  if (entry.is_folder) return std::nullopt;
  const int errno_value =
      give_name(stage_.fd(), Stage::name_of(ordinal), folder, std::string{leaf_of(entry.name)},
                options_.policy(pack_.entries()[ordinal]), number);
  if (errno_value == 0) return std::nullopt;
  return failed(ordinal, errno_value == EEXIST ? FileFailure::exists : FileFailure::rename_error,
                errno_value);
}

/// The folders of the batch and all above them: some of those may be new.
std::optional<PackFailure> PackCommit::sync_folders(const std::vector<std::uint32_t>& ordinals) {
  if (options_.durability == Durability::none || ordinals.empty()) return std::nullopt;
  std::set<std::string_view> paths;
  for (const std::uint32_t ordinal : ordinals) {
    std::string_view path = parent_of(entry_of(ordinal).name);
    while (paths.insert(path).second && !path.empty()) path = parent_of(path);
    if (has_syncfs_ && paths.size() > synced_singly_max) return sync_all(ordinals.front());
  }
  for (const std::string_view path : paths) {
    const int folder = folders_.open(path, false);
    if (folder < 0 || ::fsync(folder) != 0)
      return failed(ordinals.front(), FileFailure::sync_error, errno);
  }
  return std::nullopt;
}

std::optional<PackFailure> PackCommit::finish_folders() {
  wait_idle();
  const bool is_synced = options_.durability != Durability::none;
  bool has_any = false;
  // A folder comes after those in it, so its mode cannot bar the way to them.
  for (std::uint32_t ordinal = 0; ordinal < pack_.entries().size(); ++ordinal) {
    const ManifestEntry& entry = entry_of(ordinal);
    if (!entry.is_folder) continue;
    has_any = true;
    const int folder = folders_.open(entry.name, true);
    if (folder < 0 || ::fchmod(folder, entry.mode & 0777 & ~options_.umask_bits) != 0 ||
        set_mtime(folder, entry.mtime_ns) != 0)
      return failed(ordinal, FileFailure::write_error, errno);
    if (is_synced && !has_syncfs_ && ::fsync(folder) != 0)
      return failed(ordinal, FileFailure::sync_error, errno);
  }
  return has_any && is_synced && has_syncfs_ ? sync_all(0) : std::nullopt;
}

}  // namespace onehop::file
