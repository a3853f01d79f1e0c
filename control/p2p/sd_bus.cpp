// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/sd_bus.hpp"

#include <dlfcn.h>

#include <string>

namespace onehop::p2p {

#define ONEHOP_DEFINE(name) decltype(&::name) name = nullptr
ONEHOP_SD_BUS(ONEHOP_DEFINE);
#undef ONEHOP_DEFINE

namespace {

/// find stores a function's address; false: the library has none of that name.
template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

/// load: why it cannot be used; empty: it can. The library stays until the process ends.
std::string load() {
  void* library = ::dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
#define ONEHOP_FIND(name) \
  if (library == nullptr || !find(library, #name, name)) return ::dlerror()
  ONEHOP_SD_BUS(ONEHOP_FIND);
#undef ONEHOP_FIND
  return {};
}

}  // namespace

Result<void> load_sd_bus() {
  static const std::string cause = load();
  if (cause.empty()) return success();
  return Error{ExitCode::io_unavailable, "load libsystemd, which speaks D-Bus", cause,
               "Install it (Debian: libsystemd0)"};
}

}  // namespace onehop::p2p
