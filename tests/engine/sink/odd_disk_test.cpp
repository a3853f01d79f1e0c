// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Disks that have less than ext4 has, played by the slow-disk file system: a Sink on each of them.
// Needs root for the mount; elsewhere the program says why, and ends with 77.
#include <sys/mount.h>

#include "engine/disk/clean.hpp"
#include "tests/engine/sink/slow_disk.hpp"
#include "tests/engine/sink/tree_support.hpp"
#include "tests/support/needs.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

using Words = std::vector<std::string>;

/// Odd is such a disk; `backing` shows what it holds.
struct Odd {
  explicit Odd(Words options) : disk{backing.path(), mount_point.path(), std::move(options)} {
    if (!disk.is_mounted()) skip(fuse_reason);
  }
  [[nodiscard]] const fs::path& path() const { return mount_point.path(); }
  const TempFolder backing{in_memory()}, mount_point;
  const SlowDisk disk;
};

// CIFS, FAT and exFAT with one owner whom others are not, NTFS-3G, NFS with squashed users. We are
// root here, so the kernel's own refusal of modes and times is played.
const Words one_owner{"--owner", "12345", "--error", "chmod=EPERM", "--error", "utimens=EPERM"};

/// Mounted puts `what` over a folder: of the same disk, as far as its device tells.
struct Mounted {
  Mounted(const fs::path& what, const fs::path& where) : at{where} {
    fs::create_directories(at);
    if (::mount(what.c_str(), at.c_str(), nullptr, MS_BIND, nullptr) != 0)
      skip("cannot mount here: " + errno_text(errno));
  }
  ~Mounted() { ::umount2(at.c_str(), MNT_DETACH); }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  const fs::path at;
};

/// A tree arrived: every name and all content.
void check_content(const Tree& tree, const fs::path& to) {
  CHECK(names_in(to) == names_in(tree.folder.path()));
  for (const ManifestEntry& entry : tree.list().manifest.files)
    if (!entry.is_folder())
      CHECK(read_file(to / entry.name) == read_file(tree.folder / entry.name));
}

constexpr std::size_t blocks = 40;

}  // namespace

TEST_CASE("a tree arrives where all files have another owner, and nothing is left beside it",
          "[file][odd]") {
  const Odd disk{one_owner};
  const Tree tree{1};
  const Outcome outcome = send_files(tree.list(), disk.path(), OnExist::ask, {});
  CHECK_FALSE(outcome.sink_failure.has_value());
  check_content(tree, disk.backing.path());
}

TEST_CASE("C2 P8 where all files have another owner a session goes on, and clean removes",
          "[file][odd]") {
  const Odd disk{one_owner};
  const TempFolder from;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes, 1));
  kill_at({path}, disk.path(), OnExist::ask, at_block(0, blocks - 1));
  REQUIRE(names_in(disk.backing.path()) == Words{".f.onehop-journal", ".f.part"});
  SECTION("goes on") {
    const Outcome outcome = send({path}, disk.path());
    CHECK_FALSE(outcome.sink_failure.has_value());
    CHECK(outcome.blocks_skipped > 0);
    CHECK(read_file(disk.backing / "f") == read_file(path));
    CHECK(names_in(disk.backing.path()) == Words{"f"});
  }
  SECTION("is cleaned up") {
    Stage stage;
    const Fd root{::open(disk.path().c_str(), O_RDONLY | O_DIRECTORY)};
    REQUIRE(stage.open(root.get()) == 0);
    REQUIRE(stage.create(1, 0600).is_open());
    stage = Stage{};  // as after a kill
    CHECK(clean({disk.path().string()}, [](const CleanItem& item) {
            CAPTURE(item.path, item.cause);
            CHECK(item.outcome == CleanItem::Outcome::removed);
          }).has_value());
    CHECK(names_in(disk.backing.path()).empty());
  }
}

