// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Where a report goes, and how its files get there: written beside their place under another name,
// then put there whole. A file that exists is only ever replaced when that was asked for.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"

namespace onehop::plot {

inline constexpr std::array<std::string_view, 4> endings{".html", ".gp", ".svg", ".png"};

/// Place: folder and common name of a report's files.
struct Place {
  std::string folder, stem;
  [[nodiscard]] std::string path(std::string_view ending) const {
    return folder + "/" + stem + std::string{ending};
  }
  [[nodiscard]] std::string part(std::string_view ending) const {
    return "." + stem + std::string{ending} + ".part";
  }  ///< within the folder
};

/// place_of reads --out: FILE.html, or a folder in which the first trace's name is used; the folder
/// is made. Error usage: a name that cannot stand in a script.
[[nodiscard]] Result<Place> place_of(const std::string& out, const std::string& first_trace);

/// taken_of lists the files of the place that exist.
[[nodiscard]] std::vector<std::string> taken_of(const Place& place);
/// free_place is `place`, or the first of stem-1, stem-2 ... of which no file exists.
[[nodiscard]] Result<Place> free_place(Place place);
/// check_inputs refuses to replace a trace by its own report.
[[nodiscard]] Result<void> check_inputs(const Place& place, const std::vector<std::string>& traces);

/// write_part writes a file under its temporary name. Syscalls: open, write, close.
[[nodiscard]] Result<void> write_part(const Place& place, std::string_view ending,
                                      const std::string& text);
/// put_in_place gives a written part its name. Error local_file_error with EEXIST: it has appeared
/// meanwhile. Syscalls: renameat2.
[[nodiscard]] Result<void> put_in_place(const Place& place, std::string_view ending,
                                        bool is_overwriting);
/// remove_parts removes what put_in_place() was not called for.
void remove_parts(const Place& place) noexcept;

}  // namespace onehop::plot
