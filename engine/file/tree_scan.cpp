// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/tree_scan.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <set>

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
  if (!left_out.empty()) source.erase_if([&](std::size_t i) { return left_out.contains(i); });
}

Result<SourceFiles> look_again(SourceNames names, std::vector<ScanProblem>& problems,
                               const ManifestLimits& limits) {
  SourceFiles source;
  static_cast<SourceNames&>(source) = std::move(names);
  source.files.resize(source.manifest.files.size());
  std::vector<bool> is_lost(source.files.size());
  std::size_t open_count = 0;
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    ManifestEntry& entry = source.manifest.files[i];
    if (entry.is_folder()) continue;
    struct stat status {};
    auto opened = entry.is_symlink() ? source.look_at_symlink(i, status) : source.open(i, status);
    if (opened.has_error()) {
      const Error& error = opened.error();
      if (!source.root_of(i).is_folder) return error;
      is_lost[i] = true;
      problems.push_back({.path = source.path_of(i),
                          .kind = error.errno_value == ENOENT ? ScanProblemKind::vanished
                                  : error.errno_value != 0    ? ScanProblemKind::unreadable
                                  : entry.is_symlink()        ? ScanProblemKind::symlink_refused
                                                              : ScanProblemKind::special,
                          .cause = error.cause});
      continue;
    }
    entry = entry_of(std::move(entry.name), status);
    source.files[i].fence = fence_of(status);
    if (open_count++ < open_files_kept) source.files[i].fd = std::move(opened).value();
  }
  source.erase_if([&](std::size_t i) { return is_lost[i]; });
  leave_out_temporaries(source, problems);  // they may have been in different chapters
  if (!source.files.empty()) {
    ONEHOP_TRYV(validate(source.manifest, limits));
  }
  return source;
}

}  // namespace onehop::file
