// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop --version [-v]: what this build is and can do, and why a part is off.
#include <fmt/format.h>

#include "engine/base/alloc_guard.hpp"
#include "engine/crypto/aead.hpp"
#include "tools/onehop/commands.hpp"

namespace onehop::tool {

ExitCode version_command(bool is_verbose) {
  fmt::print("onehop {}\n", ONEHOP_VERSION);
  if (!is_verbose) return ExitCode::done;
  const auto feature = [](std::string_view name, bool is_on, std::string_view off) {
    fmt::print("  {:<12} {}\n", name, is_on ? "on" : off);
  };
  feature("udp", true, "");
  feature("afxdp", ONEHOP_HAS_XDP != 0, "off: libbpf or clang was missing when this was built");
  feature("dpdk", ONEHOP_HAS_DPDK != 0, "off: libdpdk-dev was missing when this was built");
  feature("ipsec_mb", ONEHOP_HAS_IPSEC_MB != 0, "off: libIPSec_MB was missing when this was built; OpenSSL seals frames");
  feature("io_uring", ONEHOP_HAS_IO_URING != 0, "off: liburing was missing when this was built; threads read and write");
  feature("alloc_guard", AllocGuard::is_built_in(), "off: not built with -Dalloc_guard=true");
  fmt::print("  frames are sealed with AES-128-GCM by {}\n", crypto::name(crypto::resolve(crypto::AeadBackend::automatic)));
  return ExitCode::done;
}

}  // namespace onehop::tool
