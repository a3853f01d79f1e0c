// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a list of files may say, and how a name is shown.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "engine/base/display_name.hpp"
#include "engine/disk/own_names.hpp"
#include "engine/list/tree_scan.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {
Manifest named(const std::vector<std::string>& names) {
  Manifest manifest;
  for (const std::string& name : names)
    manifest.files.push_back({.name = name, .size = 1, .mode = 0644});
  return manifest;
}
std::string deep(std::size_t folders) {
  std::string path;
  for (std::size_t i = 0; i < folders; ++i) path += "d/";
  return path + "f";
}
}  // namespace

TEST_CASE("P1 names that leave or bend the destination are refused as a whole", "[engine][file]") {
  for (const char* name : {"..", ".", "../a", "a/..", "a/../b", "/a", "/", "", "a/", "a//b", "./a",
                           "a/./b", "a/b/.."}) {
    INFO(name);
    CHECK(validate(named({"good", name})).has_error());
  }
  for (const char* name :
       {"a", "...", "..a", "a..", ".a", "a/.b", "a/b/c", " ", "-rf", "a\\..\\b"}) {
    INFO(name);
    CHECK(validate(named({name})).has_value());
  }
}

TEST_CASE("P3 limits of names: NUL, component, path and depth", "[engine][file]") {
  CHECK(validate(named({std::string("a\0b", 3)})).has_error());
  CHECK(validate(named({std::string(255, 'x')})).has_value());
  CHECK(validate(named({std::string(256, 'x')})).has_error());
  CHECK(validate(named({"d/" + std::string(256, 'x')})).has_error());
  CHECK(validate(named({deep(63)})).has_value());
  CHECK(validate(named({deep(64)})).has_error());
  std::string path;
  while (path.size() < 4000) path += std::string(200, 'y') + "/";
  CHECK(validate(named({path + std::string(4095 - path.size(), 'z')})).has_value());
  CHECK(validate(named({path + std::string(4096 - path.size(), 'z')})).has_error());
  CHECK(validate(named({"\x1b[2J", "\n", "\xff\xfe"}))
            .has_value());  // bytes are carried; only the display escapes
}

