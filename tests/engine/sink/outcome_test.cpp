// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What becomes of a file whose name exists: it is compared before it is called the same, the answer
// holds for the names that it was given for, and the number of a new name is told.
#include <fcntl.h>
#include <sys/stat.h>

#include <stop_token>

#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

std::vector<std::string> write_sources(
    const TempFolder& from, const std::vector<std::pair<std::string, std::string>>& files) {
  std::vector<std::string> paths;
  for (const auto& [name, content] : files) {
    write_file(from / name, content);
    paths.push_back((from / name).string());
  }
  return paths;
}

}  // namespace

// Goal:   under `skip`, only a file with the announced digest counts as there; all else is kept and
// said to be another. Method: one session over names that hold the same, another content of that
// size, another size, a fifo, a link to the same.
TEST_CASE("P5 skip keeps what exists, and calls it the same only where its digest is",
          "[engine][file]") {
  const TempFolder from, to;
  const std::string data = random_bytes(2 * block_bytes + 5, 1);
  const auto paths = write_sources(from, {{"same", data},
                                          {"other", data},
                                          {"size", data},
                                          {"fifo", data},
                                          {"link", data},
                                          {"empty", ""},
                                          {"new", data}});
  std::string changed = data;
  changed[block_bytes + 3] ^= 1;
  write_file(to / "same", data);
  write_file(to / "other", changed);
  write_file(to / "size", data + "x");
  write_file(to / "empty", "");
  REQUIRE(::mkfifo((to / "fifo").c_str(), 0600) == 0);
  fs::create_symlink(from / "link", to / "link");

  const Manifest manifest = open_files(paths).manifest;
  const std::unique_ptr<PreparedSink> sink =
      make_sink(manifest, sink_settings(to.path(), manifest, OnExist::skip));
  constexpr auto keep = FileAction::keep, compare = FileAction::compare;
  CHECK(sink->actions() ==
        std::vector{compare, compare, keep, keep, keep, compare, FileAction::send});

  const Outcome outcome = send(paths, to.path(), OnExist::skip);
  CHECK_FALSE(outcome.sink_failure.has_value());
  REQUIRE(outcome.outcomes.size() == 4);
  const auto of = [&](std::uint32_t file) {
    return std::ranges::find(outcome.outcomes, file, &FileFinished::file)->outcome;
  };
  CHECK(of(0) == FileOutcome::there);
  CHECK(of(1) == FileOutcome::kept);
  CHECK(of(5) == FileOutcome::there);
  CHECK(of(6) == FileOutcome::received);
  CHECK(outcome.blocks_carried == 3);  // of the new one
  CHECK(read_file(to / "other") == changed);
  CHECK(read_file(to / "size") == data + "x");
  CHECK(fs::is_symlink(to / "link"));
  CHECK(fs::is_fifo(to / "fifo"));
  CHECK(names_in(to.path()).size() == 7);
}

