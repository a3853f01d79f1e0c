// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What somebody who knows what will be sent puts where the receiver looks: other bytes with the
// length and the XXH3-128 of the offered ones (tests/support/planted.hpp). Nothing takes them for
// what is sent.
#include "tests/support/planted.hpp"
#include "tests/engine/sink/tree_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;
using onehop::test::plantable;
using onehop::test::planted_for;

namespace {

constexpr std::size_t file_bytes = 3 * block_bytes + 5;

Digest xxh3_of(const std::string& content) {
  return crypto::block_digest(crypto::DigestKind::xxh3, std::as_bytes(std::span{content}));
}

/// The mode and time of `path` are what an entry of the same name and size is known by.
void set_mtime(const fs::path& path) {
  const timespec times[2] = {{1, 0}, {1'000'000'000, 7}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("a planted content has the length and the XXH3-128 of the one that it stands for",
          "[engine][file]") {
  for (const std::size_t bytes : {241U, 1024U, 5000U, block_bytes, block_bytes + 77}) {
    const std::string sent = plantable(random_bytes(bytes, bytes)), planted = planted_for(sent);
    CHECK(sent.size() == planted.size());
    CHECK((sent != planted));
    CHECK(xxh3_of(sent) == xxh3_of(planted));
  }
}

TEST_CASE("P5 a planted file is not taken for the offered one", "[engine][file]") {
  const OnExist on_exist = GENERATE(OnExist::resume, OnExist::skip);
  const TempFolder from, to;
  const std::string sent = plantable(random_bytes(file_bytes, 1)), planted = planted_for(sent);
  const std::string path = (from / "f").string();
  write_file(path, sent);
  write_file(to / "f", planted);
  const Outcome outcome = send({path}, to.path(), on_exist);
  CHECK((read_file(to / "f") == planted));  // it is somebody's
  if (on_exist == OnExist::skip) {
    REQUIRE(outcome.outcomes.size() == 1);
    CHECK(outcome.outcomes[0].outcome == FileOutcome::kept);
  } else {
    REQUIRE(outcome.sink_failure.has_value());
    CHECK(outcome.sink_failure->failure == FileFailure::differs);
  }
}

TEST_CASE("P5 a planted small file is not taken for the offered one", "[engine][file]") {
  const OnExist on_exist = GENERATE(OnExist::resume, OnExist::skip);
  const TempFolder from, to;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < packed_files_min; ++i) {
    const std::string name = "f" + std::to_string(i);
    const std::string sent = plantable(random_bytes(300 + i, i));
    write_file(from / name, sent);
    write_file(to / name, i == 7 ? planted_for(sent) : sent);
    paths.push_back((from / name).string());
  }
  const Outcome outcome = send(paths, to.path(), on_exist);
  if (on_exist == OnExist::skip) {
    CHECK_FALSE(outcome.sink_failure.has_value());
    CHECK(outcome.packed_kept == 1);
    CHECK(outcome.packed_there == packed_files_min - 1);
  } else {
    REQUIRE(outcome.sink_failure.has_value());
    CHECK(outcome.sink_failure->failure == FileFailure::differs);
    CHECK(outcome.sink_failure->file == 7);
  }
}

// Goal:   a part whose journal lists the digests that the offered file has is no evidence either.
// Method: an interrupted session of the planted content leaves both; the offered one has the same
// name, size, mode and time. Bounds: what arrives is what was sent.
TEST_CASE("P5 a planted part with its journal is found out, block by block", "[engine][file]") {
  const TempFolder from, to;
  const std::string sent = plantable(random_bytes(file_bytes, 2)), planted = planted_for(sent);
  const std::string path = (from / "f").string();
  write_file(path, planted);
  set_mtime(path);
  kill_at({path}, to.path(), OnExist::ask,
          [count = 0](const BlockRef&) mutable { return ++count > 3; });
  write_file(path, sent);
  set_mtime(path);
  const Outcome outcome = send({path}, to.path());
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(outcome.blocks_skipped == 2);  // of three that lie there the first is another
  CHECK((read_file(to / "f") == sent));
}

// Goal:   a tag that repeats over contents, keys or lengths would be worth nothing.
TEST_CASE("K1 a tag depends on every byte, on the length and on the session's key",
          "[engine][file]") {
  crypto::CompareKey one, other;
  one.writable()[3] = std::byte{1};
  crypto::ContentMac mac{one}, of_other{other};
  const std::string content = random_bytes(block_bytes, 3);
  const auto bytes = std::as_bytes(std::span{content});
  const Digest tag = mac.tag(bytes);
  CHECK(tag == mac.tag(bytes));
  CHECK(tag != of_other.tag(bytes));
  CHECK(tag != mac.tag(bytes.first(block_bytes - 1)));
  for (const std::size_t at : {std::size_t{0}, std::size_t{777}, content.size() - 1}) {
    std::string changed = content;
    changed[at] ^= 1;
    CHECK(tag != mac.tag(std::as_bytes(std::span{changed})));
  }
  for (const std::uint32_t length : {0U, 1U, 15U, 16U, block_bytes - 1, block_bytes})
    CHECK(mac.zero_tag(length) == mac.tag(std::vector<std::byte>(length)));
  const std::string sent = plantable(random_bytes(5000, 4)), planted = planted_for(sent);
  CHECK(mac.tag(std::as_bytes(std::span{sent})) != mac.tag(std::as_bytes(std::span{planted})));
}
