// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TLS of the control connection: version 1.3 with an external PSK (RFC 8446 §4.2.11, psk_dhe_ke)
// and nothing else.
//
//   PairingCode ─▶ TlsContext (one per end) ─▶ CodeExchange ─▶ PSK of one connection
//     ─▶ handshake (channel.hpp) ─▶ export_data_secret(), export_compare_key()
//
// Two paired devices have no code. They know each other's Ed25519 key, show certificates of those
// keys to each other, and accept no other certificate (pin()); there is no PSK then.
//
// There is no authority, no ticket, no 0-RTT, no other suite or group, so there is nothing to
// downgrade to. The PSK identity carries the role of the client (the sender): an end that meets its
// own role, or a reflection of itself, is refused (RFC 9257 §5.1 "Selfie"). The comparison of the
// binder is OpenSSL's, in constant time.
//
// ALPN is "onehop/5". A listener accepts any "onehop/N", so that the refusal that names both
// versions travels inside the authenticated connection; only its first two messages (Welcome,
// Refuse) are common to all versions.
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
inline constexpr std::string_view alpn_name = "onehop/5";

struct TlsOptions {
  Role role = Role::sender;
  std::string alpn{alpn_name};  ///< what a client offers; tests offer another
  std::string identity;         ///< empty: the protocol's; tests present others
  /// This device and those that are paired with it; null: none.
  std::shared_ptr<const pair::Identity> device;
  std::string peer;  ///< sending: the name of the paired receiver; empty: by the code
  /// ChaCha20-Poly1305 is agreed on where either end prefers it, AES-128-GCM elsewhere.
  bool prefers_chacha20 = !crypto::has_aes_instructions();
};

inline constexpr unsigned failed_proofs_max = 3;  ///< then a code that can be guessed is burnt

/// ProofCount: how many proofs of a code failed. A proof counts as failed from the moment at which
/// its key is given out for the check until it passes, so attempts on many connections at the same
/// moment all count, and so does a peer that disconnects before the answer. A key from an earlier
/// code proves nothing and counts nothing.
class ProofCount {
 public:
  using Code = unsigned;  ///< number of a code of this end, from 1

  /// begin: a proof of the present code starts; nullopt: that code is burnt.
  [[nodiscard]] std::optional<Code> begin() noexcept;
  /// pass takes back what begin() counted, unless the code has been renewed meanwhile.
  void pass(Code code) noexcept;
  /// forgive removes failures of a peer that knows the code now. A burnt code stays burnt.
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

/// TlsContext owns the SSL_CTX, the code, and the count of failed proofs. Each connection made from
/// it shares it, and is checked against the code at the moment of its proof, whenever it was
/// opened. OpenSSL keeps its address. Session thread.
class TlsContext {
 public:
  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> make(const TlsOptions& options,
                                                                const PairingCode& code);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  [[nodiscard]] SSL_CTX* get() const noexcept { return context_.get(); }
  /// prepare attaches to a new connection what classify_handshake() needs.
  void prepare(SSL* ssl) const noexcept;
  /// renew replaces the code, for connections that are open, too.
  void renew(const PairingCode& code) noexcept;
  [[nodiscard]] const PairingCode& code() const noexcept { return code_; }
  [[nodiscard]] ProofCount& proofs() noexcept { return proofs_; }
  [[nodiscard]] const ProofCount& proofs() const noexcept { return proofs_; }
  [[nodiscard]] const pair::Identity* device() const noexcept { return device_.get(); }
  /// peer is the paired device that a sender sends to; null: it sends by the code.
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
  own_key_refused,  ///< the other device says so of ours
};

/// classify_handshake turns OpenSSL's reason (the low bits of an error of the ssl category) into a
/// HandshakeFailure.
[[nodiscard]] HandshakeFailure classify_handshake(SSL* ssl, unsigned long openssl_error) noexcept;
/// has_failed_proof: a client tried to prove the code or a role and failed, however the connection
/// ended: if the client closes it at once, TLS reports no error.
[[nodiscard]] bool has_failed_proof(SSL* ssl) noexcept;
/// set_psk gives a connection its PSK, which was made with the code of number `code`.
void set_psk(SSL* ssl, const SessionPsk& psk, ProofCount::Code code);
/// pin makes `ssl` show the certificate of `own`, and accept that of `other` alone. False: OpenSSL
/// refused.
[[nodiscard]] bool pin(SSL* ssl, const pair::DeviceKey& own, const pair::PublicKey& other);
/// note_known: the other end is a paired device, by a proof that cannot be replayed; as
/// on_binder().
void note_known(SSL* ssl);
/// owes_proof: the other end took part in an exchange of the code, and has not proven it.
[[nodiscard]] bool owes_proof(SSL* ssl) noexcept;
/// on_exchange registers `call`, which runs once when `ssl` gets its PSK: its other end took part
/// in a whole exchange of the code.
void on_exchange(SSL* ssl, std::function<void()> call);
/// on_binder registers `call`, which runs once while the right binder of `ssl`'s client is checked.
/// A recorded binder cannot be replayed: each connection has another PSK.
void on_binder(SSL* ssl, std::function<void()> call);

/// burnt_error: the error after `failures` wrong proofs burnt the code.
[[nodiscard]] Error burnt_error(unsigned failures, const char* hint);
/// rejection_of: what a receiver reports about a failed handshake.
[[nodiscard]] std::optional<Error> rejection_of(HandshakeFailure failure);

/// is_authenticated is for a handshake that succeeded: it used the PSK, or the pinned key and no
/// other certificate.
[[nodiscard]] bool is_authenticated(SSL* ssl) noexcept;
/// negotiated_alpn is the version that both ends agreed on, "onehop/N".
[[nodiscard]] std::string negotiated_alpn(SSL* ssl);
/// negotiated_group is how the session's secret was agreed: "X25519MLKEM768" or "x25519".
[[nodiscard]] std::string negotiated_group(SSL* ssl);

/// negotiated_aead is the cipher of the connection, and of the session's frames, by TLS's number.
[[nodiscard]] std::uint16_t negotiated_aead(SSL* ssl) noexcept;

/// export_bound fills `out` with bytes that only the two ends of this connection can compute.
[[nodiscard]] Result<void> export_bound(SSL* ssl, std::string_view label, std::span<std::byte> out);

/// export_data_secret gives the 32 bytes from which the data path's keys are derived. Both ends get
/// the same bytes only if they understood every field of the context alike. Its cipher is the one
/// that TLS agreed on.
[[nodiscard]] Result<crypto::ExporterSecret> export_data_secret(
    SSL* ssl, const crypto::ExporterContext& context);
/// export_compare_key does the same for the key that compares the receiver's existing content.
[[nodiscard]] Result<crypto::CompareKey> export_compare_key(SSL* ssl,
                                                            const crypto::ExporterContext& context);

}  // namespace onehop::session
