// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/part_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "engine/base/check.hpp"
#include "engine/file/file_bytes.hpp"
#include "engine/file/holes.hpp"
#include "engine/file/pack.hpp"

namespace onehop::file {

namespace {

// Parts of one name at a time. Higher: unnoticed litter; lower: parallel receivers are refused.
constexpr unsigned part_numbers_max = 9;

/// More than one block, or too large to be packed: of the others a session has less than
/// packed_files_min.
bool has_own_journal(std::uint64_t size) noexcept { return size > packed_bytes_max; }

JournalHeader header_of(const Destination& destination, const ManifestEntry& entry) {
  return {.size = entry.size,
          .entry = entry_hash(entry),
          .digest_kind = destination.options().digest_kind};
}

/// Each block once, the newest record of it, by block.
std::vector<Claim> newest_by_block(std::vector<Claim> claims) {
  std::ranges::reverse(claims);
  std::ranges::stable_sort(claims, {}, &Claim::block);
  const auto is_same_block = [](const Claim& a, const Claim& b) { return a.block == b.block; };
  claims.erase(std::unique(claims.begin(), claims.end(), is_same_block), claims.end());
  return claims;
}

}  // namespace

bool is_blank(int fd, const struct stat& status) noexcept {
  if ((status.st_mode & 07777) != part_mode) return false;
  std::array<std::byte, 4096> bytes;
  std::int64_t at = 0;
  while (at < status.st_size) {
    const std::int64_t read = read_at(fd, bytes, static_cast<std::uint64_t>(at));
    if (read <= 0 || !is_all_zero(std::span{bytes}.first(static_cast<std::size_t>(read))))
      return false;
    at += read;
  }
  return true;
}

std::optional<JournalHeader> read_header(int fd) {
  std::array<std::byte, journal_header_bytes> bytes;
  if (read_at(fd, bytes, 0) != std::int64_t{bytes.size()}) return std::nullopt;
  const std::optional<Journal> journal = parse_journal(bytes);
  return journal ? std::optional{journal->header} : std::nullopt;
}

Result<PartFile> PartFile::open(Destination& destination, const ManifestEntry& entry,
                                const PartOptions& options) {
  PartFile self;
  Result<Place> place = open_place(destination.root(), entry.name, options.is_creating);
  if (place.has_error()) {
    if (!options.is_creating && place.error().errno_value == ENOENT) return PartFile{};
    return std::move(place).error();
  }
  self.place_ = std::move(place).value();
  const std::string attempt = "create the partial file of '" + display_name(entry.name) + "'";
  for (unsigned number = 0; number <= part_numbers_max; ++number) {
    switch (self.try_names(destination, number, entry, options)) {
      case Taken::ours: return Result<PartFile>{std::move(self)};
      case Taken::error: return errno_error(ExitCode::local_file_error, attempt);
      case Taken::absent: return PartFile{};
      case Taken::not_ours: break;
    }
    self.part_.close();
    self.journal_.close();
    self.is_part_made_ = false;
  }
  if (!options.is_creating) return PartFile{};
  return errno_error(ExitCode::local_file_error, attempt,
                     "Remove old '.part' files of it that no transfer uses", EEXIST);
}

PartFile::Taken PartFile::try_names(Destination& destination, unsigned number,
                                    const ManifestEntry& entry, const PartOptions& options) {
  part_name_ = temporary_name(place_.leaf, numbered_suffix(number, part_suffix));
  journal_name_ = temporary_name(place_.leaf, numbered_suffix(number, journal_suffix));
  const JournalHeader header = header_of(destination, entry);
  writer_ = JournalWriter{header};
  const int folder = place_.folder.get();

  if (options.is_creating) {
    part_ = open_beneath(folder, part_name_, O_RDWR | O_CREAT | O_EXCL, part_mode);
    if (part_.is_open()) {
      if (::flock(part_.get(), LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? Taken::not_ours : Taken::error;
      is_part_made_ = true;
      const Taken taken = start_journal(destination, header, has_own_journal(header.size));
      if (taken != Taken::ours) {
        const int cause = errno;
        remove();
        errno = cause;
      }
      return taken;
    }
    if (errno != EEXIST) return Taken::error;
  }
  struct stat part;
  part_ = open_locked(folder, part_name_, part);
  if (!part_.is_open() && errno == EACCES && make_writable(header.entry, destination.session()))
    part_ = open_locked(folder, part_name_, part);
  if (!part_.is_open())
    return !options.is_creating && errno == ENOENT ? Taken::absent : Taken::not_ours;
  return adopt(destination, part, header, options);
}

/// A session that ended in finish() gave the part the mode of its file, which may be read only.
bool PartFile::make_writable(const Digest& entry, SessionJournal& session) const {
  const Fd part = open_beneath(place_.folder.get(), part_name_, O_PATH);
  const std::optional<FileIdentity> identity = identity_of(part.get(), "");
  const std::string path = "/proc/self/fd/" + std::to_string(part.get());
  return part.is_open() && identity && session.is_made(entry, *identity) &&
         ::chmod(path.c_str(), part_mode) == 0;
}

/// A part exists, and we hold its lock. It is ours when its journal or the session's says so. An
/// empty one with the mode that we create is ours as well: nothing can be lost.
PartFile::Taken PartFile::adopt(Destination& destination, const struct stat& part,
                                const JournalHeader& header, const PartOptions& options) {
  struct stat status;
  journal_ = open_own(place_.folder.get(), journal_name_, status);
  const bool has_journal = journal_.is_open();
  if (!has_journal && errno == EEXIST) return Taken::not_ours;
  if (has_journal) {
    const std::optional<JournalHeader> found = read_header(journal_.get());
    if (!found && !is_blank(journal_.get(), status)) return Taken::not_ours;
    // Progress of another file of this name. Given up only when the user said so, or it is ours.
    const bool may_restart = options.is_changed || options.on_exist == OnExist::resume ||
                             options.on_exist == OnExist::overwrite;
    if (found && *found != header && !may_restart) return Taken::not_ours;
    const std::optional<Journal> journal =
        parse_journal(read_whole(journal_.get(), journal_bytes_max(header.size)));
    if (journal && found == header) {
      listed_ = newest_by_block(journal->claims);
      writer_.resume_at(journal->claims.size());
      journal_bytes_ = synced_bytes_ = journal->valid_bytes;
      old_bytes_ = static_cast<std::uint64_t>(part.st_size);
      const bool is_too_long = old_bytes_ > header.size;
      if (is_too_long && ::ftruncate(part_.get(), static_cast<off_t>(header.size)) != 0)
        return Taken::error;
      return ::ftruncate(journal_.get(), static_cast<off_t>(journal_bytes_)) == 0 ? Taken::ours
                                                                                  : Taken::error;
    }
  } else {
    const std::optional<FileIdentity> identity = identity_of(part_.get(), "");
    const bool is_marked = identity && destination.session().is_made(header.entry, *identity);
    const bool is_unused = part.st_size == 0 && (part.st_mode & 07777) == part_mode;
    if (!is_marked && !is_unused) return Taken::not_ours;
    old_bytes_ = static_cast<std::uint64_t>(part.st_size);
    if (is_marked && !options.is_creating) return Taken::ours;
  }
  if (!options.is_creating) return Taken::not_ours;
  if (::ftruncate(part_.get(), 0) != 0) return Taken::error;
  old_bytes_ = 0;
  is_part_made_ = true;
  return start_journal(destination, header, has_journal || has_own_journal(header.size));
}

/// A small file has no use for a journal of its own: a record in the session's is enough. That is
/// on the disk before the part has any bytes: after a power cut nothing else proves that it is
/// ours. The name of a journal needs no sync for that. It is in the part's folder and made before
/// the part grows, and file systems keep that order.
PartFile::Taken PartFile::start_journal(Destination& destination, const JournalHeader& header,
                                        bool is_needed) {
  writer_ = JournalWriter{header};
  listed_.clear();
  int errno_value =
      is_needed ? make_journal() : destination.session().add(header.entry, part_.get());
  if (errno_value == 0 && !is_needed && destination.is_synced())
    errno_value = destination.session().sync();
  if (errno_value == 0) return Taken::ours;
  errno = errno_value;
  return errno_value == EEXIST ? Taken::not_ours : Taken::error;
}

int PartFile::make_journal() {
  const int folder = place_.folder.get();
  if (!journal_.is_open())
    journal_ = open_beneath(folder, journal_name_, O_RDWR | O_CREAT | O_EXCL, part_mode);
  if (!journal_.is_open() && errno == EEXIST) {
    // A journal without its part, or of a part that we hold the lock of: nobody else can use it.
    struct stat status;
    Fd found = open_own(folder, journal_name_, status);
    if (!found.is_open() || (!is_blank(found.get(), status) && !read_header(found.get())))
      return EEXIST;
    journal_ = std::move(found);
  }
  if (!journal_.is_open()) return errno;
  if (::ftruncate(journal_.get(), 0) != 0) return errno;
  journal_bytes_ = synced_bytes_ = writer_.header().size();
  return write_at(journal_.get(), writer_.header(), 0);
}

int PartFile::record(std::span<const Claim> claims) {
  if (!journal_.is_open()) return 0;  // a small file: it is complete or it is nothing
  std::vector<std::byte> bytes;
  for (const Claim& claim : claims) writer_.append(claim, bytes);
  const int errno_value = write_at(journal_.get(), bytes, journal_bytes_);
  journal_bytes_ += bytes.size();
  return errno_value;
}

int PartFile::end_sync(int errno_value) noexcept {
  if (!journal_.is_open()) return errno_value;
  if (errno_value == 0 && ::fdatasync(journal_.get()) != 0) errno_value = errno;
  if (errno_value == 0) {
    synced_bytes_ = syncing_bytes_;
    return 0;
  }
  // The kernel may have dropped pages that it could not write; reads may still show them.
  journal_bytes_ = synced_bytes_;
  if (::ftruncate(journal_.get(), static_cast<off_t>(journal_bytes_)) != 0)
    ::unlinkat(place_.folder.get(), journal_name_.c_str(), 0);
  return errno_value;
}

/// The first one gives the part its whole size: no write that is in flight ends behind that, so
/// none is cut off.
bool PartFile::make_hole(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) noexcept {
  if (is_hole_refused_) return false;
  constexpr int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  is_hole_refused_ =
      ::fallocate(part_.get(), mode, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0 ||
      (!is_full_length_ && ::ftruncate(part_.get(), static_cast<off_t>(size)) != 0);
  is_full_length_ = !is_hole_refused_;
  return !is_hole_refused_;
}

/// Without holes the part grows run by run: FAT and exFAT write zeros up to a new length at once,
/// and those of a whole disk image would take longer than anybody waits. The zero at the end of a
/// run cuts nothing off that is written behind it meanwhile.
int PartFile::clear(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  if (make_hole(offset, bytes, size)) return 0;
  const std::uint64_t end = offset + bytes, old_end = std::min(end, old_bytes_);
  const std::vector<std::byte> zeros(block_bytes);
  int errno_value = 0;
  for (; offset < old_end && errno_value == 0; offset += zeros.size())
    errno_value = write_at(
        part_.get(), std::span{zeros}.first(std::min<std::size_t>(zeros.size(), old_end - offset)),
        offset);
  if (errno_value == 0 && old_end < end)
    errno_value = write_at(part_.get(), std::span{zeros}.first(1), end - 1);
  return errno_value;
}

FinishResult PartFile::finish(Destination& destination, const ManifestEntry& entry,
                              OnExist on_exist) {
  ONEHOP_CHECK(is_open());
  const bool is_synced = destination.is_synced();
  // From here on a crash may leave a part with another mode, or a final name that no session knows.
  if (journal_.is_open()) {
    const int errno_value = destination.session().add(entry_hash(entry), part_.get());
    if (errno_value != 0) return {FileFailure::write_error, errno_value};
  }
  if (is_synced && needs_record(on_exist))
    if (const int errno_value = destination.session().sync(); errno_value != 0)
      return {FileFailure::sync_error, errno_value};
  // Mode and time first, so that the one fsync covers them too.
  if (set_mode(part_.get(), entry.mode & 0777 & ~destination.umask_bits()) != 0)
    return {FileFailure::write_error, errno};
  if (set_mtime(part_.get(), entry.mtime_ns) != 0) return {FileFailure::write_error, errno};
  if (is_synced && ::fsync(part_.get()) != 0) return {FileFailure::sync_error, errno};
  // Somebody with access to the folder may have put another file under our temporary name.
  const int folder = place_.folder.get();
  if (!is_same_inode(folder, part_name_, part_.get())) return {FileFailure::rename_error, ESTALE};
  const int errno_value =
      give_name(folder, part_name_, folder, place_.leaf, on_exist, final_number_);
  if (errno_value != 0)
    return {errno_value == EEXIST ? FileFailure::exists : FileFailure::rename_error, errno_value};
  const std::string leaf =
      final_number_ == 0 ? place_.leaf : numbered_leaf(place_.leaf, final_number_);
  if (!is_same_inode(folder, leaf, part_.get())) return {FileFailure::rename_error, ESTALE};
  if (is_synced && sync_folder(folder) != 0) return {FileFailure::sync_error, errno};
  unlink_same(folder, journal_name_, journal_.get());  // discard() finds one left here
  return {};
}

int give_name(int from_folder, const std::string& from, int folder, const std::string& leaf,
              OnExist on_exist, unsigned& number) {
  number = 0;
  if (on_exist == OnExist::overwrite) {
    struct stat status {
    }, own{};
    const bool is_there = ::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (::fstatat(from_folder, from.c_str(), &own, AT_SYMLINK_NOFOLLOW) != 0) return errno;
    if (is_there && (status.st_mode & S_IFMT) != (own.st_mode & S_IFMT)) return EEXIST;
    return ::renameat(from_folder, from.c_str(), folder, leaf.c_str()) == 0 ? 0 : errno;
  }
  int errno_value = rename_new(from_folder, from, folder, leaf);
  const unsigned last = on_exist == OnExist::rename ? name_number_max : 0;
  for (unsigned next = 2; errno_value == EEXIST && next <= last; ++next) {
    number = next;
    errno_value = rename_new(from_folder, from, folder, numbered_leaf(leaf, number));
  }
  return errno_value;
}

void PartFile::discard(Destination& destination, const ManifestEntry& entry) {
  Result<Place> place = open_place(destination.root(), entry.name, false);
  if (place.has_error()) return;
  PartFile self;
  self.place_ = std::move(place).value();
  for (unsigned number = 0; number <= part_numbers_max; ++number) {
    const Taken taken = self.try_names(destination, number, entry, {.is_creating = false});
    self.is_part_made_ = taken == Taken::ours;
    if (taken == Taken::absent && !self.remove_orphan(header_of(destination, entry)) && number > 0)
      return;
    self.remove();
  }
}

/// A journal without its part: its session died after the rename. False: there is none. After a
/// power cut it may be blank, since nothing syncs it for the rename.
bool PartFile::remove_orphan(const JournalHeader& header) noexcept {
  struct stat status;
  journal_ = open_own(place_.folder.get(), journal_name_, status);
  if (!journal_.is_open()) return false;
  if (!is_blank(journal_.get(), status) && read_header(journal_.get()) != header) return false;
  return ::unlinkat(place_.folder.get(), journal_name_.c_str(), 0) == 0;
}

void PartFile::remove() noexcept {
  const int folder = place_.folder.get();
  if (is_part_made_ && is_same_inode(folder, part_name_, part_.get())) {
    ::unlinkat(folder, part_name_.c_str(), 0);
    unlink_same(folder, journal_name_, journal_.get());
  }
  part_.close();
  journal_.close();
}

}  // namespace onehop::file
