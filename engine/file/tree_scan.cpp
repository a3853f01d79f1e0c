// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/tree_scan.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <set>
#include <utility>

#include "engine/file/tree_walk.hpp"

namespace onehop::file {

std::string_view name_of(ScanProblemKind kind) noexcept {
  constexpr std::array<std::string_view, 7> names{
      "unreadable",   "special",  "symlink_skipped", "symlink_refused",
      "name_refused", "vanished", "changed"};
  return names[static_cast<std::size_t>(kind)];
}

Result<ScanChapter> scan(std::span<const std::string> paths, const ScanOptions& options) {
  ONEHOP_TRY(arguments, check_arguments(paths));
  return walk_arguments(arguments, options, {}, nullptr);
}

void leave_out_temporaries(SourceFiles& source, std::vector<ScanProblem>& problems) {
  std::set<std::size_t> left_out;
  for (RefusedName& refused : temporaries_in(source.manifest)) {
    if (!source.root_of(refused.entry).is_folder ||
        source.manifest.files[refused.entry].is_folder())
      continue;  // validate() refuses it
    problems.push_back({.path = source.path_of(refused.entry),
                        .kind = ScanProblemKind::name_refused,
                        .cause = std::move(refused.cause)});
    left_out.insert(refused.entry);
  }
  if (left_out.empty()) return;
  SourceFiles all = std::exchange(source, {});
  source.roots = all.roots;
  for (std::size_t i = 0; i < all.files.size(); ++i)
    if (!left_out.contains(i))
      source.add(std::move(all.manifest.files[i]), all.places[i], std::move(all.files[i]));
}

Result<SourceFiles> look_again(SourceNames names, std::vector<ScanProblem>& problems,
                               const ManifestLimits& limits) {
  SourceFiles source;
  source.roots = names.roots;
  std::size_t open_count = 0;
  for (std::size_t i = 0; i < names.places.size(); ++i) {
    ManifestEntry& entry = names.manifest.files[i];
    if (entry.is_folder()) {
      source.add(std::move(entry), names.places[i], {});
      continue;
    }
    struct stat status {};
    auto opened = entry.is_symlink() ? names.look_at_symlink(i, status) : names.open(i, status);
    if (opened.has_error()) {
      const Error& error = opened.error();
      if (!names.root_of(i).is_folder) return error;
      problems.push_back({.path = names.path_of(i),
                          .kind = error.errno_value == ENOENT ? ScanProblemKind::vanished
                                  : error.errno_value != 0    ? ScanProblemKind::unreadable
                                  : entry.is_symlink()        ? ScanProblemKind::symlink_refused
                                                              : ScanProblemKind::special,
                          .cause = error.cause});
      continue;
    }
    SourceFile file{.fd = {}, .fence = fence_of(status)};
    if (open_count++ < open_files_kept) file.fd = std::move(opened).value();
    source.add(entry_of(std::move(entry.name), status), names.places[i], std::move(file));
  }
  leave_out_temporaries(source, problems);  // they may have been in different chapters
  if (!source.files.empty()) {
    ONEHOP_TRYV(validate(source.manifest, limits));
  }
  return source;
}

}  // namespace onehop::file
