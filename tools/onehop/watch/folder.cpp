// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/watch/folder.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "engine/base/fd.hpp"
#include "engine/base/system/private_folder.hpp"
#include "tools/onehop/watch/local_socket.hpp"

namespace onehop::watch {

namespace {

/// Parent: a folder that is made for the purpose, or shared and sticky.
struct Place {
  std::string parent, name;
  [[nodiscard]] std::string path() const { return parent + "/" + name; }
};

std::vector<Place> places_of(uid_t uid) {
  std::vector<Place> places;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (uid == ::geteuid() && runtime != nullptr && runtime[0] == '/')
    places.push_back({runtime, "onehop"});
  if (uid == 0) places.push_back({"/run", "onehop"});
  places.push_back({fmt::format("/run/user/{}", uid), "onehop"});
  places.push_back({"/tmp", fmt::format("onehop-{}", uid)});
  return places;
}

/// Only in a folder that root or the user owns can nobody else put another in our folder's place:
/// where others may write, the sticky bit keeps them from it.
bool is_parent_sound(const std::string& path, uid_t uid) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  const bool is_closed = (info.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (info.st_mode & S_ISVTX) != 0;
  return (info.st_uid == uid || info.st_uid == 0) && is_closed;
}

bool is_own(const std::string& path, uid_t uid) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == uid &&
         (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

std::optional<pid_t> pid_of(std::string_view name, std::string_view before,
                            std::string_view behind) {
  if (!name.starts_with(before) || !name.ends_with(behind)) return std::nullopt;
  name.remove_prefix(before.size());
  name.remove_suffix(std::min(behind.size(), name.size()));
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc{} || end != name.data() + name.size() || pid <= 0) return std::nullopt;
  return pid;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it{folder, error}, end; !error && it != end;
       it.increment(error))
    names.push_back(it->path().filename().string());
  return names;
}

/// Folders to look into: this user's, and for root those of every user that has one.
std::vector<std::string> readable_folders() {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& path, uid_t uid) {
    if (is_own(path, uid) && std::ranges::find(folders, path) == folders.end())
      folders.push_back(path);
  };
  for (const Place& place : places_of(::geteuid())) add(place.path(), ::geteuid());
  if (::geteuid() != 0) return folders;
  for (const std::string& name : names_in("/run/user"))
    if (const auto uid = pid_of(name, "", ""))
      add("/run/user/" + name + "/onehop", static_cast<uid_t>(*uid));
  for (const std::string& name : names_in("/tmp"))
    if (const auto uid = pid_of(name, "onehop-", "")) add("/tmp/" + name, static_cast<uid_t>(*uid));
  return folders;
}

}  // namespace

std::string path_of(const std::string& folder, pid_t pid) {
  return fmt::format("{}/{}.sock", folder, pid);
}

Result<std::string> make_folder() {
  const uid_t uid = ::geteuid();
  std::string taken;
  for (const Place& place : places_of(uid)) {
    const std::string path = place.path();
    if (!is_parent_sound(place.parent, uid)) continue;
    if (path_of(path, 4'194'304).size() > socket_path_bytes_max)
      continue;  // 2^22 is the largest PID
    if (!make_private_folder(path)) continue;
    if (is_own(path, uid)) return path;
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0 && info.st_uid != uid)
      taken = fmt::format("; {} belongs to user {}", path, info.st_uid);
  }
  return Error{ExitCode::local_file_error, "find a folder for the socket of 'onehop watch'",
               "none of " + searched_folders() + " is mine alone" + taken,
               "Set XDG_RUNTIME_DIR to a folder of mode 0700"};
}

void remove_stale(const std::string& folder) {
  for (const std::string& name : names_in(folder)) {
    const std::string path = folder + "/" + name;
    if (pid_of(name, "", ".sock")) {
      if (auto socket = connect_local(path);
          !socket.has_value() && socket.error().errno_value == ECONNREFUSED)
        ::unlink(path.c_str());
    } else if (const auto pid = pid_of(name, ".", ".new");
               pid && ::kill(*pid, 0) != 0 && errno == ESRCH) {
      ::unlink(path.c_str());  // it ended between bind and rename
    }
  }
}

std::vector<Running> find_running() {
  std::vector<Running> found;
  for (const std::string& folder : readable_folders()) {
    for (const std::string& name : names_in(folder))
      if (const auto pid = pid_of(name, "", ".sock")) found.push_back({*pid, folder + "/" + name});
  }
  std::ranges::sort(found, {}, &Running::pid);
  return found;
}

std::string searched_folders() {
  std::string text;
  for (const Place& place : places_of(::geteuid()))
    text += (text.empty() ? "" : ", ") + place.path();
  return text;
}

}  // namespace onehop::watch
