// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Small files and folders in one stream of blocks.
#include <sys/xattr.h>

#include "tests/engine/sink/tree_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

/// The first packed file with content.
std::size_t some_packed(const Manifest& manifest) {
  std::size_t i = 0;
  while (manifest.files[i].size == 0 || !is_packable(manifest.files[i])) ++i;
  return i;
}

Outcome send_tree(SourceFiles files, const fs::path& to, const std::function<void(Wire&)>& prepare,
                  Durability durability = Durability::batch, OnExist on_exist = OnExist::ask) {
  return send_files(std::move(files), to, on_exist, prepare,
                    [&](SinkSettings& settings) { settings.durability = durability; });
}

}  // namespace

// Goal:   both ends find each record where it is. Method: random sizes; the places of all records
// are walked from each block's first one. Bounds: exact.
TEST_CASE("a record's place follows from the block that it lies in", "[engine][file]") {
  const Tree tree{7};
  const Manifest manifest = tree.list().manifest;
  std::vector<FileAction> actions(manifest.files.size(), FileAction::send);
  actions[3] = FileAction::keep;
  actions[5] = FileAction::resume;
  const Pack pack = Pack::make(manifest, crypto::DigestKind::sha256, actions);
  CHECK_FALSE(pack.contains(3));
  std::vector<PackPlace> places;
  std::uint64_t end = 0;
  for (const std::uint32_t file : pack.entries()) {
    CHECK(manifest.files[file].size <= packed_bytes_max);
    const std::uint64_t begin = end;
    end += file == 5 ? crypto::content_tag_bytes : manifest.files[file].size + 32;
    places.push_back({begin, end});
  }
  CHECK(pack.bytes() == end);
  for (std::uint64_t block = 0; block < blocks_of(end); ++block) {
    std::uint32_t ordinal = pack.first_of(block);
    CHECK(pack.place_of(ordinal).begin <= block * block_bytes);
    CHECK(pack.place_of(ordinal).end > block * block_bytes);
    for (; pack.place_of(ordinal).end < std::min((block + 1) * block_bytes, end); ++ordinal)
      CHECK(pack.place_of(ordinal) == places[ordinal]);
  }
}

TEST_CASE("a few files without a folder are not packed", "[engine][file]") {
  Manifest manifest;
  for (std::size_t i = 0; i + 1 < packed_files_min; ++i)
    manifest.files.push_back({.name = std::to_string(i), .size = 1});
  CHECK_FALSE(has_pack(manifest));
  manifest.files.push_back({.name = "large", .size = packed_bytes_max + 1});
  CHECK_FALSE(has_pack(manifest));
  manifest.files.push_back({.name = "small", .size = packed_bytes_max});
  CHECK(has_pack(manifest));
}

// Goal:   a tree arrives as it is, with modes and times of files and folders, and nothing is left
// beside it. Method: sizes around all limits, blocks in order and not, each durability. Bounds:
// exact.
TEST_CASE("C4 P6 a tree of small files, large ones and folders arrives whole", "[engine][file]") {
  const auto durability = GENERATE(Durability::batch, Durability::file, Durability::none);
  const std::uint64_t seed = GENERATE(0U, 5U);
  const Tree tree{seed + 1};
  const TempFolder to{in_memory()};
  const Outcome outcome = send_tree(
      tree.list(), to.path(), [&](Wire& wire) { wire.reorder_seed = seed; }, durability);
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(outcome.done.size() == tree.list().manifest.files.size());
  CHECK(outcome.packed > 100);
  CHECK(outcome.blocks_carried < 60);  // of 152 entries, 25 of which are not packed
  check_equal(tree, to.path());
}

