// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   observers get what is told, whole and in order, and nothing that an observer does or
// leaves undone reaches the
//         transfer; only the user's own sockets are used.
// Method: publisher and feeds in one process, in a runtime folder of the test's own.
// Bounds: none on time.
#include <catch2/catch.hpp>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>

#include "tests/tools/watch_sample.hpp"
#include "tools/onehop/watch/feed.hpp"
#include "tools/onehop/watch/folder.hpp"
#include "tools/onehop/watch/local_socket.hpp"
#include "tools/onehop/watch/publisher.hpp"

namespace onehop::watch {
namespace {

/// Runtime is an XDG_RUNTIME_DIR for one test.
struct Runtime {
  std::string path = "/tmp/onehop-watch-XXXXXX";
  Runtime() {
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    ::setenv("XDG_RUNTIME_DIR", path.c_str(), 1);
  }
  ~Runtime() {
    ::unsetenv("XDG_RUNTIME_DIR");
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  [[nodiscard]] std::string folder() const { return path + "/onehop"; }
  [[nodiscard]] std::string own() const { return path_of(folder(), ::getpid()); }
};

struct Transfer {
  boost::asio::io_context io;
  std::uint64_t told = 0;
  std::unique_ptr<Publisher> publisher;
  Transfer() {
    auto opened = Publisher::open(io, [this] {
      Telemetry t = sample_telemetry();
      t.bytes_done = ++told;
      return line_of(t);
    });
    REQUIRE(opened);
    publisher = std::move(opened).value();
  }
  /// run returns how often something was handled.
  int run(std::chrono::milliseconds span) {
    int handled = 0;
    io.restart();
    boost::asio::steady_timer timer{io, span};
    bool is_over = false;
    timer.async_wait([&](const boost::system::error_code&) { is_over = true; });
    while (!is_over) handled += static_cast<int>(io.run_one());
    return handled;
  }
};

/// How many descriptors this process has.
std::size_t descriptors() {
  const std::filesystem::directory_iterator all{"/proc/self/fd"};
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::vector<Message> take(Feed& feed) {
  std::vector<Message> messages;
  for (;;) {
    const std::size_t before = messages.size();
    const auto is_open = feed.read(messages);
    REQUIRE(is_open);
    if (!is_open.value() || messages.size() == before) return messages;
  }
}

}  // namespace

TEST_CASE("an observer gets the state at once and then line after line", "[tools][watch]") {
  const Runtime runtime;
  Transfer transfer;
  CHECK(transfer.publisher->path() == runtime.own());
  struct stat info {};
  REQUIRE(::stat(runtime.own().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  REQUIRE(::stat(runtime.folder().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);

  transfer.run(std::chrono::milliseconds{300});
  CHECK(transfer.told == 0);    // nobody watches: nothing is made
  auto found = find_running();  // for root, other users' transfers as well
  std::erase_if(found, [](const Running& running) { return running.pid != ::getpid(); });
  REQUIRE(found.size() == 1);
  auto feed = Feed::open(found[0].socket);
  REQUIRE(feed);
  transfer.run(std::chrono::milliseconds{450});
  const auto messages = take(feed.value());
  REQUIRE(messages.size() >= 3);
  for (std::size_t i = 0; i < messages.size(); ++i)
    CHECK(std::get<Telemetry>(messages[i]).bytes_done == i + 1);
  transfer.publisher->tell(line_of(Ended{.exit_code = 0, .bytes_total = 9}));
  CHECK(std::get<Ended>(take(feed.value()).back()).bytes_total == 9);
  transfer.publisher.reset();
  CHECK_FALSE(std::filesystem::exists(runtime.own()));
  std::vector<Message> rest;
  CHECK_FALSE(feed.value().read(rest).value());
}

TEST_CASE(
    "K8 an observer that does not read loses lines but the last, and holds up neither the transfer "
    "nor others",
    "[tools][watch]") {
  const Runtime runtime;
  Transfer transfer;
  auto stopped = Feed::open(runtime.own()), awake = Feed::open(runtime.own());
  REQUIRE((stopped && awake));
  transfer.run(std::chrono::milliseconds{50});
  std::uint64_t seen = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    Telemetry t = sample_telemetry();
    t.bytes_done = 1000 + i;
    transfer.publisher->tell(line_of(t));  // never waits: it would never come back here
    for (const Message& message : take(awake.value()))
      seen = std::get<Telemetry>(message).bytes_done;
  }
  CHECK(seen == 1499);
  // What the other one gets are whole lines, in order, with a gap, and how it ended.
  transfer.publisher->tell_last(line_of(Ended{.exit_code = 7}));
  std::vector<Message> messages = take(stopped.value());
  REQUIRE_FALSE(messages.empty());
  REQUIRE(std::holds_alternative<Ended>(messages.back()));
  CHECK(std::get<Ended>(messages.back()).exit_code == 7);
  messages.pop_back();
  std::vector<std::uint64_t> counts;
  for (const Message& message : messages) counts.push_back(std::get<Telemetry>(message).bytes_done);
  REQUIRE(counts.size() > 1);
  CHECK(counts.size() < 100);
  CHECK(std::ranges::is_sorted(counts));
  transfer.publisher->tell(line_of(sample_telemetry()));
  const auto after = take(stopped.value());
  REQUIRE_FALSE(after.empty());
  CHECK(std::get<Telemetry>(after.back()).bytes_done == sample_telemetry().bytes_done);
}

TEST_CASE(
    "K8 what an observer writes is not read, its end is noticed, and the ninth is told why it may "
    "not "
    "watch",
    "[tools][watch]") {
  const Runtime runtime;
  Transfer transfer;
  std::vector<Feed> feeds;
  for (int i = 0; i < 9; ++i) {
    auto feed = Feed::open(runtime.own());
    REQUIRE(feed);
    feeds.push_back(std::move(feed).value());
    transfer.run(std::chrono::milliseconds{20});
  }
  CHECK(std::holds_alternative<Telemetry>(take(feeds[7]).back()));
  CHECK(std::holds_alternative<Refused>(take(feeds.back()).back()));
  const std::string garbage(1 << 20, 'x');
  for (Feed& feed : feeds)
    (void)::send(feed.fd(), garbage.data(), garbage.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  transfer.run(std::chrono::milliseconds{250});
  CHECK(std::holds_alternative<Telemetry>(take(feeds.front()).back()));
  feeds.clear();
  transfer.run(std::chrono::milliseconds{250});
  const std::uint64_t told = transfer.told;
  transfer.run(std::chrono::milliseconds{250});
  CHECK(transfer.told == told);
}

TEST_CASE("K8 of ten thousand connections eight may stay, and who watches goes on",
          "[tools][watch]") {
  constexpr int connections = 10'000;
  constexpr std::size_t held_max = 32;
  const Runtime runtime;
  Transfer transfer;
  auto first = Feed::open(runtime.own());
  REQUIRE(first);
  transfer.run(std::chrono::milliseconds{20});
  const auto before = descriptors();
  std::deque<Fd> held;
  std::uint64_t seen = 0;
  for (int i = 0; i < connections; ++i) {
    if (auto one = connect_local(runtime.own())) held.push_back(std::move(one).value());
    if (held.size() > held_max) held.pop_front();
    if (i % 8 != 7) continue;  // as many as may wait to be accepted
    transfer.run(std::chrono::milliseconds{1});
    REQUIRE(descriptors() <= before + held_max + 8);
    const auto messages = take(first.value());
    if (messages.empty()) continue;
    CHECK(std::get<Telemetry>(messages.back()).bytes_done > seen);
    seen = std::get<Telemetry>(messages.back()).bytes_done;
  }
  CHECK(seen >= 10);  // every 100 ms at the longest, for more than a second
}

TEST_CASE("K8 another user's connection gets not a byte", "[tools][watch]") {
  if (::geteuid() != 0) {
    WARN("not run: it takes root to be another user");
    return;
  }
  const Runtime runtime;
  Transfer transfer;
  // The folder keeps others out; this is about what the socket itself does.
  REQUIRE(::chmod(runtime.path.c_str(), 0755) == 0);
  REQUIRE(::chmod(runtime.folder().c_str(), 0755) == 0);
  REQUIRE(::chmod(runtime.own().c_str(), 0666) == 0);
  const std::string path = runtime.own();  // of this process, and not of the child
  for (const auto& [user, bytes_min] : {std::pair{65534U, 0}, std::pair{0U, 1}}) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      if (::setresuid(user, user, user) != 0) ::_exit(3);
      const auto fd = connect_local(path);
      pollfd ready{fd ? fd.value().get() : -1, POLLIN, 0};
      std::array<char, 256> line{};
      const bool is_ready = ::poll(&ready, 1, 10'000) == 1;
      const ssize_t got = is_ready ? ::read(ready.fd, line.data(), line.size()) : -1;
      ::_exit(got < 0 ? 4 : got > 0 ? 1 : 0);
    }
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) transfer.run(std::chrono::milliseconds{10});
    CAPTURE(user);
    CHECK(WEXITSTATUS(status) == bytes_min);
  }
}

// Bounds: how often it looks in half a second; one that asks again and again does it thousands of
// times.
TEST_CASE("K8 where no descriptor is left the publisher waits, and then goes on",
          "[tools][watch]") {
  const Runtime runtime;
  Transfer transfer;
  const auto client = connect_local(runtime.own());
  REQUIRE(client);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const int looks = transfer.run(std::chrono::milliseconds{500});
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(transfer.told == 0);
  CHECK(looks < 20);
  transfer.run(std::chrono::milliseconds{300});
  CHECK(transfer.told > 0);
}

TEST_CASE("a stopped publisher lets the loop run out, and still tells who watches",
          "[tools][watch]") {
  const Runtime runtime;
  Transfer transfer;
  auto feed = Feed::open(runtime.own());
  REQUIRE(feed);
  transfer.run(std::chrono::milliseconds{50});
  transfer.publisher->stop();
  transfer.io.restart();
  transfer.io.run();  // comes back
  transfer.publisher->tell(line_of(Ended{}));
  CHECK(std::holds_alternative<Ended>(take(feed.value()).back()));
}

TEST_CASE("what a process left behind is removed by the next one, and what lives is not",
          "[tools][watch]") {
  const Runtime runtime;
  REQUIRE(make_folder());
  const std::string dead = path_of(runtime.folder(), 99'999'999 % 4'000'000),
                    alive = path_of(runtime.folder(), 1), other = runtime.folder() + "/notes.txt";
  { REQUIRE(listen_local(dead, dead + "n")); }  // closed at once; the file stays
  std::ofstream{runtime.folder() + "/.999999999.new"} << "";
  std::ofstream{other} << "mine";
  const auto living = listen_local(alive, alive + "n");
  REQUIRE(living);
  Transfer transfer;
  CHECK_FALSE(std::filesystem::exists(dead));
  CHECK_FALSE(std::filesystem::exists(runtime.folder() + "/.999999999.new"));
  CHECK(std::filesystem::exists(alive));
  CHECK(std::filesystem::exists(other));
}

TEST_CASE("a folder that others may enter, that is another's or that is a link is not used",
          "[tools][watch]") {
  const auto is_used = [](const Runtime& runtime) {
    const auto made = make_folder();
    return made.has_value() && made.value() == runtime.folder();
  };
  {
    const Runtime runtime;
    CHECK(is_used(runtime));
  }
  {
    const Runtime runtime;
    std::filesystem::create_directory(runtime.folder());
    ::chmod(runtime.folder().c_str(), 0755);
    CHECK_FALSE(is_used(runtime));
  }
  {
    const Runtime runtime;
    std::filesystem::create_directory(runtime.path + "/real");
    ::chmod((runtime.path + "/real").c_str(), 0700);
    std::filesystem::create_directory_symlink(runtime.path + "/real", runtime.folder());
    CHECK_FALSE(is_used(runtime));
  }
  {
    const Runtime runtime;
    ::chmod(runtime.path.c_str(), 0777);  // anybody could put a folder in our folder's place
    CHECK_FALSE(is_used(runtime));
  }
  {
    const Runtime runtime;
    ::setenv("XDG_RUNTIME_DIR", (runtime.path + "/" + std::string(100, 'x')).c_str(), 1);
    std::filesystem::create_directory(runtime.path + "/" + std::string(100, 'x'));
    const auto made = make_folder();  // too long for a socket: another place is taken
    if (made) CHECK(made.value().size() < socket_path_bytes_max);
  }
}

TEST_CASE("only this user's processes and root's may connect", "[tools][watch]") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  const Fd first{pair[0]}, second{pair[1]};
  CHECK(is_allowed(first.get()));
  CHECK_FALSE(is_allowed(-1));
}

}  // namespace onehop::watch
