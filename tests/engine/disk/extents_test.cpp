// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Which blocks lie in a hole, as real file systems tell, and the nouns that count them.
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine/disk/extents.hpp"
#include "engine/disk/zero_block.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

constexpr std::uint64_t B = block_bytes;

struct Piece {
  std::uint64_t offset, bytes;
};

/// A file of `size` that has bytes in `pieces`, and nowhere else.
void write_sparse(const fs::path& path, std::uint64_t size, const std::vector<Piece>& pieces) {
  write_file(path, "");
  fs::resize_file(path, size);
  std::fstream file{path, std::ios::binary | std::ios::in | std::ios::out};
  for (const Piece& piece : pieces) {
    file.seekp(static_cast<std::streamoff>(piece.offset));
    file << random_bytes(piece.bytes, piece.offset + 1);
  }
  REQUIRE(file.flush().good());
}

/// What Extents says of each block in turn, as a sender asks: behind a hole it goes on.
std::vector<bool> holes_of(const fs::path& path, std::uint64_t size) {
  const Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  Extents extents{fd.get(), size};
  std::vector<bool> holes;
  while (holes.size() < blocks_of(size)) {
    const std::uint64_t run = extents.hole_blocks(holes.size());
    REQUIRE(run <= hole_blocks_max);
    holes.insert(holes.end(), run == 0 ? 1 : run, run > 0);
  }
  CHECK(holes.size() == blocks_of(size));
  return holes;
}

/// The same, worked out from what was written.
std::vector<bool> expected(std::uint64_t size, const std::vector<Piece>& pieces) {
  std::vector<bool> holes(blocks_of(size), true);
  for (const Piece& piece : pieces)
    for (std::uint64_t at = piece.offset / B; at <= (piece.offset + piece.bytes - 1) / B; ++at)
      holes[at] = false;
  return holes;
}

void check_pieces(const fs::path& folder) {
  const std::uint64_t size = 40 * B + 1000;
  const std::vector<std::vector<Piece>> lists{
      {},                 // only a hole
      {{0, 10}},          // the first block
      {{size - 10, 10}},  // the last, which is short
      {{3 * B + 5000, 3}, {4 * B, B}, {9 * B, 2 * B}},
      {{B - 1, 2}},  // across two blocks
      {{0, 3 * B}, {20 * B + 100'000, 10}, {21 * B, 5 * B + 7}},
      {{0, B / 2}, {B, B / 2}, {2 * B, B / 2}, {39 * B, B + 1000}},  // data and hole in each
  };
  for (const std::vector<Piece>& pieces : lists) {
    CAPTURE(&pieces - lists.data());
    write_sparse(folder / "f", size, pieces);
    CHECK(holes_of(folder / "f", size) == expected(size, pieces));
  }
}

}  // namespace

TEST_CASE("C4 blocks that lie in a hole are found, and no others", "[engine][file]") {
  const TempFolder folder{GENERATE(in_memory(), fs::temp_directory_path())};
  check_pieces(folder.path());
}

TEST_CASE("C4 a file of hole alone is told in bounded runs", "[engine][file]") {
  const TempFolder folder{in_memory()};
  const std::uint64_t size = (2 * hole_blocks_max + 3) * B - 1;
  write_sparse(folder / "f", size, {});
  const Fd fd{::open((folder / "f").c_str(), O_RDONLY | O_CLOEXEC)};
  Extents extents{fd.get(), size};
  CHECK(extents.hole_blocks(0) == hole_blocks_max);
  CHECK(extents.hole_blocks(hole_blocks_max) == hole_blocks_max);
  CHECK(extents.hole_blocks(2 * hole_blocks_max) == 3);
}

TEST_CASE("C4 a file without holes, of one block, or shorter than said has none",
          "[engine][file]") {
  const TempFolder folder{in_memory()};
  SECTION("full") {
    write_file(folder / "f", random_bytes(5 * B, 1));
    CHECK(holes_of(folder / "f", 5 * B) == std::vector<bool>(5, false));
  }
  SECTION("full of zeros") {
    write_file(folder / "f", std::string(5 * B, '\0'));
    CHECK(holes_of(folder / "f", 5 * B) == std::vector<bool>(5, false));
  }
  SECTION("one block") {
    write_sparse(folder / "f", B, {});
    CHECK(holes_of(folder / "f", B) == std::vector<bool>(1, false));
  }
  SECTION("shorter: behind its end is nothing, and no hole") {
    write_sparse(folder / "f", 3 * B, {});
    CHECK(holes_of(folder / "f", 5 * B) == std::vector<bool>(5, false));
  }
  SECTION("what cannot be asked") {
    Extents extents{-1, 5 * B};
    CHECK(extents.hole_blocks(0) == 0);
    CHECK(Extents{}.hole_blocks(7) == 0);
  }
}

// A file system of its own needs root and a loop device; elsewhere the one of /tmp must do.
TEST_CASE("C4 ext4 tells holes, also of what is not on the disk yet", "[engine][file]") {
  const TempFolder folder;
  const std::string image = (folder / "image").string(), at = (folder / "at").string();
  fs::create_directory(at);
  write_sparse(image, std::uint64_t{64} << 20, {});
  const std::string quiet = " >/dev/null 2>&1";
  if (::geteuid() != 0 || std::system(("mkfs.ext4 -q " + image + quiet).c_str()) != 0 ||
      std::system(("mount -o loop " + image + " " + at + quiet).c_str()) != 0) {
    WARN("no ext4 can be mounted here");
    return;
  }
  check_pieces(at);
  CHECK(::umount2(at.c_str(), MNT_DETACH) == 0);
}

TEST_CASE("the digest of a hole is that of its zeros", "[engine][file]") {
  for (const auto kind : {crypto::DigestKind::xxh3, crypto::DigestKind::sha256})
    for (const std::uint32_t length : {1U, 1000U, block_bytes - 1, block_bytes, block_bytes})
      CHECK(zero_digest(kind, length) ==
            crypto::block_digest(kind, std::vector<std::byte>(length)));
}
