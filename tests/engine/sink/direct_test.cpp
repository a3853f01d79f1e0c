// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what goes past the page cache arrives as what goes through it, and leaves the cache as it
//         was, on each file system.
// Method: Source to Sink on ext4, XFS and btrfs of their own, on loop devices, as far as they can
//         be mounted here, and on the disk of the temporary folder. mincore(2) tells what the cache
//         has of a file. A FileIo that refuses direct I/O plays a file system that promised it.
// Bounds: bytes exact; of 24 MiB less than a twentieth is in the cache behind it. Of a file that
//         goes through it nearly all is, so the measure measures.
#include "engine/disk/page_cache.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <list>

#include "tests/engine/sink/interrupt_support.hpp"
#include "tests/engine/sink/loop_disk.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

constexpr std::uint64_t mebi = std::uint64_t{1} << 20;
constexpr std::size_t blocks = 96;

/// Disks are those that can be had here; a name and a folder each.
struct Disks {
  Disks() {
    all.emplace_back("the temporary folder's", own.path());
    for (const std::string kind : {"ext4", "xfs", "btrfs"}) {
      if (loops.emplace_back(kind).is_mounted())
        all.emplace_back(kind, loops.back().path());
      else
        WARN("not tested, for it cannot be mounted here: " << kind);
    }
  }
  const TempFolder own;
  std::list<LoopDisk> loops;
  std::vector<std::pair<std::string, fs::path>> all;
};

/// Wanting is the choice for its lifetime.
struct Wanting {
  explicit Wanting(DirectIo wanted) { direct_io_under_test() = wanted; }
  ~Wanting() { direct_io_under_test() = before; }
  Wanting(const Wanting&) = delete;
  Wanting& operator=(const Wanting&) = delete;
  const DirectIo before = direct_io_under_test();
};

Fd open_at(const fs::path& path) { return Fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)}; }

/// What the page cache has of a file, in bytes.
std::uint64_t cached_bytes(const Fd& fd, std::uint64_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  REQUIRE(at != MAP_FAILED);
  std::vector<unsigned char> pages((bytes + page_bytes - 1) / page_bytes);
  REQUIRE(::mincore(at, bytes, pages.data()) == 0);
  ::munmap(at, bytes);
  return page_bytes * static_cast<std::uint64_t>(std::ranges::count_if(
                          pages, [](unsigned char page) { return (page & 1) != 0; }));
}

std::uint64_t cached_bytes(const fs::path& path) {
  return cached_bytes(open_at(path), fs::file_size(path));
}

/// Takes a file out of the page cache.
void drop_all(const fs::path& path) {
  const Fd fd = open_at(path);
  REQUIRE(::fsync(fd.get()) == 0);
  drop(fd.get(), 0, fs::file_size(path));
}

bool takes_direct(const fs::path& path) {
  const Fd fd = open_at(path);
  PageCache cache{DirectIo::always};
  const CacheWay way = cache.choose(fd.get(), fs::file_size(path));
  CHECK(((::fcntl(fd.get(), F_GETFL) & O_DIRECT) != 0) == way.is_direct());
  return way.is_direct();
}

/// A FileIo that is refused direct I/O from its second operation on, as by a file system that
/// promised it.
class Refusing final : public FileIo {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return real_->name(); }
  [[nodiscard]] std::size_t depth() const noexcept override { return real_->depth(); }
  [[nodiscard]] std::size_t in_flight() const noexcept override {
    return real_->in_flight() + (refused_ ? 1 : 0);
  }
  void submit(const FileOperation& o) override {
    const bool is_direct = (::fcntl(o.fd, F_GETFL) & O_DIRECT) != 0;
    if (is_direct && o.kind != FileOperation::Kind::sync && operations_++ > 0)
      refused_ = {o.tag, -EINVAL};
    else
      real_->submit(o);
  }
  std::size_t collect(std::span<IoCompletion> done) override {
    if (!refused_) return real_->collect(done);
    done[0] = *refused_;
    refused_.reset();
    return 1;
  }
  void wait_one() override {
    if (!refused_) real_->wait_one();
  }
  [[nodiscard]] std::uint64_t syscalls_total() const noexcept override { return 0; }

 private:
  const std::unique_ptr<FileIo> real_ = make_io();
  std::optional<IoCompletion> refused_;
  std::size_t operations_ = 0;
};

struct Sent {
  Outcome outcome;
  std::string read, written;  ///< what both ends say of the page cache
};

