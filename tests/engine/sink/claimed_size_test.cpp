// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sizes that nothing stands behind: what a peer claims, what a journal says, holes.
//
// Goal:   no memory follows them, and nobody waits for them.
// Method: all sizes that a signed offset holds, on a file system that has such files (tmpfs), and
//         the kernel's own account of this process's peak (VmHWM).
// Bounds: 16 MiB over a session of a small file. 2^40 bytes have 2^22 blocks: a byte for each would
//         be 4 MiB, a digest for each 128.
#include "tests/engine/sink/interrupt_support.hpp"
#include "tests/support/peak_memory.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

constexpr std::size_t growth_kib_max = 16 << 10;
constexpr std::uint64_t B = block_bytes;

void write_hole(const fs::path& path, std::uint64_t size) {
  write_file(path, "");
  fs::resize_file(path, size);
}

/// Holds the growth of the peak from here to its end.
struct PeakGuard {
  PeakGuard() : before_kib{(onehop::test::start_peak_anew(), onehop::test::peak_kib())} {}
  ~PeakGuard() { CHECK(onehop::test::peak_kib() <= before_kib + growth_kib_max); }
  PeakGuard(const PeakGuard&) = delete;
  PeakGuard& operator=(const PeakGuard&) = delete;
  std::size_t before_kib;
};

struct ClaimedFiles {
  explicit ClaimedFiles(const std::vector<std::uint64_t>& sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i)
      manifest.files.push_back({.name = "f" + std::to_string(i), .size = sizes[i], .mode = 0644});
  }
  Manifest manifest;
  const TempFolder to{in_memory()};
};

}  // namespace

TEST_CASE("Z1 Z2 claimed sizes take no memory in the file thread", "[engine][file]") {
  const auto [bits, count] =
      GENERATE(table<int, std::size_t>({{40, 1}, {52, 1}, {61, 1}, {62, 1}, {47, 4096}}));
  CAPTURE(bits, count);
  const std::uint64_t size = std::uint64_t{1} << bits;
  ClaimedFiles files{std::vector<std::uint64_t>(count, size)};
  const PeakGuard guard;
  SinkSettings settings = sink_settings(files.to.path(), files.manifest);
  settings.is_room_unchecked = true;
  const auto sink = make_sink(files.manifest, settings);
  FileRings rings{64};
  std::uint64_t failed = 0;
  const auto turn = [&] {
    sink->turn(Instant{1s}, rings);
    for (FileEvent event; rings.events.pop(event);)
      failed += std::holds_alternative<FileFailed>(event);
  };
  turn();
  const auto file = static_cast<std::uint32_t>(count - 1);
  const std::uint64_t run = hole_blocks_max * B;
  for (const std::uint64_t offset : {std::uint64_t{0}, size / 2, size - run, run}) {
    REQUIRE(rings.from_engine.push({.offset = offset,
                                    .file = file,
                                    .length = static_cast<std::uint32_t>(run),
                                    .kind = BlockKind::hole}));
    turn();
  }
  CHECK(failed == 0);
  sink->close();
}

TEST_CASE("Z1 a size beyond what offsets hold is refused", "[engine][file]") {
  const std::uint64_t size =
      GENERATE((std::uint64_t{1} << 62) + 1, std::uint64_t{1} << 63, ~std::uint64_t{0});
  const ClaimedFiles files{{size}};
  CHECK(validate(files.manifest).has_error());
}

TEST_CASE("Z2 a sparse source takes no memory and no reads, however large", "[engine][file]") {
  const int bits = GENERATE(40, 52, 61, 62);
  CAPTURE(bits);
  const TempFolder from{in_memory()};
  write_hole(from / "f", std::uint64_t{1} << bits);
  const PeakGuard guard;
  Source source{{.slots = 16}, make_io()};
  auto files = std::make_shared<SourceFiles>(open_files({(from / "f").string()}));
  source.add({.files = std::move(files), .is_last = true});
  FileRings rings{64};
  std::uint64_t hole_bytes = 0, others = 0;
  for (int turns = 0; turns < 100; ++turns) {
    source.turn(Instant{1s}, rings);
    for (BlockRef message; rings.to_engine.pop(message);)
      (message.kind == BlockKind::hole ? hole_bytes : others) += message.length;
  }
  CHECK(hole_bytes >= std::uint64_t{1} << 36);
  CHECK(others == 0);
}

