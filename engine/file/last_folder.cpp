// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/last_folder.hpp"

#include <fcntl.h>

#include <cerrno>

#include "engine/file/confined.hpp"
#include "engine/file/folder_cache.hpp"

namespace onehop::file {

Result<std::optional<int>> LastFolder::open(std::string_view name) {
  const std::string_view path = parent_of(name);
  if (path.empty()) return std::optional{root_};
  if (!has_path_ || path != path_) {
    has_path_ = false;
    path_ = path;
    folder_ = open_beneath(root_, path_, O_RDONLY | O_DIRECTORY);
    if (!folder_.is_open() && errno != ENOENT) {
      // Component by component it names the one that is in the way.
      Result<Place> place = open_place(root_, name, false);
      if (place.has_value()) {
        folder_ = std::move(place.value().folder);
      } else if (place.error().errno_value != ENOENT) {
        return std::move(place).error();
      }
    }
    has_path_ = true;
  }
  if (!folder_.is_open()) return std::optional<int>{};
  return std::optional{folder_.get()};
}

}  // namespace onehop::file
