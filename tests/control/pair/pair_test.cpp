// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the files of keys and paired devices are private, whole and readable; what paired devices
//         show each other proves them on this connection and in this run alone.
// Method: real files in a folder of the test; keys from seeds.
// Bounds: exact.
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "control/pair/device_hello.hpp"
#include "control/pair/signed_file.hpp"

using namespace onehop;
using namespace onehop::pair;

namespace {

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/onehop-pair-XXXXXX";
    path = std::string{::mkdtemp(name)} + "/own";
  }
  ~Folder() { std::filesystem::remove_all(std::filesystem::path{path}.parent_path()); }
  [[nodiscard]] Result<std::optional<PrivateFolder>> open(bool is_made = true) const {
    return PrivateFolder::open(path, ::geteuid(), is_made);
  }
  [[nodiscard]] PeerBook book() const { return PeerBook::open(path, ::geteuid(), true).value(); }
};

DeviceKey key_of(unsigned char number) {
  Seed seed;
  seed.writable()[0] = std::byte{number};
  return DeviceKey::from_seed(seed).value();
}

Peer peer(unsigned char number, std::string name) {
  Peer made;
  made.name = std::move(name);
  made.key = key_of(number).public_key();
  made.find_key = key_of(number).find_key();
  made.secret.writable()[0] = std::byte{number};
  made.paired = "2026-11-28T10:00:00Z";
  return made;
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 0777;
}

}  // namespace

TEST_CASE("K9 a key is made once, for its user alone", "[control][pair]") {
  const Folder folder;
  CHECK(!folder.open(false).value());
  const auto own = folder.open().value();
  CHECK(!DeviceKey::read(*own).value());
  const DeviceKey made = DeviceKey::read_or_make(*own).value();
  CHECK(DeviceKey::read_or_make(*own).value().public_key() == made.public_key());
  CHECK(mode_of(folder.path) == 0700);
  CHECK(mode_of(folder.path + "/device.key") == 0600);
  CHECK(own->names("").size() == 1);  // nothing is left beside it

  SECTION("what others can read is refused") {
    REQUIRE(::chmod((folder.path + "/device.key").c_str(), 0640) == 0);
    const auto refused = DeviceKey::read(*own);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == ExitCode::local_file_error);
    CHECK(refused.error().hint.find("chmod 600") != std::string::npos);
  }
  SECTION("and so is a folder that others can write to, or that is somebody else's") {
    CHECK(PrivateFolder::open(folder.path, ::geteuid() + 1, false).has_error());
    REQUIRE(::chmod(folder.path.c_str(), 0770) == 0);
    CHECK(folder.open().has_error());
  }
  SECTION("a symbolic link in its place is no key") {
    REQUIRE(::rename((folder.path + "/device.key").c_str(), (folder.path + "/x").c_str()) == 0);
    REQUIRE(::symlink("x", (folder.path + "/device.key").c_str()) == 0);
    CHECK(DeviceKey::read(*own).has_error());
  }
  SECTION("a copy on another machine is refused") {
    auto text = own->read("device.key").value().value();
    const auto at = text.find("machine = \"");
    REQUIRE(at != std::string::npos);
    if (text[at + 11] == '"') return;  // this machine has no id
    text[at + 11] = text[at + 11] == '0' ? '1' : '0';
    REQUIRE(own->write("device.key", text).has_value());
    const auto refused = DeviceKey::read(*own);
    REQUIRE(refused.has_error());
    CHECK(refused.error().cause.find("another machine") != std::string::npos);
  }
}

TEST_CASE("devices are kept under a name each, and by their keys", "[control][pair]") {
  const Folder folder;
  PeerBook book = folder.book();
  CHECK(book.keep(peer(1, "la\"p\\top")).value() == "la\"p\\top");
  CHECK(book.keep(peer(2, "la\"p\\top")).value() == "la\"p\\top-2");
  Peer changed = *book.find("la\"p\\top-2");
  changed.name = "box";
  changed.rule = Rule::accept;
  changed.folder = "/tmp/a folder";
  REQUIRE(book.change("la\"p\\top-2", changed).has_value());
  changed.name = "la\"p\\top";
  CHECK(book.change("box", changed).error().code == ExitCode::usage);
  // Pairing again gives a new secret, and keeps what its user said.
  Peer again = peer(2, "other");
  again.secret.writable()[0] = std::byte{77};
  CHECK(book.keep(again).value() == "box");

  const PeerBook read = folder.book();
  REQUIRE(read.peers().size() == 2);
  const Peer* const box = read.find("box");
  REQUIRE(box != nullptr);
  CHECK(box->rule == Rule::accept);
  CHECK(box->folder == "/tmp/a folder");
  CHECK(box->key == key_of(2).public_key());
  CHECK(box->find_key == key_of(2).find_key());
  CHECK(box->secret.bytes()[0] == std::byte{77});
  CHECK(box->paired == "2026-11-28T10:00:00Z");
  for (const auto& file : std::filesystem::directory_iterator{folder.path + "/peers"})
    CHECK(mode_of(file.path()) == 0600);
  REQUIRE(book.forget("box").has_value());
  CHECK(folder.book().find("box") == nullptr);
}

