// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/message.hpp"

#include <algorithm>
#include <concepts>
#include <functional>
#include <limits>

#include "engine/base/byte_codec.hpp"
#include "engine/base/check.hpp"

namespace onehop::session {

namespace {

// Encoder and Decoder have the same members, so that code() below states each message once. A
// number is named after its width on the wire; the Decoder fails where it is not within min..max.
class Encoder {
 public:
  explicit Encoder(std::vector<std::byte>& out) : out_{out} {}
  void u8(auto v, std::uint64_t = 0, std::uint64_t = 0) { number(static_cast<std::uint8_t>(v)); }
  void u16(auto v, std::uint64_t = 0, std::uint64_t = 0) { number(static_cast<std::uint16_t>(v)); }
  void u32(auto v, std::uint64_t = 0, std::uint64_t = 0) { number(static_cast<std::uint32_t>(v)); }
  void u64(auto v, std::uint64_t = 0, std::uint64_t = 0) { number(static_cast<std::uint64_t>(v)); }
  void bytes(std::span<const std::byte> v) { out_.insert(out_.end(), v.begin(), v.end()); }
  void text(std::string_view v, std::size_t bytes_max) {
    v = v.substr(0, bytes_max);
    u16(v.size());
    bytes(std::as_bytes(std::span{v}));
  }
  /// width: digests of one message travel at the width of their kind. A zero upper half is the mark
  /// of the narrow kind.
  std::size_t width(const auto& items, auto digest_of) {
    const bool is_wide = std::ranges::any_of(items, [&](const auto& item) {
      const Digest& digest = digest_of(item);
      return std::any_of(digest.begin() + 16, digest.end(),
                         [](std::byte b) { return b != std::byte{0}; });
    });
    u8(is_wide ? 32 : 16);
    return is_wide ? 32 : 16;
  }
  void digest(const Digest& v, std::size_t width_bytes) { bytes(std::span{v}.first(width_bytes)); }
  void items(const auto& list, std::size_t, std::size_t, auto code_item) {
    u32(list.size());
    for (const auto& item : list) code_item(item);
  }
  void check(bool) {}

 private:
  template <class T>
  void number(T v) {
    const std::size_t at = out_.size();
    out_.resize(at + sizeof v);
    store_be(out_.data() + at, v);
  }
  std::vector<std::byte>& out_;
};

class Decoder {
 public:
  static constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
  explicit Decoder(std::span<const std::byte> in) : in_{in} {}
  void u8(auto& v, std::uint64_t min = 0, std::uint64_t max = any) { take(v, in_.u8(), min, max); }
  void u16(auto& v, std::uint64_t min = 0, std::uint64_t max = any) {
    take(v, in_.u16(), min, max);
  }
  void u32(auto& v, std::uint64_t min = 0, std::uint64_t max = any) {
    take(v, in_.u32(), min, max);
  }
  void u64(auto& v, std::uint64_t min = 0, std::uint64_t max = any) {
    take(v, in_.u64(), min, max);
  }
  void bytes(std::span<std::byte> v) { std::ranges::copy(in_.bytes(v.size()), v.begin()); }
  void text(std::string& v, std::size_t bytes_max) {
    std::size_t size_bytes = 0;
    u16(size_bytes, 0, bytes_max);
    const auto view = in_.bytes(size_bytes);
    v.assign(reinterpret_cast<const char*>(view.data()), view.size());
  }
  std::size_t width(const auto&, auto) {
    std::size_t width_bytes = 0;
    u8(width_bytes);
    check(width_bytes == 16 || width_bytes == 32);
    return width_bytes;
  }
  void digest(Digest& v, std::size_t width_bytes) {
    v = {};
    std::ranges::copy(in_.bytes(width_bytes), v.begin());
  }
  /// items believes a count only as far as the bytes that are left could hold so many items.
  void items(auto& list, std::size_t count_max, std::size_t item_bytes_min, auto code_item) {
    const std::size_t count = in_.u32();
    check(count <= count_max && count <= in_.remaining() / item_bytes_min);
    if (!in_.is_ok()) return;
    list.resize(count);
    for (auto& item : list) {
      if (!in_.is_ok()) return;
      code_item(item);
    }
  }
  void check(bool holds) {
    if (!holds) in_.fail();
  }
  [[nodiscard]] bool is_done() const { return in_.is_done(); }

