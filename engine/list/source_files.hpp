// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SourceFiles: the files named on the command line, opened and fenced.
//
// A fence is what fstat said when the file was offered. It is compared before the first and after
// the last block, so a file that changes on the way is never announced as if it had not. Regular
// files only, symbolic links are not followed. Made by set-up, then owned by the Source.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/file_message.hpp"
#include "engine/base/result.hpp"
#include "engine/list/manifest.hpp"

namespace onehop::list {

/// Fence is a hash of device, inode, size and both times: there is one for each file of a tree, and
/// all that is asked is whether it is the same. Two that differ are taken for one once in 2^63. The
/// inode is no part of it where the file system does not keep its number (has_inodes()): the lowest
/// bit says so.
struct Fence {
  std::uint64_t hash = 0;
  bool operator==(const Fence&) const = default;
};
[[nodiscard]] Fence fence_of(const struct stat& status, bool has_inode) noexcept;
/// is_within: `status` is of what `fence` was made of, as it was then.
[[nodiscard]] bool is_within(const Fence& fence, const struct stat& status) noexcept;

/// has_inodes: the file system of `fd` calls a file by the same number as long as it is there. FAT,
/// exFAT, CIFS and FUSE (SSHFS) may give it another one whenever it leaves the cache. Syscalls:
/// fstatfs.
[[nodiscard]] bool has_inodes(int fd) noexcept;

/// InodeNumbering asks has_inodes() once for a run of files on one device.
class InodeNumbering {
 public:
  /// fence gives that of `status`, which is of `fd` or of a file in the folder `fd`.
  [[nodiscard]] Fence fence(int fd, const struct stat& status) noexcept {
    if (!is_known_ || device_ != status.st_dev) has_inodes_ = has_inodes(fd);
    is_known_ = true;
    device_ = status.st_dev;
    return fence_of(status, has_inodes_);
  }

 private:
  bool is_known_ = false, has_inodes_ = false;
  dev_t device_ = 0;
};

struct SourceFile {
  Fd fd;  ///< open for the first open_files_kept files; others are opened when their turn comes
  Fence fence;
};

/// SourceRoot is what an argument of the command line named: where its entries are read from.
struct SourceRoot {
  std::string path;             ///< with a slash at its end where one is needed
  std::size_t name_offset = 0;  ///< the part of a name from here on stands below `path`
  bool is_folder = false;
  /// The folder behind `path`, open from when the command line was checked: all that is read is
  /// opened below it. Arguments that stand beside each other share it. Null: of a stream.
  std::shared_ptr<const Fd> folder;

  [[nodiscard]] int fd() const noexcept { return folder ? folder->get() : -1; }
};
/// path_of is where the entry that arrives as `name` is read from.
[[nodiscard]] std::string path_of(const SourceRoot& root, const std::string& name);

/// SourcePlace takes the place of a path: a tree may have a million entries.
struct SourcePlace {
  std::uint32_t root = 0;
  bool is_link = false;  ///< a link to a file below the same root, sent as that file
};

/// SourceNames: the entries and where each is read from; by manifest index.
struct SourceNames {
  Manifest manifest;
  std::vector<SourcePlace> places;
  std::shared_ptr<const std::vector<SourceRoot>> roots;

  [[nodiscard]] const SourceRoot& root_of(std::size_t index) const {
    return (*roots)[places[index].root];
  }
  [[nodiscard]] std::string path_of(std::size_t index) const {
    return list::path_of(root_of(index), manifest.files[index].name);
  }
  /// below_root is an entry's path below the folder of its root; "" is that folder.
  [[nodiscard]] std::string_view below_root(std::size_t index) const {
    const std::string_view name = manifest.files[index].name;
    return name.substr(std::min(name.size(), root_of(index).name_offset));
  }
};

struct SourceFiles : SourceNames {
  std::vector<SourceFile> files;  ///< by manifest index; a folder has neither descriptor nor fence

  void add(ManifestEntry entry, SourcePlace place, SourceFile file);
};

/// Descriptors kept from offer to end. Higher: the soft limit of 1024 is in reach. Lower: a file
/// deleted before its turn is lost although an open descriptor would have kept it.
inline constexpr std::size_t open_files_kept = 256;
/// open_files_max is as many of them as leave three quarters of what may still be opened to all
/// else. Syscalls: those of descriptors_left().
[[nodiscard]] std::size_t open_files_max();

/// failure_of is what the errno of a source says, as it is opened or read. 0: something else has
/// its name. What may be another file by now has changed, and is looked at again.
[[nodiscard]] FileFailure failure_of(int errno_value) noexcept;

/// has_content_at: a byte can be read at `offset`, beyond a wrong size. Syscalls: pread.
[[nodiscard]] bool has_content_at(int fd, std::uint64_t offset) noexcept;

/// symlink_fault is why the link `leaf` in `folder`, which stands as `name` below what was named,
/// cannot be sent as a link, or empty: target_fault(), or errno says why. Syscalls: readlinkat.
[[nodiscard]] std::string symlink_fault(int folder, const std::string& leaf, std::string_view name,
                                        const struct stat& status);

/// kind_text is what something is that is no file, folder or link.
[[nodiscard]] std::string_view kind_text(mode_t mode) noexcept;

/// attempt_to_offer is the attempt of an Error about a path of the command line.
[[nodiscard]] std::string attempt_to_offer(const std::string& path);

/// How a source is opened: a fifo does not block, and no terminal becomes the controlling one.
inline constexpr int source_file_flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;

/// leaf_in is where the last component of a path begins.
[[nodiscard]] inline const char* leaf_in(const std::string& path) noexcept {
  return path.c_str() + (path.rfind('/') + 1);  // npos + 1 is 0
}

/// open_regular opens the regular file `leaf` in `folder` for reading, follows no link, and is not
/// blocked by a fifo. `path` is for the Error: errno_value 0: something else has the name.
/// Syscalls: fstatat, openat2, fstat.
[[nodiscard]] Result<Fd> open_regular(int folder, const char* leaf, const std::string& path,
                                      struct stat& status);

/// open_followed opens a regular file below `folder`, through links that do not lead out of it. No
/// descriptor: errno says why; EISDIR: it is a folder. Syscalls: openat2 twice, fstat.
[[nodiscard]] Fd open_followed(int folder, const std::string& name);
[[nodiscard]] ManifestEntry entry_of(std::string name, const struct stat& status);

/// add_file appends a file that was named itself, under its base name. A folder, a device, a fifo,
/// a socket, a link, an unreadable file, one of size 0 that has content (/proc) are errors with
/// exit
/// 8. `parents`: the folders of such files, by path. Syscalls: open, fstatat, openat2, fstat,
/// fstatfs; pread of an empty one.
using ParentFolders = std::unordered_map<std::string, std::shared_ptr<const Fd>>;
[[nodiscard]] Result<void> add_file(const std::string& path, ParentFolders& parents,
                                    std::vector<SourceRoot>& roots, SourceFiles& source,
                                    std::size_t kept_max);
/// same_name is the refusal of what comes from `root` as `name`, as what comes from `other` does.
[[nodiscard]] Error same_name(const SourceRoot& root, const SourceRoot& other,
                              const std::string& name);

}  // namespace onehop::list
