// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/sender_token.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "engine/base/fd.hpp"
#include "engine/crypto/sha256.hpp"

namespace onehop::transfer {

Result<session::SenderToken> sender_token(const session::PairingCode& code,
                                          std::span<const std::string> paths,
                                          const std::string& stream_name) {
  constexpr const char* boot_id_file = "/proc/sys/kernel/random/boot_id";
  std::array<char, 36> boot_id{};  // a UUID as text
  const Fd file{::open(boot_id_file, O_RDONLY | O_CLOEXEC)};
  if (!file.is_open() ||
      ::read(file.get(), boot_id.data(), boot_id.size()) != static_cast<ssize_t>(boot_id.size()))
    return errno_error(ExitCode::io_unavailable, std::string{"read "} + boot_id_file);
  const std::string who =
      std::string{boot_id.data(), boot_id.size()} + " " + std::to_string(::getuid());
  std::string what = stream_name;
  for (const std::string& path : paths) {
    std::error_code none;  // there may be no working directory any more
    const auto whole = std::filesystem::absolute(path, none);
    what += '\0' + (none ? path : whole.string());
  }
  const auto hash =
      crypto::sha256(std::as_bytes(std::span{who}), std::as_bytes(std::span{code.text()}),
                     std::as_bytes(std::span{what}));
  session::SenderToken token{};
  std::copy_n(hash.begin(), token.size(), token.begin());
  return token;
}

}  // namespace onehop::transfer
