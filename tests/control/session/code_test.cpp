// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a code is taken as is within its rules, from each of its sources, and never shows up in
//         an error.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "control/session/code/code.hpp"
#include "control/session/code/code_form.hpp"
#include "control/session/code/words.hpp"
#include "engine/base/fd.hpp"
#include "tests/support/needs.hpp"

using namespace onehop;
using namespace onehop::session;

namespace {
std::string text_of(std::string_view typed) {
  return std::string{PairingCode::from_text(typed).value().text()};
}
}  // namespace

TEST_CASE("a code has 20 to 256 printable bytes after trimming, else exit 2",
          "[control][session]") {
  CHECK(PairingCode::from_text(std::string(20, 'x')));
  CHECK(PairingCode::from_text(std::string(256, 'x')));
  CHECK(PairingCode::from_text("  \t inner space is kept as is \r\n").value().text() ==
        "inner space is kept as is");
  for (const std::string& bad :
       {std::string(19, 'x'), std::string(257, 'x'), std::string{}, std::string(30, ' '),
        std::string(18, 'x') + "  \n", std::string(25, 'x') + '\0' + "x",
        std::string(25, 'x') + "\x1b[2J", std::string(25, 'x') + "\nyyyy"}) {
    const auto code = PairingCode::from_text(bad);
    REQUIRE_FALSE(code);
    CHECK(code.error().code == ExitCode::usage);
  }
}

TEST_CASE("K3 only codes that onehop made at full length are out of the reach of guesses",
          "[control][session]") {
  const auto is_made = [](std::string_view code) {
    return PairingCode::from_text(code).value().is_made();
  };
  const std::string code{make_code().value().text()};
  CHECK(is_made(code));
  for (const char letter : std::string_view{"abcdefghijklmnopqrstuvwxyz234567"}) {
    std::string slip = code;
    if (slip[7] == letter) continue;
    slip[7] = letter;
    CHECK_FALSE(is_made(slip));  // its check letters do not fit
  }
  CHECK_FALSE(is_made(make_words().value().text()));
  CHECK_FALSE(is_made("aaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aaaa"));  // though the check letters fit
  CHECK_FALSE(is_made("0f1e2d3c4b5a69788796a5b4c3d2e1f0"));
  CHECK_FALSE(is_made("correct horse battery staple correct horse battery staple"));
  CHECK_FALSE(is_made(std::string(256, 'x')));
}

TEST_CASE("words and made codes are one code however they are typed", "[control][session]") {
  const std::string made{make_code().value().text()}, words{make_words().value().text()};
  for (const std::string& code : {made, words}) {
    std::string spaced = code, capitals = code, dotted = code;
    std::ranges::replace(spaced, '-', ' ');
    std::ranges::replace(dotted, '-', '.');
    std::ranges::transform(capitals, capitals.begin(),
                           [](char c) { return static_cast<char>(std::toupper(c)); });
    for (const std::string& typed : {code, spaced, dotted, capitals, " " + code + " \r\n"})
      CHECK(text_of(typed) == code);
  }
  std::string bare = made;
  std::erase(bare, '-');
  CHECK(text_of(bare) == made);
}

TEST_CASE("drawn words are of the list, and differ", "[control][session]") {
  std::set<std::string> seen, words;
  for (int i = 0; i < 100; ++i) {
    const std::string text{make_words().value().text()};
    const auto read = read_words(text);
    REQUIRE(read);
    CHECK(read->first_wrong() == 0);
    for (const std::string_view word : read->words) words.insert(std::string{word});
    seen.insert(text);
  }
  CHECK(seen.size() == 100);
  CHECK(words.size() > 200);  // of 300 draws of 2,048: 279 on average
}

TEST_CASE("K6 a word that is not in the list is told by its place, and not by its text",
          "[control][session]") {
  const auto code = PairingCode::from_text("hunterxx hunteryy hunterzz");
  REQUIRE_FALSE(code);
  CHECK(code.error().code == ExitCode::usage);
  CHECK(code.error().cause == "word 1 is not in the list of words");
  CHECK(code.error().message().find("hunter") == std::string::npos);
}

TEST_CASE("D4 the text of a bad code is not in the error", "[control][session]") {
  const auto code = PairingCode::from_text("hunter2-hunter2");
  REQUIRE_FALSE(code);
  CHECK(code.error().message().find("hunter") == std::string::npos);
}

TEST_CASE("made codes are valid, long enough and different", "[control][session]") {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const auto code = make_code();
    REQUIRE(code);
    const std::string text{code.value().text()};
    // 28 letters of 5 bits, of which two are check letters, have 130 bits; RFC 9257 asks for 128.
    CHECK(std::ranges::count_if(text, [](char c) { return c != '-'; }) == 28);
    CHECK(PairingCode::from_text(text));
    seen.insert(text);
  }
  CHECK(seen.size() == 100);
}

