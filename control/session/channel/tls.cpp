// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/channel/tls.hpp"

#include <openssl/err.h>

#include <utility>

namespace onehop::session {

namespace {

// The client is always the sender of files, so a connection's identity is that of the sender; who
// presents another one plays another role or another protocol.
constexpr std::string_view psk_identity = "onehop pairing v1; client=sender; server=receiver";
constexpr std::array<unsigned char, 2> suite_bytes = {
    0x13, 0x01};  // TLS_AES_128_GCM_SHA256, RFC 8446 B.4
// Nothing we send in a handshake needs more; it bounds what a stranger can make OpenSSL allocate.
constexpr long certificate_list_bytes_max = 4096;

// Notes of one connection, for classify_handshake().
struct Notes {
  bool is_psk_offered = false;
  bool is_identity_known = false;
  bool is_verified = false;  // the newest binder
  std::optional<SessionPsk> psk;
  ProofCount::Code psk_code = 0;
  std::optional<ProofCount::Code> proof;  // begun, and not passed yet
  std::function<void()> on_exchange, on_binder;
  std::optional<pair::PublicKey> pinned;  // the one key that the other end may show
  bool is_pin_met = false, is_key_other = false;
};

int notes_index() {
  static const int index = ::SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* notes, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<Notes*>(notes);
      });
  return index;
}
int context_index() {
  static const int index = ::SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}
Notes* notes_of(const SSL* ssl) noexcept {
  return static_cast<Notes*>(::SSL_get_ex_data(ssl, notes_index()));
}

Error tls_error(std::string cause) {
  return {ExitCode::internal_error, "set up TLS", std::move(cause), ""};
}

}  // namespace

std::optional<ProofCount::Code> ProofCount::begin() noexcept {
  if (is_burnt()) return std::nullopt;
  ++failures_;
  return code_;
}

void ProofCount::pass(Code code) noexcept {
  if (code == code_ && failures_ > 0) --failures_;
}

void ProofCount::renew(bool can_guess) noexcept {
  ++code_;
  failures_ = 0;
  can_guess_ = can_guess;
}

struct TlsContext::Callbacks {
  [[nodiscard]] static TlsContext* of(const SSL* ssl) noexcept {
    return static_cast<TlsContext*>(::SSL_CTX_get_ex_data(::SSL_get_SSL_CTX(ssl), context_index()));
  }
  // A PSK is handed to OpenSSL as a session of TLS 1.3 whose master key is the PSK.
  [[nodiscard]] static SSL_SESSION* make_session(SSL* ssl) {
    const Notes* notes = notes_of(ssl);
    if (notes == nullptr || !notes->psk) return nullptr;
    SSL_SESSION* session = ::SSL_SESSION_new();
    if (session == nullptr) return nullptr;
    const SSL_CIPHER* suite = ::SSL_CIPHER_find(ssl, suite_bytes.data());
    const std::span key = notes->psk->bytes();
    const auto* bytes = reinterpret_cast<const unsigned char*>(key.data());
    const bool is_made = suite != nullptr &&
                         ::SSL_SESSION_set1_master_key(session, bytes, key.size()) == 1 &&
                         ::SSL_SESSION_set_cipher(session, suite) == 1 &&
                         ::SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
    if (is_made) return session;
    ::SSL_SESSION_free(session);
    return nullptr;
  }