TEST_CASE("D1 a byte of the pack that flips gives its file no name", "[engine][file]") {
  const Tree tree{3};
  const TempFolder to{in_memory()};
  const Manifest manifest = tree.list().manifest;
  const std::uint32_t pack = pack_file(manifest);
  const Outcome outcome = send_tree(tree.list(), to.path(), [&](Wire& wire) {
    wire.on_carry = [&](BlockRef& block) {
      if (block.file == pack && block.offset == 2 * block_bytes)
        block.data[block.length / 2] ^= std::byte{1};
    };
  });
  REQUIRE(outcome.sink_failure.has_value());
  CHECK(outcome.sink_failure->failure == FileFailure::root_mismatch);
  const std::string damaged = manifest.files[outcome.sink_failure->file].name;
  CHECK_FALSE(fs::exists(to.path() / damaged));
  for (const ManifestEntry& entry : manifest.files)
    if (!entry.is_folder() && fs::exists(to.path() / entry.name))
      CHECK(read_file(to.path() / entry.name) == read_file(tree.folder / entry.name));
}

TEST_CASE("D1 a pack whose root is another than the files' ends the session", "[engine][file]") {
  const Tree tree{5};
  const TempFolder to{in_memory()};
  const std::uint32_t pack = pack_file(tree.list().manifest);
  const Outcome outcome = send_tree(tree.list(), to.path(), [&](Wire& wire) {
    wire.is_root_lost = true;
    wire.tell(AnnouncedRoot{.file = pack, .root = {std::byte{1}}});
  });
  REQUIRE(outcome.sink_failure.has_value());
  CHECK(outcome.sink_failure->failure == FileFailure::root_mismatch);
}

// Goal:   what waits in memory for the other block of its record is bounded, whatever a sender
// leaves out. Method: every second block of a pack in which a record lies across each end of each
// block. Bounds: exact: a block has two ends with a record, and the first one has one.
TEST_CASE("D3 a sender that leaves out every second block of a pack is ended", "[engine][file]") {
  const TempFolder to{in_memory()};
  Manifest manifest;
  for (std::size_t i = 0; i < 4 * receiver_slots + 16; ++i)
    manifest.files.push_back({.name = std::to_string(i), .size = packed_bytes_max, .mode = 0644});
  std::vector<std::byte> record(packed_bytes_max);
  const Digest root = record_root(crypto::DigestKind::xxh3, record);
  record.insert(record.end(), root.begin(), root.begin() + 16);
  const auto sink = make_sink(manifest, sink_settings(to.path(), manifest));
  FileRings rings{256};
  std::deque<BlockRef> free;
  FileFailure failure = FileFailure::none;
  std::uint64_t blocks_sent = 0;
  while (failure == FileFailure::none) {
    if (!free.empty()) {
      BlockRef message = free.front();
      free.pop_front();
      message.file = pack_file(manifest);
      message.offset = 2 * blocks_sent++ * block_bytes;
      message.length = block_bytes;
      for (std::size_t i = 0; i < block_bytes; ++i)
        message.data[i] = record[(message.offset + i) % record.size()];
      REQUIRE(rings.from_engine.push(message));
    }
    static_cast<void>(sink->turn(monotonic_now(), rings));
    for (BlockRef block; rings.to_engine.pop(block);) free.push_back(block);
    for (FileEvent event; rings.events.pop(event);)
      if (const auto* failed = std::get_if<FileFailed>(&event)) failure = failed->failure;
  }
  CHECK(failure == FileFailure::protocol);
  CHECK(blocks_sent == receiver_slots + 2);
  sink->close();
}

