// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/sink/destination.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fts.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/display_name.hpp"
#include "engine/base/rate_text.hpp"
#include "engine/base/units.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/sink/part_file.hpp"

namespace onehop::sink {

namespace {

/// Sizes are a peer's claims, of any number.
std::uint64_t left_of(Wide free, std::uint64_t taken, std::uint64_t reserve) {
  return static_cast<std::uint64_t>(
      std::max<Wide>(0, free - static_cast<Wide>(taken) - static_cast<Wide>(reserve)));
}

Error too_little(std::string attempt, std::string cause, const std::string& numbers = {}) {
  return {ExitCode::local_file_error, std::move(attempt), std::move(cause),
          numbers +
              "Free some space there, or choose another folder with --dir; recv "
              "--no-space-check does not look at it",
          ENOSPC};
}

/// bytes_below is the room of all that is in a folder and below it: as much of the disk as it has,
/// and a block for each name at least. What cannot be read counts nothing.
std::uint64_t bytes_below(const std::string& folder, std::uint64_t name_bytes) {
  std::string root = folder;
  char* const roots[] = {root.data(), nullptr};
  const std::unique_ptr<FTS, int (*)(FTS*)> walk{
      ::fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, nullptr), &::fts_close};
  std::uint64_t bytes = 0;
  while (const FTSENT* entry = walk ? ::fts_read(walk.get()) : nullptr)
    if (entry->fts_level > 0 && entry->fts_info != FTS_DP && entry->fts_info != FTS_NS)
      bytes += std::max(disk::disk_bytes(*entry->fts_statp), name_bytes);
  return bytes;
}

// Ours: file systems that name their blocks are not believed beyond it.
constexpr std::uint64_t name_bytes_max = std::uint64_t{64} << 10;

std::string text_of(Wide bytes) { return amount_text(static_cast<double>(bytes), "B"); }

}  // namespace

Result<void> check_room(const Room& needed, const Room& taken, const Room& reserve,
                        const struct statvfs& disk) {
  const Wide bytes_free = static_cast<Wide>(disk.f_bavail) * disk.f_frsize;
  const std::uint64_t bytes_left = left_of(bytes_free, taken.bytes, reserve.bytes);
  if (needed.bytes > 0 && needed.bytes > bytes_left)
    return too_little(
        "receive " + text_of(needed.bytes),
        fmt::format(
            "the disk has room for {}: {} are free, of which {} are kept for "
            "other programs{}, and {} are needed",
            text_of(bytes_left), text_of(bytes_free), text_of(reserve.bytes),
            taken.bytes == 0 ? "" : " and " + text_of(taken.bytes) + " for what comes before this",
            text_of(needed.bytes)));
  const std::uint64_t files_left = left_of(disk.f_favail, taken.files, reserve.files);
  if (needed.files > 0 && disk.f_files > 0 && needed.files > files_left)
    return too_little(
        fmt::format("receive {} files and folders", needed.files),
        fmt::format("the disk has inodes for {} of them beside its reserve", files_left),
        fmt::format("{} are free, {} of them are kept for other programs, {} are needed. ",
                    disk.f_favail, reserve.files, needed.files));
  return success();
}

Destination::Destination(DestinationOptions options)
    : options_{std::move(options)}, umask_bits_{disk::read_umask()} {}

Result<std::shared_ptr<Destination>> Destination::open(DestinationOptions options) {
  if (!options.room) options.room = std::make_shared<TakenRoom>();
  if (!options.symlinks) options.symlinks = std::make_shared<list::SymlinkRule>(false);
  std::shared_ptr<Destination> self{new Destination{std::move(options)}};
  if (!self->is_output()) {
    ONEHOP_TRYV(self->open_folder());
  }
  self->opened_.emplace(self->root());
  self->names_.emplace(self->root());
  if (self->is_output()) return self;
  self->session_.adopt(self->root(), self->options_.is_again);
  return self;
}

/// The folder's own path may go through links: the user named it. Nothing below it may.
Result<void> Destination::open_folder() {
  const std::string attempt = "receive into '" + display_name(options_.folder) + "'";
  root_ = Fd{::open(options_.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!root_.is_open())
    return errno_error(ExitCode::local_file_error, attempt, "Choose an existing folder with --dir");
  // A file without a name proves that files can be made here, and leaves nothing behind.
  struct stat status {};
  if (const int errno_value = disk::probe(root_.get(), status); errno_value != 0)
    return errno_error(ExitCode::local_file_error, attempt,
                       "Choose a folder that can be written to", errno_value);
  if (::fstat(root_.get(), &status) == 0) folder_ = {status.st_dev, status.st_ino};
  struct statvfs disk {};
  if (::fstatvfs(root_.get(), &disk) == 0 && disk.f_frsize > 0)
    name_bytes_ = std::min<std::uint64_t>(disk.f_frsize, name_bytes_max);
  return success();
}

Result<void> Destination::take_room(const Room& needed) {
  // Read before the disk is asked: what is used in between counts twice, and never not at all.
  const Room taken = options_.room->take(needed);
  const bool is_nothing = needed.bytes == 0 && needed.files == 0;
  if (is_output() || is_nothing) return success();
  if (const auto within = check_quota(needed); !within) {
    give_room(needed);
    return within;
  }
  if (options_.is_room_unchecked) return success();
  struct statvfs disk {};
  Result<void> checked = success();
  if (::fstatvfs(root_.get(), &disk) == 0)
    checked = check_room(needed, taken, {options_.reserve_bytes, options_.reserve_files}, disk);
  else
    checked = errno_error(ExitCode::local_file_error,
                          "ask for the free space of '" + display_name(options_.folder) + "'",
                          "Receive with --no-space-check where it cannot tell");
  if (!checked) give_room(needed);
  return checked;
}

Destination::~Destination() {
  if (quota_taken_ == 0) return;
  const std::lock_guard lock{options_.room->quota_mutex};
  options_.room->quotas[folder_] -= quota_taken_;
}

/// What a session may add counts until its end, though some of it is there by then: another one
/// that begins meanwhile sees it twice, and never not at all.
Result<void> Destination::check_quota(const Room& needed) {
  if (options_.quota_bytes == 0 || needed.bytes == 0) return success();
  const std::lock_guard lock{options_.room->quota_mutex};
  if (!held_bytes_) held_bytes_ = bytes_below(options_.folder, name_bytes_);
  std::uint64_t& taken = options_.room->quotas[folder_];
  const Wide held = static_cast<Wide>(*held_bytes_) + taken;
  if (held + needed.bytes > options_.quota_bytes)
    return Error{ExitCode::local_file_error, "receive " + text_of(needed.bytes),
                 fmt::format("the quota is {}, and the folder holds {}, with what is on its way",
                             text_of(options_.quota_bytes), text_of(held)),
                 "Remove some of it there, or raise the quota (onehop peers set NAME --quota SIZE)",
                 EDQUOT};
  taken += needed.bytes;
  quota_taken_ += needed.bytes;
  return success();
}

const std::vector<std::string>& Destination::stems_in(int folder, std::string_view path) {
  // Looked at again beyond it. Higher: more memory; lower: folders that alternate are read often.
  constexpr std::size_t folders_max = 4096;
  std::string key{path};
  if (const auto at = stems_.find(key); at != stems_.end()) return at->second;
  if (stems_.size() >= folders_max) stems_.clear();
  return stems_.emplace(std::move(key), list_stems(folder)).first->second;
}

}  // namespace onehop::sink
