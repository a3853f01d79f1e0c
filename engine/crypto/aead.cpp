// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/crypto/aead.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <array>
#include <limits>
#include <new>
#include <utility>

#include "engine/base/check.hpp"

#if ONEHOP_HAS_IPSEC_MB
#include <intel-ipsec-mb.h>
#endif

namespace onehop::crypto {

namespace {

unsigned char* raw(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes);
}

struct ContextFree {
  void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, ContextFree>;

// make_context binds the cipher, so that later calls fetch and allocate nothing.
Context make_context(const EVP_CIPHER* cipher, bool is_seal) {
  Context context{EVP_CIPHER_CTX_new()};
  ONEHOP_CHECK(context != nullptr);
  const int rc =
      EVP_CipherInit_ex(context.get(), cipher, nullptr, nullptr, nullptr, is_seal ? 1 : 0);
  ONEHOP_CHECK(rc == 1);
  return context;
}

// update runs one piece. `out` null: associated data.
[[nodiscard]] bool update(EVP_CIPHER_CTX* context, std::byte* out,
                          std::span<const std::byte> in) noexcept {
  int written = 0;
  return in.empty() || EVP_CipherUpdate(context, out == nullptr ? nullptr : raw(out), &written,
                                        raw(in.data()), static_cast<int>(in.size())) == 1;
}

#if ONEHOP_HAS_IPSEC_MB
// manager: one per process is enough. The direct GCM calls only read its function pointers; the job
// queues, which would make it a thread's own, are not used. Made with the first AeadKey.
IMB_MGR* manager() {
  static IMB_MGR* const made = [] {
    IMB_MGR* const mgr = alloc_mb_mgr(0);
    if (mgr == nullptr) throw std::bad_alloc{};
    init_mb_mgr_auto(mgr, nullptr);
    ONEHOP_CHECK(imb_get_errno(mgr) == 0);
    return mgr;
  }();
  return made;
}

// pointer_of gives a valid address also for an empty span: ipsec-mb answers a null argument that it
// does not like by doing nothing, and a call that did nothing must never pass for one that sealed.
// Version 1.3 takes null where the length is zero; this does not lean on it.
const unsigned char* pointer_of(std::span<const std::byte> bytes) noexcept {
  static constexpr unsigned char nothing = 0;
  return bytes.data() == nullptr ? &nothing : raw(bytes.data());
}
#endif

}  // namespace

struct AeadKey::Impl {
  AeadBackend backend;
  Context seal_context, open_context;  // openssl
#if ONEHOP_HAS_IPSEC_MB
  IMB_MGR* mgr = nullptr;
  gcm_key_data expanded{};  // its type is aligned to 64 bytes

  [[nodiscard]] bool open_ipsec_mb(const std::byte* nonce, std::span<const std::byte> aad,
                                   Pieces sealed, std::byte* out) noexcept {
    const std::size_t body_bytes = sealed.size() - aead_tag_bytes;
    gcm_context_data context;
    std::array<std::byte, aead_tag_bytes> computed, tag;
    sealed.copy_to(tag.data(), body_bytes, body_bytes + aead_tag_bytes);
    if (sealed.is_one()) {
      const auto body = sealed.first.first(body_bytes);
      IMB_AES128_GCM_DEC(mgr, &expanded, &context, raw(out), pointer_of(body), body.size(),
                         raw(nonce), pointer_of(aad), aad.size(), raw(computed.data()),
                         aead_tag_bytes);
    } else {
      IMB_AES128_GCM_INIT(mgr, &expanded, &context, raw(nonce), pointer_of(aad), aad.size());
      (void)sealed.each(0, body_bytes, [&](std::span<const std::byte> piece) {
        IMB_AES128_GCM_DEC_UPDATE(mgr, &expanded, &context, raw(out), raw(piece.data()),
                                  piece.size());
        out += piece.size();
        return true;
      });
      IMB_AES128_GCM_DEC_FINALIZE(mgr, &expanded, &context, raw(computed.data()), aead_tag_bytes);
    }
    return CRYPTO_memcmp(computed.data(), tag.data(), aead_tag_bytes) == 0;
  }
#endif

  explicit Impl(AeadBackend chosen) : backend{chosen} {
#if ONEHOP_HAS_IPSEC_MB
    if (backend == AeadBackend::ipsec_mb) {
      mgr = manager();
      return;
    }
#endif
    const EVP_CIPHER* const cipher =
        backend == AeadBackend::chacha20 ? EVP_chacha20_poly1305() : EVP_aes_128_gcm();
    seal_context = make_context(cipher, true);
    open_context = make_context(cipher, false);
  }
  ~Impl() {
#if ONEHOP_HAS_IPSEC_MB
    OPENSSL_cleanse(&expanded, sizeof expanded);
#endif
  }
};

bool has_aes_instructions() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") != 0 && __builtin_cpu_supports("pclmul") != 0;
#elif defined(__aarch64__)
  constexpr unsigned long aes_and_pmull = HWCAP_AES | HWCAP_PMULL;
  return (::getauxval(AT_HWCAP) & aes_and_pmull) == aes_and_pmull;
#else
  return false;
#endif
}

