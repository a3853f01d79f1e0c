// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   who waits is woken once for all that has come since he last looked, at once, and never
//         after close().
// Method: a pipe in the place of the kernel's notifications.
// Bounds: none on time; run_one() returns when the call was made.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>

#include "control/session/fd_watcher.hpp"
#include "engine/base/fd.hpp"

namespace onehop::session {
namespace {

struct WakeBench {
  boost::asio::io_context io;
  Fd reader, writer;
  int calls = 0;
  std::shared_ptr<FdWatcher> wake;

  WakeBench() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    reader = Fd{ends[0]};
    writer = Fd{ends[1]};
    auto opened = FdWatcher::open(io, reader.get(), [this] { ++calls; });
    REQUIRE(opened);
    wake = opened.value();
  }
  void tell() const { REQUIRE(::write(writer.get(), "n", 1) == 1); }
  void read_all() const {
    std::array<char, 16> news{};
    REQUIRE(::read(reader.get(), news.data(), news.size()) > 0);
  }
};

}  // namespace

TEST_CASE("news wake once, and again only after they were read and asked for",
          "[control][session]") {
  WakeBench bench;
  bench.wake->arm();
  bench.wake->arm();
  CHECK(bench.io.poll() == 0);
  bench.tell();
  bench.tell();
  CHECK(bench.io.run_one() == 1);
  CHECK(bench.calls == 1);
  bench.tell();
  bench.io.restart();
  CHECK(bench.io.poll() == 0);  // nobody has asked
  bench.read_all();
  bench.wake->arm();
  bench.io.restart();
  CHECK(bench.io.poll() == 0);
  bench.tell();
  CHECK(bench.io.run_one() == 1);
  CHECK(bench.calls == 2);
}

TEST_CASE("news that came before anybody asked wake at once", "[control][session]") {
  WakeBench bench;
  bench.tell();
  bench.wake->arm();
  CHECK(bench.io.run_one() == 1);
  CHECK(bench.calls == 1);
}

TEST_CASE("nothing wakes after close, whichever of the two descriptors goes first",
          "[control][session]") {
  WakeBench bench;
  bench.wake->arm();
  bench.tell();
  const bool is_reader_first = GENERATE(false, true);
  if (is_reader_first) bench.reader = Fd{};
  bench.wake->close();
  bench.wake.reset();
  bench.io.run();
  CHECK(bench.calls == 0);
}

TEST_CASE("what the call holds is let go at close, whoever keeps the wake", "[control][session]") {
  WakeBench bench;
  const auto held = std::make_shared<int>(0);
  const auto wake = FdWatcher::open(bench.io, bench.reader.get(), [held] { ++*held; }).value();
  wake->arm();
  wake->close();
  CHECK(held.use_count() == 1);
}

}  // namespace onehop::session
