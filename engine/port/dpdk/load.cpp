// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include <dlfcn.h>

#include "engine/base/system/own_place.hpp"
#include "engine/port/dpdk/module.hpp"

namespace onehop::dpdk {

namespace {

Error not_loaded(std::string cause, std::string hint) {
  return {ExitCode::io_unavailable, "load onehop-dpdk.so, which is onehop's part for DPDK",
          std::move(cause), std::move(hint) + ", or take --io udp or --io afxdp"};
}

}  // namespace

Result<Module*> load() {
  // As installed: seen from a program, from one of the laboratories, from libonehop. As built: from
  // a program or the library, and from a laboratory or a test.
  ONEHOP_TRY(path, find_beside(own_file(),
                               {ONEHOP_LIB_FROM_BIN "/onehop/onehop-dpdk.so",
                                ONEHOP_LIB_FROM_LIBEXEC "/onehop/onehop-dpdk.so",
                                "onehop/onehop-dpdk.so", "../../engine/port/dpdk/onehop-dpdk.so",
                                "../../../engine/port/dpdk/onehop-dpdk.so"},
                               "load"));
  if (path.empty())
    return not_loaded(
        ONEHOP_HAS_DPDK ? "it is not installed" : "libdpdk-dev was missing when this was built",
        ONEHOP_HAS_DPDK ? "Install the package onehop-dpdk, or build all (ninja -C build)"
                        : "Install libdpdk-dev and build again");
  void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    const char* const said = ::dlerror();
    return not_loaded(said != nullptr ? said : path, "Install the libraries of DPDK");
  }
  auto* const entry = reinterpret_cast<Entry*>(::dlsym(module, entry_name));
  Module* const loaded = entry != nullptr ? entry(ONEHOP_VERSION) : nullptr;
  if (loaded == nullptr)
    return not_loaded(path + " is not of onehop " ONEHOP_VERSION, "Install both of one version");
  return loaded;
}

}  // namespace onehop::dpdk
