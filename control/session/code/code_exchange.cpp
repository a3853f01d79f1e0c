// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/code/code_exchange.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "control/session/channel/tls.hpp"
#include "engine/base/check.hpp"

namespace onehop::session {

namespace {

// Of this exchange, and not of the messages behind it: their version is TLS's to agree on.
constexpr std::string_view tag = "onehop1\n";
static_assert(tag.size() == exchange_tag_bytes);
// CI: lv_cat("sender", "receiver"), the initiator first.
constexpr std::string_view channel_identifier = "\x06sender\x08receiver";
constexpr std::string_view cpace_suite = "CPACE-RISTR255-SHA512";

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span{text});
}

}  // namespace

bool is_exchange_tag(std::span<const std::byte, exchange_tag_bytes> bytes) noexcept {
  return std::ranges::equal(bytes, bytes_of(tag));
}

CodeExchange::CodeExchange(Role role, std::size_t burnt) : role_{role} {
  std::ranges::copy(bytes_of(tag), greeting_.begin());
  const auto nonce = std::span{greeting_}.subspan<exchange_tag_bytes, exchange_nonce_bytes>();
  ONEHOP_CHECK(::getentropy(nonce.data(), nonce.size()) == 0);
  greeting_.back() = static_cast<std::byte>(std::min<std::size_t>(burnt, 255));
}

bool CodeExchange::take_greeting(const ExchangeGreeting& theirs) noexcept {
  if (!is_exchange_tag(std::span{theirs}.first<exchange_tag_bytes>())) return false;
  const auto nonce_of = [](const ExchangeGreeting& greeting) {
    return std::span{greeting}.subspan<exchange_tag_bytes, exchange_nonce_bytes>();
  };
  std::ranges::copy(nonce_of(is_sender() ? greeting_ : theirs), session_id_.begin());
  std::ranges::copy(nonce_of(is_sender() ? theirs : greeting_),
                    session_id_.begin() + exchange_nonce_bytes);
  peer_burnt_ = std::to_integer<std::size_t>(theirs.back());
  return true;
}

std::vector<std::byte> CodeExchange::message(const PairingCode& code, const Endpoint& self) {
  cpace_ = crypto::Cpace::begin({bytes_of(code.text()), bytes_of(channel_identifier), session_id_});
  Endpoint shown = self;
  shown.address.scope_id = 0;  // the interface's name is no stranger's business
  said_ = std::string{alpn_name} + " " + std::string{cpace_suite} + " " + shown.text();
  std::vector<std::byte> message{cpace_->point().begin(), cpace_->point().end()};
  message.push_back(static_cast<std::byte>(said_.size()));
  message.insert(message.end(), bytes_of(said_).begin(), bytes_of(said_).end());
  return message;
}

std::optional<SessionPsk> CodeExchange::take_message(const ExchangeHead& head,
                                                     std::span<const std::byte> said) const {
  const crypto::CpaceMessage theirs{point_of(head), said};
  const auto key = is_sender() ? cpace_->key_of_initiator(bytes_of(said_), theirs)
                               : cpace_->key_of_responder(bytes_of(said_), theirs);
  if (!key) return std::nullopt;
  SessionPsk psk;
  crypto::hkdf_expand_label(key->bytes(), "onehop pairing", {}, psk.writable());
  return psk;
}

crypto::CpacePoint CodeExchange::point_of(const ExchangeHead& head) noexcept {
  crypto::CpacePoint point;
  std::copy_n(head.begin(), point.size(), point.begin());
  return point;
}

}  // namespace onehop::session
