// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/code/code.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "control/session/code/code_form.hpp"
#include "control/session/code/silent_prompt.hpp"
#include "control/session/code/words.hpp"
#include "engine/base/fd.hpp"

namespace onehop::session {

namespace {

constexpr std::size_t read_bytes_max = 4096;  // of a code file: anything longer is no code

bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

Error usage_error(std::string cause, std::string hint) {
  return {ExitCode::usage, "read the pairing code", std::move(cause), std::move(hint)};
}

Result<PairingCode> code_in(const SecretBytes& buffer, std::size_t filled) {
  if (filled == read_bytes_max)
    return usage_error("it is longer than any code can be",
                       "A code is three words, or has 20 to 256 printable characters");
  return PairingCode::from_text({reinterpret_cast<const char*>(buffer.bytes().data()), filled});
}

Result<PairingCode> code_from_fd(int fd) {
  ONEHOP_TRY(buffer, SecretBytes::allocate(read_bytes_max));
  const std::span<std::byte> bytes = buffer.bytes();
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(fd, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return errno_error(ExitCode::usage, "read the pairing code",
                         "Name a file with it by --code-file");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return code_in(buffer, filled);
}

/// Slip: what is wrong with a typed code. A word that does not exist costs no try.
struct Slip {
  std::string cause;
  bool is_in_words = false;
};
Slip slip_in(std::string_view typed, bool is_hidden) {
  const auto words = read_words(typed);
  const std::size_t wrong = words ? words->first_wrong() : 0;
  if (wrong == 0) return {words ? "" : fault_of_made(typed)};
  std::string_view group;
  for (std::size_t i = 0; i < wrong; ++i) group = next_group(typed).value_or("");
  return {word_fault(wrong) + (is_hidden ? "" : ": " + std::string{group}), true};
}

Result<PairingCode> code_from_terminal(const CodeSource& source) {
  constexpr int tries_max = 3, lines_max = 100;
  const Fd terminal{::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)};
  if (!terminal.is_open())
    return usage_error("no code was given and there is no terminal to ask on",
                       "Give --code-file FILE or set ONEHOP_CODE");
  ONEHOP_TRY(buffer, SecretBytes::allocate(read_bytes_max));
  const auto say = [&terminal](const std::string& text) {
    (void)!::write(terminal.get(), text.data(), text.size());
  };
  if (!source.is_hidden)
    say("The other screen shows three words. Three letters of each do; TAB completes.\n");
  int tries = 0;
  for (int lines = 1;; ++lines) {
    ONEHOP_TRY(filled, read_typed(terminal.get(), source.prompt,
                                  source.is_hidden ? Typed::hidden : Typed::shown, buffer.bytes()));
    if (filled == read_bytes_max) return code_in(buffer, filled);
    const std::string_view typed{reinterpret_cast<const char*>(buffer.bytes().data()), filled};
    const bool has_ended = typed.empty() || typed.back() != '\n';
    const Slip slip = slip_in(typed, source.is_hidden);
    auto code = slip.cause.empty() ? PairingCode::from_text(typed)
                                   : usage_error(slip.cause, "Compare it with the other screen");
    if (!slip.is_in_words) ++tries;
    if (code.has_value() || has_ended || tries == tries_max || lines == lines_max) return code;
    say("Not yet: " + code.error().cause + ".\n");
  }
}

}  // namespace

Result<SecretBytes> SecretBytes::allocate(std::size_t size_bytes) {
  void* pages =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    return errno_error(ExitCode::internal_error, "allocate memory for a secret");
  SecretBytes self;
  self.data_ = {static_cast<std::byte*>(pages), Wipe{size_bytes}};
  if (::madvise(pages, size_bytes, MADV_DONTDUMP) != 0)
    return errno_error(ExitCode::internal_error, "keep a secret out of core dumps");
  // RLIMIT_MEMLOCK may be 0 in containers; swap is then the user's affair
  (void)::mlock(pages, size_bytes);
  return self;
}

void SecretBytes::Wipe::operator()(std::byte* data) const noexcept {
  ::OPENSSL_cleanse(data, size_bytes);
  ::munmap(data, size_bytes);
}

Result<PairingCode> PairingCode::from_text(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  const std::string rule =
      "A code is three words of a receiver's, or 20 to 256 printable ASCII characters, the same on "
      "both sides";
  std::array<char, std::max(made_code_bytes, words_code_bytes_max)> unified{};
  const auto keep = [](std::string_view kept) -> Result<PairingCode> {
    ONEHOP_TRY(bytes, SecretBytes::allocate(kept.size()));
    std::memcpy(bytes.bytes().data(), kept.data(), kept.size());
    PairingCode code;
    code.bytes_ = std::make_shared<const SecretBytes>(std::move(bytes));
    return code;
  };
  if (const auto words = read_words(text)) {
    if (const std::size_t wrong = words->first_wrong(); wrong != 0)
      return usage_error(word_fault(wrong), "Compare it with the other screen");
    auto code = keep({unified.data(), write_words(words->words, unified)});
    ::OPENSSL_cleanse(unified.data(), unified.size());
    return code;
  }
  if (unify_made(text, std::span{unified}.first<made_code_bytes>())) {
    auto code = keep({unified.data(), made_code_bytes});
    ::OPENSSL_cleanse(unified.data(), unified.size());
    return code;
  }
  if (text.size() < code_bytes_min)
    return usage_error(
        "the code has only " + std::to_string(text.size()) + " characters, and is not three words",
        rule);
  if (text.size() > code_bytes_max)
    return usage_error("the code is longer than 256 characters", rule);
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; }))
    return usage_error("the code has a character that is not printable", rule);
  return keep(text);
}

