// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop --version [-v]: what this build is and can do, and why a part is off.
#include <fmt/format.h>

#include "control/transfer/port/ports.hpp"
#include "engine/crypto/aead.hpp"
#include "engine/port/dpdk/module.hpp"
#include "tools/onehop/command/commands.hpp"
#include "tools/onehop/commit.hpp"
#include "tools/onehop/confine/confine.hpp"
#include "tools/onehop/laboratories.hpp"

namespace onehop::tool {

ExitCode version_command(bool is_verbose) {
  fmt::print("onehop {} (commit {})\n", ONEHOP_VERSION, ONEHOP_COMMIT);
  if (!is_verbose) return ExitCode::done;
  const auto feature = [](std::string_view name, bool is_on, std::string_view off) {
    fmt::print("  {:<12} {}\n", name, is_on ? "on" : off);
  };
  for (const transfer::PortKind& kind : transfer::port_kinds) {
    if (kind.name == "dpdk") continue;
    feature(kind.name, kind.missing.empty(),
            fmt::format("off: {} when this was built", kind.missing));
  }
  const auto dpdk = dpdk::load();
  feature("dpdk", dpdk.has_value(), dpdk.has_error() ? "off: " + dpdk.error().cause : "");
  feature("ipsec_mb", ONEHOP_HAS_IPSEC_MB != 0,
          "off: libIPSec_MB was missing when this was built; OpenSSL seals frames");
  feature("io_uring", ONEHOP_HAS_IO_URING != 0,
          "off: liburing was missing when this was built; threads read and write");
  feature("p2p", ONEHOP_HAS_P2P != 0,
          "off: libsystemd was missing when this was built; wpa_cli forms Wi-Fi Direct groups");
  for (const Laboratory& each : laboratories) {
    const auto program = find_program("onehop-" + std::string{each.name});
    feature(each.name, program.has_value(),
            program.has_error() ? "off: " + program.error().cause : "");
  }
  const bool has_aes = crypto::has_aes_instructions();
  fmt::print("  frames are sealed with {}{}\n",
             crypto::describe_aead(crypto::name(has_aes ? crypto::AeadBackend::automatic
                                                        : crypto::AeadBackend::chacha20)),
             has_aes ? "" : ": this processor has no AES instructions");
  fmt::print("  send and recv are confined by {}\n", confine::describe_kernel());
  if (const std::string missing = confine::missing_in_kernel(); !missing.empty())
    fmt::print("  they are not confined by all means: {}\n", missing);
  return ExitCode::done;
}

}  // namespace onehop::tool