TEST_CASE("K9 what another process changed is not written over", "[control][pair]") {
  const Folder folder;
  PeerBook user = folder.book();
  REQUIRE(user.keep(peer(1, "laptop")).has_value());
  PeerBook running = folder.book();
  Peer refused = *user.find("laptop");
  refused.rule = Rule::refuse;
  REQUIRE(user.change("laptop", refused).has_value());
  REQUIRE(running.keep(peer(1, "laptop")).has_value());
  CHECK(folder.book().find("laptop")->rule == Rule::refuse);
  // A name that another process has given meanwhile is not given twice: no book would open then.
  REQUIRE(user.keep(peer(2, "box")).has_value());
  CHECK(running.keep(peer(3, "box")).value() == "box-2");
  CHECK(folder.book().peers().size() == 3);
  REQUIRE(user.forget("box").has_value());
  CHECK(running.forget("box").error().code == ExitCode::usage);
}

TEST_CASE("a damaged file of a device is named, and none is taken", "[control][pair]") {
  const Folder folder;
  PeerBook book = folder.book();
  REQUIRE(book.keep(peer(1, "laptop")).has_value());
  const std::string file = folder.path + "/peers/" + fingerprint(key_of(1).public_key()) + ".toml";
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::ifstream in{file};
    const std::string whole{std::istreambuf_iterator<char>{in}, {}};
    std::string text = whole;
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    std::ofstream{file} << text;
    const auto read = PeerBook::open(folder.path, ::geteuid(), false);
    std::ofstream{file} << whole;
    return read.has_error();
  };
  CHECK(refused("name = \"laptop\"", "name = \"lap\x1btop\""));
  CHECK(refused("name = \"laptop\"", "name = \"\""));
  CHECK(refused("name = \"laptop\"", "name = laptop"));
  CHECK(refused("name = \"laptop\"", "name = \"laptop"));
  CHECK(refused("name = \"laptop\"", "name = \"laptop\"\nname = \"twice\""));
  CHECK(refused("rule = \"ask\"", "rule = \"always\""));
  CHECK(refused("folder = \"\"", "folder = \"relative\""));
  CHECK(refused("secret = \"01", "secret = \"0"));
  CHECK(refused("key = \"", "key = \"00"));
  CHECK(!refused("# A device", "# A device, annotated by its user\n\n# and"));
}

TEST_CASE("K10 a greeting proves the pair, its role and its connection", "[control][pair]") {
  const Peer one = peer(1, "one"), two = peer(2, "two");
  const std::array<std::byte, 32> connection{std::byte{1}}, other{std::byte{2}};
  const HelloProof proof = hello_proof(one.secret, crypto::Role::sender, connection);
  CHECK(is_proof(proof, hello_proof(one.secret, crypto::Role::sender, connection)));
  CHECK(!is_proof(proof, hello_proof(one.secret, crypto::Role::sender, other)));         // replay
  CHECK(!is_proof(proof, hello_proof(one.secret, crypto::Role::receiver, connection)));  // mirror
  CHECK(!is_proof(proof, hello_proof(two.secret, crypto::Role::sender, connection)));
}

TEST_CASE("K7 an answer names its device to those that are paired with it", "[control][pair]") {
  const std::array<std::byte, 16> nonce{std::byte{1}}, other_nonce{std::byte{2}};
  const std::array<std::byte, 8> run{std::byte{1}}, next_run{std::byte{2}};
  const FindHash hash = find_hash(key_of(1).find_key(), nonce, run);
  CHECK(hash == find_hash(peer(1, "one").find_key, nonce, run));
  CHECK(hash != find_hash(key_of(2).find_key(), nonce, run));
  CHECK(hash != find_hash(key_of(1).find_key(), other_nonce, run));
  // Who repeats a question to another run does not see the same device.
  CHECK(hash != find_hash(key_of(1).find_key(), nonce, next_run));
  // What a receipt has does not give it away.
  FindKey public_key = key_of(1).public_key();
  CHECK(hash != find_hash(public_key, nonce, run));
}

TEST_CASE("K10 nobody introduces a key that he does not have", "[control][pair]") {
  const std::array<std::byte, 32> binding{std::byte{1}}, other{std::byte{2}};
  const Identity self{key_of(1), "laptop", {}};
  const Introduced said = introduce(self, crypto::Role::sender, binding);
  CHECK(is_genuine(said, crypto::Role::sender, binding));
  CHECK(!is_genuine(said, crypto::Role::receiver, binding));
  CHECK(!is_genuine(said, crypto::Role::sender, other));
  Introduced forged = said;
  forged.key = key_of(2).public_key();
  CHECK(!is_genuine(forged, crypto::Role::sender, binding));
  forged = said;
  forged.name = "another";
  CHECK(!is_genuine(forged, crypto::Role::sender, binding));
  forged = said;
  forged.find_key = key_of(2).find_key();
  CHECK(!is_genuine(forged, crypto::Role::sender, binding));
}

TEST_CASE("a signature is of one file and one key", "[control][pair]") {
  RunningHash whole, pieces;
  whole.update(std::as_bytes(std::span{std::string_view{"a receipt"}}));
  pieces.update(std::as_bytes(std::span{std::string_view{"a re"}}));
  pieces.update(std::as_bytes(std::span{std::string_view{"ceipt"}}));
  auto hash = whole.finish();
  CHECK(hash == pieces.finish());
  const Signature signature = sign_hash(key_of(1), hash);
  CHECK(is_signed(key_of(1).public_key(), hash, signature));
  CHECK(!is_signed(key_of(2).public_key(), hash, signature));
  hash[0] ^= std::byte{1};
  CHECK(!is_signed(key_of(1).public_key(), hash, signature));
}
