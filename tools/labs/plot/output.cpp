// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/plot/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "engine/disk/confined.hpp"

namespace onehop::plot {

namespace {
constexpr int renames_max = 10'000;
}

Result<Place> place_of(const std::string& out, const std::string& first_trace) {
  const auto refuse = [&](std::string cause) {
    return Error{ExitCode::usage, "write the report to '" + out + "'", std::move(cause),
                 "Give --out FOLDER or --out FILE.html"};
  };
  const std::filesystem::path path{out.empty() ? "." : out};
  const bool is_file = path.extension() == ".html";
  std::filesystem::path folder = is_file ? path.parent_path() : path;
  const std::filesystem::path stem =
      is_file ? path.stem() : std::filesystem::path{first_trace}.stem();
  if (folder.empty()) folder = ".";
  if (stem.empty()) return refuse("it has no name");
  if (std::ranges::any_of(folder.string() + stem.string(),
                          [](char c) { return static_cast<unsigned char>(c) < ' '; }))
    return refuse("a name has control characters");
  constexpr std::array pictures{".png", ".svg", ".pdf", ".gp", ".htm"};
  std::error_code error;
  if (std::ranges::any_of(pictures,
                          [&](const char* ending) { return path.extension() == ending; }) &&
      !std::filesystem::is_directory(path, error))
    return refuse("the page is named, and the pictures stand beside it under its name");
  std::filesystem::create_directories(folder, error);
  if (error)
    return Error{ExitCode::local_file_error, "make the folder " + folder.string(), error.message(),
                 "Give --out FOLDER", error.value()};
  return Place{folder.string(), stem.string()};
}

std::vector<std::string> taken_of(const Place& place) {
  std::vector<std::string> taken;
  struct stat info {};
  for (const std::string_view ending : endings)
    if (::lstat(place.path(ending).c_str(), &info) == 0) taken.push_back(place.path(ending));
  return taken;
}

Result<Place> free_place(Place place) {
  const std::string stem = place.stem;
  for (int i = 1; !taken_of(place).empty(); ++i) {
    if (i > renames_max)
      return Error{ExitCode::local_file_error, "find a free name for " + place.path(".html"),
                   "10000 are taken", "Give --out"};
    place.stem = fmt::format("{}-{}", stem, i);
  }
  return place;
}

Result<void> check_inputs(const Place& place, const std::vector<std::string>& traces) {
  for (const std::string& trace : traces) {
    for (const std::string& file : taken_of(place)) {
      std::error_code ignored;
      if (std::filesystem::equivalent(trace, file, ignored))
        return Error{ExitCode::usage, "write the report to " + file, "that is the trace itself",
                     "Give --out FOLDER or --out FILE.html"};
    }
  }
  return success();
}

Result<void> write_part(const Place& place, std::string_view ending, const std::string& text) {
  const std::string path = place.folder + "/" + place.part(ending);
  ::unlink(path.c_str());  // of a run that was killed; through a link nothing is written
  std::FILE* file = std::fopen(path.c_str(), "wxe");
  if (file == nullptr)
    return errno_error(ExitCode::local_file_error, "write " + path,
                       "Check the folder's permissions.");
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int failed = errno;
  if (std::fclose(file) != 0)
    return errno_error(ExitCode::local_file_error, "write " + path, "Is the disk full?");
  if (!is_written)
    return errno_error(ExitCode::local_file_error, "write " + path, "Is the disk full?", failed);
  return success();
}

Result<void> put_in_place(const Place& place, std::string_view ending, bool is_overwriting) {
  const std::string from = place.folder + "/" + place.part(ending), to = place.path(ending);
  if (is_overwriting) {
    if (::rename(from.c_str(), to.c_str()) == 0) return success();
    return errno_error(ExitCode::local_file_error, "write " + to);
  }
  const int error = disk::rename_new(AT_FDCWD, from, AT_FDCWD, to);
  if (error == 0) return success();
  return errno_error(ExitCode::local_file_error, "write " + to, "", error);
}

void remove_parts(const Place& place) noexcept {
  for (const std::string_view ending : endings)
    ::unlink((place.folder + "/" + place.part(ending)).c_str());
}

}  // namespace onehop::plot
