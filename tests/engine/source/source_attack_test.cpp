// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Who can write to a tree that another user sends exchanges its folders for links to what only the
// sender may read.
#include <atomic>
#include <thread>

#include "engine/list/tree_scan.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

constexpr std::string_view secret = "ROOT-ONLY-SECRET";

/// Work has a tree/sub of small and large files, and beside the tree a folder with the same names
/// and secrets in them.
struct Work {
  TempFolder folder{in_memory()};
  static constexpr int files = 40;

  Work() {
    fs::create_directories(folder / "tree/sub");
    fs::create_directory(folder / "secrets");
    for (int i = 0; i < files; ++i) {
      const std::string name = "f" + std::to_string(i);
      const std::size_t bytes = i % 4 == 0 ? packed_bytes_max + 1000 : 300;
      write_file(folder / "tree/sub" / name, std::string(bytes, 'x'));
      std::string told;
      while (told.size() < bytes + 17) told += secret;
      write_file(folder / "secrets" / name, told);
    }
    // Larger than what a source reads ahead: it is being read when the folder is exchanged.
    write_file(folder / "tree/log", std::string(24 * block_bytes, 'l'));
    fs::create_symlink(folder / "secrets", folder / "link");
  }
  /// exchange puts the link in the folder's place, or the folder back.
  void exchange() const {
    ONEHOP_CHECK(::renameat2(AT_FDCWD, (folder / "link").c_str(), AT_FDCWD,
                             (folder / "tree/sub").c_str(), RENAME_EXCHANGE) == 0);
  }
  void append() const { std::ofstream{folder / "tree/log", std::ios::app} << 'l'; }
  [[nodiscard]] std::vector<std::string> paths() const { return {(folder / "tree").string()}; }
};

/// Session sends a list as the program does: what changed meanwhile is looked at again and sent
/// once more, and whatever changes again is left out.
struct Session {
  TempFolder to{in_memory()};
  std::vector<ScanProblem> problems;
  bool is_secret_seen = false;
  std::function<void(const BlockRef&)> on_carry;

  void look_for_secret(std::string_view bytes) {
    is_secret_seen = is_secret_seen || bytes.find(secret) != std::string_view::npos;
  }
  /// What is left after a failure, if any.
  [[nodiscard]] std::optional<SourceNames> send_once(SourceFiles files) {
    const SourceNames names = files;
    const Outcome outcome =
        send_files(std::move(files), to.path(), OnExist::overwrite, [&](Wire& wire) {
          wire.on_carry = [&](BlockRef& block) {
            look_for_secret({reinterpret_cast<char*>(block.data), block.length});
            if (on_carry) on_carry(block);
          };
        });
    if (!outcome.source_failure) return std::nullopt;
    return names;
  }
  void run(const Work& work, const ScanOptions& options = {}, int sends_max = 4) {
    Result<ScanVolume> found = scan(work.paths(), options);
    if (found.has_error()) return;  // exchanged at a moment when nothing is there
    std::optional<SourceNames> left = send_once(std::move(found.value().source));
    for (int sends = 1; left && sends < sends_max; ++sends) {
      Result<SourceFiles> again = look_again(*std::move(left), problems);
      if (again.has_error() || again.value().files.empty()) break;
      left = send_once(std::move(again).value());
    }
    for (const auto& entry : fs::recursive_directory_iterator{to.path()})
      if (entry.is_regular_file() && !entry.is_symlink()) look_for_secret(read_file(entry.path()));
  }
};

}  // namespace

