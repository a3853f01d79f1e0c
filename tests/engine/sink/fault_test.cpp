// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Disks that fail, fill up and stall: a Sink on the slow-disk file system and on a small tmpfs.
// Needs root for the mounts; elsewhere the program says why, and ends with 77.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include <cerrno>

#include "tests/engine/sink/file_support.hpp"
#include "tests/engine/sink/slow_disk.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

constexpr std::size_t blocks = 40;

struct Case {
  std::string error;
  FileFailure failure;
  int errno_value;
};

}  // namespace

// Goal:   Z3: a disk that fails ends the session with a typed error, without a final name, and
// resumably. Method: each fault in turn, then the same transfer again on the same backing folder
// without the fault. Bounds: after the fault nothing but part and journals is in the folder; the
// second session skips what was recorded (0 is
//         allowed where syncing itself failed) and ends with the exact bytes.
TEST_CASE("Z3 errors at write, sync and rename are typed and resumable", "[engine][file][fault]") {
  const Case fault = GENERATE(Case{"write@5000000=ENOSPC", FileFailure::write_error, ENOSPC},
                              Case{"write@5000000=EDQUOT", FileFailure::write_error, EDQUOT},
                              Case{"write@5000000=EIO", FileFailure::write_error, EIO},
                              Case{"fsync=EIO", FileFailure::sync_error, EIO},
                              Case{"rename=EIO", FileFailure::rename_error, EIO},
                              Case{"rename=EROFS", FileFailure::rename_error, EROFS});
  INFO(fault.error);
  const TempFolder from, backing, mount_point;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes + 1, 1));
  {
    const SlowDisk disk{backing.path(), mount_point.path(), {"--error", fault.error}};
    if (!disk.is_mounted()) skip(fuse_reason);
    const Outcome outcome = send({path}, mount_point.path());
    REQUIRE(outcome.sink_failure.has_value());
    CHECK(outcome.sink_failure->failure == fault.failure);
    CHECK(outcome.sink_failure->errno_value == fault.errno_value);
    CHECK(outcome.done.empty());
  }
  std::vector<std::string> left{".f.onehop-journal", ".f.part"};
  // The end had begun: the session's journal knows a part that may have another mode by now.
  if (fault.failure != FileFailure::write_error) left.emplace_back(".onehop-session");
  CHECK(names_in(backing.path()) == left);
  const SlowDisk disk{backing.path(), mount_point.path(), {}};
  REQUIRE(disk.is_mounted());
  const Outcome outcome = send({path}, mount_point.path());
  INFO("skipped " << outcome.blocks_skipped);
  CHECK_FALSE(outcome.sink_failure.has_value());
  if (fault.failure == FileFailure::rename_error) CHECK(outcome.blocks_skipped == blocks + 1);
  if (fault.errno_value == EDQUOT) CHECK(outcome.blocks_skipped > 0);
  CHECK(read_file(mount_point / "f") == read_file(path));
  CHECK(names_in(backing.path()) == std::vector<std::string>{"f"});
}

// Goal:   no packed file has its name before the disk has it. Method: a disk whose syncs fail, and
// then one that works. Bounds: exact.
TEST_CASE("Z3 U1 packed files that cannot be synced get no names", "[engine][file][fault]") {
  const auto durability = GENERATE(Durability::batch, Durability::file);
  const bool is_unreadable = GENERATE(false, true);
  const TempFolder from, backing, mount_point;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < 2 * packed_files_min; ++i) {
    paths.push_back((from / ("f" + std::to_string(i))).string());
    write_file(paths.back(), random_bytes(1000, i));
    // Such a file is synced while it is open: nobody but root could open it again.
    if (is_unreadable) ::chmod(paths.back().c_str(), 0200);
  }
  const auto set = [&](SinkSettings& options) { options.durability = durability; };
  {
    const SlowDisk disk{backing.path(), mount_point.path(), {"--error", "fsync=EIO"}};
    if (!disk.is_mounted()) skip(fuse_reason);
    const Outcome outcome =
        send_files(open_files(paths), mount_point.path(), OnExist::ask, {}, set);
    REQUIRE(outcome.sink_failure.has_value());
    CHECK(outcome.sink_failure->failure == FileFailure::sync_error);
    CHECK(outcome.sink_failure->errno_value == EIO);
    CHECK(outcome.packed == 0);
  }
  // The journal by which the next session knows what is its own.
  CHECK(names_in(backing.path()) == std::vector<std::string>{".onehop-session"});
  const SlowDisk disk{backing.path(), mount_point.path(), {}};
  REQUIRE(disk.is_mounted());
  const Outcome outcome = send_files(open_files(paths), mount_point.path(), OnExist::ask, {}, set);
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(outcome.packed == paths.size());
  CHECK(names_in(backing.path()) == names_in(from.path()));
}