// Goal:   all gets its name where the kernel cannot refuse to replace, and nothing that is there is
// replaced. Method: a disk without RENAME_NOREPLACE, hard links and syncs of folders. Bounds:
// exact.
TEST_CASE("P5 a disk that has neither RENAME_NOREPLACE nor hard links", "[file][odd]") {
  const std::string refusal = GENERATE("EPERM", "EOPNOTSUPP");
  const Odd disk{
      {"--error", "noreplace=EINVAL", "--error", "link=" + refusal, "--error", "fsyncdir=EINVAL"}};
  const Tree tree{3};
  SECTION("a tree, with larger files in it") {
    const auto durability = GENERATE(Durability::batch, Durability::file);
    const Outcome outcome =
        send_files(tree.list(), disk.path(), OnExist::ask, {},
                   [&](SinkSettings& settings) { settings.durability = durability; });
    CHECK_FALSE(outcome.sink_failure.has_value());
    check_equal(tree, disk.backing.path());
  }
  SECTION("a name that comes up meanwhile") {
    const TempFolder from;
    const std::string path = (from / "f").string();
    write_file(path, random_bytes(blocks * block_bytes, 1));
    const OnExist on_exist = GENERATE(OnExist::ask, OnExist::rename);
    const Outcome outcome = send({path}, disk.path(), on_exist, [&](Wire& wire) {
      wire.on_carry = [&](BlockRef&) { write_file(disk.backing / "f", "precious"); };
    });
    REQUIRE(outcome.outcomes.size() == 1);
    const bool is_refused = outcome.outcomes.front().outcome == FileOutcome::name_refused;
    CHECK(is_refused == (on_exist == OnExist::ask));
    CHECK(read_file(disk.backing / "f") == "precious");
    if (!is_refused) CHECK(read_file(disk.backing / "f (2)") == read_file(path));
  }
}

TEST_CASE("what would get its name on another file system is left out before it is sent",
          "[file][odd]") {
  if (::geteuid() != 0) skip("mounts need root");
  ONEHOP_NEEDS(onehop::test::has_mount_ids(), "mounts have no names here (STATX_MNT_ID)");
  const TempFolder to{in_memory()}, other{in_memory()}, from;
  const Tree tree{2};
  const std::string folder = GENERATE("d1", "");  // of the tree; of all of it
  SourceFiles files = tree.list();
  if (folder.empty())
    for (ManifestEntry& entry : files.manifest.files) entry.name = "new/" + entry.name;
  const Mounted mounted{other.path(), to / (folder.empty() ? "new" : folder)};
  SECTION("a tree") {
    const auto sink = make_sink(files.manifest, sink_settings(to.path(), files.manifest));
    const std::string below = (folder.empty() ? "new" : folder) + "/";
    for (std::size_t i = 0; i < files.manifest.files.size(); ++i) {
      const ManifestEntry& entry = files.manifest.files[i];
      const bool is_barred =
          entry.name.starts_with(below) && !entry.is_folder() && entry.size <= packed_bytes_max;
      CHECK(sink->faults()[i] == (is_barred ? EXDEV : 0));
    }
    CHECK(names_in(to.path()) == Words{folder.empty() ? "new" : folder});
  }
  SECTION("not a tree that is there") {
    fs::copy(tree.folder.path(), folder.empty() ? mounted.at : to.path(),
             fs::copy_options::recursive);
    const Outcome outcome = send_files(std::move(files), to.path(), OnExist::resume, {});
    CHECK_FALSE(outcome.sink_failure.has_value());
    CHECK(outcome.packed_there > 100);
  }
  SECTION("not a file that has a part, whose folder is missing") {
    const std::string path = (from / "f").string();
    write_file(path, random_bytes(2 * block_bytes, 1));
    SourceFiles large = open_files({path});
    const std::string name = (fs::relative(mounted.at, to.path()) / "more/f").string();
    large.manifest.files[0].name = name;
    const Outcome outcome = send_files(std::move(large), to.path(), OnExist::ask, {});
    CHECK_FALSE(outcome.sink_failure.has_value());
    CHECK(read_file(to / name) == read_file(path));
  }
  SECTION("a stream") {
    Manifest piece;
    piece.files.push_back({.name = (fs::relative(mounted.at, to.path()) / "s").string(),
                           .size = 5,
                           .mode = 0644,
                           .kind = EntryKind::piece});
    const auto refused = prepare_sink(piece, sink_settings(to.path(), piece));
    REQUIRE(refused.has_error());
    CHECK(refused.error().errno_value == EXDEV);
  }
}
