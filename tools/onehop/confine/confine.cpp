// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/confine/confine.hpp"

#include <sys/prctl.h>

namespace onehop::confine {

namespace {

// The sanitizers' own threads and reports need more.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#elif defined(__has_feature)
constexpr bool is_sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool is_sanitized = false;
#endif
constexpr const char* sanitizer_cause = "this build has a sanitizer, which needs more";

/// Landlock rules are of files, not of names: a file that is replaced later is another one. So
/// where one is, as of name service, its folder is in reach where that holds nothing else.
constexpr const char* read_places[] = {
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/opt", "/nix/store", "/gnu/store",
    // Name service and clocks.
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
    "/etc/services", "/etc/protocols", "/etc/passwd", "/etc/group", "/etc/ld.so.cache",
    "/etc/localtime", "/etc/locale.alias", "/etc/mdns.allow", "/etc/iproute2",
    "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf",
    // OpenSSL.
    "/etc/ssl/openssl.cnf", "/etc/ssl/openssl.cnf.d", "/etc/pki/tls/openssl.cnf",
    "/etc/crypto-policies",
    // Usage, sockets and interfaces. Who is in a Landlock domain can look into the memory and the
    // environment of none outside of it, whatever is in reach here.
    "/proc", "/sys/class/net", "/sys/devices", "/sys/kernel/btf", "/dev/urandom", "/dev/random"};

constexpr const char* device_places[] = {"/dev/tty", "/dev/null"};

}  // namespace

std::vector<Place> common_places() {
  std::vector<Place> places;
  for (const char* path : read_places) places.push_back({path, Reach::read});
  for (const char* path : device_places) places.push_back({path, Reach::device});
  return places;
}

Result<std::vector<std::string>> confine(const Plan& plan) {
  std::vector<std::string> missing;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return errno_error(ExitCode::privilege_missing, "give up new privileges (no_new_privs)");
  if (is_sanitized) {
    missing.emplace_back(sanitizer_cause);
    ONEHOP_TRYV(keep_capabilities(plan.kept | plan.kept_in_reach));
    return missing;
  }
  // Landlock before the capabilities, which opening what is in reach may take.
  const auto files = restrict_files(plan.files);
  if (files.has_error()) missing.push_back(files.error().message());
  ONEHOP_TRYV(keep_capabilities(plan.kept | (files.has_value() ? plan.kept_in_reach : 0)));
  if (const auto calls = restrict_calls(plan.calls); calls.has_error())
    missing.push_back(calls.error().message());
  return missing;
}

std::string missing_in_kernel() {
  if (is_sanitized) return sanitizer_cause;
  const int abi = landlock_abi();
  std::string text;
  if (abi == 0)
    text = "no Landlock (" + errno_text(errno) + ")";
  else if (abi < landlock_abi_min)
    text = "Landlock ABI 1, which cannot rename; 2 came with Linux 5.19";
  if (!has_seccomp()) text += (text.empty() ? "" : "; ") + std::string{"no seccomp filters"};
  return text;
}

std::string describe_kernel() {
  std::string text = "capabilities, no_new_privs";
  if (const int abi = landlock_abi(); abi >= landlock_abi_min)
    text += ", files (Landlock ABI " + std::to_string(abi) + ")";
  if (has_seccomp())
    text += ", " + std::to_string(system_calls().size()) + " system calls (seccomp)";
  return text;
}

}  // namespace onehop::confine
