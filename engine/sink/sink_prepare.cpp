// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SinkVolume::prepare(): what can be refused is refused here, before the peer is told "accepted".
//
//   1 the manifest is valid and the one that was approved
//   2 names that the file system cannot hold, as a NameProbe found them before; they are no part
//     of what follows
//   3 existing final names, by policy; parts of earlier sessions are offered. Nothing is read of a
//     name that somebody has to be asked about. An entry that what is there bars is
//     left out, as is all below it
//   4 the rest fits on the disk
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "engine/base/check.hpp"
#include "engine/base/display_name.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/entry_fault.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/sink/sink_volume.hpp"

namespace onehop::sink {

namespace {

// File systems keep times in steps of up to two seconds (FAT).
constexpr std::int64_t mtime_slack_s = 2;

/// is_kind: what has the name is of the entry's kind, and may give way to it.
bool is_kind(const list::ManifestEntry& entry, const struct stat& status) noexcept {
  return entry.is_symlink() ? S_ISLNK(status.st_mode) : S_ISREG(status.st_mode);
}

/// kind_fault is what another kind says as the fault of an entry.
int kind_fault(const list::ManifestEntry& entry, const struct stat& status) noexcept {
  if (S_ISLNK(status.st_mode)) return entry.is_symlink() ? 0 : ELOOP;
  if (entry.is_folder()) return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
  return S_ISDIR(status.st_mode) ? EISDIR : EEXIST;
}

bool is_kind_and_size(const list::ManifestEntry& entry, const struct stat& status) noexcept {
  return is_kind(entry, status) && static_cast<std::uint64_t>(status.st_size) == entry.size;
}

std::string_view other_kind(const list::ManifestEntry& entry) noexcept {
  return entry.is_symlink()  ? "that name exists and is not a symbolic link"
         : entry.is_folder() ? "something else has the folder's name"
                             : "that name exists and is not a regular file";
}

}  // namespace

SinkVolume::SinkVolume(std::shared_ptr<Destination> destination,
                       std::shared_ptr<const list::Volume> volume, SinkVolumeOptions options)
    : destination_{std::move(destination)},
      volume_{std::move(volume)},
      options_{std::move(options)},
      has_pack_{list::has_pack(manifest())},
      actions_(manifest().files.size(), list::FileAction::send),
      places_{*destination_},
      needs_inode_(manifest().files.size(), true) {
  ONEHOP_CHECK(options_.on_exist_of.empty() ||
               options_.on_exist_of.size() == manifest().files.size());
  ONEHOP_CHECK(options_.name_faults.empty() ||
               options_.name_faults.size() == manifest().files.size());
}

Result<std::unique_ptr<SinkVolume>> SinkVolume::prepare(std::shared_ptr<Destination> destination,
                                                        std::shared_ptr<const list::Volume> volume,
                                                        SinkVolumeOptions options) {
  const list::Manifest& manifest = *volume->manifest;
  if (!manifest.files.empty()) {
    ONEHOP_TRYV(list::validate(manifest, destination->options().limits));
  }
  if (list::manifest_hash(manifest) != volume->manifest_hash)
    return Error{ExitCode::local_file_error, "receive the files",
                 "the list is not the one that was approved", "Nothing was written"};
  if (destination->names().is_folding()) destination->symlinks().set_folding();
  destination->symlinks().offer(manifest);
  std::unique_ptr<SinkVolume> self{
      new SinkVolume{std::move(destination), std::move(volume), std::move(options)}};
  ONEHOP_TRYV(self->check_stream());
  if (!self->is_stream_) {
    const DestinationOptions& session = self->destination_->options();
    self->reader_.emplace(session.digest_kind, session.compare_key, session.direct_io,
                          self->options_.withdrawn);
    ONEHOP_TRYV(self->check_existing());
    for (const std::uint32_t entry : self->places_.drop_ways(manifest, self->actions_))
      self->refuse(entry, ENOTDIR);
  }
  self->reader_.reset();
  self->places_.close_folders();
  ONEHOP_TRYV(self->take_room());
  self->make_pack();
  return self;
}

/// What is small goes in shared blocks, as the sender works out for itself from our answer.
void SinkVolume::make_pack() {
  for (std::uint32_t entry = 0; entry < entries(); ++entry) {
    const bool has_some =
        !held_of(entry).empty() || (existing(entry).is_expected && !has_part(entry));
    if (has_some && actions_[entry] == list::FileAction::send)
      actions_[entry] = list::FileAction::resume;
  }
  pack_ = std::make_shared<const list::Pack>(
      list::Pack::make(manifest(), destination_->options().digest_kind, actions_));
  pack_roots_ = std::make_shared<list::PackRoots>(pack_->entries().size());
}

list::Answer SinkVolume::answer() const {
  list::Answer answer{.actions = actions_, .pack_roots = pack_roots_, .pack = pack_};
  for (std::uint32_t i = 0; i < entries(); ++i) {
    if (actions_[i] == list::FileAction::name_refused)
      answer.name_faults.push_back(static_cast<std::uint8_t>(name_fault(i)));
    if (actions_[i] != list::FileAction::resume) continue;
    answer.held.resize(entries());
    answer.held[i] = held_of(i);
  }
  return answer;
}

/// Whoever offers names could ask with them what is here. Nobody has agreed to tell yet.
Error SinkVolume::of_destination(std::uint32_t entry, Error why) const {
  if (options_.is_unsaid != nullptr && policy_of(entry) == OnExist::ask) *options_.is_unsaid = true;
  return why;
}

/// A conflict of kind has an answer without a question, and is asked about beside the others alone.
Result<void> SinkVolume::check_existing() {
  std::optional<Error> first;
  const std::size_t listed = options_.conflicts == nullptr ? 0 : options_.conflicts->size();
  for (std::uint32_t entry = 0; entry < entries(); ++entry) {
    conflicts_.is_of_kind = false;
    Result<void> checked = check_existing_name(entry);
    if (options_.withdrawn.stop_requested())
      return Error{ExitCode::interrupted, "look for what is there already",
                   "nobody waits for it any more"};  // some blocks of this file may not be hashed
    if (checked) continue;
    const int fault = checked.error().errno_value;
    const bool is_conflict = fault == EEXIST && !conflicts_.is_of_kind;
    if (!is_conflict && disk::is_entry_fault(fault)) {
      refuse(entry, fault);
      continue;
    }
    Error why = of_destination(entry, std::move(checked).error());
    if (!is_conflict) return why;
    if (!first) first = std::move(why);
  }
  if (!first) {
    if (options_.conflicts != nullptr) options_.conflicts->resize(listed);
    return success();
  }
  if (conflicts_.total > 1)
    first->cause += ", as do " + std::to_string(conflicts_.total - 1) + " more";
  return std::move(*first);
}

void SinkVolume::refuse(std::uint32_t entry, int fault) {
  options_.name_faults.resize(entries());
  options_.name_faults[entry] = fault;
  actions_[entry] = list::FileAction::name_refused;
  existing_.erase(entry);  // a part of it may be taken another time
}

Result<void> SinkVolume::check_existing_name(std::uint32_t entry) {
  const list::ManifestEntry& file = manifest().files[entry];
  if (const int fault = name_fault(entry); fault != 0) {
    actions_[entry] =
        fault == EEXIST ? list::FileAction::name_taken : list::FileAction::name_refused;
    return success();
  }
  // The journals that know an entry of this session are removed when it is done.
  if (!destination_->session().is_empty())
    static_cast<void>(destination_->session().is_known(list::entry_hash(file)));
  ONEHOP_TRY(found, places_.folder_of(file.name, may_replace(entry)));
  const bool is_staged = !file.is_folder() && !has_part(entry);
  // Below a folder that is not there is nothing.
  if (!found) return places_.check(file.name, is_staged);
  const int folder = *found;
  const std::string leaf{disk::leaf_of(file.name)};
  // One look at a folder is all that files cost of which nothing was left.
  if (const PartStems& stems = destination_->stems_in(folder, disk::parent_of(file.name));
      !stems.empty() && !file.is_folder())
    if (PartStems left = stems_of(stems, leaf); !left.empty())
      existing_[entry].left = std::move(left);
  struct stat status {};
  if (::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    needs_inode_[entry] = !file.is_folder();
    if (file.is_folder()) return check_folder(entry, status);
    if (is_assumed(file, status)) {
      actions_[entry] = list::FileAction::assume;
      return success();
    }
    if (const auto number = find_delivered(entry, folder)) {
      if (*number != 0) existing_[entry].number = *number;
      return compare(entry, folder, *number == 0 ? leaf : list::numbered_leaf(leaf, *number));
    }
    ONEHOP_TRYV(apply_policy(entry, status, folder));
    if (!is_wanted(entry) || is_there(entry)) return success();
  } else if (errno != ENOENT) {
    return errno_error(ExitCode::local_file_error, "look for '" + display_name(file.name) + "'");
  }
  ONEHOP_TRYV(places_.check(file.name, is_staged));
  // A packed file has no part: it is whole, or it is nothing.
  return is_staged || file.is_folder() ? success() : find_part(entry);
}

/// Something has the name of a folder.
Result<void> SinkVolume::check_folder(std::uint32_t entry, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return success();
  if (places_.fault_above(manifest().files[entry].name, may_replace(entry)) == 0) return success();
  return conflict(entry, status, kind_fault(manifest().files[entry], status),
                  other_kind(manifest().files[entry]), "It is never replaced");
}

/// To the nanosecond: where the file system keeps coarser times, files are compared by digest.
bool SinkVolume::is_assumed(const list::ManifestEntry& file,
                            const struct stat& status) const noexcept {
  const timespec offered = disk::time_of(file.mtime_ns);
  return options_.is_quick && is_kind_and_size(file, status) &&
         status.st_mtim.tv_sec == offered.tv_sec && status.st_mtim.tv_nsec == offered.tv_nsec;
}

/// The number of the name (0: the announced one) under which a session that died delivered this
/// very file, if it did and nobody has written to it since.
std::optional<unsigned> SinkVolume::find_delivered(std::uint32_t entry, int folder) const {
  const list::ManifestEntry& file = manifest().files[entry];
  disk::SessionJournal& session = destination_->session();
  if (session.is_empty() || policy_of(entry) == OnExist::skip)
    return std::nullopt;  // skip compares whatever is there
  const Digest hash = list::entry_hash(file);
  if (!session.is_known(hash)) return std::nullopt;
  const std::string announced{disk::leaf_of(file.name)};
  const unsigned last = policy_of(entry) == OnExist::rename ? list::name_number_max : 1;
  for (unsigned number = 1; number <= last; ++number) {
    const std::string leaf = number == 1 ? announced : list::numbered_leaf(announced, number);
    struct stat status {};
    if (::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    const std::int64_t late_s = status.st_mtim.tv_sec - disk::time_of(file.mtime_ns).tv_sec;
    if (!is_kind_and_size(file, status) || std::abs(late_s) > mtime_slack_s) continue;
    const auto identity = disk::identity_of(folder, leaf.c_str());
    if (identity && session.is_made(hash, *identity)) return number == 1 ? 0 : number;
  }
  return std::nullopt;
}

/// kind_fault: the entry alone is left out for it; 0: somebody has to choose.
Error SinkVolume::conflict(std::uint32_t entry, const struct stat& status, int kind_fault,
                           std::string_view cause, std::string_view hint) {
  const bool is_regular = S_ISREG(status.st_mode);
  ++conflicts_.total;
  conflicts_.is_of_kind = kind_fault != 0;
  if (options_.conflicts != nullptr)
    options_.conflicts->push_back(
        {entry, cause, is_regular, is_regular ? static_cast<std::uint64_t>(status.st_size) : 0});
  std::string text{cause};
  if (status.st_uid != ::geteuid()) text += fmt::format("; it belongs to user {}", status.st_uid);
  return {ExitCode::local_file_error,
          "receive '" + display_name(manifest().files[entry].name) + "'", std::move(text),
          std::string{hint}, conflicts_.is_of_kind ? kind_fault : EEXIST};
}

/// The final name exists: the policy decides. An empty folder gives way to a file.
Result<void> SinkVolume::apply_policy(std::uint32_t entry, const struct stat& status, int folder) {
  const list::ManifestEntry& file = manifest().files[entry];
  const std::string leaf{disk::leaf_of(file.name)};
  const bool is_alike = is_kind(file, status);
  const bool is_same_size = is_kind_and_size(file, status);
  switch (policy_of(entry)) {
    case OnExist::ask:  // also before it is read: even a tag would let a sender try contents
      if (is_alike)
        return conflict(entry, status, 0, "that name exists",
                        "Choose --on-exist resume, skip, rename or overwrite");
      break;
    case OnExist::skip: keep(entry, status, folder); return success();
    case OnExist::rename: return success();
    case OnExist::overwrite:
      if (is_alike) return success();
      if (S_ISDIR(status.st_mode) && !file.is_symlink()) {
        const Fd there = disk::open_beneath(folder, leaf, O_RDONLY | O_DIRECTORY);
        std::vector<std::string> names;
        if (there.is_open() && disk::list_names(there.get(), names) == 0 && names.empty())
          return success();
      }
      break;
    case OnExist::resume: break;
  }
  if (!is_alike)
    return conflict(entry, status, kind_fault(file, status), other_kind(file),
                    "It is never replaced");
  if (!is_same_size)
    return conflict(entry, status, 0, "a complete file of another size has that name",
                    "Choose --on-exist rename or overwrite");
  return compare(entry, folder, leaf);
}

/// OnExist::skip: what has the name keeps it. Its size can show only that it is another file.
void SinkVolume::keep(std::uint32_t entry, const struct stat& status, int folder) {
  const std::uint64_t size = manifest().files[entry].size;
  const bool is_alike = is_kind_and_size(manifest().files[entry], status);
  const bool is_read =
      is_alike &&
      compare(entry, folder, std::string{disk::leaf_of(manifest().files[entry].name)}) &&
      existing(entry).blocks.claims.size() == blocks_of(size);
  Existing& there = existing_[entry];
  there.is_expected = false;
  there.other.reset();  // nothing of it changes
  actions_[entry] = is_read    ? list::FileAction::compare
                    : is_alike ? list::FileAction::keep_unread
                               : list::FileAction::keep;
  if (!is_read) there.blocks = {};
}

Result<void> SinkVolume::find_part(std::uint32_t entry) {
  const list::ManifestEntry& file = manifest().files[entry];
  if (existing(entry).left.empty()) return success();
  ONEHOP_TRY(part, PartFile::open(*destination_, file, {existing(entry).left, false}));
  if (!part.is_open()) return success();
  std::vector<BlockRun>& held = existing_[entry].held;
  for (const Claim& listed : part.listed()) {
    if (!held.empty() && held.back().end == listed.block)
      ++held.back().end;
    else if (held.size() < list::held_runs_max)
      held.push_back({listed.block, listed.block + 1});
    else
      break;
  }
  parts_.emplace(entry, std::move(part));
  needs_inode_[entry] = false;
  return success();
}

Result<void> SinkVolume::take_room() {
  Room needed;
  for (std::uint32_t entry = 0; entry < entries(); ++entry) {
    needs_inode_[entry] = needs_inode_[entry] && is_wanted(entry) && !is_there(entry);
    needed.files += needs_inode_[entry] ? 1 : 0;
    if (!is_wanted(entry)) continue;
    if (is_there(entry)) continue;
    // The sum of the sizes was checked by validate(), and a name adds a block at most.
    const std::uint64_t size = manifest().files[entry].size;
    needed.bytes += size + slack_of(entry);
    for (const BlockRun& run : held_of(entry))
      needed.bytes -= std::min(run.end * block_bytes, size) - run.first * block_bytes;
  }
  ONEHOP_TRYV(destination_->take_room(needed));
  room_ = needed;
  return success();
}

std::uint64_t SinkVolume::slack_of(std::uint32_t entry) const noexcept {
  const std::uint64_t size = manifest().files[entry].size;
  return needs_inode_[entry] ? destination_->on_disk(size) - size : 0;
}

void SinkVolume::discard_left() const {
  for (const auto& [entry, there] : existing_)
    if (!there.left.empty() && actions_[entry] != list::FileAction::compare)
      PartFile::discard(*destination_, manifest().files[entry], there.left);
}

void SinkVolume::count_written(std::uint64_t bytes) noexcept {
  const std::uint64_t used_bytes = std::min(bytes, room_.bytes);
  room_.bytes -= used_bytes;
  destination_->give_room({.bytes = used_bytes});
}

void SinkVolume::count_made(std::uint32_t entry) noexcept {
  if (!needs_inode_[entry]) return;
  count_written(slack_of(entry));
  needs_inode_[entry] = false;
  --room_.files;
  destination_->give_room({.files = 1});
}

}  // namespace onehop::sink
