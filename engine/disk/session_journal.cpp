// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/session_journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ranges>
#include <span>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/disk/holes.hpp"
#include "engine/disk/own_names.hpp"

namespace onehop::disk {

namespace {

struct HeaderBytes {
  std::array<char, 8> magic{'O', 'N', 'E', 'H', 'O', 'P', 'S', '\n'};
  std::uint32_t version = 2;
  std::uint32_t pid = 0;
};
constexpr std::uint32_t version = HeaderBytes{}.version;
constexpr std::size_t header_bytes = 16;
static_assert(sizeof(HeaderBytes) == header_bytes);

struct RecordBytes {
  SessionJournal::Mark mark;
  std::uint64_t checksum = 0;  // of it
};
constexpr std::size_t record_bytes = 56;
static_assert(sizeof(RecordBytes) == record_bytes);

// Of dead sessions in one folder, before one goes on with what another one left. Higher: more files
// are held. Lower: less room in a folder where many sessions were interrupted and none went on.
constexpr std::size_t sessions_max = 32;
// Names for a new one: somebody may have the first, and a session that cleans up take another.
constexpr unsigned attempts_max = 8;
// A record per file and the largest manifest.
constexpr std::uint64_t bytes_max = header_bytes + entries_max * record_bytes;
constexpr mode_t journal_mode = 0600;

}  // namespace

std::optional<FileIdentity> identity_of(int folder, const char* leaf) noexcept {
  struct statx status {};
  const int flags = AT_SYMLINK_NOFOLLOW | (*leaf == '\0' ? AT_EMPTY_PATH : 0);
  if (::statx(folder, leaf, flags, STATX_INO | STATX_BTIME, &status) != 0) {
    struct stat older {};  // a sandbox without statx
    if (::fstatat(folder, leaf, &older, flags) != 0) return std::nullopt;
    return FileIdentity{older.st_ino, 0};
  }
  const bool has_birth = (status.stx_mask & STATX_BTIME) != 0;
  return FileIdentity{
      status.stx_ino,
      has_birth ? status.stx_btime.tv_sec * 1'000'000'000 + status.stx_btime.tv_nsec : 0};
}

std::optional<SessionJournal::Contents> SessionJournal::read(
    int fd, const std::function<void(const Mark&)>& take) {
  struct stat status {};
  const std::vector<std::byte> journal = read_whole(fd, bytes_max);
  if (::fstat(fd, &status) != 0 || std::cmp_not_equal(status.st_size, journal.size()))
    return std::nullopt;
  Contents contents;
  // ext4 gives a file its length before its bytes: after a power cut it may be all zeros.
  if (is_all_zero(journal) && (status.st_mode & 07777) == journal_mode) return contents;
  HeaderBytes header;
  if (journal.size() > offsetof(HeaderBytes, version) &&
      journal[offsetof(HeaderBytes, version)] == std::byte{1})
    header.version = 1;
  const std::size_t compared = std::min(journal.size(), offsetof(HeaderBytes, pid));
  if (!std::ranges::equal(bytes_of(header).first(compared), std::span{journal}.first(compared)))
    return std::nullopt;
  if (journal.size() < header_bytes) return contents;
  std::memcpy(&header, journal.data(), header_bytes);
  contents = {.pid = header.pid, .version = header.version, .bytes = header_bytes};
  for (; journal.size() - contents.bytes >= record_bytes; contents.bytes += record_bytes) {
    RecordBytes record;
    std::memcpy(&record, journal.data() + contents.bytes, record_bytes);
    if (record.checksum != checksum_of(bytes_of(record.mark))) break;
    take(record.mark);
  }
  return contents;
}

void SessionJournal::adopt(int root, bool is_again) {
  root_ = root;
  is_again_ = is_again;
  const std::lock_guard lock{mutex_};
  struct stat status;
  for (const std::string& name : list_own(root, session_suffix)) {
    File file{.name = name, .fd = open_locked(root, name, status)};
    if (!file.fd.is_open()) continue;
    const std::size_t first = marks_.size();
    const auto contents = read(file.fd.get(), [&](const Mark& mark) {
      marks_.push_back({.mark = mark, .file = files_.size()});
    });
    if (!contents) continue;
    file.bytes = contents->bytes;
    file.version = contents->version;
    for (Found& found : std::span{marks_}.subspan(first)) {
      found.is_old = file.version != version;
      found.key = key_of(found.mark.entry, found.is_old);
    }
    if (contents->bytes == 0) {
      unlink_same(root, file.name, file.fd.get());
      continue;
    }
    if (is_again && !own_ && contents->pid == static_cast<std::uint32_t>(::getpid())) {
      file.is_used = true;
      own_ = files_.size();
    }
    files_.push_back(std::move(file));
  }
  std::ranges::sort(marks_, {}, &Found::key);
}

/// Where an entry's marks are: those with its name, and those of version 1 with its very hash.
std::uint64_t SessionJournal::key_of(const Digest& entry, bool is_old) noexcept {
  std::uint32_t part = 0;  // of the name's hash, or of the entry's
  std::memcpy(&part, entry.data() + (is_old ? 8 : 4), sizeof part);
  return (is_old ? std::uint64_t{1} << 32 : 0) | part;
}

bool SessionJournal::is_known(const Digest& entry) {
  return find(entry, [](const Mark&) { return true; });
}

bool SessionJournal::is_made(const Digest& entry, const FileIdentity& identity) {
  return find(entry, [&](const Mark& mark) {
    return is_same_entry(mark.entry, entry) && mark.identity == identity;
  });
}

bool SessionJournal::is_made_as(const Digest& entry, const FileIdentity& identity) {
  const std::lock_guard lock{mutex_};
  const auto made = std::ranges::find_if(marks_, [&](const Found& found) {
    const bool is_name = found.is_old ? is_same_entry(found.mark.entry, entry)
                                      : is_same_leaf(found.mark.entry, entry);
    return is_name && found.mark.identity == identity;
  });
  if (made == marks_.end()) return false;
  made->is_asked = true;
  if (made->file < files_.size()) files_[made->file].is_used = true;
  return true;
}

/// find says whether there is a mark of the entry for which `is_it`, and notes whose they are.
template <class Is>
bool SessionJournal::find(const Digest& entry, const Is& is_it) {
  bool is_found = false;
  const std::lock_guard lock{mutex_};
  for (const bool is_old : {false, true})
    for (Found& found : std::ranges::equal_range(marks_, key_of(entry, is_old), {}, &Found::key)) {
      if (is_old ? !is_same_entry(found.mark.entry, entry) : !is_same_path(found.mark.entry, entry))
        continue;
      found.is_asked = true;
      if (!is_it(found.mark)) continue;
      is_found = true;
      if (found.file < files_.size()) files_[found.file].is_used = true;
    }
  return is_found;
}

bool SessionJournal::is_used() const {
  const std::lock_guard lock{mutex_};
  return std::ranges::any_of(files_, &File::is_used);
}

int SessionJournal::add(const Digest& entry, int fd) {
  const std::optional<FileIdentity> identity = identity_of(fd, "");
  if (!identity) return errno;
  if (is_made(entry, *identity)) return 0;
  const std::lock_guard lock{mutex_};
  if (!own_) {
    if (const int errno_value = choose_own(); errno_value != 0) return errno_value;
  }
  const int errno_value = append(files_[*own_], {entry, *identity});
  is_dirty_ = is_dirty_ || errno_value == 0;
  return errno_value;
}

int SessionJournal::append(File& file, const Mark& mark) {
  const RecordBytes record{mark, checksum_of(bytes_of(mark))};
  const int errno_value = write_at(file.fd.get(), bytes_of(record), file.bytes);
  if (errno_value == 0) file.bytes += record_bytes;
  return errno_value;
}

/// A session that was killed and goes on, time and again, has one journal.
int SessionJournal::choose_own() {
  ONEHOP_CHECK(root_ >= 0);
  auto left = std::ranges::find_if(files_, &File::is_used);
  if (left == files_.end() && files_.size() >= sessions_max)
    left = std::ranges::find(files_, version, &File::version);
  // Records of two versions are in no file.
  if (left == files_.end() || left->version != version) return create();
  own_ = static_cast<std::size_t>(left - files_.begin());
  return write_header(files_[*own_]);  // ours from now on, also after a restart
}

int SessionJournal::create() {
  std::string name{session_suffix};
  for (unsigned attempt = 0; attempt < attempts_max; ++attempt) {
    File file{.name = std::exchange(name, random_tag().append(session_suffix)), .fd = {}};
    file.fd = create_own(root_, file.name, journal_mode);
    if (!file.fd.is_open() && errno == EEXIST) continue;
    if (!file.fd.is_open()) return errno;
    // Somebody who found it empty may have removed it before our lock.
    if (::flock(file.fd.get(), LOCK_EX | LOCK_NB) == 0 &&
        is_same_inode(root_, file.name, file.fd.get())) {
      files_.push_back(std::move(file));
      own_ = files_.size() - 1;
      return write_header(files_.back());
    }
  }
  return EEXIST;
}

int SessionJournal::write_header(File& file) {
  const HeaderBytes header{.pid = static_cast<std::uint32_t>(::getpid())};
  if (const int errno_value = write_at(file.fd.get(), bytes_of(header), 0); errno_value != 0)
    return errno_value;
  file.bytes = std::max(file.bytes, std::uint64_t{header_bytes});  // a dead session's records stay
  file.is_used = true;
  return 0;
}

int SessionJournal::sync() noexcept {
  int fd = -1;
  {
    const std::lock_guard lock{mutex_};
    if (!std::exchange(is_dirty_, false)) return 0;
    fd = files_[*own_].fd.get();
  }
  return ::fdatasync(fd) == 0 ? 0 : errno;  // nothing waits for the disk meanwhile
}

void SessionJournal::remove() noexcept {
  const std::lock_guard lock{mutex_};
  for (std::size_t i = 0; i < files_.size(); ++i) {
    File& file = files_[i];
    if (!file.is_used) continue;
    const auto is_needed = [&](const Found& found) { return found.file == i && !found.is_asked; };
    // What this process began and is not asked about has changed since.
    if ((is_again_ && own_ == i) || std::ranges::none_of(marks_, is_needed)) {
      unlink_same(root_, file.name, file.fd.get());
    } else if (::ftruncate(file.fd.get(), header_bytes) == 0) {
      file.bytes = header_bytes;
      for (const Found& found : marks_ | std::views::filter(is_needed))
        static_cast<void>(append(file, found.mark));
    }
  }
  files_.clear();
  own_.reset();
}

}  // namespace onehop::disk
