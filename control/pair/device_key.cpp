// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/pair/device_key.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <sys/random.h>

#include "engine/base/check.hpp"
#include "engine/base/system/text_file.hpp"
#include "engine/crypto/key_schedule.hpp"
#include "engine/crypto/sha256.hpp"

namespace onehop::pair {

namespace {

constexpr const char* key_name = "device.key";
constexpr std::string_view key_comment =
    "# The key of this device, of onehop. Who can read it is this device: keep it to yourself.\n";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text});
}

/// Empty where the machine has no id.
std::string machine() {
  const TextFile id{"/etc/machine-id"};
  if (id.fail() || id.str().empty()) return {};
  // The id itself is not to be shown (machine-id(5)).
  return to_hex(crypto::sha256(bytes_of("onehop device key"), bytes_of(id.str()))).substr(0, 32);
}

std::shared_ptr<X509> make_certificate(EVP_PKEY* key) {
  constexpr long past_s = -24L * 3600, future_s = 100L * 365 * 24 * 3600;  // clocks may be wrong
  std::shared_ptr<X509> made{::X509_new(), &::X509_free};
  const bool is_made = made != nullptr && ::X509_set_version(made.get(), X509_VERSION_3) == 1 &&
                       ::ASN1_INTEGER_set(::X509_get_serialNumber(made.get()), 1) == 1 &&
                       ::X509_gmtime_adj(::X509_getm_notBefore(made.get()), past_s) != nullptr &&
                       ::X509_gmtime_adj(::X509_getm_notAfter(made.get()), future_s) != nullptr &&
                       ::X509_set_pubkey(made.get(), key) == 1 &&
                       ::X509_sign(made.get(), key, nullptr) > 0;
  return is_made ? made : nullptr;
}

}  // namespace

Result<DeviceKey> DeviceKey::from_seed(const Seed& seed) {
  DeviceKey made;
  made.key_ = {::EVP_PKEY_new_raw_private_key(
                   EVP_PKEY_ED25519, nullptr,
                   reinterpret_cast<const unsigned char*>(seed.bytes().data()), 32),
               &::EVP_PKEY_free};
  std::size_t size = made.public_.size();
  const bool is_made =
      made.key_ != nullptr &&
      ::EVP_PKEY_get_raw_public_key(
          made.key_.get(), reinterpret_cast<unsigned char*>(made.public_.data()), &size) == 1 &&
      size == made.public_.size();
  if (is_made) made.certificate_ = make_certificate(made.key_.get());
  if (made.certificate_ == nullptr)
    return Error{ExitCode::internal_error, "use the device's key", "OpenSSL has no Ed25519", ""};
  crypto::hkdf_expand_label(seed.bytes(), "onehop finding", {}, made.find_key_);
  return made;
}

Result<std::optional<DeviceKey>> DeviceKey::read(const PrivateFolder& folder) {
  ONEHOP_TRY(text, folder.read(key_name));
  if (!text) return std::optional<DeviceKey>{};
  auto values = read_values(*text, folder.path_of(key_name));
  ::OPENSSL_cleanse(text->data(), text->size());
  if (values.has_error()) return values.error();
  Seed seed;
  std::string seed_text = value_of(values.value(), "seed");
  const bool is_key = from_hex(seed_text, seed.writable());
  ::OPENSSL_cleanse(seed_text.data(), seed_text.size());
  for (auto& [key, value] : values.value())
    if (key == "seed") ::OPENSSL_cleanse(value.data(), value.size());
  if (!is_key)
    return Error{ExitCode::local_file_error, "read " + folder.path_of(key_name), "it is damaged",
                 "Remove it, and pair anew"};
  const std::string made_on = value_of(values.value(), "machine"), here = machine();
  if (!made_on.empty() && !here.empty() && made_on != here)
    return Error{ExitCode::local_file_error, "use " + folder.path_of(key_name),
                 "this key was made on another machine, and two devices must not have one key",
                 "Remove " + folder.path_of("device.key") +
                     " and the folder peers beside it here, "
                     "and pair this machine anew"};
  ONEHOP_TRY(made, from_seed(seed));
  return std::optional{std::move(made)};
}

Result<DeviceKey> DeviceKey::read_or_make(const PrivateFolder& folder) {
  ONEHOP_TRY(there, read(folder));
  if (there) return std::move(*there);
  Seed seed;
  ONEHOP_CHECK(::getentropy(seed.writable().data(), seed.writable().size()) == 0);
  std::string text =
      write_values(key_comment, {{"seed", to_hex(seed.bytes())}, {"machine", machine()}});
  const auto written = folder.write(key_name, text, true);
  ::OPENSSL_cleanse(text.data(), text.size());
  if (written.has_error() && written.error().errno_value != EEXIST) return written.error();
  ONEHOP_TRY(made, read(folder));  // of the first writer
  if (made) return std::move(*made);
  return Error{ExitCode::local_file_error, "make " + folder.path_of(key_name), "it went away", ""};
}

Signature DeviceKey::sign(std::span<const std::byte> message) const {
  Signature made{};
  std::size_t size = made.size();
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context{::EVP_MD_CTX_new(),
                                                                   &::EVP_MD_CTX_free};
  ONEHOP_CHECK(context != nullptr);
  ONEHOP_CHECK(::EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1);
  ONEHOP_CHECK(::EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(made.data()), &size,
                                reinterpret_cast<const unsigned char*>(message.data()),
                                message.size()) == 1);
  return made;
}

bool DeviceKey::install(SSL* ssl) const {
  return ::SSL_use_certificate(ssl, certificate_.get()) == 1 &&
         ::SSL_use_PrivateKey(ssl, key_.get()) == 1;
}

bool verify(const PublicKey& key, std::span<const std::byte> message, const Signature& signature) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> raw{
      ::EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr,
                                    reinterpret_cast<const unsigned char*>(key.data()), key.size()),
      &::EVP_PKEY_free};
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context{::EVP_MD_CTX_new(),
                                                                   &::EVP_MD_CTX_free};
  return raw != nullptr && context != nullptr &&
         ::EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, raw.get()) == 1 &&
         ::EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                            signature.size(),
                            reinterpret_cast<const unsigned char*>(message.data()),
                            message.size()) == 1;
}

std::optional<PublicKey> key_of(X509* certificate) {
  EVP_PKEY* const key = certificate == nullptr ? nullptr : ::X509_get0_pubkey(certificate);
  PublicKey raw{};
  std::size_t size = raw.size();
  if (key == nullptr || ::EVP_PKEY_id(key) != EVP_PKEY_ED25519 ||
      ::EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(raw.data()), &size) !=
          1 ||
      size != raw.size())
    return std::nullopt;
  return raw;
}

std::string fingerprint(const PublicKey& key) { return to_hex(crypto::sha256(key)).substr(0, 16); }

}  // namespace onehop::pair
