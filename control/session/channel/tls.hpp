// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TLS of the control connection: version 1.3 with an external PSK (RFC 8446 §4.2.11, psk_dhe_ke)
// and nothing else.
//
//   PairingCode ─▶ TlsContext (one per end) ─▶ CodeExchange ─▶ PSK of one connection
//     ─▶ handshake (channel.hpp) ─▶ export_data_secret(), export_compare_key()
//
// Two paired devices have no code. They know each other's Ed25519 key, show certificates of those
// keys to each other, and take no other one (pin()); there is no PSK then.
//
// There is no authority, no ticket, no 0-RTT, no other suite or group, so there is nothing to
// downgrade to. The PSK identity carries the role of the client (the sender): an end that meets its
// own role, or a reflection of itself, is refused (RFC 9257 §5.1 "Selfie"). The comparison of the
// binder is OpenSSL's, in constant time.
//
// ALPN is "onehop/4". A listener takes any "onehop/N", so that the refusal that names both versions
// can travel inside the authenticated connection; only its first two messages (Welcome, Refuse) are
// common to all versions.
#pragma once

#include <openssl/ssl.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "control/pair/device_hello.hpp"
#include "control/session/code/code_exchange.hpp"
#include "engine/base/result.hpp"
#include "engine/crypto/content_mac.hpp"
#include "engine/crypto/key_schedule.hpp"

namespace onehop::session {

inline constexpr std::string_view alpn_prefix = "onehop/";
inline constexpr std::string_view alpn_name = "onehop/4";

struct TlsOptions {
  Role role = Role::sender;
  std::string alpn{alpn_name};  ///< what a client offers; tests offer another
  std::string identity;         ///< empty: the one of the protocol; tests present others
  /// The own device and those that are paired with it; null: none.
  std::shared_ptr<const pair::Identity> device;
  std::string peer;  ///< sending: to this one of them; empty: by the code
  /// ChaCha20-Poly1305 is agreed on where either end prefers it, AES-128-GCM elsewhere.
  bool prefers_chacha20 = !crypto::has_aes_instructions();
};

inline constexpr unsigned failed_proofs_max = 3;  ///< then a code that can be guessed is burnt

/// ProofCount: how many proofs of a code failed. A proof counts as failed from the moment in which
/// the key is handed out for its check until it has passed, so that what many connections try in
/// one moment is counted as it is tried, and whoever goes away before the answer has tried, too. A
/// key that comes of a code before the present one proves nothing, and tries nothing.
class ProofCount {
 public:
  using Code = unsigned;  ///< which of the codes that this end had, from 1

  /// begin: a proof of the present code is about to be checked; nothing: that code is burnt.
  [[nodiscard]] std::optional<Code> begin() noexcept;
  /// pass takes back what begin() counted, unless the code has been renewed meanwhile.
  void pass(Code code) noexcept;
  /// forgive forgets failures of somebody who knows the code now. A burnt code stays so.
  void forgive(unsigned failures) noexcept {
    if (!is_burnt()) failures_ -= std::min(failures_, failures);
  }
  void renew(bool can_guess) noexcept;
  [[nodiscard]] Code present() const noexcept { return code_; }
  [[nodiscard]] std::size_t burnt_before() const noexcept { return code_ - 1; }
  [[nodiscard]] bool is_burnt() const noexcept {
    return can_guess_ && failures_ >= failed_proofs_max;
  }
  [[nodiscard]] bool can_guess() const noexcept { return can_guess_; }
  [[nodiscard]] unsigned failures() const noexcept { return failures_; }

 private:
  Code code_ = 0;
  unsigned failures_ = 0;
  bool can_guess_ = false;
};

/// TlsContext owns the SSL_CTX, the code, and the count of what failed. Each connection made from
/// it shares it, and is held to the code as it is when it proves it, whenever it was opened.
/// OpenSSL keeps its address. Session thread.
class TlsContext {
 public:
  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> make(const TlsOptions& options,
                                                                const PairingCode& code);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  [[nodiscard]] SSL_CTX* get() const noexcept { return context_.get(); }
  /// prepare attaches to a new connection what classify_handshake() needs to know of it.
  void prepare(SSL* ssl) const noexcept;
  /// renew: from now on another code is the right one, for connections that are open, too.
  void renew(const PairingCode& code) noexcept;
  [[nodiscard]] const PairingCode& code() const noexcept { return code_; }
  [[nodiscard]] ProofCount& proofs() noexcept { return proofs_; }
  [[nodiscard]] const ProofCount& proofs() const noexcept { return proofs_; }
  [[nodiscard]] const pair::Identity* device() const noexcept { return device_.get(); }
  /// peer is the paired device that a sender sends to; null: none, by the code.
  [[nodiscard]] const pair::KnownPeer& peer() const noexcept { return peer_; }

