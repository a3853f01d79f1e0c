// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PartFile: whose a part is that has the name, and how one becomes this session's.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/base/display_name.hpp"
#include "engine/base/system/access.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/disk/own_names.hpp"
#include "engine/list/pack.hpp"
#include "engine/sink/part_file.hpp"

namespace onehop::sink {

namespace {

// Names for a new part: somebody may have the first one; nobody has the others before us.
constexpr unsigned attempts_max = 8;

/// More than one block, or too large to be packed: of the others a session has less than
/// packed_files_min.
bool has_own_journal(std::uint64_t size) noexcept { return size > list::packed_bytes_max; }

disk::JournalHeader header_of(const Destination& destination, const list::ManifestEntry& entry) {
  return {.size = entry.size,
          .entry = list::entry_hash(entry),
          .digest_kind = destination.options().digest_kind};
}

/// The kernel holds a hole against the largest file of a file system before anything else, and
/// behind a file's end it makes none.
bool can_have(int fd, std::uint64_t size) noexcept {
  return size == 0 ||
         ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size - 1),
                     1) == 0 ||
         errno != EFBIG;
}

/// Each block once, the newest record of it, by block.
std::vector<Claim> newest_by_block(std::vector<Claim> claims) {
  std::ranges::reverse(claims);
  std::ranges::stable_sort(claims, {}, &Claim::block);
  const auto is_same_block = [](const Claim& a, const Claim& b) { return a.block == b.block; };
  claims.erase(std::unique(claims.begin(), claims.end(), is_same_block), claims.end());
  return claims;
}

/// open_place, into folders of our own whatever their mode.
Result<disk::Place> open_usable(Destination& destination, const std::string& name,
                                bool is_creating) {
  while (true) {
    Result<disk::Place> place = disk::open_place(destination.root(), name, is_creating);
    const int errno_value = place.has_error()
                                ? place.error().errno_value
                                : access_fault(place.value().folder.get(), ".", W_OK | X_OK);
    if (errno_value == EACCES && destination.opened_folders().open_up(disk::parent_of(name)))
      continue;
    return place;
  }
}

/// Of several parts that which was changed last. Its times may be those of the file.
PartStems newest_first(int folder, PartStems stems) {
  const auto changed_at = [&](const std::string& stem) {
    struct stat status {};
    const std::string name = std::string{stem}.append(disk::part_suffix);
    static_cast<void>(::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW));
    return std::pair{status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
  };
  if (stems.size() > 1) std::ranges::stable_sort(stems, std::ranges::greater{}, changed_at);
  return stems;
}

}  // namespace

PartStems list_stems(int folder) {
  PartStems stems;
  for (const std::string_view suffix : {disk::part_suffix, disk::journal_suffix}) {
    std::vector<std::string> names;
    if (disk::list_names(folder, names, suffix) != 0) return {};
    for (std::string& name : names)
      if (name.starts_with('.')) stems.push_back(name.substr(0, name.size() - suffix.size()));
  }
  std::ranges::sort(stems);
  stems.erase(std::unique(stems.begin(), stems.end()), stems.end());
  return stems;
}

