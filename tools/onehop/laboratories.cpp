// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/laboratories.hpp"

#include <unistd.h>

#include <filesystem>

#include "engine/base/system/own_place.hpp"
#include "tools/onehop/text/terminal.hpp"

namespace onehop::tool {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view prefix = "onehop-";

}  // namespace

Result<std::string> find_program(std::string_view name) {
  const bool is_laboratory = name.starts_with(prefix);
  // As installed, and as built.
  ONEHOP_TRY(found, is_laboratory
                        ? find_beside(own_file(),
                                      {fs::path{ONEHOP_LIBEXEC_FROM_BIN} / name,
                                       fs::path{"../labs"} / name.substr(prefix.size()) / name},
                                      "start")
                        : find_beside(own_file(),
                                      {fs::path{ONEHOP_BIN_FROM_LIBEXEC} / name,
                                       fs::path{"../.."} / name / name},
                                      "start"));
  if (!found.empty()) return found;
  const Laboratory* const laboratory =
      is_laboratory ? find_laboratory(name.substr(prefix.size())) : nullptr;
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
