// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/tree_scan.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "engine/base/system/descriptors.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/list/source_opener.hpp"
#include "engine/list/tree_walk.hpp"

namespace onehop::list {

namespace {

/// SecondLook gives a file or link as it is now. A link has no descriptor that its target can be
/// read from.
class SecondLook {
 public:
  Result<SourceFile> operator()(const SourceNames& names, std::size_t index, struct stat& status) {
    if (names.manifest.files[index].is_symlink()) {
      ONEHOP_TRYV(opener_.look_at_symlink(names, index, status));
      return SourceFile{.fd = {}, .fence = inodes_.fence(opener_.folder_of(names, index), status)};
    }
    ONEHOP_TRY(fd, opener_.look_at_file(names, index, status));
    const Fence fence = inodes_.fence(fd.get(), status);
    return SourceFile{.fd = std::move(fd), .fence = fence};
  }

 private:
  SourceOpener opener_;
  InodeNumbering inodes_;
};

/// Files that the kernel makes up as they are read take no room on a disk, and say a size of 0 or
/// of a page. Each would end a session of its own when it is read.
std::optional<ScanProblem> length_problem(const SourceNames& names, std::size_t index, int fd,
                                          const struct stat& status) {
  if (!S_ISREG(status.st_mode) || status.st_blocks != 0) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  std::byte byte{};
  const std::int64_t last = size == 0 ? 1 : disk::read_at(fd, {&byte, 1}, size - 1);
  const std::int64_t beyond = last < 0 ? last : disk::read_at(fd, {&byte, 1}, size);
  if (last == 1 && beyond == 0) return std::nullopt;
  if (beyond < 0)
    return ScanProblem{.path = names.path_of(index),
                       .kind = ScanProblemKind::unreadable,
                       .cause = errno_text(static_cast<int>(-beyond))};
  return ScanProblem{.path = names.path_of(index),
                     .kind = ScanProblemKind::changed,
                     .cause = "it holds more or less than its size says"};
}

/// What a path of the list leads to may be something else by now.
ScanProblem problem_of(const SourceNames& names, std::size_t index, const Error& error) {
  ScanProblem problem{.path = names.path_of(index), .cause = error.cause};
  switch (error.errno_value) {
    case 0:
      problem.kind = names.manifest.files[index].is_symlink() ? ScanProblemKind::symlink_refused
                                                              : ScanProblemKind::special;
      break;
    case ENOENT: problem.kind = ScanProblemKind::vanished; break;
    case ELOOP:
    case EXDEV:
      problem.kind = ScanProblemKind::changed;
      problem.cause = "a symbolic link stands in its path now";
      break;
    case ENOTDIR:
    case EISDIR:
    case ESTALE: problem.kind = ScanProblemKind::changed; break;
    default: problem.kind = ScanProblemKind::unreadable;
  }
  return problem;
}

}  // namespace

std::string_view name_of(ScanProblemKind kind) noexcept {
  constexpr std::array<std::string_view, 7> names{
      "unreadable",   "special",  "symlink_skipped", "symlink_refused",
      "name_refused", "vanished", "changed"};
  return names[static_cast<std::size_t>(kind)];
}

Result<ScanVolume> scan(std::span<const std::string> paths, const ScanOptions& options) {
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
  const std::size_t kept_max = open_files_max();
  SecondLook look_at;
  for (std::size_t i = 0; i < names.places.size(); ++i) {
    ManifestEntry& entry = names.manifest.files[i];
    if (entry.is_folder()) {
      source.add(std::move(entry), names.places[i], {});
      continue;
    }
    struct stat status {};
    Result<SourceFile> opened = look_at(names, i, status);
    if (opened.has_error()) {
      const Error& error = opened.error();
      if (!names.root_of(i).is_folder) return error;
      if (has_run_out(error.errno_value)) return ran_out(error.attempt, error.errno_value);
      problems.push_back(problem_of(names, i, error));
      continue;
    }
    SourceFile file = std::move(opened).value();
    if (auto problem = length_problem(names, i, file.fd.get(), status)) {
      if (!names.root_of(i).is_folder)
        return Error{ExitCode::local_file_error, attempt_to_offer(problem->path),
                     std::move(problem->cause), "Copy it with cat, then send the copy"};
      problems.push_back(*std::move(problem));
      continue;
    }
    if (open_count++ >= kept_max) file.fd.close();
    source.add(entry_of(std::move(entry.name), status), names.places[i], std::move(file));
  }
  leave_out_temporaries(source, problems);  // they may have been in different volumes
  if (!source.files.empty()) {
    ONEHOP_TRYV(validate(source.manifest, limits));
  }
  return source;
}

}  // namespace onehop::list
