// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/plane/message.hpp"

#include <algorithm>
#include <limits>

#include "engine/base/check.hpp"
#include "engine/wire/byte_codec.hpp"

namespace onehop::plane {

namespace {

using wire::ByteReader;

// Out is a ByteWriter over a vector that grows: messages of the plane are built off the engine core.
class Out {
 public:
  explicit Out(std::vector<std::byte>& out) : out_{out} {}
  void u8(std::uint8_t v) { number(v); }
  void u16(std::uint16_t v) { number(v); }
  void u32(std::uint32_t v) { number(v); }
  void u64(std::uint64_t v) { number(v); }
  void bytes(std::span<const std::byte> v) { out_.insert(out_.end(), v.begin(), v.end()); }
  void text(std::string_view v, std::size_t bytes_max) {
    v = v.substr(0, bytes_max);
    u16(static_cast<std::uint16_t>(v.size()));
    bytes(std::as_bytes(std::span{v.data(), v.size()}));
  }

 private:
  template <class T>
  void number(T v) {
    const std::size_t at = out_.size();
    out_.resize(at + sizeof v);
    wire::store_be(out_.data() + at, v);
  }
  std::vector<std::byte>& out_;
};

std::string read_text(ByteReader& in, std::size_t bytes_max) {
  const std::uint16_t size_bytes = in.u16();
  if (size_bytes > bytes_max) in.fail();
  const auto view = in.bytes(size_bytes);
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}
Digest read_digest(ByteReader& in, std::size_t width_bytes) {
  Digest digest{};
  const auto view = in.bytes(width_bytes);
  std::ranges::copy(view, digest.begin());
  return digest;
}
// Digests of one message travel at the width of their kind. A zero upper half is the narrow kind's mark.
std::uint8_t width_of(const Digest& digest) noexcept {
  const bool is_narrow = std::all_of(digest.begin() + 16, digest.end(), [](std::byte b) { return b == std::byte{0}; });
  return is_narrow ? 16 : 32;
}
template <class Items, class Get>
std::uint8_t width_of_all(const Items& items, Get get) noexcept {
  std::uint8_t width_bytes = 16;
  for (const auto& item : items) width_bytes = std::max(width_bytes, width_of(get(item)));
  return width_bytes;
}
std::uint8_t read_width(ByteReader& in) noexcept {
  const std::uint8_t width_bytes = in.u8();
  if (width_bytes != 16 && width_bytes != 32) in.fail();
  return width_bytes;
}
// A count is believed only as far as the bytes that are left could hold so many items.
std::size_t read_count(ByteReader& in, std::size_t count_max, std::size_t item_bytes_min) noexcept {
  const std::uint32_t count = in.u32();
  if (count > count_max || count > in.remaining() / item_bytes_min) in.fail();
  return in.is_ok() ? count : 0;
}
std::uint32_t read_file(ByteReader& in) noexcept {
  const std::uint32_t file = in.u32();
  if (file >= files_max) in.fail();
  return file;
}
std::uint32_t read_bounded(ByteReader& in, std::uint32_t min, std::uint32_t max) noexcept {
  const std::uint32_t value = in.u32();
  if (value < min || value > max) in.fail();
  return value;
}
std::uint16_t read_port(ByteReader& in) noexcept {
  const std::uint16_t port = in.u16();
  if (port == 0) in.fail();
  return port;
}
ExitCode read_code(ByteReader& in) noexcept {
  const std::uint8_t code = in.u8();
  if (code > static_cast<std::uint8_t>(ExitCode::timed_out)) in.fail();
  return static_cast<ExitCode>(code);
}
bool read_flag(ByteReader& in) noexcept {
  const std::uint8_t flag = in.u8();
  if (flag > 1) in.fail();
  return flag == 1;
}

// --- one encoder and one decoder per message, side by side

void put(Out& out, const Welcome& m) { out.u16(m.version); out.text(m.software, short_text_bytes_max); }
void get(ByteReader& in, Welcome& m) { m.version = in.u16(); m.software = read_text(in, short_text_bytes_max); }

void put(Out& out, const Refuse& m) { out.u8(static_cast<std::uint8_t>(m.code)); out.text(m.text, text_bytes_max); }
void get(ByteReader& in, Refuse& m) { m.code = read_code(in); m.text = read_text(in, text_bytes_max); }

void put(Out& out, const Offer& m) {
  out.u16(m.version);
  out.text(m.software, short_text_bytes_max);
  out.bytes(m.session_id);
  out.u32(m.block_size_bytes);
  out.u8(static_cast<std::uint8_t>(m.digest));
  out.u64(m.key_interval);
  out.u16(m.queue_count);
  out.u32(m.frame_body_max_bytes);
  out.u16(m.data_port);
  out.u32(m.file_count);
  out.u64(m.total_bytes);
  out.u8(m.is_repair_lazy ? 1 : 0);
  out.u8(m.has_fragments ? 1 : 0);
}
void get(ByteReader& in, Offer& m) {
  m.version = in.u16();
  m.software = read_text(in, short_text_bytes_max);
  const auto id = in.bytes(m.session_id.size());
  std::ranges::copy(id, m.session_id.begin());
  m.block_size_bytes = in.u32();
  if (m.block_size_bytes != block_bytes) in.fail();
  const std::uint8_t digest = in.u8();
  if (digest != 1 && digest != 2) in.fail();
  m.digest = static_cast<crypto::DigestKind>(digest);
  m.key_interval = in.u64();
  if (!crypto::is_key_interval(m.key_interval)) in.fail();
  m.queue_count = in.u16();
  if (m.queue_count == 0 || m.queue_count > queue_count_max) in.fail();
  m.frame_body_max_bytes = read_bounded(in, frame_body_bytes_min, frame_body_bytes_max);
  m.data_port = read_port(in);
  // A list that is beyond our limits is no broken one: the session refuses it and names the limit.
  m.file_count = read_bounded(in, 1, std::numeric_limits<std::uint32_t>::max());
  m.total_bytes = in.u64();
  m.is_repair_lazy = read_flag(in);
  m.has_fragments = read_flag(in);
}

void put(Out& out, const ManifestPart& m) {
  out.u32(static_cast<std::uint32_t>(m.entries.size()));
  for (const auto& entry : m.entries) {
    out.text(entry.name, std::numeric_limits<std::uint16_t>::max());
    out.u64(entry.size);
    out.u16(static_cast<std::uint16_t>(entry.mode & 0777));
    out.u64(static_cast<std::uint64_t>(entry.mtime_ns));
  }
}
void get(ByteReader& in, ManifestPart& m) {
  m.entries.resize(read_count(in, manifest_entries_per_part_max, 2 + 8 + 2 + 8));
  for (auto& entry : m.entries) {
    if (!in.is_ok()) return;
    entry.name = read_text(in, std::numeric_limits<std::uint16_t>::max());
    entry.size = in.u64();
    entry.mode = in.u16();
    if (entry.mode > 0777) in.fail();
    entry.mtime_ns = static_cast<std::int64_t>(in.u64());
  }
}

void put(Out& out, const OfferEnd& m) { out.bytes(m.manifest_hash); }
void get(ByteReader& in, OfferEnd& m) { m.manifest_hash = read_digest(in, sizeof(Digest)); }

void put(Out& out, const Accept& m) {
  out.bytes(m.manifest_hash);
  out.u16(m.data_port);
  out.u32(m.frame_body_max_bytes);
  out.u8(m.has_claims ? 1 : 0);
  out.u8(m.is_repair_lazy ? 1 : 0);
  out.text(m.io, short_text_bytes_max);
  out.text(m.folder, folder_bytes_max);
  out.u32(static_cast<std::uint32_t>(m.actions.size()));
  for (const FileAction action : m.actions) out.u8(static_cast<std::uint8_t>(action));
}
void get(ByteReader& in, Accept& m) {
  m.manifest_hash = read_digest(in, sizeof(Digest));
  m.data_port = read_port(in);
  m.frame_body_max_bytes = read_bounded(in, frame_body_bytes_min, frame_body_bytes_max);
  m.has_claims = read_flag(in);
  m.is_repair_lazy = read_flag(in);
  m.io = read_text(in, short_text_bytes_max);
  m.folder = read_text(in, folder_bytes_max);
  m.actions.resize(read_count(in, files_max, 1));
  for (auto& action : m.actions) {
    const std::uint8_t value = in.u8();
    if (value > static_cast<std::uint8_t>(FileAction::keep_unread)) in.fail();
    action = static_cast<FileAction>(value);
  }
}

void put(Out& out, const ClaimPart& m) {
  const std::uint8_t width_bytes = width_of_all(m.digests, [](const Digest& d) -> const Digest& { return d; });
  out.u32(m.file);
  out.u64(m.first_block);
  out.u8(m.is_last ? 1 : 0);
  out.u8(width_bytes);
  out.u32(static_cast<std::uint32_t>(m.digests.size()));
  for (const Digest& digest : m.digests) out.bytes(std::span{digest}.first(width_bytes));
}
void get(ByteReader& in, ClaimPart& m) {
  m.file = read_file(in);
  m.first_block = in.u64_max(block_index_max);
  m.is_last = read_flag(in);
  const std::uint8_t width_bytes = read_width(in);
  m.digests.resize(read_count(in, digests_per_message_max, 16));
  for (Digest& digest : m.digests) digest = read_digest(in, width_bytes);
}

void put(Out& out, const PathReady& m) { out.u32(m.frame_bytes); }
void get(ByteReader& in, PathReady& m) { m.frame_bytes = read_bounded(in, 0, 65'535); }

void put(Out& out, const BlockDigests& m) {
  const std::uint8_t width_bytes =
      width_of_all(m.digests, [](const BlockDigest& d) -> const Digest& { return d.digest; });
  out.u8(m.is_skipped ? 1 : 0);
  out.u8(width_bytes);
  out.u32(static_cast<std::uint32_t>(m.digests.size()));
  for (const BlockDigest& item : m.digests) {
    out.u32(item.file);
    out.u64(item.block);
    out.bytes(std::span{item.digest}.first(width_bytes));
  }
}
void get(ByteReader& in, BlockDigests& m) {
  m.is_skipped = read_flag(in);
  const std::uint8_t width_bytes = read_width(in);
  m.digests.resize(read_count(in, digests_per_message_max, 4 + 8 + 16));
  for (BlockDigest& item : m.digests) {
    item.file = read_file(in);
    item.block = in.u64_max(block_index_max);
    item.digest = read_digest(in, width_bytes);
  }
}

void put(Out& out, const FileRoot& m) { out.u32(m.file); out.bytes(m.root); }
void get(ByteReader& in, FileRoot& m) { m.file = read_file(in); m.root = read_digest(in, sizeof(Digest)); }
void put(Out& out, const FileDone& m) {
  out.u32(m.file);
  out.bytes(m.root);
  out.u8(static_cast<std::uint8_t>(m.outcome));
  out.u16(m.name_number);
}
void get(ByteReader& in, FileDone& m) {
  m.file = read_file(in);
  m.root = read_digest(in, sizeof(Digest));
  const std::uint8_t outcome = in.u8();
  if (outcome > static_cast<std::uint8_t>(FileOutcome::not_compared)) in.fail();
  m.outcome = static_cast<FileOutcome>(outcome);
  m.name_number = in.u16();
  if (m.name_number == 1 || m.name_number > file::name_number_max) in.fail();
}
void put(Out& out, const Bye& m) { out.u8(static_cast<std::uint8_t>(m.code)); }
void get(ByteReader& in, Bye& m) { m.code = read_code(in); }
void put(Out& out, const Failure& m) { out.u8(static_cast<std::uint8_t>(m.code)); out.text(m.text, text_bytes_max); }
void get(ByteReader& in, Failure& m) { m.code = read_code(in); m.text = read_text(in, text_bytes_max); }
void put(Out&, const DataReady&) {}
void get(ByteReader&, DataReady&) {}
void put(Out&, const Complete&) {}
void get(ByteReader&, Complete&) {}
void put(Out& out, const KeepAlive& m) { out.u8(m.wants_answer ? 1 : 0); }
void get(ByteReader& in, KeepAlive& m) { m.wants_answer = read_flag(in); }
void put(Out&, const Restart&) {}
void get(ByteReader&, Restart&) {}
void put(Out&, const Restarted&) {}
void get(ByteReader&, Restarted&) {}
void put(Out& out, const Hello& m) { out.bytes(m.sender); }
void get(ByteReader& in, Hello& m) {
  const auto sender = in.bytes(m.sender.size());
  std::ranges::copy(sender, m.sender.begin());
}
void put(Out&, const Busy&) {}
void get(ByteReader&, Busy&) {}

template <class T>
std::optional<Message> decode_as(std::span<const std::byte> body) {
  ByteReader in{body};
  T message;
  get(in, message);
  if (!in.is_done()) return std::nullopt;
  return Message{std::move(message)};
}

constexpr std::size_t type_count = std::variant_size_v<Message>;
static_assert(type_count == static_cast<std::size_t>(MessageType::busy), "types number the variant from 1");

using Decoder = std::optional<Message> (*)(std::span<const std::byte>);
template <std::size_t... I>
constexpr std::array<Decoder, type_count> make_decoders(std::index_sequence<I...>) {
  return {&decode_as<std::variant_alternative_t<I, Message>>...};
}
constexpr auto decoders = make_decoders(std::make_index_sequence<type_count>{});

constexpr std::array<std::string_view, type_count> names = {
    "Welcome", "Refuse", "Offer", "ManifestPart", "OfferEnd", "Accept", "ClaimPart", "DataReady",
    "PathReady", "BlockDigests", "FileRoot", "FileDone", "Complete", "Bye", "Failure", "KeepAlive",
    "Restart", "Restarted", "Hello", "Busy"};

// Only four messages may be large; the rest is refused before its body is read.
constexpr std::uint32_t small_body_bytes_max = 2048;
constexpr bool is_large(MessageType type) noexcept {
  return type == MessageType::manifest_part || type == MessageType::accept || type == MessageType::claim_part ||
         type == MessageType::block_digests;
}

}  // namespace

std::optional<MessageHeader> decode_message_header(std::span<const std::byte, message_header_bytes> in) noexcept {
  const auto type = std::to_integer<std::uint8_t>(in[0]);
  if (type == 0 || type > type_count) return std::nullopt;
  const MessageHeader header{static_cast<MessageType>(type), wire::load_be<std::uint32_t>(in.data() + 1)};
  const std::size_t bytes_max = is_large(header.type) ? message_body_bytes_max : small_body_bytes_max;
  if (header.body_bytes > bytes_max) return std::nullopt;
  return header;
}

std::optional<Message> decode_message(MessageType type, std::span<const std::byte> body) {
  const auto index = static_cast<std::size_t>(type);
  if (index == 0 || index > type_count || body.size() > message_body_bytes_max) return std::nullopt;
  return decoders[index - 1](body);
}

void encode_message(const Message& message, std::vector<std::byte>& out) {
  const std::size_t at = out.size();
  Out writer{out};
  writer.u8(static_cast<std::uint8_t>(type_of(message)));
  writer.u32(0);
  std::visit([&](const auto& m) { put(writer, m); }, message);
  const std::size_t body_bytes = out.size() - at - message_header_bytes;
  ONEHOP_CHECK(body_bytes <= message_body_bytes_max);
  wire::store_be(out.data() + at + 1, static_cast<std::uint32_t>(body_bytes));
}

MessageType type_of(const Message& message) noexcept { return static_cast<MessageType>(message.index() + 1); }

std::string_view name_of(MessageType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index == 0 || index > type_count ? std::string_view{"?"} : names[index - 1];
}

}  // namespace onehop::plane
