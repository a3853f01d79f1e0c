// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// BlockRef: what passes between the file thread and the engine core, over two SpscRing<BlockRef>
// (full one way, free the other). Whoever holds a BlockRef may touch its bytes, nobody else.
//
// Sending:   file ── {block, end_of_files} ──▶ engine ── {block given back, command kinds} ──▶ file
// Receiving: engine ── {block full, commands} ──▶ file ── {block free, done, failed} ──▶ engine
// Messages of the session to the file side (digests, roots, finish, abort) travel the same way, in
// order, as kinds of their own: the session's Command goes through the engine untouched.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "engine/base/units.hpp"

namespace onehop {

/// Protocol constant: the unit of digest and resume.
inline constexpr std::uint32_t block_bytes = 256 * 1024;
/// Protocol constant: blocks of one announced hole. More: one message keeps a thread for longer (a
/// gibibyte of SHA-256 leaves takes about 1 ms). Fewer: more messages.
inline constexpr std::uint64_t hole_blocks_max = 4096;
static_assert(hole_blocks_max * block_bytes <= 0xffff'ffff, "BlockRef::length holds such a run");

/// XXH3-128 fills 16 bytes (canonical, big endian), SHA-256 all 32.
using Digest = std::array<std::byte, 32>;

/// Claim: block `block` of a file is on the receiver's disk. In a journal `digest` is the block's;
/// in an answer to the sender it is its tag (crypto::ContentMac), and no digest leaves.
struct Claim {
  std::uint64_t block = 0;
  Digest digest{};
  auto operator<=>(const Claim&) const = default;  ///< by block first
};

// A file's index on the wire counts through all volumes of the session. Entry i of a volume has
// the index first_file + i, and the volume's pack the one behind the last entry, which is kept
// free where nothing is packed. The next volume begins behind it.

/// file_without_blocks, as a size: this file has no blocks of its own, and no frame may name it.
inline constexpr std::uint64_t file_without_blocks = ~std::uint64_t{0};

enum class FileMessageKind : std::uint8_t {
  block,         ///< a block's buffer with its data (or, given back, its buffer alone)
  end_of_files,  ///< file -> engine (sending): every block was handed over
  digest,        ///< session -> file (receiving): the announced digest of (file, offset)
  root,     ///< session -> file (receiving): the announced root of `file`, which may be a pack;
            ///< file -> session (sending): its root
  skipped,  ///< file -> engine (sending): block (file, offset) is already there and equal; not sent
  hole,     ///< file -> engine (sending), session -> file (receiving): `length` bytes from `offset`
            ///< on, blocks as a whole, lie in a hole of the source: zeros, which are not sent
  file_done,   ///< file -> session (receiving): nothing more happens to `file`; digest holds the
               ///< announced root, outcome what became of it, status the number that its final name
               ///< got (0: the announced name)
  pack_done,   ///< file -> session (receiving): `length` records of pack `file` from `offset` on
               ///< are verified and in place; status as of file_done, outcome kept or received:
               ///< then those of which the root alone came are there; or name_refused: nothing of
               ///< them is in place, and status says why, as VolumeAnswer::name_faults
  checkpoint,  ///< session -> file: make what arrived durable now; answered by checkpointed
  checkpointed,  ///< file -> session
  abort,         ///< session -> file: stop, keep what can be resumed; answered by checkpointed
  failed,        ///< file -> session: status holds errno, failure says what
};

enum class FileFailure : std::uint8_t {
  none,
  read_error,
  source_changed,
  source_vanished,
  source_length,  // sending
  write_error,
  sync_error,
  rename_error,
  exists,
  differs,
  digest_mismatch,
  root_mismatch,
  protocol,  // receiving
};

/// FileOutcome: what became of an offered file at the receiver.
enum class FileOutcome : std::uint8_t {
  received,      ///< verified and in place
  there,         ///< in place before, and found to have the announced digest
  kept,          ///< something else has the name and keeps it: another content, or no regular file
  not_compared,  ///< a regular file of the announced size has the name and keeps it; it could not
                 ///< be read
  there_unread,  ///< in place before, with the announced size and time; nobody read it
  name_refused,  ///< the receiver's file system does not take the name, or the receiver the link
  name_taken,    ///< an earlier entry of the session has this name at the receiver, which takes the
                 ///< two for one
};

struct BlockRef {
  std::byte* data = nullptr;  ///< the buffer, block_bytes long; null for kinds without one
  std::uint64_t offset = 0;   ///< of the block's first byte in its file; a multiple of block_bytes
  std::uint32_t file = 0;     ///< index on the wire: see below
  std::uint32_t length = 0;   ///< bytes of file data; less than block_bytes at a file's end only;
                              ///< of a hole: of all its blocks
  std::uint32_t slot = 0;     ///< of the buffer in its pool
  std::int32_t status = 0;    ///< errno of a failure; of file_done see there
  FileMessageKind kind = FileMessageKind::block;
  FileFailure failure = FileFailure::none;
  FileOutcome outcome = FileOutcome::received;
  Digest digest{};  ///< sending: of this block's bytes; receiving: see kind
};

/// blocks_of counts the blocks of a file; an empty file has one block of length 0.
[[nodiscard]] constexpr std::uint64_t blocks_of(std::uint64_t size) noexcept {
  return size == 0 ? 1 : (size - 1) / block_bytes + 1;
}
/// block_length_at is of the block at `offset`, a multiple of block_bytes, in a file of `size`.
[[nodiscard]] constexpr std::uint32_t block_length_at(std::uint64_t size,
                                                      std::uint64_t offset) noexcept {
  const std::uint64_t left = size - offset;
  return static_cast<std::uint32_t>(left < block_bytes ? left : block_bytes);
}

}  // namespace onehop
