// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/set_up.hpp"

#include <sys/random.h>

#include "engine/base/rate_text.hpp"
#include "engine/crypto/key_schedule.hpp"
#include "engine/run/placement.hpp"
#include "tools/onehop/dpdk_host.hpp"

namespace onehop::tool {

Result<void> check_options(const CommonOptions& options) {
  ONEHOP_TRYV(law::make_law(law_options(options)));
  if (!options.law_params_of.empty() && !law::uses_params(options.law, options.has_qcut, options.law_params_of))
    return Error{ExitCode::usage, "use the law parameters of --config with --law " + options.law,
                 "they are for " + options.law_params_of, "Leave out the parameter file, or take the law that it is for"};
  if (options.xdp_mode != "auto" && options.io != "afxdp")
    return Error{ExitCode::usage, "use --xdp-mode " + options.xdp_mode, "--io " + options.io + " may have no AF_XDP to use it with", "Add --io afxdp"};
  if (!options.rate_max.empty()) {
    ONEHOP_TRYV(parse_rate(options.rate_max));
  }
  if (!crypto::is_key_interval(options.key_interval_packets))
    return Error{ExitCode::usage, "use --key-interval " + std::to_string(options.key_interval_packets), "it is not a power of two",
                 "Take 256, 512, ... 4194304"};
  ONEHOP_TRYV(run::choose_core(options.core));
  return check_eal(options);
}

law::LawOptions law_options(const CommonOptions& options) {
  return {.spec = options.law, .target = options.target, .bounds = options.bounds, .has_qcut = options.has_qcut, .is_repair_lazy = options.repair == "lazy",
          .params = options.law_params};
}

Result<file::FileIoKind> file_io_kind(const CommonOptions& options) {
  if (options.file_io == "io_uring") return file::FileIoKind::io_uring;
  if (options.file_io == "threads") return file::FileIoKind::threads;
  return file::FileIoKind::automatic;
}

Result<crypto::DigestKind> digest_kind(const CommonOptions& options) {
  return options.digest == "sha256" ? crypto::DigestKind::sha256 : crypto::DigestKind::xxh3;
}

crypto::AeadBackend aead_backend(const CommonOptions& options) {
  if (options.aead == "ipsec-mb") return crypto::AeadBackend::ipsec_mb;
  if (options.aead == "openssl") return crypto::AeadBackend::openssl;
  return crypto::AeadBackend::automatic;
}

int priority_of(const CommonOptions& options) {
  // From 256 on the kernel takes a priority for a TID, whatever the DSCP says. It takes CAP_NET_ADMIN.
  //= Linux net/wireless/util.c, cfg80211_classify8021d()
  if (options.tid) return 256 + *options.tid;
  constexpr int lowest = 1;  // pfifo_fast's lowest band and, on Wi-Fi, the background access category
  return options.priority == "background" ? lowest : 0;
}

std::uint8_t dscp_of(const CommonOptions& options) {
  constexpr std::uint8_t cs1 = 8;  // RFC 3662: lower effort
  return options.priority == "background" ? cs1 : 0;
}

Result<std::uint64_t> random_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed) return errno_error(ExitCode::internal_error, "draw a random number");
  return seed;
}

}  // namespace onehop::tool
