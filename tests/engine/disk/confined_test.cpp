// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Nothing outside the destination is touched, nothing that was there is overwritten unasked.
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

/// Sends one file under any manifest name, also with folders in it.
Outcome send_as(const std::string& name, const std::string& data, const fs::path& to,
                OnExist on_exist = OnExist::ask) {
  const TempFolder from;
  const std::string path = (from / "f").string();
  write_file(path, data);
  SourceFiles files = open_files({path});
  files.manifest.files[0].name = name;
  const Manifest manifest = files.manifest;
  auto sink = prepare_sink(manifest, sink_settings(to, manifest, on_exist));
  Outcome refused;
  if (sink.has_error()) {
    refused.sink_failure = FileFailed{.errno_value = sink.error().errno_value};
    return refused;
  }
  Source source{{.slots = 16}, make_io()};
  source.add(answered_volume(std::move(files), *sink.value()));
  Wire wire{&source, *sink.value()};
  const Outcome outcome = wire.run();
  sink.value()->close();
  return outcome;
}

Manifest list_of(const std::string& name, std::uint64_t size) {
  Manifest manifest;
  manifest.files.push_back({.name = name, .size = size, .mode = 0644});
  return manifest;
}

/// refused_entry is the errno for which the one entry of a list is left out. 0: it is not.
int refused_entry(const Outcome& outcome) {
  REQUIRE_FALSE(outcome.sink_failure.has_value());
  const bool is_refused =
      outcome.outcomes.size() == 1 && outcome.outcomes.front().outcome == FileOutcome::name_refused;
  return is_refused ? outcome.outcomes.front().name_fault : 0;
}
int refused_before(const fs::path& to, const Manifest& manifest, OnExist on_exist) {
  const auto sink = make_sink(manifest, sink_settings(to, manifest, on_exist));
  return sink->actions() == std::vector{FileAction::name_refused} ? sink->faults().front() : 0;
}

Error refusal(const fs::path& to, const Manifest& manifest, OnExist on_exist,
              std::uint64_t reserve_bytes = 0) {
  SinkSettings options = sink_settings(to, manifest, on_exist);
  options.reserve_bytes = reserve_bytes;
  auto sink = prepare_sink(manifest, options);
  REQUIRE(sink.has_error());
  CHECK(sink.error().code == ExitCode::local_file_error);
  return sink.error();
}

}  // namespace

TEST_CASE("folders of a name are made below the destination", "[engine][file]") {
  const TempFolder to;
  const std::string data = random_bytes(3 * block_bytes, 1);
  CHECK(send_as("a/b/c", data, to.path()).done.size() == 1);
  CHECK(read_file(to.path() / "a" / "b" / "c") == data);
  CHECK(send_as("a/b/d", data, to.path()).done.size() == 1);
  CHECK(names_in(to.path()) == std::vector<std::string>{"a", "a/b", "a/b/c", "a/b/d"});
}

TEST_CASE("P2 links planted in the destination are never followed", "[engine][file]") {
  const TempFolder to, outside;
  write_file(outside / "victim", "precious");
  fs::create_directory_symlink(outside.path(), to / "folder");
  fs::create_directory_symlink("..", to / "up");
  const std::string data = random_bytes(2 * block_bytes, 2);

  SECTION("a folder that is a link") {
    for (const char* const name : {"folder/new", "folder/victim", "up/new"})
      for (const OnExist policy : {OnExist::ask, OnExist::resume, OnExist::overwrite})
        CHECK(refused_before(to.path(), list_of(name, data.size()), policy) == ELOOP);
  }
  SECTION("the final name is a link") {
    fs::create_symlink(outside / "victim", to / "f");
    for (const OnExist policy : {OnExist::ask, OnExist::resume, OnExist::overwrite})
      CHECK(refused_before(to.path(), list_of("f", data.size()), policy) == ELOOP);
    CHECK(send_as("f", data, to.path(), OnExist::rename).done.size() == 1);
    CHECK(read_file(to / "f (2)") == data);
  }
  SECTION("the temporary names are links, fifos and hard links") {
    fs::create_symlink(outside / "victim", to / temporary_name("f", part_suffix));
    fs::create_symlink(outside / "victim",
                       to / temporary_name("f", std::string(".1").append(journal_suffix)));
    REQUIRE(::mkfifo((to / temporary_name("f", std::string(".2").append(part_suffix))).c_str(),
                     0600) == 0);
    fs::create_hard_link(outside / "victim",
                         to / temporary_name("f", std::string(".3").append(part_suffix)));
    CHECK(send_as("f", data, to.path()).done.size() == 1);
    CHECK(read_file(to / "f") == data);
  }
  CHECK(read_file(outside / "victim") == "precious");
  CHECK(names_in(outside.path()) == std::vector<std::string>{"victim"});
}