 private:
  struct Free {
    void operator()(SSL_CTX* owned) const noexcept { ::SSL_CTX_free(owned); }
  };
  struct Callbacks;
  TlsContext() = default;
  std::unique_ptr<SSL_CTX, Free> context_;
  PairingCode code_;
  std::shared_ptr<const pair::Identity> device_;
  pair::KnownPeer peer_;
  std::string identity_;
  ProofCount proofs_;
};

/// HandshakeFailure: why there is no session. Only the first two count as a failed authentication.
enum class HandshakeFailure : std::uint8_t {
  none,
  wrong_code,  ///< the binder did not verify, or the peer said so
  wrong_role,  ///< the peer knows PSKs, but not as the other role of this protocol
  not_onehop,  ///< not TLS 1.3, or TLS without our PSK or ALPN: a scanner, a browser, garbage
  vanished,    ///< the connection was closed or reset
  timed_out,
  unknown_device,   ///< the ends are not paired, or one of them has forgotten the other
  changed_key,      ///< the other device shows another key than when it was paired
  own_key_refused,  ///< it says so of ours
};

/// classify_handshake turns OpenSSL's reason (the low bits of an error of the ssl category) into a
/// HandshakeFailure.
[[nodiscard]] HandshakeFailure classify_handshake(SSL* ssl, unsigned long openssl_error) noexcept;
/// has_failed_proof: a client tried to prove the code or a role and did not, whatever the
/// connection ended with: who closes it at once gets no error of TLS.
[[nodiscard]] bool has_failed_proof(SSL* ssl) noexcept;
/// set_psk gives a connection its PSK, which comes of the code that has number `code`.
void set_psk(SSL* ssl, const SessionPsk& psk, ProofCount::Code code);
/// pin has `ssl` show the certificate of `own`, and take that of `other` alone. False: OpenSSL
/// refused.
[[nodiscard]] bool pin(SSL* ssl, const pair::DeviceKey& own, const pair::PublicKey& other);
/// note_known: the other end is a paired device, by a proof that nobody can repeat; as on_binder().
void note_known(SSL* ssl);
/// owes_proof: the other end took part in an exchange of the code, and has not proven it.
[[nodiscard]] bool owes_proof(SSL* ssl) noexcept;
/// on_exchange has `call` called once, when `ssl` gets its PSK: its other end took part in a whole
/// exchange of the code.
void on_exchange(SSL* ssl, std::function<void()> call);
/// on_binder has `call` called once, while the right binder of `ssl`'s client is checked. Nobody
/// can repeat one that was heard: each connection has another PSK.
void on_binder(SSL* ssl, std::function<void()> call);

/// burnt_error: so many failures have burnt the code.
[[nodiscard]] Error burnt_error(unsigned failures, const char* hint);
/// rejection_of: what a receiver says of a failed handshake.
[[nodiscard]] std::optional<Error> rejection_of(HandshakeFailure failure);

/// is_authenticated is asked after a handshake that succeeded: the PSK, or the pinned key and no
/// other certificate, was used.
[[nodiscard]] bool is_authenticated(SSL* ssl) noexcept;
/// negotiated_alpn is what both ends will speak, "onehop/N".
[[nodiscard]] std::string negotiated_alpn(SSL* ssl);
/// negotiated_group is how the session's secret was agreed: "X25519MLKEM768" or "x25519".
[[nodiscard]] std::string negotiated_group(SSL* ssl);

/// negotiated_aead is the cipher of the connection, and of the session's frames, by TLS's number.
[[nodiscard]] std::uint16_t negotiated_aead(SSL* ssl) noexcept;

/// export_bound fills `out` with what both ends of this connection have alike, and nobody else.
[[nodiscard]] Result<void> export_bound(SSL* ssl, std::string_view label, std::span<std::byte> out);

/// export_data_secret gives the 32 bytes from which the data path's keys are derived. Both ends get
/// the same bytes only if they understood every field of the context alike. Its cipher is the one
/// that TLS agreed on.
[[nodiscard]] Result<crypto::ExporterSecret> export_data_secret(
    SSL* ssl, const crypto::ExporterContext& context);
/// export_compare_key does so with the key by which what the receiver has is compared.
[[nodiscard]] Result<crypto::CompareKey> export_compare_key(SSL* ssl,
                                                            const crypto::ExporterContext& context);

}  // namespace onehop::session
