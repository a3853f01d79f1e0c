// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// C2: a journal is read after a crash, from a folder that others can write to. Whatever
// parse_journal accepts is, up to where it stopped, exactly what JournalWriter writes for the same
// claims, and every claim lies in the file.
#include <algorithm>
#include <random>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/disk/journal.hpp"
#include "engine/list/manifest.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  const auto any_digest = [&] {
    Digest digest;
    for (std::byte& byte : digest) byte = static_cast<std::byte>(random());
    return digest;
  };
  const disk::JournalHeader header{
      .size = random() >> (1 + random() % 63),
      .entry = any_digest(),
      .digest_kind = random() % 2 == 0 ? crypto::DigestKind::xxh3 : crypto::DigestKind::sha256};
  disk::JournalWriter writer{header};
  std::vector<std::byte> bytes(writer.header().begin(), writer.header().end());
  const std::uint64_t blocks = blocks_of(header.size);
  const std::size_t records_max =
      (input_bytes_max - disk::journal_header_bytes) / disk::journal_record_bytes;
  for (std::size_t left = random() % records_max; left > 0; --left) {
    const bool is_outside = random() % 64 == 0;  // well written, and still a lie
    writer.append({is_outside ? blocks + random() % 2 : random() % blocks, any_digest()}, bytes);
  }
  std::ranges::copy(bytes, out.begin());
  return bytes.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes{reinterpret_cast<const std::byte*>(data), size};
  const std::optional<disk::Journal> journal = disk::parse_journal(bytes);
  if (!journal) return 0;
  ++fuzz::accepted_total;
  ONEHOP_CHECK(journal->valid_bytes <= size);
  const std::size_t records_bytes = journal->claims.size() * disk::journal_record_bytes;
  ONEHOP_CHECK(journal->valid_bytes == disk::journal_header_bytes + records_bytes);
  disk::JournalWriter writer{journal->header};
  std::vector<std::byte> again(writer.header().begin(), writer.header().end());
  for (const Claim& claim : journal->claims) {
    ONEHOP_CHECK(claim.block < blocks_of(journal->header.size));
    writer.append(claim, again);
  }
  ONEHOP_CHECK(std::ranges::equal(again, bytes.first(journal->valid_bytes)));
  return 0;
}