// Goal:   a file outside the tree is never read into a block, though the sender may read it.
// Method: a folder of the tree is exchanged for a link to a folder with the same names while the
//         first blocks are under way, and a byte is appended to the file that is being read, so
//         that all that is left is looked at again. Bounds: no byte; each of its files is
//         "changed".
TEST_CASE("P2 C3 C4 a folder that is exchanged for a link while it is sent gives nothing away",
          "[engine][file]") {
  const Work work;
  Session session;
  bool is_exchanged = false;
  session.on_carry = [&](const BlockRef&) {
    if (std::exchange(is_exchanged, true)) return;
    work.exchange();
    work.append();
  };
  const ScanOptions options{.symlinks =
                                GENERATE(Symlinks::skip, Symlinks::copy, Symlinks::follow_inside)};
  session.run(work, options);
  CHECK(is_exchanged);
  CHECK_FALSE(session.is_secret_seen);
  REQUIRE_FALSE(session.problems.empty());
  for (const ScanProblem& problem : session.problems) {
    CAPTURE(problem.path, problem.cause);
    CHECK(problem.kind == ScanProblemKind::changed);
  }
}

// Goal:   the same for a file that was named itself.
TEST_CASE("P2 C3 a file that was named is read from the folder that was named", "[engine][file]") {
  const Work work;
  SourceFiles files =
      open_files({(work.folder / "tree/sub/f1").string(), (work.folder / "tree/sub/f2").string()});
  const SourceNames names = files;
  work.exchange();
  std::vector<ScanProblem> problems;
  const Result<SourceFiles> again = look_again(names, problems);
  REQUIRE(again.has_value());
  for (const ManifestEntry& entry : again.value().manifest.files) CHECK(entry.size == 300);
}

// Goal:   as above, whenever the exchange comes. Method: a thread exchanges folder and link all the
//         time, and now and then appends to the file that is read. Bounds: 40 sessions, no byte.
TEST_CASE("P2 C3 C4 a race of links against a sender that reads gives nothing away",
          "[engine][file]") {
  for (int round = 0; round < 40; ++round) {
    const Work work;
    Session session;
    std::atomic<bool> is_over = false;
    std::thread attacker{[&, random = std::mt19937{static_cast<unsigned>(round)}]() mutable {
      while (!is_over) {
        work.exchange();
        if (random() % 4 == 0) work.append();
        ::usleep(static_cast<useconds_t>(random() % 3000));
      }
    }};
    session.run(work, {.symlinks = round % 2 == 0 ? Symlinks::skip : Symlinks::follow_inside});
    is_over = true;
    attacker.join();
    CAPTURE(round);
    CHECK_FALSE(session.is_secret_seen);
  }
}

// Goal:   what stands in a file's place is not read, though size and times are those of the file.
// Method: another inode by rename; its modification time is set, and its change time is what a
//         fence of size and times alone would have to be told apart by. Bounds: exact.
TEST_CASE("C3 a fence tells inodes apart where the file system numbers them", "[engine][file]") {
  struct stat was {};
  was.st_dev = 1;
  was.st_ino = 2;
  was.st_size = 3;
  was.st_mtim = {4, 5};
  was.st_ctim = {6, 7};
  for (const bool has_inode : {true, false}) {
    const Fence fence = fence_of(was, has_inode);
    const auto is_same = [&](auto set) {
      struct stat now = was;
      set(now);
      return is_within(fence, now);
    };
    CHECK(is_same([](struct stat& now) { now.st_ino = 9; }) == !has_inode);
    CHECK(is_same([](struct stat& now) { now.st_dev = 9; }) == !has_inode);
    CHECK(is_same([](struct stat& now) { now.st_atim = {9, 9}; }));
    CHECK_FALSE(is_same([](struct stat& now) { now.st_size = 9; }));
    CHECK_FALSE(is_same([](struct stat& now) { now.st_mtim.tv_sec = 9; }));
    CHECK_FALSE(is_same([](struct stat& now) { now.st_mtim.tv_nsec = 9; }));
    CHECK_FALSE(is_same([](struct stat& now) { now.st_ctim.tv_sec = 9; }));
    CHECK_FALSE(is_same([](struct stat& now) { now.st_ctim.tv_nsec = 9; }));
  }
  const TempFolder folder{in_memory()};
  CHECK(has_inodes(Fd{::open(folder.path().c_str(), O_PATH | O_CLOEXEC)}.get()));
}