// Goal:   I2 holds while somebody swaps folders for links and back during the transfer.
// Method: a thread exchanges "d" and a link to the outside as fast as it can; 60 files are received
// below "d". Bounds: none may appear outside; each session ends (done or a typed failure).
TEST_CASE("P2 a race of folders against links leaves the outside untouched", "[engine][file]") {
  const TempFolder to, outside;
  write_file(outside / "victim", "precious");
  fs::create_directory(to / "d");
  fs::create_directory_symlink(outside.path(), to / "swap");
  std::atomic<bool> is_stopping{false};
  std::atomic<std::uint64_t> swaps{0};
  std::thread racer{[&] {
    while (!is_stopping) {
      if (::renameat2(AT_FDCWD, (to / "d").c_str(), AT_FDCWD, (to / "swap").c_str(),
                      RENAME_EXCHANGE) == 0)
        ++swaps;
    }
  }};
  const std::string data = random_bytes(2 * block_bytes + 1, 3);
  std::size_t done = 0, refused = 0;
  for (int i = 0; i < 60; ++i) {
    const Outcome outcome = send_as("d/f" + std::to_string(i), data, to.path());
    const bool is_refused =
        outcome.sink_failure.has_value() || outcome.outcomes.empty() || refused_entry(outcome) != 0;
    ++(is_refused ? refused : done);
  }
  is_stopping = true;
  racer.join();
  INFO("swaps " << swaps << " done " << done << " refused " << refused);
  CHECK(swaps > 0);
  CHECK(done + refused == 60);
  CHECK(names_in(outside.path()) == std::vector<std::string>{"victim"});
}

TEST_CASE("P2 a part that is swapped under us is not renamed", "[engine][file]") {
  const TempFolder from, to, outside;
  write_file(outside / "victim", "precious");
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(60 * block_bytes, 4));
  const Outcome outcome = send({path}, to.path(), OnExist::ask, [&](Wire& wire) {
    wire.on_carry = [&](BlockRef& block) {
      if (block.offset != 50 * block_bytes) return;
      fs::rename(to / ".f.part", to / "taken");
      fs::create_symlink(outside / "victim", to / ".f.part");
    };
  });
  REQUIRE(outcome.sink_failure.has_value());
  CHECK(outcome.sink_failure->failure == FileFailure::rename_error);
  CHECK_FALSE(fs::exists(fs::symlink_status(to / "f")));
  CHECK(read_file(outside / "victim") == "precious");
  CHECK(fs::is_symlink(to / ".f.part"));  // P8: not ours to remove
}

TEST_CASE("P5 an existing name is found before accept, by policy", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f.txt").string();
  write_file(path, "new content");
  write_file(to / "f.txt", "old");
  const Manifest manifest = open_files({path}).manifest;
  CHECK(refusal(to.path(), manifest, OnExist::ask).message().find("f.txt") != std::string::npos);
  refusal(to.path(), manifest, OnExist::resume);  // another size
  CHECK(read_file(to / "f.txt") == "old");

  CHECK(send({path}, to.path(), OnExist::skip).done.empty());
  CHECK(read_file(to / "f.txt") == "old");
  CHECK(send({path}, to.path(), OnExist::rename).done.size() == 1);
  CHECK(send({path}, to.path(), OnExist::rename).done.size() == 1);
  CHECK(read_file(to / "f (2).txt") == "new content");
  CHECK(read_file(to / "f (3).txt") == "new content");
  CHECK(read_file(to / "f.txt") == "old");
  CHECK(send({path}, to.path(), OnExist::overwrite).done.size() == 1);
  CHECK(read_file(to / "f.txt") == "new content");

  fs::remove(to / "f.txt");
  fs::create_directory(to / "f.txt");
  for (const OnExist policy : {OnExist::ask, OnExist::resume})
    CHECK(refused_before(to.path(), manifest, policy) == EISDIR);
  CHECK(refused_before(to.path(), manifest, OnExist::overwrite) == 0);  // it is empty
  write_file(to / "f.txt" / "own", "precious");
  CHECK(refused_before(to.path(), manifest, OnExist::overwrite) == EISDIR);
  fs::remove_all(to / "f.txt");
  REQUIRE(::mkfifo((to / "f.txt").c_str(), 0600) == 0);
  for (const OnExist policy : {OnExist::ask, OnExist::resume, OnExist::overwrite})
    CHECK(refused_before(to.path(), manifest, policy) == EEXIST);
}

