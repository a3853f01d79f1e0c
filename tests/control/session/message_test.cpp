// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   each message survives a round trip, and nothing out of its bounds is decoded.
// Method: encode samples, decode, encode again; then tables of single changes. Mutations at random:
//         tests/fuzz.
#include <catch2/catch.hpp>

#include <cstring>

#include "control/session/message.hpp"
#include "engine/base/byte_codec.hpp"

using namespace onehop;
using namespace onehop::session;

namespace {

std::vector<std::byte> encode(const Message& message) {
  std::vector<std::byte> bytes;
  encode_message(message, bytes);
  return bytes;
}
std::optional<Message> decode(const std::vector<std::byte>& bytes) {
  const auto header = decode_message_header(std::span{bytes}.first<message_header_bytes>());
  if (!header || header->body_bytes != bytes.size() - message_header_bytes) return std::nullopt;
  return decode_message(header->type, std::span{bytes}.subspan(message_header_bytes));
}
Digest digest_of(int seed, std::size_t bytes) {
  Digest digest{};
  for (std::size_t i = 0; i < bytes; ++i)
    digest[i] = static_cast<std::byte>(seed + static_cast<int>(i) + 1);
  return digest;
}
Offer some_offer() {
  Offer offer;
  offer.software = "onehop 0.1.0";
  offer.context.session_id[3] = std::byte{9};
  offer.context.digest = crypto::DigestKind::sha256;
  offer.frame_body_max_bytes = 1428;
  offer.data_port = 7411;
  offer.known.files = 2;
  offer.known.bytes = 1'000'000;
  offer.known.is_all = true;
  offer.has_fragments = true;
  return offer;
}
std::vector<Message> samples() {
  return {Welcome{1, "onehop 0.1.0"},
          Refuse{ExitCode::refused_by_peer, "busy"},
          some_offer(),
          ManifestPart{{{"a/b", 7, 0755, -5},
                        {"c", 0, 0, 1},
                        {"d", 0, 0755, 2, list::EntryKind::folder},
                        {"e", 3, 0777, 2, list::EntryKind::symlink},
                        {"f", 9, 0666, 2, list::EntryKind::piece}}},
          VolumeEnd{digest_of(1, 32), true},
          Accept{7411, 1400, true, "afxdp", "/home/b/in"},
          HeldPart{true, {{1, 5, 2}, {1, 9, 1}}},
          ClaimPart{1, 5, true, {digest_of(3, 16), digest_of(4, 16)}},
          ClaimPart{1, 5, false, {digest_of(3, 32)}},
          DataReady{},
          PathReady{1472},
          BlockDigests{false, {{1, 2, digest_of(5, 16)}, {1, 3, digest_of(6, 16)}}},
          BlockDigests{true, {{0, 0, digest_of(7, 32)}}},
          FileRoot{1, digest_of(8, 32)},
          FileDone{1, digest_of(9, 32)},
          FileDone{2, digest_of(9, 32), FileOutcome::kept, 0},
          FileDone{3, digest_of(9, 16), FileOutcome::received, 999},
          FileDone{4, digest_of(9, 16), FileOutcome::name_refused, 0, false, 13},
          Complete{},
          Bye{ExitCode::interrupted},
          Failure{ExitCode::local_file_error, "disk full"},
          KeepAlive{},
          KeepAlive{true},
          Restart{},
          Restarted{},
          Hello{{std::byte{1}, std::byte{2}}},
          Busy{},
          PackDone{{{9, 7, 4096, 2},
                    {9, 3, 1, 0, RecordOutcome::kept},
                    {9, 4, 1, 0, RecordOutcome::refused, 200}}},
          VolumeAnswer{digest_of(2, 32),
                       true,
                       {FileAction::send, FileAction::keep, FileAction::resume, FileAction::compare,
                        FileAction::keep_unread, FileAction::assume, FileAction::name_taken},
                       {}},
          VolumeAnswer{digest_of(2, 32),
                       false,
                       {FileAction::name_refused, FileAction::send, FileAction::name_refused},
                       {22, 84}},
          Holes{{{1, 7, 1}, {2, 0, hole_blocks_max}}},
          Introduce{{"laptop", {std::byte{1}}, {std::byte{2}}, {std::byte{3}}}, {std::byte{4}}}};
}
template <class T, class Change>
bool is_accepted(T message, Change change) {
  change(message);
  return decode(encode(message)).has_value();
}

}  // namespace

