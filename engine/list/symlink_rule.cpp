// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/symlink_rule.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <utility>
#include <vector>

#include "engine/disk/confined.hpp"

namespace onehop::list {

namespace {

// Names that are remembered, and waits. More: a peer makes us use more memory (40 bytes each).
// Fewer: of a huge tree, links that lead through other links are refused.
constexpr std::size_t names_max = std::size_t{1} << 18, waits_max = std::size_t{1} << 17;
constexpr std::size_t paths_bytes_max = std::size_t{16} << 20;
constexpr std::size_t hops_max = 40;  // MAXSYMLINKS of the kernel

std::size_t hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

/// The first component of a path below the destination; empty: it has no other.
std::string_view top_of(std::string_view path) noexcept {
  const std::size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

/// Calls `take` with each component but "." and empty ones.
template <class Take>
void each_component(std::string_view path, const Take& take) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    begin = end + 1;
    if (!component.empty() && component != ".") take(component);
  }
}

/// Where a link in `folder` leads by its text. The target has no fault.
std::string joined(std::string_view folder, std::string_view target) {
  std::string path{folder};
  each_component(target, [&](std::string_view component) {
    if (component == "..")
      path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    else
      path.append(path.empty() ? "" : "/").append(component);
  });
  return path;
}

}  // namespace

std::string_view symlink_fault_text(int fault) noexcept {
  switch (static_cast<SymlinkFault>(fault)) {
    case SymlinkFault::not_taken:
      return "symbolic links are not taken there (recv --symlinks take takes them)";
    case SymlinkFault::leads_out:
      return "it is a symbolic link whose target is not below the folder that was sent";
    case SymlinkFault::hidden:
      return "it is a symbolic link whose target has a name that begins with a dot "
             "(recv --allow-hidden takes it)";
    case SymlinkFault::other_link:
      return "it is a symbolic link whose target is reached through another one there, which this "
             "session did not bring";
    case SymlinkFault::none: break;
  }
  return {};
}

void SymlinkRule::offer(const Manifest& volume) {
  const std::lock_guard lock{mutex_};
  std::string_view before;
  for (const ManifestEntry& entry : volume.files) {
    const std::string_view top = entry.name.find('/') == std::string::npos
                                     ? std::string_view{entry.name}
                                     : top_of(entry.name);
    if (top != before && tops_.size() < names_max) tops_.insert(hash_of(top));
    before = top;
    if (entry.is_symlink() && symlinks_.size() < names_max) symlinks_.insert(hash_of(entry.name));
  }
}

SymlinkFault SymlinkRule::fault_of(std::string_view name, std::string_view target) const noexcept {
  if (!target_fault(name, target).empty()) return SymlinkFault::leads_out;
  bool is_hidden = false;
  each_component(target, [&](std::string_view component) {
    is_hidden = is_hidden || (component != ".." && component.starts_with('.'));
  });
  return is_hidden && !is_hidden_allowed_ ? SymlinkFault::hidden : SymlinkFault::none;
}

SymlinkFault SymlinkRule::check(int root, const std::string& name, const std::string& target) {
  if (waits_.size() > waits_max || paths_bytes_ > paths_bytes_max) drop_waits(root);
  const std::string path = joined(disk::parent_of(name), target);
  if (const SymlinkFault fault = walk(root, name, path); fault != SymlinkFault::none) return fault;
  // Together with this link, those that lead through its name must stay inside as well. They are
  // taken out first: a walk may add others.
  std::vector<std::string> through;
  const auto [begin, end] = waits_.equal_range(hash_of(name));
  for (auto at = begin; at != end; ++at)
    if (const std::string& waiting = paths_[at->second.path];
        waiting.substr(0, at->second.bytes) == name)
      through.push_back(waiting.substr(at->second.bytes + 1));
  for (const std::string& rest : through)
    if (const SymlinkFault fault = walk(root, name, joined(path, rest));
        fault != SymlinkFault::none)
      return fault;
  return SymlinkFault::none;
}

