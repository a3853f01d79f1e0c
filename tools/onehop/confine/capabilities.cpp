// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/confine/capabilities.hpp"

#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace onehop::confine {

namespace {

// The kernel knows 41 of them (6.1), and room is for 64. Reading one that it does not know fails.
constexpr unsigned capabilities_max = 64;

struct Sets {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
};

bool read(Sets& sets) noexcept {
  return ::syscall(SYS_capget, &sets.header, sets.data.data()) == 0;
}

/// Root is nobody special then: neither a program nor another user id gets capabilities.
constexpr unsigned long root_is_plain =
    SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
    SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

}  // namespace

Capabilities effective_capabilities() noexcept {
  Sets sets;
  if (!read(sets)) return 0;
  return sets.data[0].effective | Capabilities{sets.data[1].effective} << 32;
}

Result<void> keep_capabilities(Capabilities kept) {
  constexpr const char* attempt = "give up capabilities";
  Sets sets;
  if (!read(sets)) return errno_error(ExitCode::privilege_missing, attempt);
  const Capabilities permitted = sets.data[0].permitted | Capabilities{sets.data[1].permitted}
                                                              << 32;
  // 1. What takes CAP_SETPCAP. Who does not have it has nothing that a program could gain.
  if ((permitted & bit_of(CAP_SETPCAP)) != 0) {
    sets.data[0].effective |= static_cast<unsigned>(bit_of(CAP_SETPCAP));
    if (::syscall(SYS_capset, &sets.header, sets.data.data()) != 0)
      return errno_error(ExitCode::privilege_missing, attempt);
    for (unsigned capability = 0; capability < capabilities_max; ++capability)
      if ((kept & bit_of(capability)) == 0 && ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1 &&
          ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
        return errno_error(ExitCode::privilege_missing, attempt);
    if (::prctl(PR_SET_SECUREBITS, root_is_plain, 0, 0, 0) != 0)
      return errno_error(ExitCode::privilege_missing, attempt);
  }
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);

  // 2. The sets.
  kept &= permitted;
  bool is_so = true;
  for (std::size_t i = 0; i < sets.data.size(); ++i) {
    const auto half = static_cast<unsigned>(kept >> (32 * i));
    __user_cap_data_struct& data = sets.data[i];
    is_so = is_so && data.effective == half && data.permitted == half && data.inheritable == 0;
    data = {.effective = half, .permitted = half, .inheritable = 0};
  }
  // A sandbox may forbid capset to those who have nothing to give up (systemd's @privileged).
  if (!is_so && ::syscall(SYS_capset, &sets.header, sets.data.data()) != 0)
    return errno_error(ExitCode::privilege_missing, attempt);
  return success();
}

}  // namespace onehop::confine