// Goal:   a small file that has its name and other content is neither taken for the one that is
// sent nor touched. Method: of a tree that is there one file gets other bytes, as many as before.
// Bounds: exact.
TEST_CASE("P5 C5 a packed file with other content is told from one that is the same",
          "[engine][file]") {
  const Tree tree{13};
  const TempFolder to{in_memory()};
  const Manifest manifest = tree.list().manifest;
  const Outcome first = send_tree(tree.list(), to.path(), {});
  REQUIRE_FALSE(first.sink_failure.has_value());
  const auto other = std::ranges::find_if(manifest.files, [](const ManifestEntry& entry) {
    return entry.size > 100 && is_packable(entry);
  });
  const auto mine = random_bytes(other->size, 1);
  write_file(to.path() / other->name, mine);
  const OnExist on_exist = GENERATE(OnExist::resume, OnExist::skip);
  const Outcome outcome = send_files(tree.list(), to.path(), on_exist, {});
  CHECK(read_file(to.path() / other->name) == mine);
  if (on_exist == OnExist::resume) {
    REQUIRE(outcome.sink_failure.has_value());
    CHECK(outcome.sink_failure->failure == FileFailure::differs);
    CHECK(manifest.files[outcome.sink_failure->file].name == other->name);
  } else {
    CHECK_FALSE(outcome.sink_failure.has_value());
    CHECK(outcome.packed_kept == 1);
    const auto folders = std::ranges::count_if(manifest.files, &ManifestEntry::is_folder);
    CHECK(outcome.packed_there + 1 + static_cast<std::size_t>(folders) == first.packed);
  }
}

// Goal:   a packed file that has more content than the kernel says is never verified. Method: the
// offer has one byte less than the file, whose fence fits. Bounds: exact.
TEST_CASE("C4 a packed file that is longer than its size says ends the session", "[engine][file]") {
  const Tree tree{19};
  const TempFolder to{in_memory()};
  SourceFiles files = tree.list();
  const auto longer = std::ranges::find_if(files.manifest.files, [](const ManifestEntry& entry) {
    return entry.size > 100 && is_packable(entry);
  });
  --longer->size;
  const std::string name = longer->name;
  const Outcome outcome = send_tree(std::move(files), to.path(), {});
  REQUIRE(outcome.source_failure.has_value());
  CHECK(outcome.source_failure->failure == FileFailure::source_length);
  CHECK_FALSE(std::filesystem::exists(to.path() / name));
}

// Goal:   a tree of which every second file is there is told of in as few messages as one of which
// none is. Method: both. Bounds: exact.
TEST_CASE("C5 files that are there and files that come are told of together", "[engine][file]") {
  const Tree tree{17};
  const TempFolder to{in_memory()};
  const Manifest manifest = tree.list().manifest;
  const Outcome first = send_tree(tree.list(), to.path(), {});
  REQUIRE(first.packed > 100);
  bool is_removed = false;
  for (const ManifestEntry& entry : manifest.files)
    if (is_packable(entry) && !entry.is_folder() && (is_removed = !is_removed))
      std::filesystem::remove(to.path() / entry.name);
  const Outcome second = send_tree(tree.list(), to.path(), {}, Durability::batch, OnExist::resume);
  REQUIRE_FALSE(second.sink_failure.has_value());
  CHECK(second.packed_there > 30);
  CHECK(second.packed_runs <= first.packed_runs);
}

// Goal:   what a session brought before it ended in order is there, right, and not sent again.
// Method: the wire is cut at each of several blocks; a second session completes the tree. Bounds:
// exact; the second one carries less.
TEST_CASE("C1 C5 a tree that was cut off goes on where it ended", "[engine][file]") {
  const std::uint64_t cut_at = GENERATE(0U, 1U, 3U, 7U);
  const Tree tree{11};
  const TempFolder to{in_memory()};
  const Manifest manifest = tree.list().manifest;
  const std::uint32_t pack = pack_file(manifest);
  const Outcome first =
      send_tree(tree.list(), to.path(), [&](Wire& wire) { wire.is_cut = at_block(pack, cut_at); });
  CHECK(first.packed < tree.list().manifest.files.size());
  for (const std::string& name : names_in(to.path()))
    CHECK(name.find("stage") == std::string::npos);
  const Outcome second = send_tree(tree.list(), to.path(), {});
  CHECK_FALSE(second.sink_failure.has_value());
  check_equal(tree, to.path());
  if (cut_at > 1) {
    CHECK(second.packed_there > 0);
    CHECK(second.packed + second.packed_there < manifest.files.size());  // some are not packed
  }
}