/// The target is below the first component of the link's own name, or of another name that the
/// session brings, or there is nothing yet.
bool SymlinkRule::is_sent(int root, std::string_view from, std::string_view path) {
  if (path.empty()) return false;  // the destination itself, with all that is in it
  const std::string_view top = path.substr(0, path.find('/'));
  if (top == top_of(from)) return true;
  {
    const std::lock_guard lock{mutex_};
    if (tops_.contains(hash_of(top))) return true;
  }
  struct stat status {};
  return ::fstatat(root, std::string{top}.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 &&
         errno == ENOENT;
}

bool SymlinkRule::is_offered_link(const std::string& path) {
  const std::lock_guard lock{mutex_};
  return symlinks_.contains(hash_of(path));
}

/// Follows `path`, which the link `from` leads to, through links of the session. These were held
/// against the rule as well, or are now.
SymlinkFault SymlinkRule::walk(int root, std::string from, std::string path) {
  for (std::size_t hops = 0; hops < hops_max; ++hops) {
    if (!is_sent(root, from, path)) return SymlinkFault::leads_out;
    struct stat status {};
    // The usual target is there, and no link is on the way to it.
    const Fd there = disk::open_beneath(root, path, O_PATH);
    if (there.is_open() && ::fstat(there.get(), &status) == 0 && !S_ISLNK(status.st_mode))
      return SymlinkFault::none;
    Fd at = disk::open_beneath(root, ".", O_PATH | O_DIRECTORY);
    std::size_t begin = 0, end = 0;
    for (;; begin = end + 1) {
      end = std::min(path.find('/', begin), path.size());
      Fd next = disk::open_beneath(at.get(), path.substr(begin, end - begin), O_PATH);
      if (!next.is_open() && errno == ENOENT) return wait_for(path, begin);
      if (!next.is_open() || ::fstat(next.get(), &status) != 0)
        return errno == ENOTDIR || errno == ENAMETOOLONG ? SymlinkFault::none
                                                         : SymlinkFault::other_link;
      at = std::move(next);
      if (S_ISLNK(status.st_mode)) break;
      if (end == path.size()) return SymlinkFault::none;
    }
    from = path.substr(0, end);
    std::string target(target_bytes_max + 1, '\0');
    const ssize_t bytes = ::readlinkat(at.get(), "", target.data(), target.size());
    target.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
    // It may give way to another link of its name.
    if (is_strict_ || !is_offered_link(from) || fault_of(from, target) != SymlinkFault::none ||
        wait_for(path, begin) != SymlinkFault::none)
      return SymlinkFault::other_link;
    path = joined(joined(disk::parent_of(from), target), std::string_view{path}.substr(end));
  }
  return SymlinkFault::other_link;
}

/// The component of `path` that begins at `begin`, and those behind it, may come to be links. Where
/// the last one leads is no matter of this link.
SymlinkFault SymlinkRule::wait_for(const std::string& path, std::size_t begin) {
  auto depth = std::count(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(begin), '/');
  bool is_kept = false;
  // No session makes a name of more components.
  for (std::size_t end = path.find('/', begin);
       end != std::string::npos && std::cmp_less(depth, ManifestLimits{}.depth_max);
       end = path.find('/', end + 1), ++depth) {
    if (is_strict_) return SymlinkFault::other_link;
    if (!std::exchange(is_kept, true)) {
      paths_.push_back(path);
      paths_bytes_ += path.size();
    }
    waits_.emplace(hash_of(std::string_view{path}.substr(0, end)), Wait{paths_.size() - 1, end});
  }
  return SymlinkFault::none;
}

/// A name that belongs to a real folder by now never becomes a link's.
void SymlinkRule::drop_waits(int root) {
  std::unordered_multimap<std::size_t, Wait> all = std::exchange(waits_, {});
  const std::deque<std::string> paths = std::exchange(paths_, {});
  paths_bytes_ = 0;
  std::unordered_map<std::size_t, std::size_t> kept;
  for (const auto& [hash, wait] : all) {
    if (disk::open_beneath(root, paths[wait.path].substr(0, wait.bytes), O_PATH | O_DIRECTORY)
            .is_open())
      continue;
    const auto [at, is_new] = kept.emplace(wait.path, paths_.size());
    if (is_new) {
      paths_.push_back(paths[wait.path]);
      paths_bytes_ += paths[wait.path].size();
    }
    waits_.emplace(hash, Wait{at->second, wait.bytes});
  }
  is_strict_ = waits_.size() > waits_max / 2 || paths_bytes_ > paths_bytes_max / 2;
}

}  // namespace onehop::list