bool is_available(AeadBackend backend) noexcept {
  return backend != AeadBackend::ipsec_mb || ONEHOP_HAS_IPSEC_MB != 0;
}

AeadBackend resolve(AeadBackend backend) noexcept {
  if (backend != AeadBackend::automatic) return backend;
  return is_available(AeadBackend::ipsec_mb) ? AeadBackend::ipsec_mb : AeadBackend::openssl;
}

std::string_view name(AeadBackend backend) noexcept {
  if (backend == AeadBackend::chacha20) return "chacha20";
  return resolve(backend) == AeadBackend::ipsec_mb ? "ipsec-mb" : "openssl";
}

std::string describe_aead(std::string_view name) {
  if (name == "chacha20") return "ChaCha20-Poly1305 by openssl";
  return "AES-128-GCM by " + std::string{name};
}

AeadKey::AeadKey(AeadBackend backend) {
  ONEHOP_CHECK(is_available(backend));
  impl_ = std::make_unique<Impl>(resolve(backend));
}
AeadKey::AeadKey(AeadKey&&) noexcept = default;
AeadKey::~AeadKey() = default;

AeadBackend AeadKey::backend() const noexcept { return impl_->backend; }

std::size_t AeadKey::key_bytes() const noexcept {
  return impl_->backend == AeadBackend::chacha20 ? chacha20_key_bytes : aead_key_bytes;
}

void AeadKey::set_key(std::span<const std::byte> key) noexcept {
  ONEHOP_CHECK(key.size() == key_bytes());
#if ONEHOP_HAS_IPSEC_MB
  if (impl_->backend == AeadBackend::ipsec_mb) {
    IMB_AES128_GCM_PRE(impl_->mgr, key.data(), &impl_->expanded);
    return;
  }
#endif
  for (EVP_CIPHER_CTX* const context : {impl_->seal_context.get(), impl_->open_context.get()}) {
    const int rc = EVP_CipherInit_ex(context, nullptr, nullptr, raw(key.data()), nullptr, -1);
    ONEHOP_CHECK(rc == 1);
  }
}

void AeadKey::seal(std::span<const std::byte, aead_nonce_bytes> nonce,
                   std::span<const std::byte> aad, std::span<const std::byte> body,
                   std::byte* out) noexcept {
  std::byte* const tag = out + body.size();
#if ONEHOP_HAS_IPSEC_MB
  if (impl_->backend == AeadBackend::ipsec_mb) {
    gcm_context_data context;
    IMB_AES128_GCM_ENC(impl_->mgr, &impl_->expanded, &context, raw(out), pointer_of(body),
                       body.size(), raw(nonce.data()), pointer_of(aad), aad.size(), raw(tag),
                       aead_tag_bytes);
    return;
  }
#endif
  ONEHOP_CHECK(body.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  EVP_CIPHER_CTX* const context = impl_->seal_context.get();
  int written = 0;
  const bool is_sealed =
      EVP_CipherInit_ex(context, nullptr, nullptr, nullptr, raw(nonce.data()), -1) == 1 &&
      update(context, nullptr, aad) && update(context, out, body) &&
      EVP_CipherFinal_ex(context, raw(tag), &written) == 1 &&
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, aead_tag_bytes, tag) == 1;
  ONEHOP_CHECK(is_sealed);
}

bool AeadKey::open(std::span<const std::byte, aead_nonce_bytes> nonce,
                   std::span<const std::byte> aad, Pieces sealed, std::byte* out) noexcept {
  const std::size_t sealed_bytes = sealed.size();
  if (sealed_bytes < aead_tag_bytes) return false;
#if ONEHOP_HAS_IPSEC_MB
  if (impl_->backend == AeadBackend::ipsec_mb)
    return impl_->open_ipsec_mb(nonce.data(), aad, sealed, out);
#endif
  if (sealed_bytes > static_cast<std::size_t>(std::numeric_limits<int>::max())) return false;
  // The tag is copied first: the control call takes a pointer to non-const.
  const std::size_t body_bytes = sealed_bytes - aead_tag_bytes;
  std::array<std::byte, aead_tag_bytes> expected;
  sealed.copy_to(expected.data(), body_bytes, sealed_bytes);
  EVP_CIPHER_CTX* const context = impl_->open_context.get();
  std::array<unsigned char, aead_tag_bytes> nothing;
  int written = 0;
  const auto open_piece = [&](std::span<const std::byte> piece) {
    return update(context, std::exchange(out, out + piece.size()), piece);
  };
  return EVP_CipherInit_ex(context, nullptr, nullptr, nullptr, raw(nonce.data()), -1) == 1 &&
         update(context, nullptr, aad) && sealed.each(0, body_bytes, open_piece) &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, aead_tag_bytes, expected.data()) ==
             1 &&
         EVP_CipherFinal_ex(context, nothing.data(), &written) == 1;
}

}  // namespace onehop::crypto