TEST_CASE("Z2 a file that is there and nearly all holes is not compared", "[engine][file]") {
  const int bits = GENERATE(43, 52, 61);
  CAPTURE(bits);
  ClaimedFiles files{{std::uint64_t{1} << bits}};
  write_hole(files.to / "f0", std::uint64_t{1} << bits);
  const PeakGuard guard;
  for (const OnExist on_exist : {OnExist::resume, OnExist::skip}) {
    const auto destination =
        Destination::open({.folder = files.to.path().string(), .reserve_bytes = 0});
    REQUIRE(destination.has_value());
    const auto volume = SinkVolume::prepare(destination.value(), whole_list(files.manifest),
                                            {.on_exist = on_exist});
    if (on_exist == OnExist::skip) {
      REQUIRE(volume.has_value());
      CHECK(volume.value()->actions()[0] == FileAction::keep_unread);
    } else {
      REQUIRE(volume.has_error());
      CHECK(volume.error().message().find("holes") != std::string::npos);
      CHECK(volume.error().message().find("--on-exist") != std::string::npos);
    }
  }
}

// Who may write to a folder whose file system has no owners can plant one.
TEST_CASE("Z1 a journal takes memory for what it says, not for its length", "[engine][file]") {
  const TempFolder from, to{in_memory()};
  const std::string path = (from / "f").string(), content = random_bytes(8 * B - 5, 7);
  write_file(path, content);
  interrupt_after(path, to.path(), 5);
  const bool is_blank = GENERATE(false, true);
  CAPTURE(is_blank);
  if (!is_blank) {
    const Digest entry = entry_hash(open_files({path}).manifest.files[0]);
    JournalWriter writer{{.size = std::uint64_t{1} << 62, .entry = entry}};
    const auto* const header = reinterpret_cast<const char*>(writer.header().data());
    write_file(to / journal_name, {header, writer.header().size()});
  } else {
    write_file(to / journal_name, "");
  }
  fs::resize_file(to / journal_name, std::uint64_t{1} << 50);
  const PeakGuard guard;
  const Outcome outcome = send({path}, to.path());
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK((read_file(to / "f") == content));
}

// FAT has files of up to 4 GiB less a byte, ext4 of 16 TiB: else it would be found out there.
TEST_CASE("Z2 a file that the file system cannot have is refused before its first byte",
          "[engine][file]") {
  const TempFolder to;
  write_file(to / "limit", "");
  const auto has_size = [&](std::uint64_t size) {
    return ::truncate((to / "limit").c_str(), static_cast<off_t>(size)) == 0;
  };
  std::uint64_t most = 1;
  while (most < std::uint64_t{1} << 62 && has_size(2 * most)) most *= 2;
  fs::remove(to / "limit");
  if (most == std::uint64_t{1} << 62) {
    WARN("not tested: this file system has any file");
    return;
  }
  const auto destination = Destination::open({.folder = to.path().string(), .reserve_bytes = 0});
  REQUIRE(destination.has_value());
  const auto open = [&](std::uint64_t size) {
    return PartFile::open(*destination.value(), {.name = "f", .size = size, .mode = 0644}, {});
  };
  const auto beyond = open(4 * most);
  REQUIRE(beyond.has_error());
  CHECK(beyond.error().errno_value == EFBIG);
  CHECK(names_in(to.path()).empty());
  auto within = open(most);
  REQUIRE(within.has_value());
  CHECK(fs::file_size(to / part_name) == 0);
  within.value().remove();
}
