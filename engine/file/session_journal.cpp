// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/session_journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <ranges>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/file/confined.hpp"
#include "engine/file/file_bytes.hpp"
#include "engine/file/holes.hpp"

namespace onehop::file {

namespace {

struct HeaderBytes {
  std::array<char, 8> magic{'O', 'N', 'E', 'H', 'O', 'P', 'S', '\n'};
  std::uint32_t version = 1;
  std::uint32_t pid = 0;
};
constexpr std::size_t header_bytes = 16;
static_assert(sizeof(HeaderBytes) == header_bytes);

struct RecordBytes {
  SessionJournal::Mark mark;
  std::uint64_t checksum = 0;  // of it
};
constexpr std::size_t record_bytes = 56;
static_assert(sizeof(RecordBytes) == record_bytes);

// Sessions of one folder, alive or dead. Higher: more names to try for each session. Lower: where
// many sessions were interrupted and none of them went on, what they knew is forgotten sooner.
constexpr unsigned sessions_max = 32;
// A record per file and the largest manifest.
constexpr std::uint64_t bytes_max = header_bytes + ManifestLimits{}.entries_max * record_bytes;
constexpr mode_t journal_mode = 0600;

}  // namespace

std::optional<FileIdentity> identity_of(int folder, const char* leaf) noexcept {
  struct statx status {};
  const int flags = AT_SYMLINK_NOFOLLOW | (*leaf == '\0' ? AT_EMPTY_PATH : 0);
  if (::statx(folder, leaf, flags, STATX_INO | STATX_BTIME, &status) != 0) return std::nullopt;
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
  const std::size_t compared = std::min(journal.size(), offsetof(HeaderBytes, pid));
  if (!std::ranges::equal(bytes_of(header).first(compared), std::span{journal}.first(compared)))
    return std::nullopt;
  if (journal.size() < header_bytes) return contents;
  std::memcpy(&header, journal.data(), header_bytes);
  contents = {.pid = header.pid, .bytes = header_bytes};
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
  for (unsigned number = 0; number < sessions_max; ++number) {
    File file{.name = numbered_suffix(number, session_suffix),
              .fd = open_locked(root, numbered_suffix(number, session_suffix), status)};
    if (!file.fd.is_open()) continue;
    const auto contents = read(file.fd.get(), [&](const Mark& mark) {
      marks_.push_back({mark, files_.size()});
    });
    if (!contents) continue;
    file.bytes = contents->bytes;
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
  std::ranges::sort(marks_, {}, entry_of);
}

bool SessionJournal::is_known(const Digest& entry) {
  return find(entry, [](const Mark&) { return true; });
}

bool SessionJournal::is_made(const Digest& entry, const FileIdentity& identity) {
  return find(entry, [&](const Mark& mark) { return mark.identity == identity; });
}

/// find says whether there is a mark of the entry for which `is_it`, and notes whose they are.
template <class Is>
bool SessionJournal::find(const Digest& entry, const Is& is_it) {
  bool is_found = false;
  const std::lock_guard lock{mutex_};
  for (Found& found : std::ranges::equal_range(marks_, entry, {}, entry_of)) {
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
  const auto used = std::ranges::find_if(files_, &File::is_used);
  if (used == files_.end()) return create();
  own_ = static_cast<std::size_t>(used - files_.begin());
  return write_header(files_[*own_]);  // ours from now on, also after a restart
}

int SessionJournal::create() {
  for (unsigned number = 0; number < sessions_max; ++number) {
    File file{.name = numbered_suffix(number, session_suffix), .fd = {}};
    file.fd = open_beneath(root_, file.name, O_RDWR | O_CREAT | O_EXCL, journal_mode);
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
  return reuse_oldest();
}

/// All numbers are taken: the session that has been dead for longest is forgotten. What it made is
/// known until this one ends.
int SessionJournal::reuse_oldest() {
  std::optional<std::size_t> oldest;
  std::int64_t oldest_at = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < files_.size(); ++i) {
    struct stat status;
    if (::fstat(files_[i].fd.get(), &status) != 0 || status.st_mtim.tv_sec >= oldest_at) continue;
    oldest_at = status.st_mtim.tv_sec;
    oldest = i;
  }
  if (!oldest) return EEXIST;
  if (::ftruncate(files_[*oldest].fd.get(), 0) != 0) return errno;
  own_ = *oldest;
  files_[*oldest].bytes = 0;
  return write_header(files_[*oldest]);
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
  return ::fdatasync(fd) == 0 ? 0 : errno;  // nobody waits for the disk
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

}  // namespace onehop::file
