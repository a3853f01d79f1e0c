// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/journal.hpp"

#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/disk/file_bytes.hpp"
#include "engine/disk/holes.hpp"

namespace onehop::disk {

namespace {

struct HeaderBytes {
  std::array<char, 8> magic{'O', 'N', 'E', 'H', 'O', 'P', 'J', '\n'};
  std::uint32_t version = journal_version;
  std::uint32_t block = block_bytes;
  std::uint64_t size = 0;
  std::uint64_t digest_kind = 0;
  Digest entry{};
  std::uint64_t checksum = 0;  // of all above
  bool operator==(const HeaderBytes&) const = default;
};
static_assert(sizeof(HeaderBytes) == journal_header_bytes);

struct RecordBytes {
  Claim claim;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(RecordBytes) == journal_record_bytes);

HeaderBytes bytes_for(const JournalHeader& header) noexcept {
  HeaderBytes made{.version = header.version,
                   .size = header.size,
                   .digest_kind = static_cast<std::uint64_t>(header.digest_kind),
                   .entry = header.entry};
  made.checksum = checksum_of(bytes_of(made).first(offsetof(HeaderBytes, checksum)));
  return made;
}

std::uint64_t record_checksum(std::uint64_t header_checksum, std::uint64_t number,
                              const Claim& claim) noexcept {
  struct Covered {
    std::uint64_t header_checksum, number;
    Claim claim;
  } covered{header_checksum, number, claim};
  static_assert(sizeof covered == 2 * sizeof number + sizeof claim);
  return checksum_of(bytes_of(covered));
}

/// A header is ours when it is, to the byte, what we would write for its fields.
std::optional<JournalHeader> parse_header(const HeaderBytes& read) {
  const JournalHeader header{.size = read.size,
                             .entry = read.entry,
                             .digest_kind = static_cast<crypto::DigestKind>(read.digest_kind),
                             .version = read.version};
  if (header.version != journal_version && header.version != journal_version_old)
    return std::nullopt;
  const bool is_kind = header.digest_kind == crypto::DigestKind::xxh3 ||
                       header.digest_kind == crypto::DigestKind::sha256;
  return is_kind && read == bytes_for(header) ? std::optional{header} : std::nullopt;
}

}  // namespace

JournalWriter::JournalWriter(const JournalHeader& header) noexcept
    : header_{std::bit_cast<decltype(header_)>(bytes_for(header))} {}

void JournalWriter::append(const Claim& claim, std::vector<std::byte>& out) {
  const std::uint64_t header_checksum = std::bit_cast<HeaderBytes>(header_).checksum;
  const RecordBytes record{claim, record_checksum(header_checksum, next_record_++, claim)};
  out.insert(out.end(), bytes_of(record).begin(), bytes_of(record).end());
}

bool JournalParser::take(std::span<const std::byte> bytes) {
  if (!journal_) {
    if (bytes.size() < journal_header_bytes) return false;
    HeaderBytes read;
    std::memcpy(&read, bytes.data(), sizeof read);
    const std::optional<JournalHeader> header = parse_header(read);
    if (!header) return false;
    checksum_ = read.checksum;
    journal_ = Journal{.header = *header, .claims = {}, .valid_bytes = journal_header_bytes};
    bytes = bytes.subspan(journal_header_bytes);
  }
  const std::uint64_t blocks = blocks_of(journal_->header.size);
  for (; bytes.size() >= journal_record_bytes; bytes = bytes.subspan(journal_record_bytes)) {
    RecordBytes record;
    std::memcpy(&record, bytes.data(), sizeof record);
    if (record.checksum != record_checksum(checksum_, journal_->claims.size(), record.claim))
      return false;
    if (record.claim.block >= blocks) return false;
    journal_->claims.push_back(record.claim);
    journal_->valid_bytes += journal_record_bytes;
  }
  return bytes.empty();
}

std::optional<Journal> parse_journal(std::span<const std::byte> bytes) {
  JournalParser parser;
  parser.take(bytes);
  return std::move(parser.journal());
}

std::uint64_t journal_bytes_max(std::uint64_t size) noexcept {
  constexpr std::uint64_t sessions = 4;  // more re-writes of a block: start afresh
  return journal_header_bytes + sessions * blocks_of(size) * journal_record_bytes;
}

bool is_blank(int fd, const struct stat& status) noexcept {
  // A session syncs its journal before it is as large as this. A huge hole is not read for zeros.
  constexpr std::int64_t blank_bytes_max = 64 << 20;
  if ((status.st_mode & 07777) != part_mode || status.st_size > blank_bytes_max) return false;
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

std::optional<Journal> read_journal(int fd) {
  struct stat status {};
  const std::optional<JournalHeader> header = read_header(fd);
  if (!header || ::fstat(fd, &status) != 0 ||
      static_cast<std::uint64_t>(status.st_size) > journal_bytes_max(header->size))
    return std::nullopt;
  JournalParser parser;
  std::vector<std::byte> bytes(journal_header_bytes + 4096 * journal_record_bytes);
  std::uint64_t at = 0;
  for (bool has_more = true; has_more;) {
    const std::int64_t read = read_at(fd, bytes, at);
    if (read <= 0) break;
    at += static_cast<std::uint64_t>(read);
    has_more = parser.take(std::span{bytes}.first(static_cast<std::size_t>(read)));
    bytes.resize(4096 * journal_record_bytes);  // behind the header
  }
  return std::move(parser.journal());
}

}  // namespace onehop::disk
