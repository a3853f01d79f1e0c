// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Messages of the control connection, from a peer that knows the code and lies: whatever decodes is
// within its bounds and is the one encoding of itself. Input: a type byte, then a body.
#include <algorithm>
#include <random>

#include "control/session/message.hpp"
#include "engine/base/check.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;
using namespace onehop::session;

std::uint64_t fuzz::accepted_total = 0;

namespace {

std::string some_text(std::mt19937_64& random, std::size_t bytes_max) {
  std::string text(random() % bytes_max, 'x');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}
Digest some_digest(std::mt19937_64& random, std::size_t bytes) {
  Digest digest{};
  for (std::size_t i = 0; i < bytes; ++i) digest[i] = static_cast<std::byte>(random());
  return digest;
}

Holes some_holes(std::mt19937_64& random, std::uint32_t file) {
  Holes holes;
  for (std::uint64_t i = random() % 20; i > 0; --i)
    holes.runs.push_back(
        {file, random() % 1000, static_cast<std::uint32_t>(1 + random() % hole_blocks_max)});
  return holes;
}

Offer some_offer(std::mt19937_64& random) {
  Offer offer;
  offer.software = some_text(random, 60);
  offer.context.key_interval = std::uint64_t{1} << (8 + random() % 15);
  offer.context.queue_count = static_cast<std::uint16_t>(1 + random() % 64);
  offer.frame_body_max_bytes = static_cast<std::uint32_t>(256 + random() % 60'000);
  offer.data_port = static_cast<std::uint16_t>(1 + random() % 65'535);
  offer.known.files = random() >> 2;
  offer.known.bytes = random() >> 2;
  offer.known.is_all = random() % 2 == 0;
  offer.is_repair_lazy = random() % 2 == 0;
  offer.has_fragments = random() % 2 == 0;
  return offer;
}

Message some_message(std::mt19937_64& random) {
  const std::size_t width_bytes = random() % 2 == 0 ? 16 : 32;
  const auto file = static_cast<std::uint32_t>(random() % file_index_max);
  const auto code = static_cast<ExitCode>(random() % 12);
  switch (random() % 14) {
    case 0: return some_offer(random);
    case 1: {
      ManifestPart part;
      for (std::uint64_t i = random() % 5; i > 0; --i)
        part.entries.push_back(
            {some_text(random, 100), random() >> 3, static_cast<std::uint32_t>(random() % 01000),
             static_cast<std::int64_t>(random()), static_cast<list::EntryKind>(random() % 4)});
      return part;
    }
    case 2: {
      VolumeAnswer answer{.manifest_hash = some_digest(random, 32),
                          .has_held = random() % 2 == 0,
                          .actions = {},
                          .name_faults = {}};
      answer.actions.resize(random() % 200, static_cast<FileAction>(random() % 8));
      answer.name_faults.resize(
          static_cast<std::size_t>(std::ranges::count(answer.actions, FileAction::name_refused)),
          static_cast<std::uint8_t>(1 + random() % 255));
      return answer;
    }
    case 3: {
      if (random() % 4 == 0) {
        HeldPart held{.is_last = random() % 2 == 0, .runs = {}};
        for (std::uint64_t i = random() % 20; i > 0; --i)
          held.runs.push_back({file, random() % 1000, 1 + random() % 1000});
        return held;
      }
      ClaimPart part{.file = file, .first_block = random() % 1000, .is_last = random() % 2 == 0};
      for (std::uint64_t i = random() % 20; i > 0; --i)
        part.digests.push_back(some_digest(random, width_bytes));
      return part;
    }
    case 4: {
      BlockDigests batch{.is_skipped = random() % 2 == 0};
      for (std::uint64_t i = random() % 20; i > 0; --i)
        batch.digests.push_back({file, random() % 1000, some_digest(random, width_bytes)});
      return batch;
    }
    case 5: return FileRoot{file, some_digest(random, width_bytes)};
    case 6: return Failure{code, some_text(random, 200)};
    case 7: return Refuse{code, some_text(random, 200)};
    case 8: return PathReady{static_cast<std::uint32_t>(random() % 65'536)};
    case 9:
      return FileDone{file, some_digest(random, width_bytes),
                      static_cast<FileOutcome>(random() % 4),
                      static_cast<std::uint16_t>(2 + random() % 900)};
    case 10:
      return PackDone{{{file, static_cast<std::uint32_t>(random() % volume_entries_max),
                        static_cast<std::uint32_t>(1 + random() % volume_entries_max), 0},
                       {file, 0, 1, 2, RecordOutcome::kept},
                       {file, 1, 1, 0, RecordOutcome::refused, 200}}};
    case 11:
      return Accept{.data_port = 7411,
                    .frame_body_max_bytes = 1400,
                    .io = "udp",
                    .folder = some_text(random, 200)};
    case 12: return some_holes(random, file);
    default: return Welcome{1, some_text(random, 60)};
  }
}

}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  std::vector<std::byte> bytes;
  encode_message(some_message(random), bytes);
  out[0] = bytes[0];
  const auto body = std::span{bytes}.subspan(message_header_bytes);
  std::ranges::copy(body, out.begin() + 1);
  return 1 + body.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const auto body = std::as_bytes(std::span{data + 1, size - 1});
  const auto type = static_cast<MessageType>(data[0]);
  const auto message = decode_message(type, body);
  if (!message) return 0;
  ++fuzz::accepted_total;
  ONEHOP_CHECK(type_of(*message) == type);
  std::vector<std::byte> bytes;
  encode_message(*message, bytes);
  const auto again = decode_message(type, std::span{bytes}.subspan(message_header_bytes));
  ONEHOP_CHECK(again.has_value());
  std::vector<std::byte> twice;
  encode_message(*again, twice);
  ONEHOP_CHECK(bytes == twice);
  if (const auto* part = std::get_if<ManifestPart>(&*message))
    ONEHOP_CHECK(part->entries.size() <= manifest_entries_per_part_max);
  if (const auto* holes = std::get_if<Holes>(&*message))
    for (const HoleRun& run : holes->runs)
      ONEHOP_CHECK(run.count >= 1 && run.count <= hole_blocks_max);
  if (const auto* offer = std::get_if<Offer>(&*message))
    ONEHOP_CHECK(crypto::is_key_interval(offer->context.key_interval));
  if (const auto* failure = std::get_if<Failure>(&*message))
    ONEHOP_CHECK(failure->text.size() <= text_bytes_max);
  return 0;
}
