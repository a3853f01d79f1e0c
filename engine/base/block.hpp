// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// BlockRef: what passes between the file thread and the engine core, over two SpscRing<BlockRef>
// (full one way, free the other). Whoever holds a BlockRef may touch its bytes, nobody else.
//
// Sending:   file ── {block, skipped, hole, end_of_files} ──▶ engine ── {block, free} ──▶ file
// Receiving: engine ── {block, skipped, hole, checkpoint} ──▶ file ── {block, free} ──▶ engine
//
// What session and file thread say to each other does not pass the engine: file_message.hpp.
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

/// BlockKind: besides blocks, only what has its place among them.
enum class BlockKind : std::uint8_t {
  block,    ///< a block's buffer with its data (or, given back, its buffer alone)
  skipped,  ///< the block is at the receiver already, and equal: it is not sent
  hole,     ///< `length` bytes from `offset` on, blocks as a whole, lie in a hole of the source:
            ///< zeros, which are not sent
  end_of_files,  ///< sending: no block follows
  checkpoint,    ///< receiving: make durable what came before; answered by CheckpointMade
};

struct BlockRef {
  std::byte* data = nullptr;  ///< the buffer, block_bytes long; null for kinds without one
  std::uint64_t offset = 0;   ///< of the block's first byte in its file; a multiple of block_bytes
  std::uint32_t file = 0;     ///< index on the wire: see above
  std::uint32_t length = 0;   ///< bytes of file data; less than block_bytes at a file's end only;
                              ///< of a hole: of all its blocks
  std::uint32_t slot = 0;     ///< of the buffer in its pool
  BlockKind kind = BlockKind::block;
  Digest digest{};  ///< of the block's bytes, where it is being sent; of skipped: their tag
};

/// BlockRun: blocks [first, end) of a file.
struct BlockRun {
  std::uint64_t first = 0, end = 0;
  bool operator==(const BlockRun&) const = default;
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