TEST_CASE("P5 a name that appears during the transfer is not replaced", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(60 * block_bytes, 5));
  const Outcome outcome = send({path}, to.path(), OnExist::ask, [&](Wire& wire) {
    wire.on_carry = [&](BlockRef& block) {
      if (block.offset == 50 * block_bytes) write_file(to / "f", "somebody else's");
    };
  });
  CHECK(refused_entry(outcome) == EEXIST);
  CHECK(read_file(to / "f") == "somebody else's");
  CHECK(names_in(to.path()) == std::vector<std::string>{"f"});
}

TEST_CASE("a name that appears with the same content is there", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(60 * block_bytes, 5));
  const Outcome outcome = send({path}, to.path(), OnExist::ask, [&](Wire& wire) {
    wire.on_carry = [&](BlockRef& block) {
      if (block.offset == 50 * block_bytes) fs::copy(path, to / "f");
    };
  });
  CHECK_FALSE(outcome.sink_failure.has_value());
  REQUIRE(outcome.outcomes.size() == 1);
  CHECK(outcome.outcomes.front().outcome == FileOutcome::there);
  CHECK(names_in(to.path()) == std::vector<std::string>{"f"});
}

TEST_CASE("P8 an abort before any byte leaves nothing, folders included", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(4 * block_bytes, 6));
  SourceFiles files = open_files({path});
  files.manifest.files[0].name = "x/y/f";
  const Manifest manifest = files.manifest;
  const std::unique_ptr<PreparedSink> sink =
      make_sink(manifest, sink_settings(to.path(), manifest));
  Wire wire{nullptr, *sink};
  wire.tell(AnnouncedDigest{});
  wire.abort();
  CHECK(wire.run().checkpointed == 1);
  CHECK(names_in(to.path()).empty());
}

TEST_CASE("Z2 what does not fit is refused before accept", "[engine][file]") {
  const TempFolder to;
  Manifest manifest;
  manifest.files.push_back({.name = "bomb", .size = std::uint64_t{1} << 60, .mode = 0644});
  CHECK(refusal(to.path(), manifest, OnExist::ask).errno_value == ENOSPC);
  manifest.files[0].size = 1;
  const Error full = refusal(to.path(), manifest, OnExist::ask, std::uint64_t{1} << 60);
  CHECK(full.errno_value == ENOSPC);
  // What is free, what is kept, what is needed.
  CHECK(full.cause.starts_with("the disk has room for 0 B: "));
  CHECK(full.cause.find(" are free, of which 1152922 TB") != std::string::npos);
  CHECK(full.cause.ends_with(" are kept for other programs, and 4.10 kB are needed"));
  CHECK(names_in(to.path()).empty());
}

