// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/pack_commit.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/check.hpp"
#include "engine/base/cpu.hpp"
#include "engine/base/thread.hpp"
#include "engine/file/confined.hpp"
#include "engine/file/file_bytes.hpp"

namespace onehop::file {

namespace {
// Files or folders of a batch that are synced each. Above it one syncfs is cheaper, although it
// writes what others left to be written, too: by 13 times at 100 files, and dearer by 2 at one
// (measured by others on ext4 and XFS).
constexpr std::size_t files_synced_singly_max = 4;
}  // namespace

PackCommit::PackCommit(const Manifest& manifest, const Pack& pack, const PackOptions& options,
                       const Stage& stage)
    : manifest_{manifest}, pack_{pack}, options_{options}, stage_{stage}, folders_{options.root} {}

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
  const std::size_t made_before = folders_.made_total();
  std::optional<PackFailure> failure;
  std::size_t named = 0;
  for (; named < ordinals.size() && !failure; ++named) {
    unsigned number = 0;
    const std::uint32_t ordinal = ordinals[named];
    if ((failure = name_file(ordinal, number))) break;
    const bool is_next = !runs.empty() && runs.back().first + runs.back().count == ordinal &&
                         runs.back().name_number == number;
    if (!is_next) runs.push_back({.first = ordinal, .count = 0, .name_number = number});
    ++runs.back().count;
  }
  ordinals.resize(named);
  if (auto unsynced = sync_folders(ordinals, folders_.made_total() > made_before)) {
    runs.clear();
    return unsynced;
  }
  return failure;
}

std::optional<PackFailure> PackCommit::sync_files(const std::vector<std::uint32_t>& ordinals) {
  if (options_.durability == Durability::none || ordinals.empty()) return std::nullopt;
  if (ordinals.size() > files_synced_singly_max && options_.durability != Durability::file) {
    if (::syncfs(stage_.fd()) == 0) return std::nullopt;
    return failed(ordinals.front(), FileFailure::sync_error, errno);
  }
  for (const std::uint32_t ordinal : ordinals) {
    if (entry_of(ordinal).is_folder) continue;
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
  const std::string staged = Stage::name_of(ordinal), leaf{leaf_of(entry.name)};
  const OnExist policy = options_.policy(pack_.entries()[ordinal]);
  int errno_value = 0;
  if (policy == OnExist::overwrite) {
    struct stat status {};
    const bool is_there = ::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && !S_ISREG(status.st_mode)) return failed(ordinal, FileFailure::exists, EEXIST);
    if (::renameat(stage_.fd(), staged.c_str(), folder, leaf.c_str()) != 0) errno_value = errno;
  } else {
    errno_value = rename_new(stage_.fd(), staged, folder, leaf);
    const unsigned last = policy == OnExist::rename ? name_number_max : 0;
    for (number = 1; errno_value == EEXIST && number < last;)
      errno_value = rename_new(stage_.fd(), staged, folder, numbered_leaf(leaf, ++number));
    if (number == 1) number = 0;
  }
  if (errno_value == 0) return std::nullopt;
  return failed(ordinal, errno_value == EEXIST ? FileFailure::exists : FileFailure::rename_error,
                errno_value);
}

std::optional<PackFailure> PackCommit::sync_folders(const std::vector<std::uint32_t>& ordinals,
                                                    bool has_made) {
  if (options_.durability == Durability::none || ordinals.empty()) return std::nullopt;
  std::vector<std::string_view> paths;
  for (const std::uint32_t ordinal : ordinals) {
    const ManifestEntry& entry = entry_of(ordinal);
    const std::string_view path = parent_of(entry.name);
    if (paths.size() <= files_synced_singly_max && std::ranges::find(paths, path) == paths.end())
      paths.push_back(path);
  }
  if (has_made || paths.size() > files_synced_singly_max) {
    if (::syncfs(options_.root) == 0) return std::nullopt;
    return failed(ordinals.front(), FileFailure::sync_error, errno);
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
  bool has_any = false;
  for (std::size_t i = pack_.entries().size(); i-- > 0;) {
    const auto ordinal = static_cast<std::uint32_t>(i);
    const ManifestEntry& entry = entry_of(ordinal);
    if (!entry.is_folder) continue;
    has_any = true;
    const int folder = folders_.open(entry.name, true);
    if (folder < 0 || ::fchmod(folder, entry.mode & 0777 & ~options_.umask_bits) != 0 ||
        set_mtime(folder, entry.mtime_ns) != 0)
      return failed(ordinal, FileFailure::write_error, errno);
  }
  if (has_any && options_.durability != Durability::none && ::syncfs(options_.root) != 0)
    return failed(0, FileFailure::sync_error, errno);
  return std::nullopt;
}

}  // namespace onehop::file