PartStems stems_of(const PartStems& stems, std::string_view leaf) {
  PartStems found;
  const auto is_rest = [](std::string_view rest) {  // earlier versions numbered them
    return rest.empty() || (rest.size() == 2 && rest[0] == '.' && rest[1] >= '1' && rest[1] <= '9');
  };
  for (const disk::Stem& stem : disk::stems_for(leaf))
    for (auto at = std::ranges::lower_bound(stems, stem.text);
         at != stems.end() && at->starts_with(stem.text); ++at) {
      const std::string_view rest = std::string_view{*at}.substr(stem.text.size());
      if (stem.has_tag ? disk::is_tag(rest) : is_rest(rest)) found.push_back(*at);
    }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Result<PartFile> PartFile::open(Destination& destination, const list::ManifestEntry& entry,
                                const PartOptions& options) {
  PartFile self;
  Result<disk::Place> place = open_usable(destination, entry.name, options.is_creating);
  if (place.has_error()) {
    if (!options.is_creating && place.error().errno_value == ENOENT) return PartFile{};
    return std::move(place).error();
  }
  self.place_ = std::move(place).value();
  self.header_ = header_of(destination, entry);
  const std::string& leaf = self.place_.leaf;
  const std::string attempt = "create the partial file of '" + display_name(entry.name) + "'";
  const Purpose purpose = options.is_creating ? Purpose::create : Purpose::look;
  for (const std::string& stem : newest_first(self.place_.folder.get(), options.stems)) {
    self.set_stem(stem, leaf);
    Taken taken = self.adopt(destination, purpose);
    if (taken == Taken::ours && options.is_creating && (errno = self.begin(destination)) != 0)
      taken = Taken::error;
    if (taken == Taken::ours) return Result<PartFile>{std::move(self)};
    if (taken == Taken::error) return errno_error(ExitCode::local_file_error, attempt);
    self.let_go();
  }
  if (!options.is_creating) return PartFile{};
  std::string tag;
  auto* stem_of = &disk::temporary_stem;
  for (unsigned attempts = 0; attempts < attempts_max; ++attempts) {
    self.set_stem(stem_of(leaf, std::exchange(tag, disk::random_tag())), leaf);
    const Taken taken = self.create(destination);
    if (taken == Taken::ours) return Result<PartFile>{std::move(self)};
    const bool is_too_long = errno == ENAMETOOLONG && stem_of == &disk::temporary_stem;
    if (taken == Taken::error && !is_too_long)
      return errno_error(ExitCode::local_file_error, attempt);
    if (taken == Taken::error) stem_of = &disk::short_stem;
    self.let_go();
  }
  return errno_error(ExitCode::local_file_error, attempt, "", EEXIST);
}

void PartFile::set_stem(const std::string& stem, const std::string& leaf) {
  part_name_ = std::string{stem}.append(disk::part_suffix);
  journal_name_ = std::string{stem}.append(disk::journal_suffix);
  is_plain_name_ = std::ranges::any_of(disk::stems_for(leaf), [&](const disk::Stem& own) {
    return !own.has_tag && own.text == stem;
  });
  writer_ = disk::JournalWriter{header_};
}

void PartFile::let_go() noexcept {
  part_.close();
  journal_.close();
  listed_.clear();
  is_part_made_ = is_begun_ = false;
  old_bytes_ = journal_bytes_ = synced_bytes_ = 0;
}

PartFile::Taken PartFile::create(Destination& destination) {
  part_ = disk::create_own(place_.folder.get(), part_name_, disk::part_mode);
  if (!part_.is_open()) return errno == EEXIST ? Taken::not_ours : Taken::error;
  if (::flock(part_.get(), LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? Taken::not_ours : Taken::error;
  // A session that cleans up may have found it before our lock.
  if (!disk::is_same_inode(place_.folder.get(), part_name_, part_.get())) return Taken::not_ours;
  is_part_made_ = true;
  // Of another name than the first one a journal alone says whose it is.
  const Taken taken =
      can_have(part_.get(), header_.size)
          ? start_journal(destination, has_own_journal(header_.size) || !is_plain_name_)
          : Taken::error;
  if (taken != Taken::ours) {
    const int cause = errno;
    remove();
    errno = cause;
  }
  return taken;
}

/// A session that ended in finish() gave the part the mode of its file, which may be read only.
bool PartFile::make_writable(disk::SessionJournal& session) const {
  const Fd part = disk::open_beneath(place_.folder.get(), part_name_, O_PATH);
  const std::optional<disk::FileIdentity> identity = disk::identity_of(part.get(), "");
  const std::string path = "/proc/self/fd/" + std::to_string(part.get());
  return part.is_open() && identity && session.is_made_as(header_.entry, *identity) &&
         ::chmod(path.c_str(), disk::part_mode) == 0;
}

/// The journal beside a part is of a file of this name, whatever else of it has changed. With a
/// number ".f.1.part" may be that of "f.1"; version 1 tells only whether it is the same entry.
bool PartFile::is_journaled(const disk::JournalHeader& found) const noexcept {
  const bool is_name = found.version == disk::journal_version_old
                           ? is_plain_name_
                           : disk::is_same_leaf(found.entry, header_.entry);
  return is_name || disk::is_same_entry(found.entry, header_.entry);
}

/// A part exists. It is ours when we get its lock, and its journal or the session's says so. An
/// empty one with the mode that we create is ours as well: nothing can be lost.
PartFile::Taken PartFile::adopt(Destination& destination, Purpose purpose) {
  struct stat part, status;
  part_ = disk::open_locked(place_.folder.get(), part_name_, part);
  if (!part_.is_open() && errno == EACCES && make_writable(destination.session()))
    part_ = disk::open_locked(place_.folder.get(), part_name_, part);
  if (!part_.is_open()) return Taken::not_ours;
  journal_ = disk::open_own(place_.folder.get(), journal_name_, status);
  const bool has_journal = journal_.is_open();
  if (!has_journal && errno == EEXIST) return Taken::not_ours;
  old_bytes_ = static_cast<std::uint64_t>(part.st_size);
  if (has_journal) {
    const std::optional<disk::JournalHeader> found = disk::read_header(journal_.get());
    if (found ? !is_journaled(*found) : !disk::is_blank(journal_.get(), status))
      return Taken::not_ours;
    if (found && take_listed(*found)) return Taken::ours;
  } else {
    const std::optional<disk::FileIdentity> identity = disk::identity_of(part_.get(), "");
    const bool is_marked =
        is_plain_name_ && identity && destination.session().is_made_as(header_.entry, *identity);
    const bool is_unused = part.st_size == 0 && (part.st_mode & 07777) == disk::part_mode;
    if (!is_marked && !is_unused) return Taken::not_ours;
    if (is_marked && purpose == Purpose::look) return Taken::ours;
  }
  if (purpose == Purpose::remove) return Taken::ours;
  if (purpose == Purpose::look) return Taken::not_ours;
  if (::ftruncate(part_.get(), 0) != 0) return Taken::error;
  old_bytes_ = 0;
  is_part_made_ = true;
  return start_journal(destination, has_journal || has_own_journal(header_.size));
}

/// What the journal says of blocks that the file still has. False: nothing of it is of use.
bool PartFile::take_listed(const disk::JournalHeader& found) {
  const std::optional<disk::Journal> journal = disk::read_journal(journal_.get());
  if (!journal || found.digest_kind != header_.digest_kind) return false;
  listed_ = newest_by_block(journal->claims);
  std::erase_if(listed_, [&](const Claim& claim) {
    return claim.block >= blocks_of(header_.size) ||
           block_length_at(found.size, claim.block * block_bytes) !=
               block_length_at(header_.size, claim.block * block_bytes);
  });
  if (found != header_) return true;  // begin() writes it anew
  writer_.resume_at(journal->claims.size());
  journal_bytes_ = synced_bytes_ = journal->valid_bytes;
  return true;
}

int PartFile::begin(Destination& destination) {
  if (std::exchange(is_begun_, true)) return 0;
  if (old_bytes_ > header_.size) {
    if (::ftruncate(part_.get(), static_cast<off_t>(header_.size)) != 0) return errno;
    old_bytes_ = header_.size;
  }
  if (journal_.is_open()) {
    if (journal_bytes_ == 0) return rewrite_journal();
    return ::ftruncate(journal_.get(), static_cast<off_t>(journal_bytes_)) == 0 ? 0 : errno;
  }
  if (has_own_journal(header_.size)) return make_journal();
  return destination.session().add(header_.entry, part_.get());
}

/// The file has changed since. A kill in here leaves a journal whose records do not verify, or one
/// of what was: both are ours.
int PartFile::rewrite_journal() {
  std::vector<std::byte> bytes{writer_.header().begin(), writer_.header().end()};
  for (const Claim& claim : listed_) writer_.append(claim, bytes);
  if (const int errno_value = disk::write_at(journal_.get(), bytes, 0); errno_value != 0)
    return errno_value;
  journal_bytes_ = bytes.size();
  synced_bytes_ = writer_.header().size();
  return ::ftruncate(journal_.get(), static_cast<off_t>(journal_bytes_)) == 0 ? 0 : errno;
}

/// A small file has no use for a journal of its own: a record in the session's is enough. That is
/// on the disk before the part has any bytes: after a power cut nothing else proves that it is
/// ours. The name of a journal needs no sync for that. It is in the part's folder and made before
/// the part grows, and file systems keep that order.
PartFile::Taken PartFile::start_journal(Destination& destination, bool is_needed) {
  is_begun_ = true;
  writer_ = disk::JournalWriter{header_};
  listed_.clear();
  int errno_value =
      is_needed ? make_journal() : destination.session().add(header_.entry, part_.get());
  if (errno_value == 0 && !is_needed && destination.is_synced())
    errno_value = destination.session().sync();
  if (errno_value == 0) return Taken::ours;
  errno = errno_value;
  return errno_value == EEXIST ? Taken::not_ours : Taken::error;
}

int PartFile::make_journal() {
  const int folder = place_.folder.get();
  if (!journal_.is_open()) journal_ = disk::create_own(folder, journal_name_, disk::part_mode);
  if (!journal_.is_open() && errno == EEXIST) {
    // A journal without its part, or of a part that we hold the lock of: nobody else can use it.
    struct stat status;
    Fd found = disk::open_own(folder, journal_name_, status);
    if (!found.is_open() ||
        (!disk::is_blank(found.get(), status) && !disk::read_header(found.get())))
      return EEXIST;
    journal_ = std::move(found);
  }
  if (!journal_.is_open()) return errno;
  if (::ftruncate(journal_.get(), 0) != 0) return errno;
  journal_bytes_ = synced_bytes_ = writer_.header().size();
  return disk::write_at(journal_.get(), writer_.header(), 0);
}

void PartFile::discard(Destination& destination, const list::ManifestEntry& entry,
                       const std::optional<PartStems>& stems) {
  Result<disk::Place> place = open_usable(destination, entry.name, false);
  if (place.has_error()) return;
  PartFile self;
  self.place_ = std::move(place).value();
  self.header_ = header_of(destination, entry);
  const std::string& leaf = self.place_.leaf;
  for (const std::string& stem :
       stems ? *stems : stems_of(list_stems(self.place_.folder.get()), leaf)) {
    self.set_stem(stem, leaf);
    if (self.adopt(destination, Purpose::remove) == Taken::ours) {
      self.drop();
    } else {
      self.let_go();
      struct stat status;
      if (::fstatat(self.place_.folder.get(), self.part_name_.c_str(), &status,
                    AT_SYMLINK_NOFOLLOW) != 0)
        static_cast<void>(self.remove_orphan());
    }
    self.let_go();
  }
}

/// A journal without its part: its session died after the rename. After a power cut it may be
/// blank, since nothing syncs it for the rename.
bool PartFile::remove_orphan() noexcept {
  struct stat status;
  journal_ = disk::open_own(place_.folder.get(), journal_name_, status);
  if (!journal_.is_open()) return false;
  const std::optional<disk::JournalHeader> found = disk::read_header(journal_.get());
  if (found ? !is_journaled(*found) : !disk::is_blank(journal_.get(), status)) return false;
  return disk::unlink_same(place_.folder.get(), journal_name_, journal_.get()) == 0;
}

}  // namespace onehop::sink