TEST_CASE("Z3 C2 a checkpoint, due by time or by bytes, that cannot be synced records nothing",
          "[engine][file][fault]") {
  const bool is_by_bytes = GENERATE(false, true);
  const TempFolder from, backing, mount_point;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes, 2));
  const SlowDisk disk{backing.path(), mount_point.path(), {"--error", "fsync=EIO"}};
  if (!disk.is_mounted()) skip(fuse_reason);
  SourceFiles files = open_files({path});
  const Manifest manifest = files.manifest;
  SinkSettings options = sink_settings(mount_point.path(), manifest);
  options.checkpoint_span = is_by_bytes ? Nanos{1h} : Nanos{0};
  if (is_by_bytes) options.checkpoint_bytes = 2 * block_bytes;
  const std::unique_ptr<PreparedSink> sink = make_sink(manifest, options);
  Source source{{.slots = 16}, make_io()};
  source.add(only_volume(std::move(files)));
  Wire wire{&source, *sink};
  const Outcome outcome = wire.run();
  sink->close();
  REQUIRE(outcome.sink_failure.has_value());
  CHECK(outcome.sink_failure->failure == FileFailure::sync_error);
  CHECK(fs::file_size(backing / ".f.onehop-journal") == journal_header_bytes);
}

TEST_CASE("Z3 a slow disk that stalls delays a transfer and does not break it",
          "[engine][file][fault]") {
  const TempFolder from, backing, mount_point;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes, 3));
  const SlowDisk disk{
      backing.path(), mount_point.path(), {"--rate", "400Mbit", "--stall", "100ms:400ms"}};
  if (!disk.is_mounted()) skip(fuse_reason);
  const Instant begin = monotonic_now();
  const Outcome outcome = send({path}, mount_point.path());
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(outcome.done.size() == 1);
  CHECK(monotonic_now() - begin >=
        200ms);  // 10 MiB at 50 MB/s; else the disk was not slow and this shows nothing
  CHECK(read_file(mount_point / "f") == read_file(path));
}

TEST_CASE("Z3 a small disk that others fill up in the middle", "[engine][file][fault]") {
  if (::geteuid() != 0) skip("needs root to mount a small tmpfs");
  const TempFolder from, mount_point;
  if (::mount("onehop-test", mount_point.path().c_str(), "tmpfs", MS_NOSUID, "size=12m") != 0)
    skip("a tmpfs cannot be mounted here: " + errno_text(errno));
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes, 4));
  const Outcome outcome = send({path}, mount_point.path(), OnExist::ask, [&](Wire& wire) {
    wire.on_carry = [&](BlockRef& block) {
      if (block.offset == 20 * block_bytes)
        write_file(mount_point / "hog", std::string(4 << 20, 'h'));
    };
  });
  REQUIRE(outcome.sink_failure.has_value());
  CHECK(outcome.sink_failure->failure == FileFailure::write_error);
  CHECK(outcome.sink_failure->errno_value == ENOSPC);
  CHECK_FALSE(fs::exists(mount_point / "f"));
  fs::remove(mount_point / "hog");
  const Outcome second = send({path}, mount_point.path());
  CHECK(second.done.size() == 1);
  CHECK(second.blocks_skipped > 0);
  CHECK(read_file(mount_point / "f") == read_file(path));
  CHECK(::umount2(mount_point.path().c_str(), MNT_DETACH) == 0);
}
