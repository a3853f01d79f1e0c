// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/privilege.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "engine/crypto/secret.hpp"
#include "tools/onehop/confine/capabilities.hpp"

namespace onehop::tool {

namespace {

std::optional<unsigned> number_in(std::string_view text) {
  unsigned id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return id;
}

std::optional<unsigned> id_from(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::nullopt : number_in(text);
}

/// Who called sudo; nothing where that was root, or nobody did.
std::optional<User> sudo_user() {
  const auto uid = id_from("SUDO_UID"), gid = id_from("SUDO_GID");
  if (::geteuid() != 0 || !uid || *uid == 0 || !gid) return std::nullopt;
  return User{*uid, *gid};
}

Result<User> named_user(const std::string& name) {
  const auto id = number_in(name);
  const passwd* const found = id ? ::getpwuid(*id) : ::getpwnam(name.c_str());
  if (found != nullptr) return User{found->pw_uid, found->pw_gid};
  return Error{ExitCode::usage, "become " + name + " (--user)", "there is no such user",
               "`getent passwd` lists them"};
}

/// Root's groups go in any case.
bool take_groups(const User& user) {
  const passwd* const found = ::getpwuid(user.uid);
  return (found != nullptr && ::initgroups(found->pw_name, user.gid) == 0) ||
         ::setgroups(0, nullptr) == 0;
}

}  // namespace

Result<std::optional<User>> find_user(const std::string& name, const std::string& folder) {
  if (!name.empty()) {
    ONEHOP_TRY(user, named_user(name));
    if (user.uid == ::geteuid()) return std::optional<User>{};
    if (::geteuid() == 0) return std::optional{user};
    return Error{ExitCode::privilege_missing, "become " + name + " (--user)", "this is not root",
                 "Run it as root, or leave --user out"};
  }
  if (const auto user = sudo_user()) return std::optional{*user};
  struct stat status {};
  if (::geteuid() != 0 || folder.empty() || ::stat(folder.c_str(), &status) != 0 ||
      status.st_uid == 0)
    return std::optional<User>{};
  const passwd* const owner = ::getpwuid(status.st_uid);
  return std::optional{User{status.st_uid, owner != nullptr ? owner->pw_gid : status.st_gid}};
}

Result<void> become(const std::optional<User>& user) {
  if (!user) return success();
  const std::string who = "become user " + std::to_string(user->uid);
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || !take_groups(*user))
    return errno_error(ExitCode::privilege_missing, "leave root's groups");
  if (::setresgid(user->gid, user->gid, user->gid) != 0 ||
      ::setresuid(user->uid, user->uid, user->uid) != 0)
    return errno_error(ExitCode::privilege_missing, who);
  // The kernel resets the dumpable flag when the ids change.
  if (!crypto::forbid_core_dumps())
    return errno_error(ExitCode::privilege_missing, "keep keys out of core dumps");
  return success();
}

Result<void> become_for_files(const std::string& name, const std::string& folder) {
  ONEHOP_TRY(user, find_user(name, folder));
  if (!user) return success();
  ONEHOP_TRYV(become(user));
  return confine::keep_capabilities(0);
}

Result<CallerRights> CallerRights::take() {
  CallerRights rights;
  const auto user = sudo_user();
  if (!user) return rights;
  const int count = ::getgroups(0, nullptr);
  rights.groups_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  rights.is_taken_ = ::getgroups(count, rights.groups_.data()) == count;
  if (rights.is_taken_ && take_groups(*user) && ::setegid(user->gid) == 0 &&
      ::seteuid(user->uid) == 0)
    return rights;
  return errno_error(ExitCode::privilege_missing, "read files as the user that called sudo");
}

CallerRights::CallerRights(CallerRights&& other) noexcept
    : is_taken_{std::exchange(other.is_taken_, false)}, groups_{std::move(other.groups_)} {}

CallerRights::~CallerRights() {
  if (!is_taken_) return;
  (void)!::seteuid(0);
  (void)!::setegid(0);
  (void)::setgroups(groups_.size(), groups_.data());
  (void)crypto::forbid_core_dumps();  // the kernel resets the flag with the ids
}

namespace {

struct UserPlace {
  const char *own, *xdg;  ///< environment variables
  const char* in_home;
};

std::string place_of(const std::optional<User>& user, const UserPlace& place, const char* name) {
  if (const char* own = std::getenv(place.own); own != nullptr)
    return *own == '\0' ? "" : std::string{own} + name;
  // The XDG base directory specification: a relative path is to be ignored.
  if (const char* xdg = std::getenv(place.xdg); xdg != nullptr && *xdg == '/')
    return std::string{xdg} + "/onehop" + name;
  // Under sudo HOME may be root's; whose files these are is what our user id will say.
  const bool is_own = !user && std::getenv("SUDO_UID") == nullptr;
  const char* home = is_own ? std::getenv("HOME") : nullptr;
  const passwd* const found = ::getpwuid(user ? user->uid : ::getuid());
  if ((home == nullptr || *home != '/') && found != nullptr) home = found->pw_dir;
  return home != nullptr && *home == '/' ? std::string{home} + place.in_home + name : "";
}

}  // namespace

std::string rate_memory_file(const std::optional<User>& user) {
  return place_of(user, {"ONEHOP_STATE_DIR", "XDG_STATE_HOME", "/.local/state/onehop"},
                  "/start-rates.json");
}

std::string device_folder(const std::optional<User>& user) {
  return place_of(user, {"ONEHOP_CONFIG_DIR", "XDG_CONFIG_HOME", "/.config/onehop"}, "/pairing");
}

}  // namespace onehop::tool
