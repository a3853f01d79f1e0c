// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// K7: anybody on a link can send questions and answers. What is taken for one is written back byte
// for byte (a question but for its padding), and an answer is no longer than a question.
#include <cstring>
#include <random>

#include "control/find/message.hpp"
#include "engine/base/check.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  if (random() % 2 == 0) {
    const find::QuestionBytes made = find::encode(find::Question{});
    std::memcpy(out.data(), made.data(), made.size());
    return made.size();
  }
  find::Answer answer{.port = static_cast<std::uint16_t>(1 + random() % 65535)};
  answer.name.resize(1 + random() % find::name_bytes_max);
  for (char& letter : answer.name) letter = static_cast<char>(random());
  const find::AnswerBytes made = find::encode(answer);
  std::memcpy(out.data(), made.bytes.data(), made.size);
  return made.size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span input{reinterpret_cast<const std::byte*>(data), size};
  if (const auto question = find::decode_question(input)) {
    ++fuzz::accepted_total;
    ONEHOP_CHECK(find::decode_question(find::encode(*question)) == question);
    ONEHOP_CHECK(!find::decode_answer(input));
  }
  if (const auto answer = find::decode_answer(input)) {
    ++fuzz::accepted_total;
    const find::AnswerBytes again = find::encode(*answer);
    ONEHOP_CHECK(again.size == size);
    ONEHOP_CHECK(size < find::question_bytes);
    ONEHOP_CHECK(std::memcmp(again.bytes.data(), data, size) == 0);
  }
  return 0;
}
