// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Settings: the options of one transfer and the values read from them, and the functions that turn
// option words into values. Pure but for random_seed(); any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/law/make_law.hpp"
#include "control/transfer/api/transfer.hpp"
#include "engine/base/result.hpp"
#include "engine/crypto/aead.hpp"
#include "engine/crypto/digest.hpp"
#include "engine/list/tree_scan.hpp"

namespace onehop::transfer {

struct Settings : api::Options {
  law::LawParams params;   ///< with the changes in law_params
  std::string params_of;   ///< the law that law_params is for; empty: it is not given
  std::optional<int> tid;  ///< of data frames on Wi-Fi, instead of the priority's TID
  /// `onehop bench` compares them.
  crypto::AeadBackend aead = crypto::AeadBackend::automatic;
  std::string rate_memory;  ///< file of RateMemory; empty: none
};

/// read_settings reads law_params and refuses options that no transfer can run with. Errors: 2, and
/// those of choose_core.
[[nodiscard]] Result<Settings> read_settings(const api::Options& options);

/// words_of lists the words that an option accepts: "--io", "--poll".
[[nodiscard]] std::vector<std::string> words_of(std::string_view option);
/// check_word refuses a value that words_of() does not list. Error: 2.
[[nodiscard]] Result<void> check_word(std::string_view option, const std::string& value);
/// place_of is the index of a checked value among words_of(), 0 for any other.
[[nodiscard]] std::size_t place_of(std::string_view option, std::string_view value);
/// choice is the value of such an option. E's values stand in the order of the words.
template <class E>
[[nodiscard]] E choice(std::string_view option, std::string_view value) {
  return static_cast<E>(place_of(option, value));
}
/// check_send_options checks the options that only a sender has.
[[nodiscard]] Result<void> check_send_options(const api::SendOptions& options);

/// Endpoint: HOST[:PORT], V6, [V6][:PORT], or :PORT. host is empty where none was given.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};
inline constexpr std::uint16_t default_port = 7411;
[[nodiscard]] Result<Endpoint> parse_endpoint(const std::string& text);
/// parse_peer is parse_endpoint where the interface of a link-local address may be left open
/// (with_scope()).
[[nodiscard]] Result<Endpoint> parse_peer(const std::string& text, const std::string& interface);

/// law_options refer to the words in `settings`.
[[nodiscard]] law::LawOptions law_options(const Settings& settings);
/// digest_kind is SHA-256 also for a receipt, so that a digest in it cannot be made for other
/// contents. A receiver with a receipt requires it of the sender.
[[nodiscard]] crypto::DigestKind digest_kind(const api::Options& options);
/// prefers_chacha20: this end accepts no other cipher (TlsOptions).
[[nodiscard]] bool prefers_chacha20(const Settings& settings);
/// priority_of is SO_PRIORITY: a TID's, or for background the lowest.
[[nodiscard]] int priority_of(const Settings& settings);
[[nodiscard]] std::uint8_t dscp_of(const api::Options& options);  ///< CS1 for background
[[nodiscard]] Result<std::uint64_t> random_seed();

/// scan_options are those for list::scan(); the words are checked.
[[nodiscard]] list::ScanOptions scan_options(const api::SendOptions& options);
[[nodiscard]] api::LeftOut left_out_of(std::span<const list::ScanProblem> problems);

[[nodiscard]] api::Error to_api(const Error& error);
[[nodiscard]] Error from_api(const api::Error& error);
[[nodiscard]] Result<void> result_of(const api::Error& error);

}  // namespace onehop::transfer