 private:
  template <class V>
  void take(V& v, std::uint64_t number, std::uint64_t min, std::uint64_t max) {
    check(min <= number && number <= max);
    v = static_cast<V>(number);
  }
  ByteReader in_;
};

template <class M, class T>
concept Is = std::same_as<std::remove_const_t<M>, T>;

template <class E>
constexpr std::uint64_t number_of(E last) {
  return static_cast<std::uint64_t>(last);
}

// --- each message, once for both directions

void code(auto& c, Is<Welcome> auto& m) {
  c.u16(m.version);
  c.text(m.software, short_text_bytes_max);
}
void code(auto& c, Is<Offer> auto& m) {
  c.u16(m.version);
  c.text(m.software, short_text_bytes_max);
  c.bytes(m.context.session_id);
  c.u32(m.context.block_bytes, block_bytes, block_bytes);
  c.u8(m.context.digest, 1, 2);
  c.u64(m.context.key_interval);
  c.check(crypto::is_key_interval(m.context.key_interval));
  c.u16(m.context.queue_count, 1, queue_count_max);
  c.u32(m.frame_body_max_bytes, frame_body_bytes_min, frame_body_bytes_max);
  c.u16(m.data_port, 1);
  c.u64(m.known.files);
  c.u64(m.known.bytes);
  c.u8(m.known.is_all, 0, 1);
  c.u8(m.is_repair_lazy, 0, 1);
  c.u8(m.has_fragments, 0, 1);
}
void code(auto& c, Is<ManifestPart> auto& m) {
  c.items(m.entries, manifest_entries_per_part_max, 2 + 8 + 2 + 8 + 1, [&](auto& entry) {
    c.text(entry.name, std::numeric_limits<std::uint16_t>::max());
    c.u64(entry.size);
    c.u16(entry.mode, 0, 0777);
    c.u64(entry.mtime_ns);
    c.u8(entry.kind, 0, number_of(list::EntryKind::piece));
  });
}
void code(auto& c, Is<VolumeEnd> auto& m) {
  c.bytes(m.manifest_hash);
  c.u8(m.is_last, 0, 1);
}
void code(auto& c, Is<Accept> auto& m) {
  c.u16(m.data_port, 1);
  c.u32(m.frame_body_max_bytes, frame_body_bytes_min, frame_body_bytes_max);
  c.u8(m.is_repair_lazy, 0, 1);
  c.text(m.io, short_text_bytes_max);
  c.text(m.folder, folder_bytes_max);
}
void code(auto& c, Is<VolumeAnswer> auto& m) {
  c.bytes(m.manifest_hash);
  c.u8(m.has_held, 0, 1);
  c.items(m.actions, volume_entries_max, 1,
          [&](auto& action) { c.u8(action, 0, number_of(FileAction::name_taken)); });
  c.items(m.name_faults, volume_entries_max, 1, [&](auto& fault) { c.u8(fault, 1); });
  c.check(std::ranges::count(m.actions, FileAction::name_refused) == std::ssize(m.name_faults));
}
void code(auto& c, Is<ClaimPart> auto& m) {
  c.u32(m.file, 0, file_index_max);
  c.u64(m.first_block, 0, block_index_max);
  c.u8(m.is_last, 0, 1);
  const std::size_t width_bytes = c.width(m.digests, std::identity{});
  c.items(m.digests, digests_per_message_max, 16,
          [&](auto& digest) { c.digest(digest, width_bytes); });
}
void code(auto& c, Is<HeldPart> auto& m) {
  c.u8(m.is_last, 0, 1);
  c.items(m.runs, digests_per_message_max, 4 + 8 + 8, [&](auto& run) {
    c.u32(run.file, 0, file_index_max);
    c.u64(run.first_block, 0, block_index_max);
    c.u64(run.count, 1, block_index_max);
  });
}
void code(auto& c, Is<PathReady> auto& m) { c.u32(m.frame_bytes, 0, 65'535); }
void code(auto& c, Is<BlockDigests> auto& m) {
  c.u8(m.is_skipped, 0, 1);
  const std::size_t width_bytes =
      c.width(m.digests, [](const BlockDigest& d) -> const Digest& { return d.digest; });
  c.items(m.digests, digests_per_message_max, 4 + 8 + 16, [&](auto& item) {
    c.u32(item.file, 0, file_index_max);
    c.u64(item.block, 0, block_index_max);
    c.digest(item.digest, width_bytes);
  });
}
void code(auto& c, Is<Holes> auto& m) {
  c.items(m.runs, digests_per_message_max, 4 + 8 + 4, [&](auto& run) {
    c.u32(run.file, 0, file_index_max);
    c.u64(run.first_block, 0, block_index_max);
    c.u32(run.count, 1, hole_blocks_max);
  });
}
void code(auto& c, Is<FileRoot> auto& m) {
  c.u32(m.file, 0, file_index_max);
  c.bytes(m.root);
}
void code(auto& c, Is<FileDone> auto& m) {
  c.u32(m.file, 0, file_index_max);
  c.bytes(m.root);
  c.u8(m.outcome, 0, number_of(FileOutcome::name_refused));
  c.check(m.outcome != FileOutcome::there_unread);  // which is said by the action alone
  c.u16(m.name_number, 0, list::name_number_max);
  c.check(m.name_number != 1);
  if (m.outcome == FileOutcome::name_refused) c.u8(m.name_fault, 1);
}
void code(auto& c, Is<PackDone> auto& m) {
  c.items(m.runs, digests_per_message_max, 4 + 4 + 4 + 2 + 1, [&](auto& run) {
    c.u32(run.pack, 0, file_index_max);
    c.u32(run.first, 0, volume_entries_max - 1);
    c.u32(run.count, 1, volume_entries_max);
    c.u16(run.name_number, 0, list::name_number_max);
    c.check(run.name_number != 1);
    c.u8(run.outcome, 0, number_of(RecordOutcome::refused));
    if (run.outcome == RecordOutcome::refused) c.u8(run.name_fault, 1);
  });
}
void code(auto& c, Is<Bye> auto& m) { c.u8(m.code, 0, number_of(ExitCode::timed_out)); }
template <class C, class M>
requires Is<M, Refuse> || Is<M, Failure>
void code(C& c, M& m) {
  c.u8(m.code, 0, number_of(ExitCode::timed_out));
  c.text(m.text, text_bytes_max);
}
void code(auto& c, Is<KeepAlive> auto& m) { c.u8(m.wants_answer, 0, 1); }
void code(auto& c, Is<Hello> auto& m) { c.bytes(m.sender); }
void code(auto& c, Is<Introduce> auto& m) {
  c.text(m.name, pair::peer_name_bytes_max);
  c.bytes(m.key);
  c.bytes(m.find_key);
  c.bytes(m.signature);
  c.bytes(m.proof);
}
template <class C, class M>
requires std::is_empty_v<M>  // DataReady, Complete, Restart, Restarted, Busy, RequireSha256
void code(C&, M&) {}

template <class T>
std::optional<Message> decode_as(std::span<const std::byte> body) {
  Decoder decoder{body};
  T message;
  code(decoder, message);
  if (!decoder.is_done()) return std::nullopt;
  return Message{std::move(message)};
}

// Only eight messages may be large; the rest is refused before its body is read.
template <class M>
constexpr std::size_t body_bytes_max =
    Is<M, ManifestPart> || Is<M, Accept> || Is<M, VolumeAnswer> || Is<M, ClaimPart> ||
            Is<M, HeldPart> || Is<M, BlockDigests> || Is<M, Holes> || Is<M, PackDone>
        ? message_body_bytes_max
        : 2048;

struct Kind {
  std::optional<Message> (*decode)(std::span<const std::byte>);
  std::size_t body_bytes_max;
};
constexpr std::size_t type_count = std::variant_size_v<Message>;
template <std::size_t... I>
constexpr std::array<Kind, type_count> make_kinds(std::index_sequence<I...>) {
  return {Kind{&decode_as<std::variant_alternative_t<I, Message>>,
               body_bytes_max<std::variant_alternative_t<I, Message>>}...};
}
constexpr auto kinds = make_kinds(std::make_index_sequence<type_count>{});

constexpr std::array<std::string_view, type_count> type_names = {
    "Welcome",   "Refuse",    "Offer",     "ManifestPart", "VolumeEnd", "Accept",
    "ClaimPart", "DataReady", "PathReady", "BlockDigests", "FileRoot",  "FileDone",
    "Complete",  "Bye",       "Failure",   "KeepAlive",    "Restart",   "Restarted",
    "Hello",     "Busy",      "PackDone",  "VolumeAnswer", "Holes",     "RequireSha256",
    "Introduce", "HeldPart"};

}  // namespace

std::optional<MessageHeader> decode_message_header(
    std::span<const std::byte, message_header_bytes> in) noexcept {
  const auto type = std::to_integer<std::uint8_t>(in[0]);
  if (type == 0 || type > type_count) return std::nullopt;
  const MessageHeader header{static_cast<MessageType>(type), load_be<std::uint32_t>(in.data() + 1)};
  if (header.body_bytes > kinds[type - 1].body_bytes_max) return std::nullopt;
  return header;
}

std::optional<Message> decode_message(MessageType type, std::span<const std::byte> body) {
  const auto index = static_cast<std::size_t>(type);
  if (index == 0 || index > type_count || body.size() > message_body_bytes_max) return std::nullopt;
  return kinds[index - 1].decode(body);
}

void encode_message(const Message& message, std::vector<std::byte>& out) {
  const std::size_t at = out.size();
  Encoder encoder{out};
  encoder.u8(type_of(message));
  encoder.u32(0);
  std::visit([&](const auto& m) { code(encoder, m); }, message);
  const std::size_t body_bytes = out.size() - at - message_header_bytes;
  ONEHOP_CHECK(body_bytes <= message_body_bytes_max);
  store_be(out.data() + at + 1, static_cast<std::uint32_t>(body_bytes));
}

MessageType type_of(const Message& message) noexcept {
  return static_cast<MessageType>(message.index() + 1);
}

std::string_view name_of(MessageType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index == 0 || index > type_count ? std::string_view{"?"} : type_names[index - 1];
}

}  // namespace onehop::session
