// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Holes of a source: neither read nor carried, zeros at the receiver whatever was there before, and
// no way for a peer to have a content believed that is not its root's.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <thread>

#include "engine/disk/zero_block.hpp"
#include "tests/engine/sink/file_support.hpp"
#include "tests/support/needs.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

constexpr std::uint64_t B = block_bytes;
constexpr auto kind = crypto::DigestKind::xxh3;

/// Data in blocks 0 (a part of it), 3 and the short last one; all else is a hole.
constexpr std::uint64_t file_blocks = 12, size = (file_blocks - 1) * B + 100, data_blocks = 3;
std::string sparse_bytes() {
  std::string bytes(size, '\0');
  bytes.replace(5000, 3000, random_bytes(3000, 1));
  bytes.replace(3 * B, B, random_bytes(B, 2));
  bytes.replace(size - 50, 50, random_bytes(50, 3));
  return bytes;
}
void write_sparse(const fs::path& path, const std::string& bytes) {
  write_file(path, "");
  fs::resize_file(path, bytes.size());
  std::fstream file{path, std::ios::binary | std::ios::in | std::ios::out};
  const std::string zeros(4096, '\0');
  for (std::size_t at = 0; at < bytes.size(); at += zeros.size())
    if (const std::string page = bytes.substr(at, zeros.size());
        page != zeros.substr(0, page.size())) {
      file.seekp(static_cast<std::streamoff>(at));
      file << page;
    }
  REQUIRE(file.flush().good());
}

std::uint64_t room_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return disk_bytes(status);
}

