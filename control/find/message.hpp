// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The two datagrams by which a sender finds receivers. Pure; any thread.
//
//   Question, to a group of the link         Answer, to the asker alone
//   "onehop-q"                   8 bytes     "onehop-a"                   8 bytes
//   version                      1           version                      1
//   nonce                       16           length of the name           1
//   padding                    231           port of the receiver         2
//                                            nonce of the question       16
//                                            instance                     8
//                                            peer_hash                   16
//                                            name                     1..63
//
// An answer is shorter than its question, so a forged question cannot amplify traffic to a victim.
// An answer is only a hint where to connect: the code alone authenticates the receiver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace onehop::find {

inline constexpr std::size_t question_bytes = 256;
inline constexpr std::size_t name_bytes_max = 63;  ///< of a host name, in UTF-8
inline constexpr std::size_t answer_fixed_bytes = 52;
inline constexpr std::size_t answer_bytes_max = answer_fixed_bytes + name_bytes_max;
static_assert(answer_bytes_max <= question_bytes);

/// Nonce: of one search for receivers. A host that did not see the question cannot answer it.
using Nonce = std::array<std::byte, 16>;
/// Instance: of one run of a receiver; it identifies the receiver over several links.
using Instance = std::array<std::byte, 8>;
/// PeerHash: paired devices recognize the receiver by it; to all others, and if none is paired, it
/// looks like random bytes.
using PeerHash = std::array<std::byte, 16>;

struct Question {
  Nonce nonce{};
  bool operator==(const Question&) const = default;
};

struct Answer {
  Nonce nonce{};
  Instance instance{};
  PeerHash peer_hash{};
  std::uint16_t port = 0;
  bool is_pairing = false;  ///< it pairs devices, and takes no files: the top bit of the length
  std::string name;         ///< any bytes: escape it where it is shown
  bool operator==(const Answer&) const = default;
};

using QuestionBytes = std::array<std::byte, question_bytes>;
[[nodiscard]] QuestionBytes encode(const Question& question);
/// decode_question: nullopt for any other datagram, or another version.
[[nodiscard]] std::optional<Question> decode_question(std::span<const std::byte> datagram);

/// AnswerBytes: `size` of them are the datagram.
struct AnswerBytes {
  std::array<std::byte, answer_bytes_max> bytes{};
  std::size_t size = 0;
  [[nodiscard]] std::span<const std::byte> datagram() const { return std::span{bytes}.first(size); }
};
/// encode: the name has 1 to name_bytes_max bytes.
[[nodiscard]] AnswerBytes encode(const Answer& answer);
[[nodiscard]] std::optional<Answer> decode_answer(std::span<const std::byte> datagram);

/// name_for_answer cuts a host name to the size of an answer, between characters of UTF-8; an empty
/// name becomes "unnamed".
[[nodiscard]] std::string name_for_answer(std::string name);

/// fill_random fills `out` with unpredictable bytes. Syscalls: getrandom.
void fill_random(std::span<std::byte> out);

}  // namespace onehop::find