TEST_CASE("the numbers of messages are those of the protocol", "[control][session]") {
  const std::string_view names[] = {
      "Welcome",   "Refuse",    "Offer",     "ManifestPart", "VolumeEnd", "Accept",
      "ClaimPart", "DataReady", "PathReady", "BlockDigests", "FileRoot",  "FileDone",
      "Complete",  "Bye",       "Failure",   "KeepAlive",    "Restart",   "Restarted",
      "Hello",     "Busy",      "PackDone",  "VolumeAnswer", "Holes",     "RequireSha256",
      "Introduce", "HeldPart"};
  CHECK(std::variant_size_v<Message> == std::size(names));
  for (const Message& message : samples())
    CHECK(name_of(type_of(message)) == names[static_cast<std::size_t>(type_of(message)) - 1]);
  CHECK(static_cast<int>(type_of(Offer{})) == 3);
  CHECK(static_cast<int>(type_of(FileDone{})) == 12);
  CHECK(static_cast<int>(type_of(PackDone{})) == 21);
  CHECK(static_cast<int>(type_of(VolumeAnswer{})) == 22);
  CHECK(static_cast<int>(type_of(Holes{})) == 23);
  CHECK(static_cast<int>(type_of(RequireSha256{})) == 24);
  CHECK(static_cast<int>(type_of(Introduce{})) == 25);
}

TEST_CASE("every message survives a round trip", "[control][session]") {
  for (const Message& message : samples()) {
    CAPTURE(name_of(type_of(message)));
    const auto bytes = encode(message);
    const auto back = decode(bytes);
    REQUIRE(back);
    CHECK(back->index() == message.index());
    CHECK(encode(*back) == bytes);
  }
}

TEST_CASE("no message decodes when it is cut short or has trailing bytes", "[control][session]") {
  for (const Message& message : samples()) {
    CAPTURE(name_of(type_of(message)));
    const auto bytes = encode(message);
    const auto body = std::span{bytes}.subspan(message_header_bytes);
    for (std::size_t cut = 0; cut < body.size(); ++cut)
      CHECK_FALSE(decode_message(type_of(message), body.first(cut)));
    std::vector<std::byte> longer{body.begin(), body.end()};
    longer.push_back(std::byte{0});
    CHECK_FALSE(decode_message(type_of(message), longer));
  }
}