TEST_CASE("C2 P8 what a killed session left in its stage is removed, and nothing else",
          "[engine][file]") {
  const Tree tree{13};
  const TempFolder to{in_memory()};
  fs::create_directory(to / ".onehop-stage");
  ::chmod((to / ".onehop-stage").c_str(), 0700);
  write_file(to / ".onehop-stage" / "1f", "left");
  fs::create_directory(to / ".1.onehop-stage");
  ::chmod((to / ".1.onehop-stage").c_str(), 0700);
  write_file(to / ".1.onehop-stage" / "a user's", "mine");
  const Outcome outcome = send_tree(tree.list(), to.path(), {});
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK_FALSE(fs::exists(to / ".onehop-stage"));
  CHECK(read_file(to / ".1.onehop-stage" / "a user's") == "mine");
}

// A power cut may bring a stage back after everything in it got its name.
TEST_CASE("C2 P8 stages that are left are removed where nothing is packed any more",
          "[engine][file]") {
  const TempFolder from, to{in_memory()};
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < packed_files_min; ++i) {
    paths.push_back((from / ("f" + std::to_string(i))).string());
    write_file(paths.back(), random_bytes(100, i));
  }
  CHECK_FALSE(send(paths, to.path()).sink_failure.has_value());
  for (const char* const name : {".onehop-stage", ".1.onehop-stage"}) {
    fs::create_directory(to / name);
    ::chmod((to / name).c_str(), 0700);
    write_file(to / name / "1f", "left");
  }
  CHECK_FALSE(send(paths, to.path(), OnExist::resume).sink_failure.has_value());
  CHECK(names_in(to.path()) == names_in(from.path()));
}

TEST_CASE("C3 a packed file that changed ends the source, and is told by name", "[engine][file]") {
  const Tree tree{17};
  const TempFolder to{in_memory()};
  SourceFiles files = tree.list();
  const std::size_t changed = some_packed(files.manifest);
  const std::string name = files.manifest.files[changed].name;
  write_file(tree.folder / name, random_bytes(files.manifest.files[changed].size, 99));
  const Outcome outcome = send_tree(std::move(files), to.path(), {});
  REQUIRE(outcome.source_failure.has_value());
  CHECK(outcome.source_failure->failure == FileFailure::source_changed);
  CHECK(outcome.source_failure->file == changed);
  CHECK_FALSE(fs::exists(to.path() / name));
}

TEST_CASE("P6 a folder that was there keeps its mode, and a shared one its group",
          "[engine][file]") {
  const Tree tree{17};
  const TempFolder to{in_memory()};
  fs::create_directory(to / "d0");
  REQUIRE(::chmod((to / "d0").c_str(), 0700) == 0);
  fs::create_directory(to / "d1");
  REQUIRE(::chmod((to / "d1").c_str(), 02770) == 0);
  REQUIRE(::chmod(to.path().c_str(), 02755) == 0);
  const Outcome outcome = send_tree(tree.list(), to.path(), {});
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(mode_of(to / "d0") == 0700);
  CHECK(mode_of(to / "d1") == 02770);
  CHECK(mode_of(to / "d2") == 02750);  // new: the sender's mode, and the bit of the folder above
  CHECK(mode_of(to / "empty") == 02750);
}

TEST_CASE("P6 folders have the sender's mode below a default ACL, which mkdir gives another",
          "[engine][file]") {
  const Tree tree{17};
  const TempFolder to;
  // posix_acl_xattr.h: version 2; entries of tag, permissions and id: user, group, others
  const std::uint32_t all = 7 << 16, none = ~0U;
  const std::uint32_t acl[] = {2, 0x01 | all, none, 0x04 | all, none, 0x20 | 5 << 16, none};
  if (::setxattr(to.path().c_str(), "system.posix_acl_default", acl, sizeof acl, 0) != 0) {
    WARN("not tested: this file system has no ACLs");
    return;
  }
  const Outcome outcome = send_tree(tree.list(), to.path(), {});
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(mode_of(to / "d1") == 0750);
  CHECK(mode_of(to / "empty") == 0750);
}