// Goal:   each slip of one letter, and each pair of neighbours that change places, is found in its
//         group; a made code is taken however it is typed, and a code of other form as it is.
// Method: all of them, of a made code. Bounds: exact.
TEST_CASE("a slip in a made code is named by its group", "[control][session]") {
  std::array<char, made_code_bytes> text{};
  const auto fault = [](std::string_view typed) { return fault_of_made(typed); };
  std::string code;  // with a digit, by which it is told from words of four letters
  while (code.find_first_of("234567") == code.find_last_of("234567"))
    code = make_code().value().text();
  CAPTURE(code);
  CHECK(fault(code).empty());
  CHECK(unify_made(code, text));
  for (std::size_t i = 0; i < code.size(); ++i) {
    const std::string group = "group " + std::to_string(i / 5 + 1) + " ";
    if (code[i] == '-') continue;
    for (const char letter : std::string_view{"abcdefghijklmnopqrstuvwxyz234567"}) {
      std::string slip = code;
      slip[i] = letter;
      CHECK((letter == code[i] ? fault(slip).empty() : fault(slip).find(group) != slip.npos));
      CHECK(unify_made(slip, text) == (letter == code[i]));
    }
    std::string lost = code;
    CHECK(fault(lost.erase(i, 1)).starts_with(group));
    std::string strange = code;
    strange[i] = '1';
    CHECK(fault(strange).starts_with(group));
    if (i + 1 == code.size() || code[i + 1] == '-' || code[i + 1] == code[i]) continue;
    std::string turned = code;
    std::swap(turned[i], turned[i + 1]);
    CHECK(fault(turned).find(group) != turned.npos);
  }
  CHECK(fault(code.substr(5)) == "it has 6 groups of letters, and not 7");
  std::string capitals = code;
  for (char& c : capitals) c = c == '-' ? ' ' : static_cast<char>(std::toupper(c));
  CHECK(fault(capitals).empty());
  CHECK(unify_made(capitals, text));
  CHECK(std::string_view{text.data(), text.size()} == code);
  for (const char* other :
       {"correct horse battery staple", "this-code-that-they-made-with-love",
        "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "a-code-of-the-lab-tests-0123456789"}) {
    CHECK(fault(other).empty());
    CHECK_FALSE(unify_made(other, text));
  }
}

TEST_CASE("a code comes from a file, from the environment, and the file wins",
          "[control][session]") {
  const std::string path = "/tmp/onehop-code-test-" + std::to_string(::getpid());
  std::ofstream{path} << "code in a file, long enough\n";
  ::setenv("ONEHOP_CODE", "code in the environment", 1);
  CHECK(read_code({.file = path}).value().text() == "code in a file, long enough");
  const char* value = std::getenv("ONEHOP_CODE");
  CHECK(read_code({.is_prompt_allowed = false}).value().text() == "code in the environment");
  // D4: wiped in place, so that /proc/PID/environ and children do not have it.
  CHECK(value[0] == '\0');
  CHECK(std::getenv("ONEHOP_CODE") == nullptr);
  const auto none = read_code({.is_prompt_allowed = false});
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ExitCode::usage);
  CHECK(none.error().hint.find("--code-file") != std::string::npos);
  ::unlink(path.c_str());
  CHECK(read_code({.file = path}).error().code == ExitCode::usage);
}

TEST_CASE("a code file without an end is refused, not read for ever", "[control][session]") {
  const auto code = read_code({.file = "/dev/zero"});
  REQUIRE_FALSE(code);
  CHECK(code.error().code == ExitCode::usage);
}

TEST_CASE("a code comes from standard input", "[control][session]") {
  int pipe_fds[2];
  REQUIRE(::pipe(pipe_fds) == 0);
  const std::string text = "  code from standard input \n";
  REQUIRE(::write(pipe_fds[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  ::close(pipe_fds[1]);
  const Fd saved{::dup(STDIN_FILENO)};
  ::dup2(pipe_fds[0], STDIN_FILENO);
  ::close(pipe_fds[0]);
  const auto code = read_code({.file = "-"});
  ::dup2(saved.get(), STDIN_FILENO);
  REQUIRE(code);
  CHECK(code.value().text() == "code from standard input");
}

TEST_CASE("D4 secrets live in pages that are left out of core dumps", "[control][session]") {
  ONEHOP_NEEDS(onehop::test::has_page_flags(), "/proc/self/smaps has no flags here");
  auto secret = SecretBytes::allocate(32);
  REQUIRE(secret);
  const auto address = reinterpret_cast<std::uintptr_t>(secret.value().bytes().data());
  std::ifstream maps{"/proc/self/smaps"};
  bool is_inside = false, is_left_out = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2)
      is_inside = address >= from && address < to;
    if (is_inside && line.starts_with("VmFlags:"))
      is_left_out = line.find(" dd") != std::string::npos;
  }
  CHECK(is_left_out);
}
