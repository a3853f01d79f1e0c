// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/sink/name_probe.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "engine/crypto/sha256.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/folder_cache.hpp"

namespace onehop::sink {

namespace {

constexpr mode_t probe_folder_mode = 0700, probe_file_mode = 0600;

// Where a file system has one of these otherwise, each name has to be tried: characters, bytes that
// are no text, ends that FAT and Windows drop, a name of theirs for a device, case, composed and
// decomposed letters.
constexpr std::array<std::string_view, 6> odd_names{
    "\x01:*?\"<>|\\\xff. ", "aux", "A", "a", "\xc3\xa9", "e\xcc\x81"};
constexpr std::size_t longest_name = 255;

bool is_about_names(int errno_value) {
  return errno_value == EEXIST || errno_value == EINVAL || errno_value == EILSEQ ||
         errno_value == ENAMETOOLONG;
}

std::string probe_folder_name(std::string_view path) {
  return disk::probe_folder_name_of(crypto::sha256(std::as_bytes(std::span{path})));
}

/// has_name: `leaf` stands in the folder as it was given.
bool has_name(int folder, const std::string& leaf) {
  std::vector<std::string> names;
  return disk::list_names(folder, names) == 0 && std::ranges::find(names, leaf) != names.end();
}

/// try_name makes `leaf`, which stays. 0 or what is wrong with the name.
int try_name(int folder, const std::string& leaf) {
  if (!disk::open_beneath(folder, leaf, O_WRONLY | O_CREAT | O_EXCL, probe_file_mode).is_open())
    return is_about_names(errno) ? errno : 0;
  // FAT drops dots at the end without a word, and the file would be called otherwise.
  if (!leaf.ends_with('.') && !leaf.ends_with(' ')) return 0;
  if (has_name(folder, leaf)) return 0;
  ::unlinkat(folder, leaf.c_str(), 0);
  return EINVAL;
}

}  // namespace

std::vector<int> NameProbe::check(const list::Manifest& volume, const std::stop_token& withdrawn) {
  if (!has_looked_) look();
  if (is_plain_ && has_symlinks_) return {};
  std::vector<int> faults(volume.files.size(), 0);
  for (std::size_t i = 0; i < faults.size() && !withdrawn.stop_requested(); ++i)
    faults[i] = check_entry(volume.files[i]);
  return faults;
}

/// Without a place to try names in, nothing is known of them.
void NameProbe::look() {
  has_looked_ = true;
  is_plain_ = stage_.open(root_) != 0;
  if (is_plain_) return;
  const char* const name = "0";  // as a Stage has them
  has_symlinks_ = ::symlinkat(name, stage_.fd(), name) == 0 ||
                  (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS);
  ::unlinkat(stage_.fd(), name, 0);
  is_plain_ = holds_odd_names();
  if (is_plain_) close();
}

bool NameProbe::holds_odd_names() {
  const std::string name = probe_folder_name(odd_names.front());
  if (disk::make_own_folder(stage_.fd(), name, probe_folder_mode) != 0) return true;
  const Fd folder = disk::open_beneath(stage_.fd(), name, O_RDONLY | O_DIRECTORY);
  std::vector<std::string> made{std::string(longest_name, 'x')};
  made.insert(made.end(), odd_names.begin(), odd_names.end());
  const bool are_taken = std::ranges::all_of(
      made, [&](const std::string& leaf) { return try_name(folder.get(), leaf) == 0; });
  std::vector<std::string> found;
  const bool is_listed = disk::list_names(folder.get(), found) == 0;
  for (const std::string& leaf : found) ::unlinkat(folder.get(), leaf.c_str(), 0);
  ::unlinkat(stage_.fd(), name.c_str(), AT_REMOVEDIR);
  std::ranges::sort(made);
  std::ranges::sort(found);
  // Nothing could be made: the disk is full, say, which others find out.
  return !is_listed || found.empty() || (are_taken && found == made);
}

int NameProbe::check_entry(const list::ManifestEntry& entry) {
  if (entry.is_symlink() && !has_symlinks_) return EPERM;
  if (is_plain_ || (entry.is_piece() && std::exchange(has_piece_, true))) return 0;
  const std::string_view path =
      entry.is_folder() ? std::string_view{entry.name} : disk::parent_of(entry.name);
  if (path_ != path) {
    path_ = path;
    fault_ = open_folder(path, folder_);
  }
  if (fault_ != 0 || entry.is_folder()) return fault_;
  const std::string leaf{disk::leaf_of(entry.name)};
  return try_name(folder_.get(), leaf);
}

/// The folder is known by the hash of its path, byte for byte. Where there is none yet, its name is
/// tried in the one above.
int NameProbe::open_folder(std::string_view path, Fd& folder) {
  const std::string name = probe_folder_name(path);
  folder = disk::open_beneath(stage_.fd(), name, O_RDONLY | O_DIRECTORY);
  if (folder.is_open()) return 0;
  if (!path.empty()) {
    Fd parent;  // the depth is bounded by ManifestLimits
    if (const int fault = open_folder(disk::parent_of(path), parent); fault != 0) return fault;
    if (const int fault = try_name(parent.get(), std::string{disk::leaf_of(path)}); fault != 0)
      return fault;
  }
  static_cast<void>(disk::make_own_folder(stage_.fd(), name, probe_folder_mode));
  folder = disk::open_beneath(stage_.fd(), name, O_RDONLY | O_DIRECTORY);
  // Names of our own that a peer could reach by another spelling.
  if (path.empty())
    for (const std::string_view own : {disk::stage_suffix, disk::session_suffix})
      static_cast<void>(try_name(folder.get(), std::string{own}));
  return 0;
}

}  // namespace onehop::sink
