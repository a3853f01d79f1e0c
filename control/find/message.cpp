// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/find/message.hpp"

#include <sys/random.h>

#include <algorithm>
#include <string_view>

#include "engine/base/byte_codec.hpp"
#include "engine/base/check.hpp"

namespace onehop::find {

namespace {

constexpr std::string_view question_magic = "onehop-q", answer_magic = "onehop-a";
constexpr std::uint8_t version = 1;
constexpr std::size_t pairing_bit = 0x80;
static_assert(name_bytes_max < pairing_bit);

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// begins_with reads the magic and the version.
bool begins_with(ByteReader& in, std::string_view magic) {
  const bool is_ours = std::ranges::equal(in.bytes(magic.size()), bytes_of(magic));
  return in.u8() == version && is_ours && in.is_ok();
}

template <std::size_t size>
void take(ByteReader& in, std::array<std::byte, size>& out) {
  std::ranges::copy(in.bytes(size), out.begin());
}

}  // namespace

QuestionBytes encode(const Question& question) {
  QuestionBytes made{};
  ByteWriter out{made};
  out.bytes(bytes_of(question_magic));
  out.u8(version);
  out.bytes(question.nonce);
  ONEHOP_CHECK(out.is_ok());
  return made;
}

std::optional<Question> decode_question(std::span<const std::byte> datagram) {
  ByteReader in{datagram};
  // The padding is not looked at: a later version may have something to say there.
  if (datagram.size() != question_bytes || !begins_with(in, question_magic)) return std::nullopt;
  Question question;
  take(in, question.nonce);
  return question;
}

AnswerBytes encode(const Answer& answer) {
  ONEHOP_CHECK(!answer.name.empty());
  ONEHOP_CHECK(answer.name.size() <= name_bytes_max);
  AnswerBytes made;
  ByteWriter out{made.bytes};
  out.bytes(bytes_of(answer_magic));
  out.u8(version);
  out.u8(static_cast<std::uint8_t>(answer.name.size() | (answer.is_pairing ? pairing_bit : 0U)));
  out.u16(answer.port);
  out.bytes(answer.nonce);
  out.bytes(answer.instance);
  out.bytes(answer.peer_hash);
  ONEHOP_CHECK(out.size() == answer_fixed_bytes);
  out.bytes(bytes_of(answer.name));
  ONEHOP_CHECK(out.is_ok());
  made.size = out.size();
  return made;
}

std::optional<Answer> decode_answer(std::span<const std::byte> datagram) {
  ByteReader in{datagram};
  if (!begins_with(in, answer_magic)) return std::nullopt;
  Answer answer;
  const std::size_t length = in.u8();
  answer.is_pairing = (length & pairing_bit) != 0;
  const std::size_t name_bytes = length & (pairing_bit - 1);
  answer.port = in.u16();
  take(in, answer.nonce);
  take(in, answer.instance);
  take(in, answer.peer_hash);
  const auto name = in.bytes(name_bytes);
  if (!in.is_done() || name.empty() || name.size() > name_bytes_max || answer.port == 0)
    return std::nullopt;
  answer.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  return answer;
}

std::string name_for_answer(std::string name) {
  const auto is_continuation = [&name](std::size_t at) {
    return (static_cast<unsigned char>(name[at]) & 0xc0) == 0x80;
  };
  if (name.size() > name_bytes_max) {
    std::size_t end = name_bytes_max;
    while (end > 0 && is_continuation(end)) --end;
    name.resize(end == 0 ? name_bytes_max : end);  // 0: it was no UTF-8
  }
  return name.empty() ? "unnamed" : name;
}

void fill_random(std::span<std::byte> out) {
  ONEHOP_CHECK(::getrandom(out.data(), out.size(), 0) == std::ssize(out));
}

}  // namespace onehop::find