// Goal:   what has size and time is taken unread, and nothing else is. Method: one volume over
// names of the same size and time, another time by 1 ns, another size, a fifo and a link of that
// time.
TEST_CASE(
    "P5 quick takes a file of the same size and time, whatever the policy, and reads no other "
    "thing as one",
    "[engine][file]") {
  const OnExist policy =
      GENERATE(OnExist::ask, OnExist::resume, OnExist::skip, OnExist::rename, OnExist::overwrite);
  const bool is_quick = GENERATE(true, false);
  if (policy == OnExist::ask && !is_quick) return;  // all are asked about
  const TempFolder from, to;
  const auto paths = write_sources(
      from, {{"same", "12"}, {"empty", ""}, {"time", "12"}, {"size", "12"}, {"link", "12"}});
  Manifest manifest = open_files(paths).manifest;
  for (ManifestEntry& entry : manifest.files) entry.mtime_ns = -1'500'000'001;  // before 1970
  write_file(to / "same", "xy");  // another content: nobody looks
  write_file(to / "empty", "");
  write_file(to / "time", "12");
  write_file(to / "size", "123");
  write_file(from / "target", "12");
  fs::create_symlink(from / "target", to / "link");
  for (const char* name : {"same", "empty", "time", "size", "link"}) {
    const timespec time{.tv_sec = -2,
                        .tv_nsec = 499'999'999 + (std::string_view{name} == "time" ? 1 : 0)};
    const timespec times[2] = {time, time};
    REQUIRE(::utimensat(AT_FDCWD, (to / name).c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
  }
  auto settings = sink_settings(to.path(), manifest, OnExist::ask);
  const OnExist of_other_time = policy == OnExist::ask ? OnExist::resume : policy;
  settings.on_exist_of = {policy, policy, of_other_time, OnExist::skip, OnExist::skip};
  settings.is_quick = is_quick;
  const std::unique_ptr<PreparedSink> sink = make_sink(manifest, settings);
  for (const std::size_t entry : {0U, 1U}) {
    CHECK((sink->actions()[entry] == FileAction::assume) == is_quick);
    CHECK(has_digests(sink->actions()[entry]) != is_quick);
    if (is_quick) CHECK(sink->held()[entry].empty());
  }
  for (const std::size_t entry : {2U, 3U, 4U}) CHECK(sink->actions()[entry] != FileAction::assume);
}

TEST_CASE("P5 skip does not call a file the same that it cannot read", "[engine][file]") {
  const TempFolder from, to;
  const auto paths = write_sources(from, {{"f", "content"}});
  write_file(to / "f", "content");
  REQUIRE(::chmod((to / "f").c_str(), 0) == 0);
  REQUIRE(::chmod(to.path().c_str(), 0777) == 0);
  const Manifest manifest = open_files(paths).manifest;
  const AsNobody as_nobody;
  const auto sink = prepare_sink(manifest, sink_settings(to.path(), manifest, OnExist::skip));
  REQUIRE(sink.has_value());
  CHECK(sink.value()->actions() == std::vector{FileAction::keep_unread});
}

TEST_CASE("P5 every name that is in the way is told, and named in one error", "[engine][file]") {
  const TempFolder from, to;
  const auto paths = write_sources(from, {{"a", "1"}, {"b", "22"}, {"c", "333"}, {"d", "4"}});
  write_file(to / "a", "11");
  write_file(to / "b", "22");  // the same: nobody has agreed to look
  write_file(to / "c", "0");
  REQUIRE(::mkfifo((to / "d").c_str(), 0600) == 0);
  const Manifest manifest = open_files(paths).manifest;
  SinkSettings options = sink_settings(to.path(), manifest);
  std::vector<Conflict> conflicts;
  options.conflicts = &conflicts;
  bool is_unsaid = false;
  options.is_unsaid = &is_unsaid;
  const auto refused = prepare_sink(manifest, options);
  REQUIRE(refused.has_error());
  CHECK(refused.error().message().find("'a'") != std::string::npos);
  CHECK(refused.error().message().find("as do 3 more") != std::string::npos);
  CHECK(is_unsaid);
  REQUIRE(conflicts.size() == 4);
  CHECK((conflicts[0].file == 0 && conflicts[0].is_regular && conflicts[0].size == 2));
  CHECK((conflicts[1].file == 1 && conflicts[1].is_regular && conflicts[1].size == 2));
  CHECK((conflicts[2].file == 2 && conflicts[2].is_regular && conflicts[2].size == 1));
  CHECK((conflicts[3].file == 3 && !conflicts[3].is_regular));
}

// Goal:   an answer holds for the names that it was given for: one that comes up afterwards is
// never replaced.
TEST_CASE("P5 a policy by file overwrites those files alone", "[engine][file]") {
  const TempFolder from, to;
  const auto paths = write_sources(from, {{"shown", "new"}, {"late", "new"}});
  write_file(to / "shown", "old");
  SourceFiles files = open_files(paths);
  const Manifest manifest = files.manifest;
  SinkSettings options = sink_settings(to.path(), manifest);
  options.on_exist_of = {OnExist::overwrite, OnExist::ask};
  const std::unique_ptr<PreparedSink> sink = make_sink(manifest, options);
  write_file(to / "late", "mine");
  Source source{{.slots = 16, .direct_io = direct_io_under_test()}, make_io()};
  source.add(only_volume(std::move(files)));
  const Outcome outcome = Wire{&source, *sink}.run();
  REQUIRE(outcome.outcomes.size() == 2);
  for (const FileFinished& done : outcome.outcomes)
    CHECK((done.outcome == FileOutcome::name_refused) == (done.file == 1));
  CHECK(read_file(to / "shown") == "new");
  CHECK(read_file(to / "late") == "mine");
}

TEST_CASE("rename tells the number of the name, and stays within 255 bytes", "[engine][file]") {
  const TempFolder from, to;
  const std::string longest = std::string(251, 'n') + ".txt", umlauts = std::string(1, 'x') + [] {
    std::string text;
    for (int i = 0; i < 127; ++i) text += "\xc3\xa4";
    return text;
  }();
  REQUIRE(umlauts.size() == 255);
  const auto paths =
      write_sources(from, {{"aa", "new"}, {longest, "new"}, {umlauts, "new"}, {"free", "new"}});
  for (const auto& name : {std::string{"aa"}, std::string{"aa (2)"}, longest, umlauts})
    write_file(to / name, "old");
  const Outcome outcome = send(paths, to.path(), OnExist::rename);
  REQUIRE(outcome.outcomes.size() == 4);
  const std::vector<std::string> names{"aa", longest, umlauts, "free"};
  for (const FileFinished& done : outcome.outcomes) {
    const std::string name = final_name(names[done.file], done.name_number);
    CHECK(done.name_number == (done.file == 0 ? 3 : done.file == 3 ? 0 : 2));
    CHECK(name.size() <= 255);
    CHECK(read_file(to / name) == "new");
    if (done.file != 3) CHECK(read_file(to / names[done.file]) == "old");
  }
  CHECK(final_name("d/e.f/name.txt", 2) == "d/e.f/name (2).txt");
  CHECK(final_name("d/e.f/name", 7) == "d/e.f/name (7)");
  CHECK(final_name("d/name", 0) == "d/name");
}

TEST_CASE("preparing ends where nobody waits for it any more", "[engine][file]") {
  const TempFolder from, to;
  const auto paths = write_sources(from, {{"f", random_bytes(40 * block_bytes, 2)}});
  fs::copy(from / "f", to / "f");
  const Manifest manifest = open_files(paths).manifest;
  std::stop_source stop;
  stop.request_stop();
  SinkSettings options = sink_settings(to.path(), manifest, OnExist::resume);
  options.withdrawn = stop.get_token();
  const auto prepared = prepare_sink(manifest, options);
  REQUIRE(prepared.has_error());
  CHECK(prepared.error().code == ExitCode::interrupted);
}
