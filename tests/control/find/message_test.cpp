// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a question and an answer are read as they were written, and nothing else is read.
// Method: datagrams that are written here, cut, lengthened and changed.
// Bounds: exact; an answer is never longer than its question.
#include "control/find/message.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace onehop;
using namespace onehop::find;

namespace {

Answer make_answer(std::string name) {
  Answer answer{.port = 7411, .name = std::move(name)};
  fill_random(answer.nonce);
  fill_random(answer.instance);
  fill_random(answer.peer_hash);
  return answer;
}

std::vector<std::byte> vector_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("a question comes as it was asked, whatever its padding holds", "[control][find]") {
  Question question;
  fill_random(question.nonce);
  QuestionBytes bytes = encode(question);
  CHECK(decode_question(bytes) == question);
  fill_random(std::span{bytes}.subspan(25));
  CHECK(decode_question(bytes) == question);
}

TEST_CASE("a datagram that is no question of this version is none", "[control][find]") {
  const QuestionBytes bytes = encode(Question{});
  for (std::size_t at = 0; at < 9; ++at) {  // magic and version
    QuestionBytes changed = bytes;
    changed[at] ^= std::byte{1};
    CHECK_FALSE(decode_question(changed));
  }
  std::vector<std::byte> longer = vector_of(bytes);
  longer.push_back({});
  CHECK_FALSE(decode_question(longer));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(decode_question(std::span{bytes}.first(size)));
  CHECK_FALSE(decode_question(encode(make_answer("laptop")).datagram()));
}

TEST_CASE("K7 an answer is shorter than its question, and comes as it was said",
          "[control][find]") {
  for (std::size_t size = 1; size <= name_bytes_max; ++size) {
    const Answer answer = make_answer(std::string(size, 'n'));
    const AnswerBytes bytes = encode(answer);
    CHECK(bytes.size < question_bytes);
    CHECK(decode_answer(bytes.datagram()) == answer);
    std::vector<std::byte> longer = vector_of(bytes.datagram());
    longer.push_back(std::byte{'n'});
    CHECK_FALSE(decode_answer(longer));
    CHECK_FALSE(decode_answer(bytes.datagram().first(bytes.size - 1)));
  }
  CHECK_FALSE(decode_answer(encode(Question{})));
}

TEST_CASE("K7 an answer without a name, with too long a one or without a port is none",
          "[control][find]") {
  std::vector<std::byte> bytes = vector_of(encode(make_answer("n")).datagram());
  REQUIRE(decode_answer(bytes));
  bytes.resize(bytes.size() - 1);
  bytes[9] = std::byte{0};
  CHECK_FALSE(decode_answer(bytes));
  bytes.resize(bytes.size() + name_bytes_max + 1);
  bytes[9] = std::byte{name_bytes_max + 1};
  CHECK_FALSE(decode_answer(bytes));
  Answer answer = make_answer("n");
  answer.port = 0;
  CHECK_FALSE(decode_answer(encode(answer).datagram()));
}

TEST_CASE("a host name is cut between its characters", "[control][find]") {
  CHECK(name_for_answer("laptop") == "laptop");
  CHECK(name_for_answer("") == "unnamed");
  CHECK(name_for_answer(std::string(100, 'a')) == std::string(63, 'a'));
  std::string wide;
  for (int i = 0; i < 40; ++i) wide += "\u00e9";  // two bytes each
  CHECK(name_for_answer(wide) == wide.substr(0, 62));
  CHECK(name_for_answer(std::string(100, '\x80')).size() == 63);  // no UTF-8: any cut does
}