/// in_thread_without_punch runs `play` where the kernel refuses fallocate, as FAT and NFS do.
void in_thread_without_punch(const std::function<void()>& play) {
  std::thread{[&play] {
    sock_filter refuse[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{.len = std::size(refuse), .filter = refuse};
    REQUIRE(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
    play();
  }}.join();
}

/// A peer that says what the test wants about one file of `blocks` blocks.
class HolePeer {
 public:
  explicit HolePeer(const fs::path& folder, std::uint64_t file_size = size)
      : manifest_{.files = {{.name = "f", .size = file_size, .mode = 0644}}},
        sink_{make_sink(manifest_, sink_settings(folder, manifest_, OnExist::resume))} {
    turn();
  }
  ~HolePeer() { sink_->close(); }
  HolePeer(const HolePeer&) = delete;
  HolePeer& operator=(const HolePeer&) = delete;

  void hole(std::uint64_t first, std::uint64_t length) {
    say({.offset = first * B,
         .length = static_cast<std::uint32_t>(length),
         .kind = BlockKind::hole});
  }
  void digest(std::uint64_t index, const Digest& of) {
    say(AnnouncedDigest{.offset = index * B, .digest = of});
  }
  void skipped(std::uint64_t index, const Digest& of) {
    say({.offset = index * B, .kind = BlockKind::skipped, .digest = of});
  }
  void block(std::uint64_t index, const std::string& bytes) {
    REQUIRE_FALSE(free_.empty());
    BlockRef full = free_.front();
    free_.pop_front();
    full.offset = index * B;
    full.length = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(full.data, bytes.data(), bytes.size());
    say(full);
  }
  void root(const Digest& of) { say(AnnouncedRoot{.root = of}); }
  [[nodiscard]] FileFailure failure() const { return failure_; }
  [[nodiscard]] bool is_done() const { return is_done_; }

 private:
  void say(const BlockRef& block) {
    REQUIRE(rings_.from_engine.push(block));
    turn();
  }
  void say(const FileCommand& command) {
    REQUIRE(rings_.commands.push(command));
    turn();
  }
  void turn() {
    for (int i = 0; i < 3; ++i) static_cast<void>(sink_->turn(monotonic_now(), rings_));
    for (BlockRef block; rings_.to_engine.pop(block);) free_.push_back(block);
    for (FileEvent event; rings_.events.pop(event);) {
      if (const auto* failed = std::get_if<FileFailed>(&event)) failure_ = failed->failure;
      is_done_ = is_done_ || std::holds_alternative<FileFinished>(event);
    }
  }
  const Manifest manifest_;
  std::unique_ptr<PreparedSink> sink_;
  FileRings rings_{256};
  std::deque<BlockRef> free_;
  FileFailure failure_ = FileFailure::none;
  bool is_done_ = false;
};

Digest digest_of(const std::string& bytes) {
  return crypto::block_digest(kind, std::as_bytes(std::span{bytes}));
}
/// The root of a file of which every block is zeros, but those of `others`.
Digest root_of(std::uint64_t of_size, const std::vector<std::pair<std::uint64_t, Digest>>& others) {
  crypto::DigestTree tree{kind};
  for (std::uint64_t i = 0; i < blocks_of(of_size); ++i) {
    const auto other = std::ranges::find(others, i, &std::pair<std::uint64_t, Digest>::first);
    tree.add(other == others.end() ? zero_digest(kind, block_length_at(of_size, i * B))
                                   : other->second);
  }
  return tree.root();
}

}  // namespace

TEST_CASE("C4 holes are not carried, and are holes again", "[engine][file]") {
  const TempFolder from{in_memory()}, to{in_memory()};
  const std::string path = (from / "f").string(), data = sparse_bytes();
  write_sparse(path, data);
  const Outcome outcome = send({path}, to.path(), OnExist::ask,
                               [](Wire& wire) { wire.reorder_seed = GENERATE(range(0U, 8U)); });
  CHECK(outcome.done.size() == 1);
  CHECK(outcome.blocks_carried == data_blocks);
  CHECK(outcome.bytes_hole == (file_blocks - data_blocks) * B);
  CHECK((read_file(to / "f") == data));
  CHECK(room_of(to / "f") <= room_of(path) + 4096);
  CHECK(names_in(to.path()) == std::vector<std::string>{"f"});
}

TEST_CASE("C4 a file of hole alone, whose last block is short, arrives", "[engine][file]") {
  const TempFolder from{in_memory()}, to{in_memory()};
  const std::string path = (from / "f").string();
  write_sparse(path, std::string(4 * B + 1, '\0'));
  const Outcome outcome = send({path}, to.path());
  CHECK(outcome.done.size() == 1);
  CHECK(outcome.blocks_carried == 0);
  CHECK(outcome.bytes_hole == 4 * B + 1);
  CHECK(fs::file_size(to / "f") == 4 * B + 1);
  CHECK(room_of(to / "f") == 0);
}

// Goal:   a part of an earlier session has other bytes where the source has a hole now: they go.
// Method: the full file is cut off, then the same name, size and time has holes. With and without
//         a file system that gives room back.
// Bounds: exact.
TEST_CASE("C4 C5 a hole over bytes of an earlier session is zeros", "[engine][file]") {
  const bool can_punch = GENERATE(true, false);
  ONEHOP_NEEDS(can_punch || onehop::test::has_seccomp(),
               "fallocate cannot be taken away here (seccomp)");
  const TempFolder from{in_memory()}, to{in_memory()};
  const std::string path = (from / "f").string(), data = sparse_bytes();
  const timespec times[2] = {{1, 0}, {1'000'000'000, 7}};
  std::string full = random_bytes(size, 9);
  full.replace(3 * B, B, data, 3 * B, B);
  write_file(path, full);
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
  kill_at({path}, to.path(), OnExist::ask, at_block(0, 8));
  REQUIRE(read_file(to / temporary_name("f", part_suffix)).substr(B, B) == full.substr(B, B));
  write_sparse(path, data);
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
  Outcome outcome;
  const auto play = [&] { outcome = send({path}, to.path()); };
  can_punch ? play() : in_thread_without_punch(play);
  CHECK(outcome.done.size() == 1);
  CHECK(outcome.blocks_skipped == 1);  // block 3 is what it was
  CHECK(outcome.blocks_carried == 2);
  CHECK(outcome.bytes_hole == (file_blocks - data_blocks) * B);
  CHECK((read_file(to / "f") == data));
  if (can_punch) CHECK(room_of(to / "f") <= room_of(path) + 4096);
}

// Goal:   where the file system writes zeros up to a new length (FAT), no message costs more than
// its run. Method: holes and a block out of order, without fallocate. Bounds: exact.
TEST_CASE("C4 where no hole can be made a part grows run by run", "[engine][file]") {
  ONEHOP_NEEDS(onehop::test::has_seccomp(), "fallocate cannot be taken away here (seccomp)");
  const TempFolder to{in_memory()};
  const std::string last = random_bytes(100, 4);
  in_thread_without_punch([&] {
    HolePeer peer{to.path()};
    const fs::path part = to / temporary_name("f", part_suffix);
    peer.hole(0, 3 * B);
    CHECK(fs::file_size(part) == 3 * B);
    peer.hole(6, 2 * B);
    CHECK(fs::file_size(part) == 8 * B);
    peer.block(file_blocks - 1, last);
    for (int i = 0; i < 5000 && fs::file_size(part) < size; ++i) ::usleep(1000);
    peer.hole(3, 3 * B);
    CHECK((read_file(part) == std::string((file_blocks - 1) * B, '\0') + last));
    CHECK(peer.failure() == FileFailure::none);
  });
}

TEST_CASE("C4 C2 holes go on after a kill, and cost the journal nothing", "[engine][file]") {
  const TempFolder from{in_memory()}, to{in_memory()};
  const std::string path = (from / "f").string(), data = sparse_bytes();
  write_sparse(path, data);
  kill_at({path}, to.path(), OnExist::ask, at_block(0, file_blocks - 1));
  CHECK(fs::file_size(to / temporary_name("f", journal_suffix)) ==
        journal_header_bytes + 2 * journal_record_bytes);
  const Outcome outcome = send({path}, to.path());
  CHECK(outcome.blocks_skipped == 2);
  CHECK(outcome.blocks_carried == 1);
  CHECK(outcome.bytes_hole == (file_blocks - data_blocks) * B);
  CHECK((read_file(to / "f") == data));
}

TEST_CASE("C5 holes of a file that is there are compared like any block", "[engine][file]") {
  const TempFolder from{in_memory()}, to{in_memory()};
  const std::string path = (from / "f").string(), data = sparse_bytes();
  write_sparse(path, data);
  const OnExist policy = GENERATE(OnExist::resume, OnExist::skip);
  const bool is_there_sparse = GENERATE(true, false);
  is_there_sparse ? write_sparse(to / "f", data) : write_file(to / "f", data);
  SECTION("the same") {
    const Outcome outcome = send({path}, to.path(), policy);
    REQUIRE(outcome.outcomes.size() == 1);
    CHECK(outcome.outcomes[0].outcome == FileOutcome::there);
    CHECK(outcome.blocks_skipped == file_blocks);
    CHECK(outcome.bytes_hole == 0);
  }
  SECTION("a byte where the source has a hole") {
    std::fstream file{to / "f", std::ios::binary | std::ios::in | std::ios::out};
    file.seekp(7 * B + 5);
    file << "x";
    file.close();
    const Outcome outcome = send({path}, to.path(), policy);
    if (policy == OnExist::skip) {
      REQUIRE(outcome.outcomes.size() == 1);
      CHECK(outcome.outcomes[0].outcome == FileOutcome::kept);
    } else {
      REQUIRE(outcome.sink_failure.has_value());
      CHECK(outcome.sink_failure->failure == FileFailure::differs);
    }
    CHECK(read_file(to / "f")[7 * B + 5] == 'x');
  }
}

TEST_CASE("C3 a source that gets data in a hole that was told gets no final name",
          "[engine][file]") {
  const TempFolder from{in_memory()}, to{in_memory()};
  const std::string path = (from / "f").string();
  std::string data(70 * B, '\0');
  data.replace(4 * B, 60 * B, random_bytes(60 * B, 4));
  const bool ends_in_hole = GENERATE(true, false);
  if (!ends_in_hole) data.resize(64 * B);
  write_sparse(path, data);
  bool is_changed = false;
  const Outcome outcome = send({path}, to.path(), OnExist::ask, [&](Wire& wire) {
    wire.on_carry = [&](BlockRef& block) {
      if (block.offset != 20 * B || std::exchange(is_changed, true)) return;
      std::fstream file{path, std::ios::binary | std::ios::in | std::ios::out};
      file.seekp(2 * B);
      file << "late";
    };
  });
  CHECK(is_changed);
  CHECK(outcome.bytes_hole >= 4 * B);
  REQUIRE(outcome.source_failure.has_value());
  CHECK(outcome.source_failure->failure == FileFailure::source_changed);
  CHECK(outcome.done.empty());
  CHECK_FALSE(fs::exists(to / "f"));
}

TEST_CASE("D3 what a peer says of holes and blocks is zeros, or the end", "[engine][file]") {
  const TempFolder to{in_memory()};
  const std::string other(B, 'x');
  const auto zeros = zero_digest(kind, block_bytes);
  HolePeer peer{to.path()};
  bool is_zeros = false;  // or nothing has the name
  SECTION("all of it: the file is zeros") {
    peer.hole(4, size - 4 * B);
    peer.hole(0, 4 * B);
    CHECK_FALSE(peer.is_done());
    peer.root(root_of(size, {}));
    CHECK(peer.failure() == FileFailure::none);
    CHECK(peer.is_done());
    is_zeros = true;
  }
  SECTION("a root of other bytes") {
    peer.hole(0, size);
    peer.root(root_of(size, {{2, digest_of(other)}}));
    CHECK(peer.failure() == FileFailure::root_mismatch);
  }
  SECTION("a hole over a block that came") {
    peer.block(2, other);
    peer.hole(0, size);
    CHECK(peer.failure() == FileFailure::protocol);
  }
  SECTION("a hole over a block that is in the tree") {
    peer.block(0, other);
    peer.digest(0, digest_of(other));
    peer.hole(0, size);
    CHECK(peer.failure() == FileFailure::protocol);
  }
  SECTION("a hole over a block that was announced") {
    peer.digest(2, zeros);
    peer.hole(1, 3 * B);
    CHECK(peer.failure() == FileFailure::protocol);
  }
  SECTION("a block in a hole changes nothing") {
    peer.hole(1, 3 * B);
    peer.block(2, other);
    peer.digest(2, digest_of(other));
    CHECK(peer.failure() == FileFailure::none);
    peer.hole(0, B);
    peer.hole(4, size - 4 * B);
    peer.root(root_of(size, {}));
    CHECK(peer.is_done());
    is_zeros = true;
  }
  SECTION("twice the same") {
    peer.hole(4, B);
    peer.hole(1, 2 * B);
    peer.hole(3, B);
    CHECK(peer.failure() == FileFailure::none);
    const auto [first, count] = GENERATE(std::pair<std::uint64_t, std::uint64_t>{3, 2},
                                         std::pair<std::uint64_t, std::uint64_t>{0, 2},
                                         std::pair<std::uint64_t, std::uint64_t>{4, 3},
                                         std::pair<std::uint64_t, std::uint64_t>{0, 9},
                                         std::pair<std::uint64_t, std::uint64_t>{1, 4});
    peer.hole(first, count * B);
    CHECK(peer.failure() == FileFailure::protocol);
  }
  SECTION("skipped without a claim") {
    peer.skipped(1, zeros);
    CHECK(peer.failure() == FileFailure::protocol);
  }
  SECTION("not in blocks, or behind the end") {
    const auto [first, length] =
        GENERATE(std::pair<std::uint64_t, std::uint64_t>{0, 0},
                 std::pair<std::uint64_t, std::uint64_t>{0, B + 1},
                 std::pair<std::uint64_t, std::uint64_t>{0, size + 1},
                 std::pair<std::uint64_t, std::uint64_t>{file_blocks - 1, B},
                 std::pair<std::uint64_t, std::uint64_t>{file_blocks, B});
    peer.hole(first, length);
    CHECK(peer.failure() == FileFailure::protocol);
  }
  CHECK(peer.is_done() == is_zeros);
  CHECK(fs::exists(to / "f") == is_zeros);
  if (is_zeros) CHECK((read_file(to / "f") == std::string(size, '\0')));
}

TEST_CASE("D3 a hole of an empty file is refused", "[engine][file]") {
  const TempFolder to{in_memory()};
  HolePeer peer{to.path(), 0};
  peer.hole(0, GENERATE(0U, 1U));
  CHECK(peer.failure() == FileFailure::protocol);
}