TEST_CASE("P6 a tree arrives in the folder of another user", "[engine][file]") {
  if (::geteuid() != 0) return;  // there is no folder of another user to be had
  const Tree tree{18};
  const TempFolder to{in_memory()};
  REQUIRE(::chmod(tree.folder.path().c_str(), 0755) == 0);
  REQUIRE(::chmod(to.path().c_str(), 0777) == 0);
  fs::create_directory(to / "d0");
  const mode_t mode = GENERATE(0777U, 0775U);  // by everybody; by our group
  REQUIRE(::chmod((to / "d0").c_str(), mode) == 0);
  SourceFiles files = tree.list();
  const AsNobody as_nobody;
  const Outcome outcome = send_tree(std::move(files), to.path(), {});
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(outcome.done.size() == tree.list().manifest.files.size());
  CHECK(mode_of(to / "d0") == mode);
  CHECK(mode_of(to / "d1") == 0750);
}

TEST_CASE("P2 a link in the place of a folder is never followed", "[engine][file]") {
  const Tree tree{19};
  const TempFolder to{in_memory()}, outside;
  fs::create_directory_symlink(outside.path(), to / "d2");
  const Manifest manifest = tree.list().manifest;
  const auto sink = make_sink(manifest, sink_settings(to.path(), manifest));
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    const std::string& name = manifest.files[i].name;
    CHECK(sink->faults()[i] == (name == "d2" || name.starts_with("d2/") ? ELOOP : 0));
  }
  CHECK(names_in(outside.path()).empty());
}

TEST_CASE("P5 names that exist are handled by policy, in a pack as well", "[engine][file]") {
  const Tree tree{23};
  const TempFolder to{in_memory()};
  const Manifest manifest = tree.list().manifest;
  const std::string taken = manifest.files[some_packed(manifest)].name;
  fs::create_directories((to / taken).parent_path());
  write_file(to / taken, "another content, of another size, that somebody keeps here");
  const Outcome outcome = send_tree(tree.list(), to.path(), {}, Durability::batch, OnExist::rename);
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(read_file(to / taken).starts_with("another content"));
  CHECK(read_file(to.path() / final_name(taken, 2)) == read_file(tree.folder / taken));
}

// Goal:   what a killed session delivered under --on-exist rename is known by its inode, and not
// received once more. Method: killed after some packed files have names; the same again. Bounds:
// exact.
TEST_CASE("C1 packed files that a killed session renamed are not received again",
          "[engine][file]") {
  const Tree tree{29};
  const TempFolder to{in_memory()};
  const Manifest manifest = tree.list().manifest;
  const std::string taken = manifest.files[some_packed(manifest)].name;
  fs::create_directories((to / taken).parent_path());
  write_file(to / taken, "somebody's");
  kill_at(tree.list(), to.path(), OnExist::rename, at_block(pack_file(manifest), 9),
          [](SinkSettings& options) { options.durability = Durability::file; });
  CHECK(fs::exists(to.path() / final_name(taken, 2)));
  CHECK(fs::exists(to / ".onehop-stage"));  // killed, not closed
  const Outcome again = send_tree(tree.list(), to.path(), {}, Durability::batch, OnExist::rename);
  CHECK_FALSE(again.sink_failure.has_value());
  std::vector<std::string> wanted = names_in(tree.folder.path());
  wanted.push_back(final_name(taken, 2));
  std::ranges::sort(wanted);
  CHECK(names_in(to.path()) == wanted);
  CHECK(read_file(to / taken) == "somebody's");
}
