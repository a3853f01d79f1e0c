// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/scan_arguments.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>


namespace onehop::list {

namespace {

/// What a folder arrives as: its last component; of `.` and `..` the name that it really has. Empty
/// for the root of the file system.
Result<std::string> name_of_folder(const std::string& path) {
  std::string leaf = path.substr(path.rfind('/') + 1);
  if (leaf != "." && leaf != "..") return leaf;
  const std::unique_ptr<char, void (*)(void*)> real{::realpath(path.c_str(), nullptr), std::free};
  if (real == nullptr) return errno_error(ExitCode::local_file_error, attempt_to_offer(path));
  leaf = real.get();
  return leaf.substr(leaf.rfind('/') + 1);
}

Result<SourceRoot> check_folder(const std::string& path, const std::string& name) {
  Fd folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)};
  if (!folder.is_open())
    return errno_error(ExitCode::local_file_error, attempt_to_offer(path),
                       "Give the path of a folder that you may read");
  return SourceRoot{.path = path.ends_with('/') ? path : path + "/",
                    .name_offset = name.empty() ? 0 : name.size() + 1,
                    .is_folder = true,
                    .folder = std::make_shared<const Fd>(std::move(folder))};
}

/// Names that no receiver takes, two arguments that arrive under one name; and what top_names needs
/// to find more of them.
Result<void> check_names(ScanArguments& found) {
  for (std::uint32_t root = 0; root < found.arguments.size(); ++root) {
    const std::string& name = found.arguments[root].name;
    if (name.empty()) {
      ++found.contents;
      continue;
    }
    if (std::string fault = name_fault(name); !fault.empty())
      return Error{ExitCode::local_file_error, attempt_to_offer(found.arguments[root].path),
                   std::move(fault), "Give it another name", 0};
    if (const auto [at, is_new] = found.top_names.emplace(name, root); !is_new)
      return same_name((*found.roots)[root], (*found.roots)[at->second], name);
  }
  if (found.contents == 0 || found.arguments.size() < 2) found.top_names = {};
  return success();
}

}  // namespace

Result<void> ScanArguments::take_name(const std::string& name, std::uint32_t root) {
  if (arguments.size() < 2) return success();
  // What a single folder holds can only meet the arguments, so it need not be remembered.
  const auto at = contents > 1 ? top_names.emplace(name, root).first : top_names.find(name);
  if (at == top_names.end() || at->second == root) return success();
  return same_name((*roots)[root], (*roots)[at->second], name);
}

Result<ScanArguments> check_arguments(std::span<const std::string> paths) {
  ScanArguments found;
  std::vector<SourceRoot> roots;
  ParentFolders parents;
  bool has_folder = false;
  for (const std::string& path : paths) {
    struct stat status {};
    // A link is what add_file() refuses; one with a slash behind it is the folder that it leads to.
    if (::fstatat(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(status.st_mode)) {
      ONEHOP_TRY(name, name_of_folder(path));
      ONEHOP_TRY(root, check_folder(path, name));
      roots.push_back(std::move(root));
      found.arguments.push_back({.path = path, .name = std::move(name)});
      has_folder = true;
      continue;
    }
    ONEHOP_TRYV(add_file(path, parents, roots, found.named, found.kept_max));
    found.arguments.push_back({.path = path, .name = found.named.manifest.files.back().name});
    found.links.count(status);
    // The descriptors that are kept are those of the first volume (open_files_kept).
    if (has_folder) found.named.files.back().fd.close();
  }
  found.roots = std::make_shared<const std::vector<SourceRoot>>(std::move(roots));
  found.named.roots = found.roots;
  ONEHOP_TRYV(check_names(found));
  return found;
}

}  // namespace onehop::list
