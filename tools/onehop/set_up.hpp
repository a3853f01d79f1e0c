// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Small steps of set-up that send and recv share: words of the command line into values, and their checks.
#pragma once

#include <cstdint>

#include "control/law/make_law.hpp"
#include "engine/crypto/aead.hpp"
#include "engine/crypto/digest.hpp"
#include "engine/file/file_io.hpp"
#include "tools/onehop/options.hpp"

namespace onehop::tool {

/// check_options refuses what the parser could not: the law's spec, the key interval, the rate.
[[nodiscard]] Result<void> check_options(const CommonOptions& options);
/// law_options refer to the words in `options`.
[[nodiscard]] law::LawOptions law_options(const CommonOptions& options);
[[nodiscard]] Result<file::FileIoKind> file_io_kind(const CommonOptions& options);
[[nodiscard]] Result<crypto::DigestKind> digest_kind(const CommonOptions& options);
[[nodiscard]] crypto::AeadBackend aead_backend(const CommonOptions& options);
[[nodiscard]] int priority_of(const CommonOptions& options);       ///< SO_PRIORITY: a TID's, or for background the lowest
[[nodiscard]] std::uint8_t dscp_of(const CommonOptions& options);  ///< CS1 for background
/// random_seed is 8 bytes of getrandom.
[[nodiscard]] Result<std::uint64_t> random_seed();

}  // namespace onehop::tool