/// Sends "f" from one folder to another.
Sent send_one(const fs::path& path, const fs::path& to, bool is_refused,
              const std::function<void(Wire&)>& prepare = {}) {
  SourceFiles files = open_files({path.string()});
  const Manifest manifest = files.manifest;
  SinkSettings settings = sink_settings(to, manifest);
  const auto make = [is_refused]() -> std::unique_ptr<FileIo> {
    if (is_refused) return std::make_unique<Refusing>();
    return make_io();
  };
  settings.make_io = make;
  const std::unique_ptr<PreparedSink> sink = make_sink(manifest, settings);
  Source source{{.slots = 16, .direct_io = direct_io_under_test()}, make()};
  source.add(answered_volume(std::move(files), *sink));
  Wire wire{&source, *sink};
  if (prepare) prepare(wire);
  Sent sent{.outcome = wire.run(), .read = {}, .written = {}};
  sink->close();
  sent.read = source.cache_text();
  sent.written = sink->sink().cache_text();
  CHECK_FALSE(sent.outcome.sink_failure.has_value());
  CHECK_FALSE(sent.outcome.source_failure.has_value());
  CHECK(read_file(to / "f") == read_file(path));
  return sent;
}

}  // namespace

TEST_CASE("files of odd sizes arrive whole past the page cache", "[file][direct]") {
  const Wanting always{DirectIo::always};
  const Disks disks;
  const std::vector<std::size_t> sizes{0,
                                       1,
                                       4095,
                                       4096,
                                       262'143,
                                       262'144,
                                       262'145,
                                       mebi - 1,
                                       mebi,
                                       mebi + 1,
                                       mebi + 4096,
                                       mebi + block_bytes - 1,
                                       5 * mebi,
                                       5 * mebi + 7,
                                       9 * mebi + 512};
  for (const auto& [name, folder] : disks.all)
    for (const std::uint64_t seed : {0U, 1U}) {
      INFO(name << ", reorder seed " << seed);
      const TempFolder from{folder}, to{folder};
      std::vector<std::string> paths;
      for (const std::size_t size : sizes) {
        paths.push_back((from / std::to_string(size)).string());
        write_file(paths.back(), random_bytes(size, size + seed));
      }
      const Outcome outcome =
          send(paths, to.path(), OnExist::ask, [&](Wire& wire) { wire.reorder_seed = seed; });
      CHECK_FALSE(outcome.sink_failure.has_value());
      CHECK_FALSE(outcome.source_failure.has_value());
      CHECK(names_in(to.path()) == names_in(from.path()));
      for (const std::string& path : paths)
        CHECK(read_file(to / fs::path{path}.filename().string()) == read_file(path));
    }
}

TEST_CASE("a large file leaves nothing of itself in the page cache", "[file][direct]") {
  const Disks disks;
  for (const auto& [name, folder] : disks.all)
    for (const DirectIo wanted : {DirectIo::always, DirectIo::never}) {
      INFO(name << (wanted == DirectIo::never ? ", never" : ", always"));
      const Wanting choice{wanted};
      const TempFolder from{folder}, to{folder};
      const fs::path path = from / "f";
      write_file(path, random_bytes(blocks * block_bytes + 100, 1));
      drop_all(path);
      if (cached_bytes(path) > 0) {
        WARN(name << " keeps its files in memory");
        continue;
      }
      std::uint64_t source = 0, target = 0;
      const Sent sent = send_one(path, to.path(), false, [&](Wire& wire) {
        wire.on_done = [&] {
          source = cached_bytes(path);
          target = cached_bytes(to / "f");
        };
      });
      if (wanted == DirectIo::always) {
        CHECK(source < mebi);
        CHECK(target < mebi);
        CHECK(sent.read == ", direct");
        CHECK(sent.written == ", direct");
      } else {
        CHECK(source > blocks * block_bytes * 9 / 10);
        CHECK(target > blocks * block_bytes * 9 / 10);
        CHECK(sent.read.empty());
        CHECK(sent.written.empty());
      }
    }
}

TEST_CASE("C2 a part past the page cache is resumed after a kill, and read past it as well",
          "[file][direct]") {
  const Wanting always{DirectIo::always};
  const Disks disks;
  for (const auto& [name, folder] : disks.all) {
    INFO(name);
    const TempFolder from{folder}, to{folder};
    const fs::path path = from / "f";
    write_file(path, random_bytes(blocks * block_bytes - 5, 2));
    kill_at({path.string()}, to.path(), OnExist::ask, at_block(0, blocks - 20));
    drop_all(to / part_name);
    const Outcome outcome = send({path.string()}, to.path());
    CHECK_FALSE(outcome.sink_failure.has_value());
    CHECK(outcome.blocks_skipped > blocks / 2);
    if (takes_direct(to / "f")) CHECK(cached_bytes(to / "f") < mebi);
    CHECK(read_file(to / "f") == read_file(path));
    // What is there is compared, and has the same digests.
    drop_all(to / "f");
    const Outcome again = send({path.string()}, to.path(), OnExist::resume);
    CHECK(again.blocks_carried == 0);
    CHECK(again.blocks_skipped == blocks);
    if (takes_direct(to / "f")) CHECK(cached_bytes(to / "f") < mebi);
  }
}

