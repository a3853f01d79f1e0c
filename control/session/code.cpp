// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/code.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "control/session/code_form.hpp"
#include "control/session/silent_prompt.hpp"
#include "engine/base/fd.hpp"

namespace onehop::session {

namespace {

// scrypt's cost for a code of unknown origin: 128 * N * r = 16 MiB and about 50 ms on one core of a
// laptop. Lower makes each guess cheaper for whoever recorded a handshake; higher shows up in the
// program's peak memory and in the 0.5 s that recv has to get ready.
constexpr std::uint64_t scrypt_n = 1U << 14;
// For a code of the form that make_code writes: 1 MiB and about 3 ms. Its 130 random bits need no
// help; 50 ms at both ends are as much CPU as 100 MB through the rest of the program.
constexpr std::uint64_t scrypt_n_made = 1U << 10;
constexpr std::uint32_t scrypt_r = 8;
constexpr std::uint32_t scrypt_p = 1;
constexpr std::uint64_t scrypt_memory_bytes_max = 32ULL << 20;
// The salt separates us from other programs that stretch the same text. It is the same for both
// roles: roles are told apart by the PSK identity. It cannot be random, because nothing is shared
// before the code.
constexpr std::string_view application_salt = "onehop pairing code, scrypt, v1";

constexpr std::size_t read_bytes_max = 4096;  // of a code file: anything longer is no code

// Only forms that a random generator writes and a person does not: make_code's, and 128 bits or
// more in hexadecimal.
bool is_strong_form(std::string_view text) noexcept {
  constexpr std::size_t hex_digits_min = 128 / 4;
  constexpr std::string_view hex_digits = "0123456789abcdefABCDEF";
  const bool is_hex =
      text.size() >= hex_digits_min && text.find_first_not_of(hex_digits) == std::string_view::npos;
  return is_hex || has_made_form(text);
}

bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

Error usage_error(std::string cause, std::string hint) {
  return {ExitCode::usage, "read the pairing code", std::move(cause), std::move(hint)};
}

Result<PairingCode> code_in(const SecretBytes& buffer, std::size_t filled) {
  if (filled == read_bytes_max)
    return usage_error("it is longer than any code can be",
                       "A code has 20 to 256 printable characters");
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

/// code_of_typed also sees slips in a code that make_code() wrote.
Result<PairingCode> code_of_typed(std::string_view typed) {
  ONEHOP_TRY(made, SecretBytes::allocate(made_code_bytes));
  const std::span<char, made_code_bytes> text{reinterpret_cast<char*>(made.bytes().data()),
                                              made_code_bytes};
  bool is_made = false;
  if (std::string fault = fault_of_typed(typed, text, is_made); !fault.empty())
    return usage_error(
        std::move(fault),
        "Compare it with the other screen; one that an earlier version made is taken "
        "from --code-file FILE");
  return PairingCode::from_text(is_made ? std::string_view{text.data(), text.size()} : typed);
}

Result<PairingCode> code_from_terminal(const CodeSource& source) {
  constexpr int tries_max = 3;
  const Fd terminal{::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)};
  if (!terminal.is_open())
    return usage_error("no code was given and there is no terminal to ask on",
                       "Give --code-file FILE or set ONEHOP_CODE");
  ONEHOP_TRY(buffer, SecretBytes::allocate(read_bytes_max));
  const auto say = [&terminal](const std::string& text) {
    (void)!::write(terminal.get(), text.data(), text.size());
  };
  if (!source.is_hidden) say("The other screen shows a code of 7 groups; dashes do not matter.\n");
  for (int tries = 1;; ++tries) {
    ONEHOP_TRY(filled, read_typed(terminal.get(), source.prompt,
                                  source.is_hidden ? Typed::hidden : Typed::shown, buffer.bytes()));
    if (filled == read_bytes_max) return code_in(buffer, filled);
    const char* const typed = reinterpret_cast<const char*>(buffer.bytes().data());
    const bool has_ended = filled == 0 || typed[filled - 1] != '\n';
    auto code = code_of_typed({typed, filled});
    if (code.has_value() || has_ended || tries == tries_max) return code;
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
  (void)::mlock(
      pages, size_bytes);  // RLIMIT_MEMLOCK may be 0 in containers; swap is then the user's affair
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
      "A code has 20 to 256 printable ASCII characters, the same on both sides";
  if (text.size() < code_bytes_min)
    return usage_error("the code has only " + std::to_string(text.size()) + " characters", rule);
  if (text.size() > code_bytes_max)
    return usage_error("the code is longer than 256 characters", rule);
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; }))
    return usage_error("the code has a character that is not printable", rule);
  PairingCode code;
  ONEHOP_TRY(code_bytes_taken, SecretBytes::allocate(text.size()));
  code.bytes_ = std::move(code_bytes_taken);
  std::memcpy(code.bytes_.bytes().data(), text.data(), text.size());
  return code;
}

std::string_view PairingCode::text() const noexcept {
  return {reinterpret_cast<const char*>(bytes_.bytes().data()), bytes_.bytes().size()};
}

Result<PairingCode> make_code() {
  CodeLetters letters;
  if (::getentropy(letters.data(), letters.size()) != 0)
    return errno_error(ExitCode::internal_error, "draw a pairing code");
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

Result<PairingKey> stretch(const PairingCode& code) {
  const Error failed{ExitCode::io_unavailable, "stretch the pairing code",
                     "OpenSSL's scrypt failed; it wants 16 MiB of memory",
                     "Raise the limit on memory (ulimit -v), or end other programs"};
  PairingKey key;
  ONEHOP_TRY(key_bytes_taken, SecretBytes::allocate(pairing_key_bytes));
  key.bytes_ = std::move(key_bytes_taken);
  const std::string_view text = code.text();
  key.is_strong_ = is_strong_form(text);
  auto* out = reinterpret_cast<unsigned char*>(key.bytes_.bytes().data());
  const auto* salt = reinterpret_cast<const unsigned char*>(application_salt.data());
  if (::EVP_PBE_scrypt(text.data(), text.size(), salt, application_salt.size(),
                       has_made_form(text) ? scrypt_n_made : scrypt_n, scrypt_r, scrypt_p,
                       scrypt_memory_bytes_max, out, pairing_key_bytes) != 1)
    return failed;
  return key;
}

}  // namespace onehop::session