TEST_CASE("Z4 a folder that cannot be written to is found before accept", "[engine][file]") {
  const TempFolder to;
  Manifest manifest;
  manifest.files.push_back({.name = "f", .size = 1, .mode = 0644});
  refusal(to.path() / "none", manifest, OnExist::ask);
  refusal("/proc/self", manifest, OnExist::ask);
  fs::permissions(to.path(), fs::perms::owner_read | fs::perms::owner_exec);
  if (::geteuid() != 0) {
    refusal(to.path(), manifest, OnExist::ask);
  } else {  // root may write anywhere: ask as somebody else
    const pid_t child = ::fork();
    if (child == 0) {
      const bool is_other = ::chown(to.path().c_str(), 65534, 65534) == 0 && ::setgid(65534) == 0 &&
                            ::setuid(65534) == 0;
      const bool is_refused =
          prepare_sink(manifest, sink_settings(to.path(), manifest)).has_error();
      ::_exit(is_other && is_refused ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  fs::permissions(to.path(), fs::perms::owner_all);
}

TEST_CASE("Z1 a peer that breaks the protocol ends the session, not the program",
          "[engine][file]") {
  const TempFolder to;
  Manifest manifest;
  manifest.files.push_back({.name = "f", .size = 1000 * block_bytes, .mode = 0644});
  const auto failure_of = [&](const auto&... messages) {
    SinkSettings options = sink_settings(to.path(), manifest);
    const std::unique_ptr<PreparedSink> sink = make_sink(manifest, options);
    Wire wire{nullptr, *sink};
    (wire.tell(messages), ...);
    const Outcome outcome = wire.run();
    sink->close();
    return outcome.sink_failure ? outcome.sink_failure->failure : FileFailure::none;
  };
  const Digest one{std::byte{1}}, two{std::byte{2}};
  CHECK(failure_of(AnnouncedDigest{.file = 1}) == FileFailure::protocol);
  CHECK(failure_of(AnnouncedDigest{.offset = 1}) == FileFailure::protocol);
  CHECK(failure_of(AnnouncedDigest{.offset = 1000 * std::uint64_t{block_bytes}}) ==
        FileFailure::protocol);
  CHECK(failure_of(AnnouncedRoot{.file = 9}) == FileFailure::protocol);
  CHECK(failure_of(AnnouncedRoot{.root = one}, AnnouncedRoot{.root = two}) ==
        FileFailure::protocol);
  CHECK(failure_of(AnnouncedDigest{.digest = one}, AnnouncedDigest{.digest = two}) ==
        FileFailure::protocol);
  CHECK(failure_of(BlockRef{.kind = BlockKind::skipped, .digest = one}) ==
        FileFailure::protocol);                    // nothing was claimed
  const std::uint64_t count = GENERATE(64U, 65U);  // 4 x 16 slots, and one more
  const auto sink = make_sink(manifest, sink_settings(to.path(), manifest));
  Wire wire{nullptr, *sink};
  for (std::uint64_t i = 0; i < count; ++i) wire.tell(AnnouncedDigest{.offset = i * block_bytes});
  CHECK(wire.run().sink_failure.has_value() == (count > 64));
  sink->close();
}

// The engine waits for the blocks of a volume that it was not told to be skipped: one that the
// Sink took for a file which is there would leave the volume with it for ever.
TEST_CASE("Z1 a block that is there is announced as skipped, or the session ends",
          "[engine][file]") {
  const TempFolder to;
  const auto content = random_bytes(block_bytes + 5, 1);
  write_file(to / "f", content);
  Manifest manifest;
  manifest.files.push_back({.name = "f", .size = content.size(), .mode = 0644});
  const bool is_skipped = GENERATE(false, true);
  const OnExist on_exist = GENERATE(OnExist::resume, OnExist::skip);
  const auto sink = make_sink(manifest, sink_settings(to.path(), manifest, on_exist));
  const Digest tag =
      crypto::ContentMac{{}}.tag(std::as_bytes(std::span{content}).first(block_bytes));
  Wire wire{nullptr, *sink};
  static_cast<void>(wire.run());  // until what is there was read
  if (is_skipped)
    wire.tell({.kind = BlockKind::skipped, .digest = tag});
  else
    wire.tell(AnnouncedDigest{.digest = tag});
  const Outcome outcome = wire.run();
  sink->close();
  CHECK(outcome.sink_failure.has_value() != is_skipped);
  if (outcome.sink_failure) CHECK(outcome.sink_failure->failure == FileFailure::differs);
}

TEST_CASE("P5 a part that is not ours by a journal or a mark is never touched", "[engine][file]") {
  const std::size_t bytes = GENERATE(std::size_t{5}, std::size_t{3 * block_bytes});
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(bytes, 37));
  const std::string mine = random_bytes(70'000, 38);
  write_file(to / part_name, mine);
  fs::permissions(to / part_name, fs::perms::owner_read | fs::perms::owner_write);
  CHECK(send({path}, to.path()).done.size() == 1);
  CHECK(read_file(to / "f") == read_file(path));
  CHECK(read_file(to / part_name) == mine);
  CHECK(names_in(to.path()) == std::vector<std::string>{part_name, "f"});
}

TEST_CASE("P5 P8 what is called as a journal and is none is never touched, nor a part beside it",
          "[engine][file]") {
  const std::size_t bytes = GENERATE(std::size_t{5}, std::size_t{3 * block_bytes});
  const bool has_part = GENERATE(true, false);
  const auto mode = GENERATE(fs::perms{0600}, fs::perms{0644});
  const OnExist on_exist = GENERATE(OnExist::ask, OnExist::resume, OnExist::overwrite);
  INFO(bytes << " bytes, " << (has_part ? "with" : "without") << " part, mode "
             << static_cast<unsigned>(mode) << ", policy " << static_cast<int>(on_exist));
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(bytes, 41));
  const std::string mine = random_bytes(70'000, 42);
  write_file(to / journal_name, mine);
  fs::permissions(to / journal_name, mode);
  if (has_part) write_file(to / part_name, mine);
  if (has_part) fs::permissions(to / part_name, mode);
  CHECK(send({path}, to.path(), on_exist).done.size() == 1);
  CHECK(read_file(to / "f") == read_file(path));
  CHECK(read_file(to / journal_name) == mine);
  if (has_part) CHECK(read_file(to / part_name) == mine);
  CHECK(names_in(to.path()).size() == (has_part ? 3 : 2));
}
