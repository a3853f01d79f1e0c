// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/journal.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/file/file_bytes.hpp"
#include "engine/file/manifest.hpp"

namespace onehop::file {

namespace {

constexpr std::array<char, 8> magic{'O', 'N', 'E', 'H', 'O', 'P', 'J', '\n'};
constexpr std::size_t checksum_bytes = 8;
constexpr std::size_t digest_at = 8, record_checksum_at = digest_at + 32;
constexpr std::size_t version_at = 8, block_at = 12, size_at = 16, kind_at = 24, entry_at = 32,
                      header_checksum_at = 64;
static_assert(record_checksum_at + checksum_bytes == journal_record_bytes);
static_assert(header_checksum_at + checksum_bytes == journal_header_bytes);

void copy_checksum(std::span<const std::byte> bytes, std::byte* out) noexcept {
  const Digest digest = crypto::block_digest(crypto::DigestKind::xxh3, bytes);
  std::memcpy(out, digest.data(), checksum_bytes);
}

/// The checksum of a record is taken over header checksum, record number, block index and digest.
void record_checksum(const std::byte* header_checksum, std::uint64_t number,
                     const std::byte* record, std::byte* out) noexcept {
  std::array<std::byte, checksum_bytes + 8 + record_checksum_at> covered;
  std::memcpy(covered.data(), header_checksum, checksum_bytes);
  put(covered.data() + checksum_bytes, number);
  std::memcpy(covered.data() + checksum_bytes + 8, record, record_checksum_at);
  copy_checksum(covered, out);
}

/// A header is ours when it is, to the byte, what we would write for its fields.
std::optional<JournalHeader> parse_header(std::span<const std::byte> bytes) {
  if (bytes.size() < journal_header_bytes) return std::nullopt;
  JournalHeader header;
  header.size = get<std::uint64_t>(bytes.data() + size_at);
  const auto kind = static_cast<crypto::DigestKind>(get<std::uint8_t>(bytes.data() + kind_at));
  if (kind != crypto::DigestKind::xxh3 && kind != crypto::DigestKind::sha256) return std::nullopt;
  header.digest_kind = kind;
  std::memcpy(header.entry.data(), bytes.data() + entry_at, header.entry.size());
  const JournalWriter expected{header};
  if (!std::ranges::equal(expected.header(), bytes.first(journal_header_bytes)))
    return std::nullopt;
  return header;
}

}  // namespace

JournalWriter::JournalWriter(const JournalHeader& header) noexcept {
  std::memcpy(header_.data(), magic.data(), magic.size());
  put(header_.data() + version_at, journal_version);
  put(header_.data() + block_at, block_bytes);
  put(header_.data() + size_at, header.size);
  put(header_.data() + kind_at, static_cast<std::uint8_t>(header.digest_kind));
  std::memcpy(header_.data() + entry_at, header.entry.data(), header.entry.size());
  copy_checksum(std::span{header_}.first(header_checksum_at), header_.data() + header_checksum_at);
}

void JournalWriter::append(const Claim& claim, std::vector<std::byte>& out) {
  std::array<std::byte, journal_record_bytes> record{};
  put(record.data(), claim.block);
  std::memcpy(record.data() + digest_at, claim.digest.data(), claim.digest.size());
  record_checksum(header_.data() + header_checksum_at, next_record_++, record.data(),
                  record.data() + record_checksum_at);
  out.insert(out.end(), record.begin(), record.end());
}

std::optional<Journal> parse_journal(std::span<const std::byte> bytes) {
  const std::optional<JournalHeader> header = parse_header(bytes);
  if (!header) return std::nullopt;
  Journal journal{.header = *header, .claims = {}, .valid_bytes = journal_header_bytes};
  const std::uint64_t blocks = blocks_of(header->size);
  for (std::uint64_t number = 0; bytes.size() - journal.valid_bytes >= journal_record_bytes;
       ++number) {
    const std::byte* record = bytes.data() + journal.valid_bytes;
    std::array<std::byte, checksum_bytes> checksum;
    record_checksum(bytes.data() + header_checksum_at, number, record, checksum.data());
    if (std::memcmp(checksum.data(), record + record_checksum_at, checksum_bytes) != 0) break;
    Claim claim{.block = get<std::uint64_t>(record), .digest = {}};
    if (claim.block >= blocks) break;
    std::memcpy(claim.digest.data(), record + digest_at, claim.digest.size());
    journal.claims.push_back(claim);
    journal.valid_bytes += journal_record_bytes;
  }
  return journal;
}

std::uint64_t journal_bytes_max(std::uint64_t size) noexcept {
  constexpr std::uint64_t sessions = 4;  // more re-writes of a block: start afresh
  return journal_header_bytes + sessions * blocks_of(size) * journal_record_bytes;
}

}  // namespace onehop::file