  static int use_session(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_bytes,
                         SSL_SESSION** session) {
    *session = make_session(ssl);
    if (*session == nullptr) return 0;
    const std::string& identity = of(ssl)->identity_;
    *id = reinterpret_cast<const unsigned char*>(identity.data());
    *id_bytes = identity.size();
    return 1;
  }
  static int find_session(SSL* ssl, const unsigned char* id, std::size_t id_bytes,
                          SSL_SESSION** session) {
    *session = nullptr;
    Notes* notes = notes_of(ssl);
    if (notes == nullptr) return 0;
    TlsContext& context = *of(ssl);
    notes->is_psk_offered = true;
    notes->is_verified = false;
    // The identity is public, so the comparison need not be in constant time.
    const std::string_view given{reinterpret_cast<const char*>(id), id_bytes};
    notes->is_identity_known = given == context.identity_;
    // Another identity tries no code, and a client may offer many.
    if (notes->is_identity_known && notes->psk_code == context.proofs_.present())
      notes->proof = context.proofs_.begin();
    if (!notes->is_identity_known || !notes->proof)
      return 1;  // goes on without a PSK, and fails for want of a certificate
    *session = make_session(ssl);
    return *session != nullptr ? 1 : 0;
  }
  // OpenSSL goes on to its next state in the same call in which it found the binder right.
  static void note_state(const SSL* ssl, int where, int) {
    if (where != SSL_CB_ACCEPT_LOOP || ::SSL_session_reused(ssl) != 1) return;
    Notes* notes = notes_of(ssl);
    if (notes == nullptr || !notes->proof) return;
    of(ssl)->proofs_.pass(*std::exchange(notes->proof, std::nullopt));
    notes->is_verified = true;
    if (notes->on_binder) std::exchange(notes->on_binder, nullptr)();
  }
  // Pinned keys take the place of authorities: CertificateVerify proves that the other end has the
  // key of its certificate, and here is whose key it has to be.
  static int check_certificate(X509_STORE_CTX* store, void*) {
    const auto* ssl = static_cast<SSL*>(
        ::X509_STORE_CTX_get_ex_data(store, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
    Notes* notes = ssl == nullptr ? nullptr : notes_of(ssl);
    if (notes != nullptr && notes->pinned) {
      notes->is_pin_met = pair::key_of(::X509_STORE_CTX_get0_cert(store)) == notes->pinned;
      notes->is_key_other = !notes->is_pin_met;
      if (notes->is_pin_met) return 1;
    }
    ::X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
    return 0;
  }
  static int select_alpn(SSL*, const unsigned char** out, unsigned char* out_bytes,
                         const unsigned char* in, unsigned int in_bytes, void*) {
    const unsigned char* other = nullptr;
    for (unsigned int at = 0; at < in_bytes && at + 1U + in[at] <= in_bytes; at += 1U + in[at]) {
      const std::string_view name{reinterpret_cast<const char*>(in + at + 1), in[at]};
      if (name == alpn_name || (other == nullptr && name.starts_with(alpn_prefix))) other = in + at;
      if (name == alpn_name) break;
    }
    if (other == nullptr) return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = other + 1;
    *out_bytes = *other;
    return SSL_TLSEXT_ERR_OK;
  }
};

namespace {

/// Both suites have SHA-256, so either goes with the PSK.
bool set_suites(SSL_CTX* context, bool prefers_chacha20) {
  // A receiver goes by its own list, unless ChaCha20-Poly1305 is the sender's first.
  ::SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  return ::SSL_CTX_set_ciphersuites(
             context, prefers_chacha20
                          ? "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256"
                          : "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1;
}

/// The group that also withstands a quantum computer comes first, where OpenSSL has it (3.5). A
/// client sends a share of both, so an end without it costs no further round trip.
bool set_groups(SSL_CTX* context) {
  if (::SSL_CTX_set1_groups_list(context, "*X25519MLKEM768:*X25519") == 1) return true;
  ::ERR_clear_error();
  return ::SSL_CTX_set1_groups_list(context, "X25519") == 1;
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::make(const TlsOptions& options,
                                                     const PairingCode& code) {
  std::shared_ptr<TlsContext> made{new TlsContext};
  const bool is_client = options.role == Role::sender;
  made->context_.reset(::SSL_CTX_new(is_client ? ::TLS_client_method() : ::TLS_server_method()));
  SSL_CTX* context = made->get();
  if (context == nullptr) return tls_error("OpenSSL gave no context");
  made->renew(code);
  made->device_ = options.device;
  if (made->device_ != nullptr && !options.peer.empty()) {
    const auto& peers = made->device_->peers;
    const auto at = std::ranges::find(peers, options.peer, [](auto& peer) { return peer->name; });
    if (at == peers.end()) return tls_error("no device is called " + options.peer);
    made->peer_ = *at;
  }
  made->identity_ = options.identity.empty() ? std::string{psk_identity} : options.identity;

  const bool is_set = ::SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                      ::SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
                      set_suites(context, options.prefers_chacha20) && set_groups(context) &&
                      ::SSL_CTX_set_num_tickets(context, 0) == 1 &&
                      ::SSL_CTX_set_max_early_data(context, 0) == 1 &&
                      ::SSL_CTX_set_ex_data(context, context_index(), made.get()) == 1;
  if (!is_set)
    return tls_error("this OpenSSL lacks TLS 1.3, AES-128-GCM, ChaCha20-Poly1305 or X25519");
  ::SSL_CTX_set_options(context,
                        SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_set_max_cert_list(context, certificate_list_bytes_max);
  ::SSL_CTX_set_cert_verify_callback(context, &Callbacks::check_certificate, nullptr);
  if (is_client) {
    // No certificate but a pinned one can stand in for the PSK. (A server without one needs no such
    // rule.)
    ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    // RFC 7301: a list of names, each behind its length. This one has a single name.
    const std::string names = static_cast<char>(options.alpn.size()) + options.alpn;
    if (::SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(names.data()),
                                  static_cast<unsigned int>(names.size())) != 0)
      return tls_error("ALPN was refused");
    ::SSL_CTX_set_psk_use_session_callback(context, &Callbacks::use_session);
  } else {
    ::SSL_CTX_set_alpn_select_cb(context, &Callbacks::select_alpn, nullptr);
    ::SSL_CTX_set_psk_find_session_callback(context, &Callbacks::find_session);
    ::SSL_CTX_set_info_callback(context, &Callbacks::note_state);
  }
  return made;
}

void TlsContext::renew(const PairingCode& code) noexcept {
  code_ = code;
  proofs_.renew(!code.is_made());
}

void TlsContext::prepare(SSL* ssl) const noexcept {
  (void)::SSL_set_ex_data(ssl, notes_index(), new (std::nothrow) Notes);
}

bool has_failed_proof(SSL* ssl) noexcept {
  const Notes* notes = notes_of(ssl);
  return ::SSL_is_server(ssl) == 1 && notes != nullptr && notes->is_psk_offered &&
         !notes->is_verified;
}

void set_psk(SSL* ssl, const SessionPsk& psk, ProofCount::Code code) {
  if (Notes* notes = notes_of(ssl); notes != nullptr) {
    notes->psk = psk;
    notes->psk_code = code;
    if (notes->on_exchange) std::exchange(notes->on_exchange, nullptr)();
  }
}

bool pin(SSL* ssl, const pair::DeviceKey& own, const pair::PublicKey& other) {
  Notes* notes = notes_of(ssl);
  if (notes == nullptr || !own.install(ssl)) return false;
  notes->pinned = other;
  ::SSL_set_psk_use_session_callback(ssl, nullptr);
  ::SSL_set_psk_find_session_callback(ssl, nullptr);
  ::SSL_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return true;
}

void note_known(SSL* ssl) {
  Notes* notes = notes_of(ssl);
  if (notes == nullptr) return;
  if (notes->on_exchange) std::exchange(notes->on_exchange, nullptr)();
  if (notes->on_binder) std::exchange(notes->on_binder, nullptr)();
}

bool owes_proof(SSL* ssl) noexcept {
  const Notes* notes = notes_of(ssl);
  return notes != nullptr && notes->psk && !notes->is_verified;
}

void on_exchange(SSL* ssl, std::function<void()> call) {
  if (Notes* notes = notes_of(ssl); notes != nullptr) notes->on_exchange = std::move(call);
}

void on_binder(SSL* ssl, std::function<void()> call) {
  if (Notes* notes = notes_of(ssl); notes != nullptr) notes->on_binder = std::move(call);
}

HandshakeFailure classify_handshake(SSL* ssl, unsigned long openssl_error) noexcept {
  const Notes* notes = notes_of(ssl);
  const bool is_server = ::SSL_is_server(ssl) == 1;
  if (notes != nullptr && notes->pinned && notes->is_key_other)
    return HandshakeFailure::changed_key;
  // What check_certificate() has the other end say. Any other failure is none of our key's.
  if (notes != nullptr && notes->pinned)
    return ERR_GET_REASON(openssl_error) == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE
               ? HandshakeFailure::own_key_refused
               : HandshakeFailure::not_onehop;
  if (has_failed_proof(ssl))
    return notes->is_identity_known ? HandshakeFailure::wrong_code : HandshakeFailure::wrong_role;
  switch (ERR_GET_REASON(openssl_error)) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_BAD_PSK:
    case SSL_R_DIGEST_CHECK_FAILED:
    // The peer's alerts, sent when it could not verify our binder or did not know our identity.
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    // A server that tried a certificate instead of the PSK does not know the code.
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      // A client that offered no PSK made no guess.
      return is_server && notes != nullptr && !notes->is_psk_offered ? HandshakeFailure::not_onehop
                                                                     : HandshakeFailure::wrong_code;
    default: return HandshakeFailure::not_onehop;
  }
}

bool is_authenticated(SSL* ssl) noexcept {
  const Notes* notes = notes_of(ssl);
  const bool is_pinned = notes != nullptr && notes->pinned;
  if (::SSL_version(ssl) != TLS1_3_VERSION) return false;
  return is_pinned ? notes->is_pin_met : ::SSL_session_reused(ssl) == 1;
}

std::string negotiated_alpn(SSL* ssl) {
  const unsigned char* name = nullptr;
  unsigned int bytes = 0;
  ::SSL_get0_alpn_selected(ssl, &name, &bytes);
  return {reinterpret_cast<const char*>(name), bytes};
}

std::string negotiated_group(SSL* ssl) {
  const char* name = ::SSL_group_to_name(ssl, static_cast<int>(::SSL_get_negotiated_group(ssl)));
  return name == nullptr ? "unknown" : name;
}

std::uint16_t negotiated_aead(SSL* ssl) noexcept {
  const SSL_CIPHER* suite = ::SSL_get_current_cipher(ssl);
  return suite == nullptr ? std::uint16_t{0} : ::SSL_CIPHER_get_protocol_id(suite);
}

Result<void> export_bound(SSL* ssl, std::string_view label, std::span<std::byte> out) {
  if (::SSL_export_keying_material(ssl, reinterpret_cast<unsigned char*>(out.data()), out.size(),
                                   label.data(), label.size(), nullptr, 0, 0) != 1)
    return tls_error("the exporter gave no keying material");
  return success();
}

namespace {

/// Exported keying material of one label, as long as `Secret` is.
template <class Secret>
Result<Secret> export_secret(SSL* ssl, std::string_view label, crypto::ExporterContext context) {
  context.aead = negotiated_aead(ssl);
  const auto bytes = context.encode();
  Secret secret;
  const int rc = ::SSL_export_keying_material(
      ssl, reinterpret_cast<unsigned char*>(secret.writable().data()), secret.writable().size(),
      label.data(), label.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
      bytes.size(), 1);
  if (rc != 1) return tls_error("the exporter gave no keying material");
  return secret;
}

}  // namespace

Result<crypto::ExporterSecret> export_data_secret(SSL* ssl,
                                                  const crypto::ExporterContext& context) {
  return export_secret<crypto::ExporterSecret>(ssl, crypto::exporter_label, context);
}

Result<crypto::CompareKey> export_compare_key(SSL* ssl, const crypto::ExporterContext& context) {
  return export_secret<crypto::CompareKey>(ssl, crypto::compare_label, context);
}

}  // namespace onehop::session
