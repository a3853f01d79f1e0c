// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/privilege.hpp"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "engine/crypto/secret.hpp"

namespace onehop::tool {

namespace {

std::optional<unsigned> id_from(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view view{text};
  unsigned id = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), id);
  if (error != std::errc{} || end != view.data() + view.size()) return std::nullopt;
  return id;
}

}  // namespace

bool becomes_sudo_user() noexcept {
  const auto uid = id_from("SUDO_UID");
  return ::geteuid() == 0 && uid && *uid != 0 && id_from("SUDO_GID");
}

Result<bool> become_sudo_user() {
  if (!becomes_sudo_user()) return false;
  const auto uid = id_from("SUDO_UID");
  const auto gid = id_from("SUDO_GID");
  const passwd* user = ::getpwuid(*uid);
  const bool has_groups = user != nullptr && ::initgroups(user->pw_name, *gid) == 0;
  if (!has_groups && ::setgroups(0, nullptr) != 0)
    return errno_error(ExitCode::privilege_missing, "leave root's groups");
  if (::setresgid(*gid, *gid, *gid) != 0 || ::setresuid(*uid, *uid, *uid) != 0)
    return errno_error(ExitCode::privilege_missing, "become the user that called sudo");
  // The kernel resets the dumpable flag when the ids change.
  if (!crypto::forbid_core_dumps())
    return errno_error(ExitCode::privilege_missing, "keep keys out of core dumps");
  return true;
}

std::string rate_memory_file() {
  constexpr const char* name = "/start-rates.json";
  if (const char* own = std::getenv("ONEHOP_STATE_DIR"); own != nullptr)
    return *own == '\0' ? "" : std::string{own} + name;
  // The XDG base directory specification: a relative path is to be ignored.
  if (const char* xdg = std::getenv("XDG_STATE_HOME"); xdg != nullptr && *xdg == '/')
    return std::string{xdg} + "/onehop" + name;
  // Under sudo HOME may be root's; whose files these are is what our user id will say.
  const char* home = std::getenv("SUDO_UID") == nullptr ? std::getenv("HOME") : nullptr;
  const unsigned uid = becomes_sudo_user() ? *id_from("SUDO_UID") : ::getuid();
  if (const passwd* user = ::getpwuid(uid); (home == nullptr || *home != '/') && user != nullptr)
    home = user->pw_dir;
  return home != nullptr && *home == '/' ? std::string{home} + "/.local/state/onehop" + name : "";
}

}  // namespace onehop::tool
