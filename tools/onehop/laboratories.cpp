// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/laboratories.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tools/onehop/text/terminal.hpp"

namespace onehop::tool {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view prefix = "onehop-";

/// can_others_write: others than those who can write this program, whose status is `self`.
bool can_others_write(const struct stat& status, const struct stat& self) {
  const bool is_of_owner = status.st_uid == 0 || status.st_uid == self.st_uid;
  const bool is_same_group = status.st_gid == self.st_gid && (self.st_mode & S_IWGRP) != 0;
  return !is_of_owner || ((status.st_mode & S_IWGRP) != 0 && !is_same_group) ||
         ((status.st_mode & S_IWOTH) != 0 && (self.st_mode & S_IWOTH) == 0);
}

bool is_above(const fs::path& folder, const fs::path& file) {
  const fs::path relative = file.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

/// open_to_others is the first of `program` and the folders above it that others can write; empty:
/// none. Who can write a folder that this program is in, too, could have replaced this one.
Result<std::string> open_to_others(const fs::path& program, const fs::path& self) {
  struct stat own {};
  if (::stat(self.c_str(), &own) != 0)
    return errno_error(ExitCode::io_unavailable, "look at " + self.string());
  for (fs::path at = program; !is_above(at, self); at = at.parent_path()) {
    struct stat status {};
    if (::stat(at.c_str(), &status) != 0)
      return errno_error(ExitCode::io_unavailable, "look at " + at.string());
    if (can_others_write(status, own)) return at.string();
  }
  return std::string{};
}

/// places are where it may be, seen from this program's folder: as installed, and as built.
std::array<fs::path, 2> places(std::string_view name) {
  if (!name.starts_with(prefix)) return {ONEHOP_BIN_FROM_LIBEXEC, fs::path{"../.."} / name};
  return {ONEHOP_LIBEXEC_FROM_BIN, fs::path{"../labs"} / name.substr(prefix.size())};
}

}  // namespace

Result<std::string> find_program(std::string_view name) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& place : places(name)) {
    const fs::path found = fs::canonical(self.parent_path() / place / name, error);
    if (error || !fs::is_regular_file(found, error)) continue;
    ONEHOP_TRY(open, open_to_others(found, self));
    if (open.empty()) return found.string();
    return Error{ExitCode::io_unavailable, "start " + found.string(),
                 "others than the owner of " + self.string() + " can write " + open,
                 "Make root or that owner its owner, and let nobody else write it"};
  }
  const Laboratory* const laboratory =
      name.starts_with(prefix) ? find_laboratory(name.substr(prefix.size())) : nullptr;
  return Error{ExitCode::io_unavailable, "start " + std::string{name}, "it is not installed",
               laboratory != nullptr ? laboratory->remedy : "Install onehop"};
}

std::optional<ExitCode> start_laboratory(int argc, char** argv) {
  const auto is_verbose = [](std::string_view word) { return word == "-v" || word == "--verbose"; };
  int at = 1;
  while (at < argc && is_verbose(argv[at])) ++at;
  const Laboratory* const laboratory = at < argc ? find_laboratory(argv[at]) : nullptr;
  if (laboratory == nullptr) return std::nullopt;
  auto program = find_program(std::string{prefix} + argv[at]);
  if (program.has_value()) {
    argv[at] = program.value().data();
    ::execv(argv[at], argv + at);
    program = errno_error(ExitCode::io_unavailable, "start " + program.value(), laboratory->remedy);
  }
  tell(fitted("onehop " + std::string{laboratory->name} + ": " + program.error().message() + "\n"));
  return program.error().code;
}

}  // namespace onehop::tool
