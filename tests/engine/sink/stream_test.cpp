// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A stream of bytes whose size nobody knows, and a file that becomes one.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "engine/list/scan_thread.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

struct Pipe {
  Fd out, in;  // to read from, to write to
  Pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    out = Fd{ends[0]};
    in = Fd{ends[1]};
  }
};

/// Writes `bytes` to a pipe and closes it.
std::jthread feed(Fd to, std::string bytes) {
  return std::jthread{[to = std::move(to), bytes = std::move(bytes)] {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t count = ::write(to.get(), bytes.data() + at, bytes.size() - at);
      if (count < 0) return;
      at += static_cast<std::size_t>(count);
    }
  }};
}

std::vector<ScanVolume> volumes_of(const std::string& bytes, const std::string& name) {
  Pipe pipe;
  const std::jthread feeding = feed(std::move(pipe.in), bytes);
  auto scan = ScanThread::start_stream({.fd = pipe.out.get(), .name = name});
  REQUIRE(scan.has_value());
  std::vector<ScanVolume> volumes;
  do {
    auto next = scan.value()->wait_next();
    REQUIRE(next.has_value());
    volumes.push_back(std::move(next).value());
  } while (!volumes.back().is_last);
  CHECK(scan.value()->known().is_complete);
  CHECK(scan.value()->known().bytes == bytes.size());
  return volumes;
}

/// Carries volumes into what the settings name. The error of the volume that was refused.
struct Carried {
  Outcome outcome;
  std::optional<Error> refused;
};
Carried carry(std::vector<ScanVolume> volumes, SinkSettings settings,
              const std::function<void(Wire&)>& prepare = {}) {
  auto made = prepare_sink(std::move(settings));
  REQUIRE(made.has_value());
  const std::unique_ptr<PreparedSink> sink = std::move(made).value();
  Source source{{.slots = 16}, make_io()};
  Wire wire{&source, *sink};
  Carried carried;
  for (ScanVolume& volume : volumes) {
    sink->approve(volume.source.manifest);
    const auto added = sink->add(volume.source.manifest, volume.is_last);
    if (added.has_error()) {
      carried.refused = added.error();
      return carried;
    }
    SourceVolume answered = answered_volume(std::move(volume.source), *sink);
    answered.is_last = volume.is_last;
    source.add(std::move(answered));
  }
  if (prepare) prepare(wire);
  carried.outcome = wire.run();
  sink->close();
  return carried;
}

/// Reads a pipe to its end beside the test.
struct Reader {
  Pipe pipe;
  std::string bytes;
  std::thread thread{[this] {
    std::array<char, 70'000> part;
    while (true) {
      const ssize_t count = ::read(pipe.out.get(), part.data(), part.size());
      if (count <= 0) return;
      bytes.append(part.data(), static_cast<std::size_t>(count));
    }
  }};
  const std::string& all() {
    pipe.in.close();
    thread.join();
    return bytes;
  }
};

const std::string content = random_bytes(2 * piece_bytes_max + 3 * block_bytes + 77, 5);

}  // namespace

TEST_CASE("C4 a stream is cut into pieces, the last of which may be empty", "[engine][file]") {
  const std::size_t bytes = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{piece_bytes_max},
                                     std::size_t{piece_bytes_max} * 2 + 5);
  const std::vector<ScanVolume> volumes = volumes_of(content.substr(0, bytes), "n");
  std::uint64_t sum = 0;
  for (const ScanVolume& volume : volumes) {
    REQUIRE(volume.source.manifest.files.size() == 1);
    const ManifestEntry& piece = volume.source.manifest.files[0];
    CHECK(piece.is_piece());
    CHECK(piece.name == "n");
    CHECK(piece.size <= piece_bytes_max);
    CHECK((piece.size > 0 || volume.is_last));
    sum += piece.size;
    CHECK(volume.counts.bytes == sum);
    CHECK(volume.counts.files == 1);
  }
  CHECK(sum == bytes);
}

TEST_CASE("a stream that pauses gives what it has, and one that is read no more ends",
          "[engine][file]") {
  Pipe pipe;
  REQUIRE(::write(pipe.in.get(), "abc", 3) == 3);
  auto scan = ScanThread::start_stream({.fd = pipe.out.get(), .name = "n"});
  REQUIRE(scan.has_value());
  const auto first = scan.value()->wait_next();  // the pipe stays open
  REQUIRE(first.has_value());
  CHECK(first.value().source.manifest.files[0].size == 3);
  CHECK_FALSE(first.value().is_last);
  scan.value().reset();  // joins its thread, which waits for more
}