TEST_CASE("C4 holes and zeros of a file that goes past the page cache stay", "[file][direct]") {
  const Wanting always{DirectIo::always};
  const Disks disks;
  for (const auto& [name, folder] : disks.all) {
    INFO(name);
    const TempFolder from{folder}, to{folder};
    const fs::path path = from / "f";
    std::string bytes(12 * mebi + 77, '\0');
    const std::string some = random_bytes(block_bytes + 5000, 3);
    write_file(path, "");
    fs::resize_file(path, bytes.size());
    const Fd out{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    // Two blocks each have data.
    for (const std::size_t at :
         {std::size_t{0}, std::size_t{5 * mebi + 123}, bytes.size() - 6000}) {
      const std::string piece = some.substr(0, std::min(some.size(), bytes.size() - at));
      bytes.replace(at, piece.size(), piece);
      REQUIRE(write_at(out.get(), std::as_bytes(std::span{piece}), at) == 0);
    }
    const Outcome outcome = send({path.string()}, to.path());
    CHECK_FALSE(outcome.sink_failure.has_value());
    CHECK(outcome.bytes_hole == (blocks_of(bytes.size()) - 6) * block_bytes);
    CHECK(read_file(to / "f") == bytes);
    struct stat status {};
    REQUIRE(::stat((to / "f").c_str(), &status) == 0);
    CHECK(disk_bytes(status) < 2 * mebi);
  }
}

TEST_CASE("where a file system refuses what it promised, the file goes on through the page cache",
          "[file][direct]") {
  const Wanting always{DirectIo::always};
  const Disks disks;
  for (const auto& [name, folder] : disks.all) {
    INFO(name);
    const TempFolder from{folder}, to{folder};
    const fs::path path = from / "f";
    write_file(path, random_bytes(8 * mebi + 3, 4));
    if (!takes_direct(path)) continue;
    const Sent sent = send_one(path, to.path(), true);
    CHECK(sent.read == ", direct until it failed (Invalid argument)");
    CHECK(sent.written == ", direct until it failed (Invalid argument)");
  }
}

TEST_CASE("a file system without direct I/O has the cache dropped behind", "[file][direct]") {
  const LoopDisk disk{"ext4", "loop,data=journal"};  // ext4 takes none where it journals data
  if (!disk.is_mounted()) {
    WARN("not tested: ext4 cannot be mounted here");
    return;
  }
  const Wanting always{DirectIo::always};
  const TempFolder from{disk.path()}, to{disk.path()};
  const fs::path path = from / "f";
  write_file(path, random_bytes(blocks * block_bytes + 9, 5));
  REQUIRE_FALSE(takes_direct(path));
  drop_all(path);
  std::uint64_t source = 0, target = 0;
  const Sent sent = send_one(path, to.path(), false, [&](Wire& wire) {
    wire.on_done = [&] {
      source = cached_bytes(path);
      target = cached_bytes(to / "f");
    };
  });
  CHECK(source < mebi);
  CHECK(target < mebi);
  CHECK(sent.read == ", dropped behind");
  CHECK(sent.written == ", dropped behind");
}

TEST_CASE("a session fills its share of memory, and no more", "[file][direct]") {
  const TempFolder folder;
  const fs::path path = folder / "f";
  write_file(path, random_bytes(mebi, 6));
  if (!takes_direct(path)) {
    WARN("the temporary folder's disk takes no direct I/O");
    return;
  }
  const Fd fd = open_at(path);
  const auto is_direct = [&](PageCache& cache, std::uint64_t size) {
    const bool has_it = cache.choose(fd.get(), size).is_direct();
    CHECK(((::fcntl(fd.get(), F_GETFL) & O_DIRECT) != 0) == has_it);
    return has_it;
  };
  PageCache cache{DirectIo::automatic, 10 * mebi};
  CHECK(is_direct(cache, 11 * mebi));  // by itself
  CHECK_FALSE(is_direct(cache, 6 * mebi));
  CHECK(is_direct(cache, 5 * mebi));  // with what is there
  CHECK_FALSE(is_direct(cache, 4 * mebi));
  CHECK(is_direct(cache, mebi));
  CHECK(cache.choose(fd.get(), mebi - 1).kind == CacheWay::Kind::cached);
  PageCache never{DirectIo::never};
  CHECK_FALSE(is_direct(never, std::uint64_t{1} << 40));
  CHECK(never.text().empty());
  CHECK(share_of_memory() > 0);
  PageCache by_itself{DirectIo::automatic};
  CHECK(is_direct(by_itself, share_of_memory() * 2));
}
