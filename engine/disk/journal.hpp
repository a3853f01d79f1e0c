// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Journal: which blocks of an incomplete file the receiver had on disk, with which digest.
//
//   [ header, 72 bytes ][ record ][ record ] ... [ torn tail of a crash, ignored ]
//
//   header   magic 8 | version 4 | block_bytes 4 | size 8 | digest kind 1, zero 7 |
//            entry hash 32 | checksum 8
//   record   block index 8 | digest 32 | checksum 8           all integers little endian
//
// A record's checksum also covers the header's checksum and the record's own number: a record of
// another journal, or at another place, never verifies. The file is append only. Pure functions on
// bytes: PartFile reads and writes the file. The journal is a hint where to look, never evidence:
// every listed block is hashed again from the disk.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/crypto/digest.hpp"

namespace onehop::disk {

inline constexpr std::size_t journal_header_bytes = 72;
inline constexpr std::size_t journal_record_bytes = 48;
/// Version 1 had no name in the entry's hash. It is read, and written anew before it goes on.
inline constexpr std::uint32_t journal_version = 2, journal_version_old = 1;

struct JournalHeader {
  std::uint64_t size = 0;  ///< of the file
  Digest entry{};          ///< entry_hash()
  crypto::DigestKind digest_kind = crypto::DigestKind::xxh3;
  std::uint32_t version = journal_version;
  bool operator==(const JournalHeader&) const = default;
};

/// JournalWriter makes the bytes to append. It keeps only the number of the next record.
class JournalWriter {
 public:
  explicit JournalWriter(const JournalHeader& header) noexcept;
  [[nodiscard]] std::span<const std::byte> header() const noexcept { return header_; }
  /// resume_at continues after `records` records that are in the file already.
  void resume_at(std::uint64_t records) noexcept { next_record_ = records; }
  void append(const Claim& claim, std::vector<std::byte>& out);

 private:
  std::array<std::byte, journal_header_bytes> header_{};
  std::uint64_t next_record_ = 0;
};

struct Journal {
  JournalHeader header;
  std::vector<Claim> claims;    ///< by record; a block may repeat, the last one counts
  std::size_t valid_bytes = 0;  ///< what follows is torn and is cut off before the next append
};

/// JournalParser reads until the first record that does not verify.
class JournalParser {
 public:
  /// take reads what follows what it had: the header with the first, and whole records. False: it
  /// needs no more.
  bool take(std::span<const std::byte> bytes);
  /// Nothing: no header of ours.
  [[nodiscard]] std::optional<Journal>& journal() noexcept { return journal_; }

 private:
  std::optional<Journal> journal_;
  std::uint64_t checksum_ = 0;  // of the header
};

/// parse_journal is of a journal that is read already.
[[nodiscard]] std::optional<Journal> parse_journal(std::span<const std::byte> bytes);

/// journal_bytes_max: no journal of a file of `size` is longer: a block is listed once per session.
[[nodiscard]] std::uint64_t journal_bytes_max(std::uint64_t size) noexcept;

/// Of parts and journals, until a part is whole.
inline constexpr mode_t part_mode = 0600;
/// is_blank: a journal that holds nothing, with the mode that we create. It may go:
/// nothing can be lost. A power cut may leave zeros of a journal: ext4 gives a file its length
/// before its bytes. Syscalls: pread.
[[nodiscard]] bool is_blank(int fd, const struct stat& status) noexcept;
/// read_header is what the journal behind `fd` was written for; nothing: it is none of ours.
/// Syscalls: pread.
[[nodiscard]] std::optional<JournalHeader> read_header(int fd);
/// read_journal takes memory for what it says, however long the file claims to be. Syscalls: fstat,
/// pread.
[[nodiscard]] std::optional<Journal> read_journal(int fd);

}  // namespace onehop::disk