TEST_CASE("a stream that says nothing begins with an empty piece", "[engine][file]") {
  Pipe pipe;
  auto scan = ScanThread::start_stream({.fd = pipe.out.get(), .name = "n"});
  REQUIRE(scan.has_value());
  const auto first = scan.value()->wait_next();
  REQUIRE(first.has_value());
  CHECK(first.value().source.manifest.files[0].size == 0);
  CHECK_FALSE(first.value().is_last);
  REQUIRE(::write(pipe.in.get(), "abc", 3) == 3);
  const auto second = scan.value()->wait_next();
  REQUIRE(second.has_value());
  CHECK(second.value().source.manifest.files[0].size == 3);
}

TEST_CASE("what cannot be read as a stream is an error", "[engine][file]") {
  const TempFolder folder;
  const Fd directory{::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  auto scan = ScanThread::start_stream({.fd = directory.get(), .name = "n"});
  REQUIRE(scan.has_value());
  const auto next = scan.value()->wait_next();
  REQUIRE(next.has_error());
  CHECK(next.error().code == ExitCode::local_file_error);
}

// Goal:   a stream arrives whole, under its name and nothing beside it. Method: pieces of several
//         blocks and a short end; blocks in order and not; each durability. Bounds: exact.
TEST_CASE("C4 D1 a stream arrives whole in any order of blocks", "[engine][file]") {
  const auto durability = GENERATE(Durability::batch, Durability::file, Durability::none);
  const std::uint64_t seed = GENERATE(0U, 7U);
  const TempFolder to;
  std::vector<ScanVolume> volumes = volumes_of(content, "a/n");
  const std::size_t pieces = volumes.size();  // more where the pipe paused
  REQUIRE(pieces >= 3);
  const Carried carried =
      carry(std::move(volumes), {.folder = to.path().string(), .durability = durability},
            [&](Wire& wire) { wire.reorder_seed = seed; });
  CHECK_FALSE(carried.outcome.sink_failure.has_value());
  CHECK(carried.outcome.done.size() == pieces);
  CHECK(read_file(to / "a/n") == content);
  CHECK(names_in(to.path()) == std::vector<std::string>{"a", "a/n"});
}

TEST_CASE("an empty stream is an empty file", "[engine][file]") {
  const TempFolder to;
  CHECK_FALSE(
      carry(volumes_of("", "n"), {.folder = to.path().string()}).outcome.sink_failure.has_value());
  CHECK(names_in(to.path()) == std::vector<std::string>{"n"});
}

TEST_CASE("D1 C2 P8 a stream that is cut off or damaged leaves nothing", "[engine][file]") {
  const TempFolder to;
  const bool is_damaged = GENERATE(true, false);
  const Carried carried =
      carry(volumes_of(content, "n"), {.folder = to.path().string()}, [&](Wire& wire) {
        if (is_damaged)
          wire.on_carry = [](BlockRef& block) {
            if (block.offset == block_bytes) block.data[9] ^= std::byte{1};
          };
        else
          wire.is_cut = [](const BlockRef& block) { return block.offset == 2 * block_bytes; };
      });
  CHECK(carried.outcome.sink_failure.has_value() == is_damaged);
  CHECK(names_in(to.path()).empty());
}

// Goal:   standard output gets every byte in order, whatever the order of the blocks; what cannot
//         take it is an error. Method: pipes with a reader, and one without. Bounds: exact.
TEST_CASE("C4 a stream, or a file, is written to a descriptor in order", "[engine][file]") {
  const std::uint64_t seed = GENERATE(0U, 3U, 8U);
  const bool is_file = GENERATE(true, false);
  Reader reader;
  SinkSettings settings{.output_fd = reader.pipe.in.get()};
  std::vector<ScanVolume> volumes;
  const TempFolder from;
  if (is_file) {
    write_file(from / "f", content);
    volumes.push_back({.source = open_files({(from / "f").string()}), .is_last = true});
  } else {
    volumes = volumes_of(content, "n");
  }
  const Carried carried =
      carry(std::move(volumes), std::move(settings), [&](Wire& wire) { wire.reorder_seed = seed; });
  CHECK_FALSE(carried.outcome.sink_failure.has_value());
  CHECK(reader.all() == content);
}

TEST_CASE("C4 holes of a file are zeros on a descriptor", "[engine][file]") {
  const TempFolder from;
  const std::string data = random_bytes(3000, 4);
  write_file(from / "f", data);
  fs::resize_file(from / "f", 7 * block_bytes + 100);
  {
    const Fd file{::open((from / "f").c_str(), O_WRONLY | O_CLOEXEC)};
    REQUIRE(::pwrite(file.get(), data.data(), data.size(), 4 * block_bytes + 50) == 3000);
  }
  const std::string whole = read_file(from / "f");
  Reader reader;
  std::vector<ScanVolume> volumes;
  volumes.push_back({.source = open_files({(from / "f").string()}), .is_last = true});
  const std::uint64_t seed = GENERATE(0U, 3U);
  const Carried carried = carry(std::move(volumes), {.output_fd = reader.pipe.in.get()},
                                [&](Wire& wire) { wire.reorder_seed = seed; });
  CHECK_FALSE(carried.outcome.sink_failure.has_value());
  CHECK(carried.outcome.blocks_carried < 8);  // it has holes
  CHECK(reader.all() == whole);
}

TEST_CASE("C5 a reader that is gone ends the stream", "[engine][file]") {
  Pipe pipe;
  pipe.out.close();
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const Carried carried = carry(volumes_of(content, "n"), {.output_fd = pipe.in.get()});
  std::signal(SIGPIPE, before);
  REQUIRE(carried.outcome.sink_failure.has_value());
  CHECK(carried.outcome.sink_failure->failure == FileFailure::write_error);
  CHECK(carried.outcome.sink_failure->errno_value == EPIPE);
}

// Goal:   a session is one stream or none. Method: every mixture that validate() lets through, into
//         a folder and to a descriptor. Bounds: exact.
TEST_CASE("P4 Z1 a stream stands alone in its session", "[engine][file]") {
  const TempFolder from, to;
  write_file(from / "a", "a");
  write_file(from / "b", "b");
  const auto files = [&](const std::vector<std::string>& names) {
    ScanVolume volume;
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back((from / name).string());
    volume.source = open_files(paths);
    return volume;
  };
  const auto piece = [](const std::string& name) {
    return std::move(volumes_of("x", name).front());
  };
  const bool is_output = GENERATE(true, false);
  const Fd null{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  const auto refuses = [&](auto... volume) {
    std::vector<ScanVolume> volumes;
    (volumes.push_back(std::move(volume)), ...);
    volumes.back().is_last = true;
    SinkSettings settings{.folder = to.path().string(), .on_exist = OnExist::resume};
    if (is_output) settings.output_fd = null.get();
    return carry(std::move(volumes), std::move(settings)).refused.has_value();
  };
  CHECK(refuses(files({"a"}), piece("n")));
  CHECK(refuses(files({"a"}), piece("a")) != is_output);  // one file's content all the same
  CHECK(refuses(piece("n"), files({"a"})));
  CHECK(refuses(piece("n"), piece("m")));
  CHECK(refuses(files({"a", "b"})) == is_output);
  CHECK(refuses(files({"a"}), files({"b"})) == is_output);
  Manifest manifest{{{.name = "n", .kind = EntryKind::piece}, {.name = "m"}}};
  CHECK(validate(manifest).has_error());
}

TEST_CASE("P5 a name that exists is never compared with a stream", "[engine][file]") {
  const TempFolder to;
  write_file(to / "n", "mine");
  const auto [on_exist, is_refused] = GENERATE(table<OnExist, bool>({{OnExist::ask, true},
                                                                     {OnExist::resume, true},
                                                                     {OnExist::skip, true},
                                                                     {OnExist::rename, false},
                                                                     {OnExist::overwrite, false}}));
  const Carried carried =
      carry(volumes_of("theirs", "n"), {.folder = to.path().string(), .on_exist = on_exist});
  CHECK(carried.refused.has_value() == is_refused);
  CHECK(read_file(to / "n") == (on_exist == OnExist::overwrite ? "theirs" : "mine"));
  if (on_exist != OnExist::rename) return;
  CHECK(read_file(to / "n (2)") == "theirs");
  CHECK(carried.outcome.outcomes.back().name_number == 2);
}