TEST_CASE("P3 a name on a terminal cannot act and cannot hide", "[engine][file]") {
  const std::vector<std::pair<std::string, std::string>> table{
      {"plain.txt", "plain.txt"},
      {"\x1b[2Kgone", "\\u{1B}[2Kgone"},
      {"a\nb\r\t", "a\\u{A}b\\u{D}\\u{9}"},
      {"\xc2\x9b"
       "31m",
       "\\u{9B}31m"},  // C1 CSI
      {"gpj.\xe2\x80\xae"
       "exe",
       "gpj.\\u{202E}exe"},  // right-to-left override
      {"\xe2\x81\xa6x\xe2\x81\xa9", "\\u{2066}x\\u{2069}"},
      {"a\xe2\x80\x8b"
       "b",
       "a\\u{200B}b"},
      {"\xff\xc0\xaf", "\\xFF\\xC0\\xAF"},           // invalid and overlong
      {"\xed\xa0\x80", "\\xED\\xA0\\x80"},           // a surrogate
      {"\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80"},  // above U+10FFFF
      {"\xe2\x82", "\\xE2\\x82"},                    // cut short
      {"back\\slash", "back\\\\slash"},
      {"\xc3\xa4\xe6\x97\xa5\xf0\x9f\x98\x80", "\xc3\xa4\xe6\x97\xa5\xf0\x9f\x98\x80"},
      {"\x7f", "\\u{7F}"},
      {"\xf3\xa0\x81\x81", "\\u{E0041}"},  // a tag character
  };
  for (const auto& [raw, shown] : table) CHECK(display_name(raw) == shown);
  std::mt19937 random{3};
  for (int i = 0; i < 20'000; ++i) {
    std::string raw(random() % 12, '\0');
    for (char& c : raw) c = static_cast<char>(random());
    for (const char c : display_name(raw))
      REQUIRE((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
  }
}

TEST_CASE("P4 duplicates, and a name that is file and folder", "[engine][file]") {
  CHECK(validate(named({"a", "b", "a"})).has_error());
  CHECK(validate(named({"a", "a/b"})).has_error());
  CHECK(validate(named({"a/b/c", "a!", "x", "a/b"})).has_error());
  CHECK(validate(named({"a", "a!", "a.b", "a b/c", "A"})).has_value());
  CHECK(validate(named({"a/b", "a/c", "a!"})).has_value());
  CHECK(validate(named({"f", ".f.part"}))
            .has_error());  // it could be renamed over the other's content
  CHECK(validate(named({"d/f", ".f.part"})).has_value());
  CHECK(validate(named({".f.onehop-journal"})).has_error());
  CHECK(validate(named({"x/.1.onehop-session"})).has_error());
}

TEST_CASE("P4 a folder may stand beside what it holds, and beside nothing of its name",
          "[engine][file]") {
  const auto with_folder = [](const std::vector<std::string>& names, std::uint64_t size = 0) {
    Manifest manifest = named(names);
    manifest.files[0].kind = EntryKind::folder;
    manifest.files[0].size = size;
    return manifest;
  };
  CHECK(validate(with_folder({"a"})).has_value());
  CHECK(validate(with_folder({"a", "a/b", "a!", "ab"})).has_value());
  CHECK(validate(with_folder({"a/b", "a/b/c", "a/d"})).has_value());
  CHECK(validate(with_folder({"a", "a/b", "a/b/c"})).has_error());
  CHECK(validate(with_folder({"a"}, 1)).has_error());
  CHECK(validate(with_folder({".a.part", "a"})).has_error());
  CHECK(validate(with_folder({"a", ".a.part"})).has_value());  // a folder has no temporary
  CHECK(validate(with_folder({"a", "a"})).error().message().find("cannot be both a") !=
        std::string::npos);
  Manifest twice = with_folder({"a", "a"});
  twice.files[1] = twice.files[0];
  CHECK(validate(twice).error().message().find("twice") != std::string::npos);
  for (const char* name : {"", "/", "a/", "..", "a//b"}) {
    INFO(name);
    CHECK(validate(with_folder({name})).has_error());
  }
}

TEST_CASE("Z1 counts, sizes and sums are bounded", "[engine][file]") {
  CHECK(validate(Manifest{}).has_error());
  Manifest manifest = named({"a", "b"});
  manifest.files[0].size = ~std::uint64_t{0};
  CHECK(validate(manifest).has_error());
  manifest.files[0].size = manifest.files[1].size = std::uint64_t{1} << 62;
  CHECK(validate(manifest).has_error());
  manifest.files[1].size = 0;
  CHECK(validate(manifest).has_value());
  manifest.files[0].mode = 04755;
  CHECK(validate(manifest).has_error());
  CHECK(validate(named({"a", "b", "c"}), {.entries_max = 2}).has_error());
}

TEST_CASE("Z1 what is beyond a limit is refused with its number and the limit's",
          "[engine][file]") {
  const auto says = [](const Manifest& manifest, const std::vector<std::string>& words,
                       const ManifestLimits& limits = {}) {
    const auto valid = validate(manifest, limits);
    REQUIRE(valid.has_error());
    for (const std::string& word : words) {
      INFO(valid.error().message());
      CHECK(valid.error().message().find(word) != std::string::npos);
    }
  };
  Manifest manifest = named({"a", "b"});
  manifest.files[1].size = (std::uint64_t{1} << 63) - 1;
  says(manifest, {"'b'", "9223372036854775807", "4611686018427387904"});
  manifest.files[0].size = manifest.files[1].size = std::uint64_t{1} << 62;
  says(manifest, {"'b'", "9223372036854775808", "4611686018427387904"});
  says(named({"a", "b", "c"}), {"3 files", "2"}, {.entries_max = 2});
  says(named({std::string(256, 'x')}), {"256 bytes", "255"});
  says(named({std::string(5000, 'x')}), {"5000 bytes", "4095"});
  says(named({deep(64)}), {"65 components", "64"});
  // The reason still stands where the text is cut for the peer.
  CHECK(validate(named({std::string(255, '\x1b') + "/"})).error().message().size() < 1024);
}

TEST_CASE("hidden names are refused by name unless they are allowed", "[engine][file]") {
  for (const char* name : {".bashrc", ".ssh/authorized_keys", "...", "."}) {
    const auto visible = check_visible(named({"plain", name, ".later"}));
    INFO(name);
    REQUIRE(visible.has_error());
    CHECK(visible.error().message().find(std::string{"'"} + name + "'") != std::string::npos);
    CHECK(visible.error().message().find("1 more") != std::string::npos);
    CHECK(visible.error().hint.find("--allow-hidden") != std::string::npos);
  }
  for (const char* name :
       {"a", "a.b", "a.", "a..b", " .a", "-rf", "folder/file", "d/.git/hooks/x"}) {
    INFO(name);
    CHECK(check_visible(named({name})).has_value());
  }
  const auto why = check_visible(named({".ssh/\x1b[2J"})).error().message();
  CHECK(why.find("'.ssh' begins with a dot") != std::string::npos);
  CHECK(why.find('\x1b') == std::string::npos);
}

TEST_CASE("P7 the hash of a manifest sees every field", "[engine][file]") {
  const Manifest manifest = named({"a", "bc"});
  const Digest hash = manifest_hash(manifest);
  const auto changed = [&](auto change) {
    Manifest other = manifest;
    change(other);
    return manifest_hash(other) != hash;
  };
  CHECK(changed([](Manifest& m) { m.files[0].name = "A"; }));
  CHECK(changed([](Manifest& m) { m.files[0].name = "ab", m.files[1].name = "c"; }));
  CHECK(changed([](Manifest& m) { m.files[1].size = 2; }));
  CHECK(changed([](Manifest& m) { m.files[1].mode = 0600; }));
  CHECK(changed([](Manifest& m) { m.files[1].mtime_ns = -1; }));
  CHECK(changed([](Manifest& m) { m.files[1].kind = EntryKind::folder; }));
  CHECK(changed([](Manifest& m) { std::swap(m.files[0], m.files[1]); }));
  CHECK(changed([](Manifest& m) { m.files.pop_back(); }));

  const TempFolder to;
  SinkSettings options = sink_settings(to.path(), manifest);
  Manifest swapped = manifest;
  swapped.files[1].name = ".bashrc";
  const auto sink = prepare_sink(swapped, options);
  REQUIRE(sink.has_error());
  CHECK(names_in(to.path()).empty());
}

TEST_CASE("no temporary name is longer than it has to be, and each is its own", "[engine][file]") {
  const std::string longest(255, 'n'), other = std::string(254, 'n') + "m";
  CHECK(temporary_name("f", part_suffix) == ".f.part");
  for (const std::string& name : {longest, std::string(64, 'n'), std::string{"f"}}) {
    CHECK((temporary_stem(name, random_tag()) + std::string{journal_suffix}).size() <= 97);
    CHECK((short_stem(name, random_tag()) + std::string{journal_suffix}).size() <= 50);
  }
  CHECK(temporary_name(longest, part_suffix) != temporary_name(other, part_suffix));
  CHECK(short_stem(longest, {}) != short_stem(other, {}));
  // What earlier versions left of a long name is found as well.
  const std::string old = "." + std::string(222, 'n'), name(222, 'n');
  PartStems left{old, old + random_tag(), temporary_stem(name, {}), short_stem(name, {})};
  std::ranges::sort(left);
  CHECK(stems_of(left, name) == left);
  const TempFolder from, to;
  write_file(from / longest, random_bytes(3 * block_bytes, 1));
  CHECK(send({(from / longest).string()}, to.path()).done.size() == 1);
  CHECK(names_in(to.path()) == std::vector<std::string>{longest});
}

TEST_CASE("C4 P5 only regular files are offered", "[engine][file]") {
  const TempFolder from;
  write_file(from / "file", "x");
  REQUIRE(::mkfifo((from / "fifo").c_str(), 0600) == 0);
  fs::create_symlink(from / "file", from / "link");
  fs::create_directory(from / "folder");
  write_file(from / "folder" / "file", "y");
  const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, (from / "socket").c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(server);
  const auto refused = [&](const std::vector<std::string>& paths, const std::string& cause) {
    const Result<ScanVolume> files = scan(paths, {});
    REQUIRE(files.has_error());
    INFO(files.error().message());
    CHECK(files.error().code == ExitCode::local_file_error);
    CHECK(files.error().message().find(cause) != std::string::npos);
  };
  refused({(from / "fifo").string()}, "fifo");
  refused({(from / "link").string()}, "symbolic link");
  refused({(from / "socket").string()}, "socket");
  refused({"/dev/null"}, "device");
  refused({(from / "none").string()}, "No such file");
  refused({(from / "file").string(), (from / "folder" / "file").string()}, "same name");
  refused({}, "empty");
  CHECK(check_arguments(std::vector<std::string>{(from / "file").string()}).has_value());
}

TEST_CASE("C4 a sparse file above 4 GiB is counted in 64 bits", "[engine][file]") {
  const TempFolder from;
  const std::string path = (from / "big").string();
  write_file(path, "");
  const std::uint64_t size = (std::uint64_t{1} << 32) + 1;
  fs::resize_file(path, size);
  SourceFiles files = open_files({path});
  CHECK(files.manifest.files[0].size == size);
  CHECK(blocks_of(size) == 16385);
  CHECK(block_length_at(size, 16384 * std::uint64_t{block_bytes}) == 1);
  CHECK(block_length_at(size, 16383 * std::uint64_t{block_bytes}) == block_bytes);
  // Its last byte, beyond 2^32, through FileIo and through a Sink.
  const std::unique_ptr<FileIo> io = make_io();
  std::byte byte{7};
  io->submit({.kind = FileOperation::Kind::read,
              .fd = files.files[0].fd.get(),
              .buffer = &byte,
              .bytes = 1,
              .offset = size - 1});
  std::array<IoCompletion, 1> done;
  while (io->collect(done) == 0) io->wait_one();
  CHECK(done[0].result == 1);
  CHECK(byte == std::byte{0});

  const TempFolder to;
  auto prepared = prepare_sink(files.manifest, sink_settings(to.path(), files.manifest));
  if (prepared.has_error()) {  // a disk with less than 4 GiB free
    WARN("not tested here: " << prepared.error().message());
    return;
  }
  Sink& sink = prepared.value()->sink();
  FileRings rings{64};
  BlockRef block;
  static_cast<void>(sink.turn(monotonic_now(), rings));
  REQUIRE(rings.to_engine.pop(block));
  block.offset = std::uint64_t{1} << 32;
  block.length = 1;
  block.data[0] = std::byte{42};
  REQUIRE(rings.from_engine.push(block));
  REQUIRE(rings.from_engine.push({.kind = BlockKind::checkpoint}));
  static_cast<void>(sink.turn(monotonic_now(), rings));
  CHECK(fs::file_size(to / ".big.part") == size);
}