std::string_view PairingCode::text() const noexcept {
  return {reinterpret_cast<const char*>(bytes_->bytes().data()), bytes_->bytes().size()};
}

bool PairingCode::is_made() const noexcept { return is_made_code(text()); }

namespace {

template <class Drawn>
[[nodiscard]] Result<void> draw(Drawn& drawn) {
  if (::getentropy(drawn.data(), sizeof drawn) != 0)
    return errno_error(ExitCode::internal_error, "draw a pairing code");
  return success();
}

}  // namespace

Result<PairingCode> make_code() {
  CodeLetters letters;
  ONEHOP_TRYV(draw(letters));
  // 256 is a multiple of 32, so a byte's low five bits are uniform.
  for (std::uint8_t& letter : letters) letter %= 32;
  set_check_letters(letters);
  std::array<char, made_code_bytes> text{};
  write_code(letters, text);
  auto code = PairingCode::from_text({text.data(), text.size()});
  ::OPENSSL_cleanse(letters.data(), letters.size());
  ::OPENSSL_cleanse(text.data(), text.size());
  return code;
}

Result<PairingCode> make_words() {
  std::array<std::uint16_t, code_words> drawn;
  ONEHOP_TRYV(draw(drawn));
  std::array<std::string_view, code_words> words;
  // 65,536 is a multiple of 2,048, so the low eleven bits are uniform.
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = word_at(drawn[i] % word_count);
  std::array<char, words_code_bytes_max> text{};
  auto code = PairingCode::from_text({text.data(), write_words(words, text)});
  ::OPENSSL_cleanse(drawn.data(), sizeof drawn);
  ::OPENSSL_cleanse(text.data(), text.size());
  return code;
}

Result<PairingCode> read_code(const CodeSource& source) {
  if (source.file == "-") return code_from_fd(STDIN_FILENO);
  if (!source.file.empty()) {
    const Fd file{::open(source.file.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file.is_open())
      return errno_error(ExitCode::usage, "open the code file " + source.file,
                         "Check the path given by --code-file");
    return code_from_fd(file.get());
  }
  if (char* value = std::getenv("ONEHOP_CODE"); value != nullptr) {
    auto code = PairingCode::from_text(value);
    // Wiped in place, so that neither /proc/PID/environ nor a child sees it any longer.
    ::OPENSSL_cleanse(value, std::strlen(value));
    ::unsetenv("ONEHOP_CODE");
    return code;
  }
  if (source.is_prompt_allowed) return code_from_terminal(source);
  return usage_error("no code was given", "Give --code-file FILE or set ONEHOP_CODE");
}

}  // namespace onehop::session
