// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/session_journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "engine/base/check.hpp"
#include "engine/crypto/digest.hpp"
#include "engine/file/confined.hpp"
#include "engine/file/file_bytes.hpp"

namespace onehop::file {

namespace {

constexpr std::array<char, 8> magic{'O', 'N', 'E', 'H', 'O', 'P', 'S', '\n'};
constexpr std::uint32_t version = 1;
constexpr std::size_t header_bytes = 16, version_at = 8, pid_at = 12;
constexpr std::size_t inode_at = 32, birth_at = 40, checksum_at = 48, record_bytes = 56;
// Sessions of one folder, alive or dead. Higher: more names to try for each session. Lower: where
// many sessions were interrupted and none of them went on, what they knew is forgotten sooner.
constexpr unsigned sessions_max = 32;
// A record per file and the largest manifest.
constexpr std::uint64_t bytes_max = header_bytes + ManifestLimits{}.entries_max * record_bytes;
constexpr mode_t journal_mode = 0600;

std::array<std::byte, header_bytes> header_of(std::uint32_t pid) noexcept {
  std::array<std::byte, header_bytes> header{};
  std::memcpy(header.data(), magic.data(), magic.size());
  put(header.data() + version_at, version);
  put(header.data() + pid_at, pid);
  return header;
}

std::uint64_t checksum_of(const std::byte* record) noexcept {
  return get<std::uint64_t>(
      crypto::block_digest(crypto::DigestKind::xxh3, {record, checksum_at}).data());
}

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

void SessionJournal::adopt(int root, const Manifest& manifest, bool is_again) {
  root_ = root;
  std::vector<Digest> entries;  // sorted; made when the first journal is found
  struct stat status;
  for (unsigned number = 0; number < sessions_max; ++number) {
    File file{.name = numbered_suffix(number, session_suffix),
              .fd = open_locked(root, numbered_suffix(number, session_suffix), status)};
    if (!file.fd.is_open()) continue;
    const std::vector<std::byte> bytes = read_whole(file.fd.get(), bytes_max);
    if (bytes.size() < header_bytes) {  // its session died before it had recorded anything
      ::unlinkat(root, file.name.c_str(), 0);
      continue;
    }
    const auto pid = get<std::uint32_t>(bytes.data() + pid_at);
    if (!std::ranges::equal(header_of(pid), std::span{bytes}.first(header_bytes))) continue;
    if (entries.empty()) {
      for (const ManifestEntry& entry : manifest.files) entries.push_back(entry_hash(entry));
      std::ranges::sort(entries);
    }
    bool is_wanted = is_again && pid == static_cast<std::uint32_t>(::getpid());
    file.bytes = header_bytes;
    for (; bytes.size() - file.bytes >= record_bytes; file.bytes += record_bytes) {
      const std::byte* record = bytes.data() + file.bytes;
      if (get<std::uint64_t>(record + checksum_at) != checksum_of(record)) break;
      Mark mark;
      std::memcpy(mark.entry.data(), record, mark.entry.size());
      if (!std::ranges::binary_search(entries, mark.entry)) continue;
      mark.identity = {get<std::uint64_t>(record + inode_at),
                       static_cast<std::int64_t>(get<std::uint64_t>(record + birth_at))};
      marks_.push_back(mark);
      is_wanted = true;
    }
    if (is_wanted) files_.push_back(std::move(file));
  }
  std::ranges::sort(marks_, {}, &Mark::entry);
}

bool SessionJournal::is_known(const Digest& entry) const {
  return std::ranges::binary_search(marks_, entry, {}, &Mark::entry);
}

bool SessionJournal::is_made(const Digest& entry, const FileIdentity& identity) const {
  auto mark = std::ranges::lower_bound(marks_, entry, {}, &Mark::entry);
  while (mark != marks_.end() && mark->entry == entry && mark->identity != identity) ++mark;
  return mark != marks_.end() && mark->entry == entry;
}

int SessionJournal::add(const Digest& entry, int fd) {
  const std::optional<FileIdentity> identity = identity_of(fd, "");
  if (!identity) return errno;
  if (is_made(entry, *identity)) return 0;
  if (files_.empty()) {
    if (const int errno_value = create(); errno_value != 0) return errno_value;
  }
  std::array<std::byte, record_bytes> record{};
  std::memcpy(record.data(), entry.data(), entry.size());
  put(record.data() + inode_at, identity->inode);
  put(record.data() + birth_at, static_cast<std::uint64_t>(identity->birth_ns));
  put(record.data() + checksum_at, checksum_of(record.data()));
  File& file = files_.front();
  if (const int errno_value = write_at(file.fd.get(), record, file.bytes); errno_value != 0)
    return errno_value;
  file.bytes += record_bytes;
  is_dirty_ = true;
  return 0;
}

int SessionJournal::create() {
  ONEHOP_CHECK(root_ >= 0);
  for (unsigned number = 0; number < sessions_max; ++number) {
    File file{.name = numbered_suffix(number, session_suffix), .fd = {}};
    file.fd = open_beneath(root_, file.name, O_RDWR | O_CREAT | O_EXCL, journal_mode);
    if (!file.fd.is_open() && errno == EEXIST) continue;
    if (!file.fd.is_open()) return errno;
    if (::flock(file.fd.get(), LOCK_EX | LOCK_NB) == 0) return write_header(std::move(file));
  }
  return reuse_oldest();
}

/// All numbers are taken: the session that has been dead for longest is forgotten.
int SessionJournal::reuse_oldest() {
  File oldest;
  std::int64_t oldest_at = std::numeric_limits<std::int64_t>::max();
  for (unsigned number = 0; number < sessions_max; ++number) {
    struct stat status;
    File file{.name = numbered_suffix(number, session_suffix),
              .fd = open_locked(root_, numbered_suffix(number, session_suffix), status)};
    if (!file.fd.is_open() || status.st_mtim.tv_sec >= oldest_at) continue;
    oldest_at = status.st_mtim.tv_sec;
    oldest = std::move(file);
  }
  if (!oldest.fd.is_open()) return EEXIST;
  if (::ftruncate(oldest.fd.get(), 0) != 0) return errno;
  return write_header(std::move(oldest));
}

int SessionJournal::write_header(File file) {
  const auto header = header_of(static_cast<std::uint32_t>(::getpid()));
  if (const int errno_value = write_at(file.fd.get(), header, 0); errno_value != 0)
    return errno_value;
  file.bytes = header_bytes;
  files_.push_back(std::move(file));
  return 0;
}

int SessionJournal::sync() noexcept {
  if (!std::exchange(is_dirty_, false)) return 0;
  return ::fdatasync(files_.front().fd.get()) == 0 ? 0 : errno;
}

void SessionJournal::remove() noexcept {
  for (const File& file : files_) unlink_same(root_, file.name, file.fd.get());
  files_.clear();
}

}  // namespace onehop::file