TEST_CASE("unknown types and excessive lengths are refused by the header alone",
          "[control][session]") {
  const auto header = [](std::uint8_t type, std::uint32_t body_bytes) {
    std::array<std::byte, message_header_bytes> bytes{std::byte{type}};
    store_be(bytes.data() + 1, body_bytes);
    return decode_message_header(bytes).has_value();
  };
  CHECK_FALSE(header(0, 0));
  CHECK_FALSE(header(27, 0));
  CHECK_FALSE(header(255, 0));
  CHECK(header(4, message_body_bytes_max));
  CHECK_FALSE(header(4, message_body_bytes_max + 1));
  CHECK_FALSE(header(4, 0xffff'ffff));
  CHECK(header(15, 2048));
  CHECK_FALSE(header(15, 2049));
}

TEST_CASE("K4 D3 the fields of an offer have bounds", "[control][session]") {
  const auto offer = some_offer();
  CHECK(is_accepted(offer, [](Offer&) {}));
  CHECK_FALSE(is_accepted(offer, [](Offer& o) { o.context.block_bytes = 4096; }));
  CHECK_FALSE(is_accepted(offer, [](Offer& o) { o.context.digest = crypto::DigestKind{0}; }));
  CHECK_FALSE(is_accepted(offer, [](Offer& o) { o.context.digest = crypto::DigestKind{3}; }));
  CHECK_FALSE(is_accepted(offer, [](Offer& o) { o.context.key_interval = 1000; }));
  CHECK_FALSE(
      is_accepted(offer, [](Offer& o) { o.context.key_interval = crypto::key_interval_max * 2; }));
  CHECK_FALSE(is_accepted(offer, [](Offer& o) { o.context.queue_count = 0; }));
  CHECK_FALSE(is_accepted(offer, [](Offer& o) { o.context.queue_count = queue_count_max + 1; }));
  CHECK_FALSE(
      is_accepted(offer, [](Offer& o) { o.frame_body_max_bytes = frame_body_bytes_min - 1; }));
  CHECK_FALSE(
      is_accepted(offer, [](Offer& o) { o.frame_body_max_bytes = frame_body_bytes_max + 1; }));
  CHECK_FALSE(is_accepted(offer, [](Offer& o) { o.data_port = 0; }));
  CHECK(is_accepted(offer, [](Offer& o) { o.known.bytes = ~std::uint64_t{0}; }));
}

TEST_CASE("Z1 counts are believed only as far as the bytes that are left", "[control][session]") {
  // A count of 2^32-1 with nothing behind it must not allocate: these bodies are a few bytes long.
  const std::array<std::byte, 4> count{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                       std::byte{0xff}};
  CHECK_FALSE(decode_message(type_of(ManifestPart{}), count));
  std::vector<std::byte> digests{std::byte{0}, std::byte{16}};
  digests.insert(digests.end(), count.begin(), count.end());
  CHECK_FALSE(decode_message(type_of(BlockDigests{}), digests));
  CHECK_FALSE(is_accepted(FileRoot{}, [](FileRoot& m) { m.file = file_index_max + 1; }));
  CHECK_FALSE(is_accepted(Bye{}, [](Bye& m) { m.code = ExitCode::interrupted_twice; }));
  CHECK_FALSE(is_accepted(FileDone{}, [](FileDone& m) { m.outcome = FileOutcome{4}; }));
  CHECK_FALSE(is_accepted(FileDone{}, [](FileDone& m) { m.outcome = FileOutcome::name_refused; }));
  CHECK_FALSE(is_accepted(FileDone{}, [](FileDone& m) { m.name_number = 1; }));
  CHECK_FALSE(is_accepted(FileDone{}, [](FileDone& m) { m.name_number = 1000; }));
  CHECK_FALSE(
      is_accepted(BlockDigests{false, {{0, block_index_max + 1, {}}}}, [](BlockDigests&) {}));
  CHECK_FALSE(decode_message(type_of(Holes{}), count));
  CHECK_FALSE(is_accepted(Holes{{{0, block_index_max + 1, 1}}}, [](Holes&) {}));
  CHECK_FALSE(is_accepted(Holes{{{0, 0, 0}}}, [](Holes&) {}));
  CHECK_FALSE(is_accepted(Holes{{{0, 0, hole_blocks_max + 1}}}, [](Holes&) {}));
}

TEST_CASE("long texts are cut, not refused", "[control][session]") {
  const auto back = decode(encode(Failure{ExitCode::internal_error, std::string(5000, 'x')}));
  REQUIRE(back);
  CHECK(std::get<Failure>(*back).text.size() == text_bytes_max);
}

TEST_CASE("the largest accept and answer fit a message", "[control][session]") {
  const Accept accept{.data_port = 1,
                      .frame_body_max_bytes = 1400,
                      .io = {},
                      .folder = std::string(folder_bytes_max, 'x')};
  VolumeAnswer answer;
  answer.actions.resize(volume_entries_max, FileAction::send);
  const VolumeAnswer refusal{
      .manifest_hash = {},
      .has_held = false,
      .actions = std::vector<FileAction>(volume_entries_max, FileAction::name_refused),
      .name_faults = std::vector<std::uint8_t>(volume_entries_max, 22)};
  for (const Message& message : {Message{accept}, Message{answer}, Message{refusal}}) {
    const auto bytes = encode(message);
    CHECK(bytes.size() <= message_body_bytes_max);
    CHECK(decode(bytes).has_value());
  }
  answer.actions.push_back(FileAction::send);
  CHECK_FALSE(decode(encode(answer)).has_value());
}

TEST_CASE("an answer has an errno for each refused name, and no other", "[control][session]") {
  const VolumeAnswer answer{.manifest_hash = {},
                            .has_held = false,
                            .actions = {FileAction::name_refused, FileAction::name_taken},
                            .name_faults = {22}};
  CHECK(is_accepted(answer, [](VolumeAnswer&) {}));
  CHECK_FALSE(is_accepted(answer, [](VolumeAnswer& m) { m.name_faults.clear(); }));
  CHECK_FALSE(is_accepted(answer, [](VolumeAnswer& m) { m.name_faults.push_back(22); }));
  CHECK_FALSE(is_accepted(answer, [](VolumeAnswer& m) { m.name_faults = {0}; }));
  CHECK_FALSE(is_accepted(answer, [](VolumeAnswer& m) { m.actions[1] = FileAction{8}; }));
}
