// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/sink/pack_commit.hpp"

#include <fcntl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/base/system/cpu.hpp"
#include "engine/base/system/thread.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/entry_fault.hpp"
#include "engine/disk/file_bytes.hpp"

namespace onehop::sink {

namespace {

// Files or folders that are synced each. Above it one syncfs is cheaper, although it also writes
// what others left to be written. Higher: a tree of small files waits for its syncs. Lower: one
// small file waits for everybody's data.
constexpr std::size_t synced_singly_max = 4;

// A batch is due at the first of these. Smaller: more syncs, each a pause of the disk. Larger: a
// power cut loses more, and it is sent again: 64 MiB took no less time on ext4 than 16.
constexpr std::size_t batch_files_max = 4096;
constexpr std::uint64_t batch_bytes_max = std::uint64_t{16} << 20;
constexpr Nanos batch_span = 1s;

// Records of a run. Longer: both ends hold more that is told at once. Shorter: more messages.
constexpr std::uint32_t run_records_max = 256;

/// has_syncfs: syncfs reaches the disk. FUSE does not pass it on (linux fs/fuse/inode.c,
/// fuse_sync_fs), and there each file is synced.
bool has_syncfs(int folder) noexcept {
  constexpr long fuse_magic = 0x65735546;  // linux/magic.h FUSE_SUPER_MAGIC
  struct statfs status {};
  return ::fstatfs(folder, &status) != 0 || status.f_type != fuse_magic;
}

/// is_staged: a file that is to get its name.
bool is_staged(const PackRecord& record) {
  return record.outcome == FileOutcome::received && !record.entry().is_folder();
}

}  // namespace

PackCommit::PackCommit(Destination& destination)
    : destination_{destination},
      has_syncfs_{has_syncfs(destination.root())},
      folders_{destination.root(), O_RDONLY, &destination.opened_folders()} {}

PackCommit::~PackCommit() {
  if (is_under_way_) is_through_.acquire();
  thread_.request_stop();
  has_batch_.release();
}

int PackCommit::open() {
  if (thread_.joinable()) return 0;
  if (const int errno_value = stage_.open(destination_.root()); errno_value != 0)
    return errno_value;
  mode_made_ = stage_.mode_of_new_folder();
  auto started =
      start_thread<std::jthread>("commit", [this](const std::stop_token& stop) { run(stop); });
  if (!started) return started.error().errno_value;
  thread_ = std::move(started).value();
  return 0;
}

void PackCommit::add(const PackRecord& record) {
  batch_.records.push_back(record);
  if (record.outcome == FileOutcome::received) batch_.bytes += record.entry().size;
}

bool PackCommit::is_full() const noexcept {
  return batch_.records.size() >= batch_files_max || batch_.bytes >= batch_bytes_max;
}

MaybeFailure PackCommit::turn(Instant now, bool is_all) {
  collect(false);
  if (failure_) return failure_;
  if (batch_.is_empty()) return std::nullopt;
  if (!batch_.since) batch_.since = now;
  // A file of its own each: what came with one block is a batch.
  const bool is_due = is_full() || is_all || now - *batch_.since >= batch_span ||
                      destination_.options().durability == Durability::file;
  if (!is_due) return std::nullopt;
  // Two batches are all that a power cut may take; then the disk holds the sender back.
  return collect(is_full()) ? hand_over() : std::nullopt;
}

MaybeFailure PackCommit::hand_over() {
  if (failure_) return failure_;
  if (destination_.is_synced() && !batch_.records.empty())
    if (const int errno_value = destination_.session().sync(); errno_value != 0)
      return PackFailure{batch_.records.front().file(), FileFailure::sync_error, errno_value};
  ONEHOP_CHECK(!std::exchange(is_under_way_, true));
  handed_over_ = std::exchange(batch_, {});
  has_batch_.release();
  return std::nullopt;
}

/// Takes what became of the batch that was handed over. False: it is not through.
bool PackCommit::collect(bool is_waiting) {
  if (!is_under_way_) return true;
  if (is_waiting)
    is_through_.acquire();
  else if (!is_through_.try_acquire())
    return false;
  is_under_way_ = false;
  runs_.insert(runs_.end(), done_.runs.begin(), done_.runs.end());
  failure_ = done_.failure;
  return true;
}

MaybeFailure PackCommit::commit_all() {
  collect(true);
  if (!batch_.is_empty())
    if (auto failed = hand_over()) return failed;
  collect(true);
  return failure_;
}

void PackCommit::close() {
  if (!stage_.is_open()) return;
  static_cast<void>(commit_all());  // what failed was told, or ends only the keeping
  stage_.remove();
}

std::optional<PackRun> PackCommit::pop() {
  collect(false);
  if (runs_.empty()) return std::nullopt;
  const PackRun run = runs_.front();
  runs_.pop_front();
  return run;
}

void PackCommit::run(const std::stop_token& stop) {
  name_this_thread("onehop-commit");
  while (true) {
    has_batch_.acquire();
    if (stop.stop_requested()) return;
    done_ = work(handed_over_);
    is_through_.release();
  }
}

/// What got its name before a failure is told all the same, unless its folder may not have it.
PackCommit::Done PackCommit::work(PackBatch& batch) {
  std::ranges::sort(batch.records, {}, &PackRecord::file);
  Done done;
  done.failure = sync_files(batch.records);
  if (done.failure) return done;
  done.failure = name_files(batch.records, done.runs);
  if (!done.failure) done.failure = finish_folders(batch);
  if (auto unsynced = sync_folders(batch)) return {.runs = {}, .failure = unsynced};
  if (!done.failure)
    for (const SinkVolume* const list : batch.finished) done.runs.push_back({.list = list});
  return done;
}

/// Records that got no name are dropped.
MaybeFailure PackCommit::name_files(std::vector<PackRecord>& records, std::vector<PackRun>& runs) {
  for (std::size_t named = 0; named < records.size(); ++named) {
    PackRecord& record = records[named];
    unsigned number = record.name_number;
    const auto failure = name_file(record, number);
    if (failure && !refuse(record, *failure)) {
      records.resize(named);
      return failure;
    }
    if (failure) number = 0;
    const bool is_kept = record.outcome == FileOutcome::kept;
    const bool is_next = !runs.empty() && runs.back().list == record.list &&
                         runs.back().count < run_records_max &&
                         runs.back().first + runs.back().count == record.ordinal &&
                         runs.back().name_number == number && runs.back().is_kept == is_kept &&
                         runs.back().fault == record.fault;
    if (!is_next)
      runs.push_back({.list = record.list,
                      .first = record.ordinal,
                      .count = 0,
                      .name_number = number,
                      .is_kept = is_kept,
                      .fault = record.fault});
    ++runs.back().count;
  }
  return std::nullopt;
}

/// An entry that cannot have its name is left out, where that is no matter of the disk.
bool PackCommit::refuse(PackRecord& record, const PackFailure& failure) const {
  // What lies in the stage was written: it is the disk that has failed since.
  if (failure.failure == FileFailure::sync_error || failure.errno_value == EROFS ||
      !disk::is_entry_fault(failure.errno_value))
    return false;
  if (!record.entry().is_folder())
    ::unlinkat(stage_.fd(), disk::Stage::name_of(record.file()).c_str(), 0);
  record.outcome = FileOutcome::name_refused;
  record.fault = failure.errno_value;
  return true;
}

/// Mode and time of the folders of lists whose files are all in place, the deepest first: one that
/// its owner may not enter would hide those in it.
MaybeFailure PackCommit::finish_folders(const PackBatch& batch) {
  for (const SinkVolume* const list : batch.finished) {
    std::vector<std::uint32_t> folders;
    for (std::uint32_t i = 0; i < list->pack().entries().size(); ++i)
      if (list->packed_entry(i).is_folder()) folders.push_back(i);
    std::ranges::stable_sort(folders, std::ranges::greater{}, [&](std::uint32_t ordinal) {
      return std::ranges::count(list->packed_entry(ordinal).name, '/');
    });
    for (const std::uint32_t ordinal : folders)
      if (auto failure = finish_folder({.list = list, .ordinal = ordinal})) return failure;
  }
  return std::nullopt;
}

/// A folder that somebody gave another mode than mkdirat does keeps that, and each one the bit by
/// which what is made in it belongs to its group. One of another user keeps its time as well. One
/// that a killed session has opened up has the owner's rights beside those that it is to have.
MaybeFailure PackCommit::finish_folder(const PackRecord& record) {
  const list::ManifestEntry& entry = record.entry();
  const mode_t mode_max = 0777 & ~destination_.umask_bits();
  const int folder = folders_.open(entry.name, true);
  struct stat status {};
  if (folder < 0 && disk::is_entry_fault(errno)) return std::nullopt;  // it was left out
  if (folder < 0 || ::fstat(folder, &status) != 0)
    return PackFailure{record.file(), FileFailure::write_error, errno};
  const mode_t mode = entry.mode & mode_max, special = status.st_mode & 07000;
  const mode_t had = destination_.opened_folders().take(entry.name).value_or(status.st_mode) & 0777;
  const bool is_as_made = had == mode_made_ || had == (mode | S_IRWXU);
  const mode_t wanted = special | (is_as_made ? mode : had);
  if (((status.st_mode & 07777) != wanted && disk::set_mode(folder, wanted) != 0) ||
      disk::set_mtime(folder, entry.mtime_ns) != 0) {
    if (disk::is_entry_fault(errno)) return std::nullopt;  // on a disk that is read only, say
    return PackFailure{record.file(), FileFailure::write_error, errno};
  }
  if (destination_.is_synced() && !has_syncfs_ && disk::sync_folder(folder) != 0)
    return PackFailure{record.file(), FileFailure::sync_error, errno};
  return std::nullopt;
}

MaybeFailure PackCommit::sync_all(std::uint32_t file) const {
  if (::syncfs(destination_.root()) == 0) return std::nullopt;
  return PackFailure{file, FileFailure::sync_error, errno};
}

MaybeFailure PackCommit::sync_files(const std::vector<PackRecord>& records) {
  if (!destination_.is_synced()) return std::nullopt;
  const bool is_each = destination_.options().durability == Durability::file;
  const bool are_many = !is_each && std::ranges::count_if(records, is_staged) >
                                        static_cast<std::ptrdiff_t>(synced_singly_max);
  // A link has no descriptor that could be synced.
  const bool has_symlink = std::ranges::any_of(records, [](const PackRecord& record) {
    return is_staged(record) && record.entry().is_symlink();
  });
  if (has_syncfs_ && (are_many || has_symlink)) return sync_all(records.front().file());
  for (const PackRecord& record : records) {
    const list::ManifestEntry& entry = record.entry();
    if (!is_staged(record) || entry.is_symlink() || !is_readable(entry, destination_.umask_bits()))
      continue;
    const Fd file = disk::open_beneath(stage_.fd(), disk::Stage::name_of(record.file()), O_RDONLY);
    if (!file.is_open() || ::fsync(file.get()) != 0)
      return PackFailure{record.file(), FileFailure::sync_error, errno};
  }
  // What these files are known by to the next session, before they have their names.
  if (const int errno_value = destination_.session().sync(); errno_value != 0)
    return PackFailure{records.front().file(), FileFailure::sync_error, errno_value};
  return std::nullopt;
}

MaybeFailure PackCommit::name_file(PackRecord& record, unsigned& number) {
  if (record.outcome == FileOutcome::there) bring_over(record);
  if (record.outcome != FileOutcome::received) return std::nullopt;
  const list::ManifestEntry& entry = record.entry();
  if (entry.is_symlink()) return name_symlink(record, number);
  const int folder = folders_.open(
      entry.is_folder() ? std::string_view{entry.name} : disk::parent_of(entry.name), true);
  const int errno_value = errno;
  // One that is there is, also where nobody lets us in.
  if (entry.is_folder() &&
      (folder >= 0 ||
       disk::open_beneath(destination_.root(), entry.name, O_PATH | O_DIRECTORY).is_open()))
    return std::nullopt;
  if (folder < 0) return PackFailure{record.file(), FileFailure::write_error, errno_value};
  return give_staged_name(record, folder, number);
}

void PackCommit::bring_over(const PackRecord& record) {
  if (!record.list->existing(record.index()).other) return;
  const int folder = folders_.open(disk::parent_of(record.entry().name), false);
  if (folder >= 0) record.list->bring_over(record.index(), folder);
}

MaybeFailure PackCommit::give_staged_name(const PackRecord& record, int folder, unsigned& number) {
  const std::string staged = disk::Stage::name_of(record.file()),
                    leaf{disk::leaf_of(record.entry().name)};
  const OnExist policy = record.list->policy_of(record.index());
  const int errno_value = destination_.opened_folders().use_in(
      disk::parent_of(record.entry().name),
      [&] { return give_name(stage_.fd(), staged, folder, leaf, policy, number); });
  if (errno_value == 0) return std::nullopt;
  // Another receiver brings the same, say.
  if (errno_value == EEXIST && is_same_content(stage_.fd(), staged, folder, leaf)) {
    ::unlinkat(stage_.fd(), staged.c_str(), 0);
    number = 0;
    return std::nullopt;
  }
  return PackFailure{record.file(),
                     errno_value == EEXIST ? FileFailure::exists : FileFailure::rename_error,
                     errno_value};
}

/// A link that is refused is removed, and its record says so.
MaybeFailure PackCommit::name_symlink(PackRecord& record, unsigned& number) {
  const list::ManifestEntry& entry = record.entry();
  const std::string staged = disk::Stage::name_of(record.file());
  std::string target(list::target_bytes_max + 1, '\0');
  const ssize_t bytes = ::readlinkat(stage_.fd(), staged.c_str(), target.data(), target.size());
  if (bytes < 0) return PackFailure{record.file(), FileFailure::write_error, errno};
  target.resize(static_cast<std::size_t>(bytes));
  const auto is_refused = [&](int folder, const std::string& leaf, const std::string& name) {
    const list::SymlinkFault fault =
        destination_.symlinks().check(destination_.root(), name, target);
    if (fault == list::SymlinkFault::none) return false;
    ::unlinkat(folder, leaf.c_str(), 0);
    record.outcome = FileOutcome::name_refused;
    record.fault = static_cast<int>(fault);
    number = 0;
    return true;
  };
  if (is_refused(stage_.fd(), staged, entry.name)) return std::nullopt;
  const int folder = folders_.open(disk::parent_of(entry.name), true);
  if (folder < 0) return PackFailure{record.file(), FileFailure::write_error, errno};
  if (auto failure = give_staged_name(record, folder, number)) return failure;
  // Which number a name gets shows only here, and other links may lead through that name.
  if (number != 0)
    static_cast<void>(
        is_refused(folder, list::numbered_leaf(std::string{disk::leaf_of(entry.name)}, number),
                   list::final_name(entry.name, number)));
  return std::nullopt;
}

/// The folders of the batch and all above them, for some of those may be new; and those that are
/// finished, each synced already where syncfs does not do it.
MaybeFailure PackCommit::sync_folders(const PackBatch& batch) {
  if (!destination_.is_synced()) return std::nullopt;
  if (has_syncfs_ && !batch.finished.empty()) return sync_all(batch.finished.front()->first_file());
  const std::vector<PackRecord>& records = batch.records;
  std::set<std::string_view> paths;
  for (const PackRecord& record : records) {
    if (record.outcome != FileOutcome::received) continue;
    std::string_view path = disk::parent_of(record.entry().name);
    while (paths.insert(path).second && !path.empty()) path = disk::parent_of(path);
    if (has_syncfs_ && paths.size() > synced_singly_max) return sync_all(records.front().file());
  }
  for (const std::string_view path : paths) {
    const int folder = folders_.open(path, false);
    if (folder < 0 || disk::sync_folder(folder) != 0)
      return PackFailure{records.front().file(), FileFailure::sync_error, errno};
  }
  return std::nullopt;
}

}  // namespace onehop::sink
