// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/clean.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/display_name.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/disk/journal.hpp"
#include "engine/disk/own_names.hpp"
#include "engine/disk/session_journal.hpp"
#include "engine/disk/stage.hpp"

namespace onehop::disk {

namespace {

constexpr std::string_view not_plain = "it is not a plain file of this user with one name",
                           not_stage = "it is not a folder that a session made, or holds more";

/// `eexist` is what EEXIST says of this kind of thing.
std::string cause_of(int errno_value, std::string_view eexist) {
  switch (errno_value) {
    case EEXIST: return std::string{eexist};
    case EWOULDBLOCK: return "a session that runs holds it";
    case ELOOP: return "it is a symbolic link";
    case ESTALE: return "its name leads to another file by now";
    default: return errno_text(errno_value);
  }
}

/// The other of part and journal: ".NAME<to>" for ".NAME<from>"; empty: it is no such name.
std::string sibling_of(const std::string& name, std::string_view from, std::string_view to) {
  if (!name.starts_with('.') || !name.ends_with(from) || name.size() < from.size() + 2) return {};
  return name.substr(0, name.size() - from.size()).append(to);
}

/// open_locked also for what we may only read: a part gets its file's mode before its name.
Fd open_left(int folder, const std::string& name, struct stat& status) {
  Fd fd = open_locked(folder, name, status);
  if (!fd.is_open() && (errno == EACCES || errno == EROFS))
    fd = open_locked(folder, name, status, O_RDONLY);
  return fd;
}

/// Why `part` is not what the journal beside it was written for, or nothing. The journal of a
/// session that died after its rename may stand beside a file that somebody has made since.
std::string_view fault_of(const struct stat& part, const FileIdentity& identity, int journal,
                          const struct stat& journal_status) {
  constexpr std::int64_t step_s = 2;  // of the times of some file systems (FAT)
  const std::optional<JournalHeader> header = read_header(journal);
  if (!header) return "the journal beside it is not one of a session";
  if (static_cast<std::uint64_t>(part.st_size) > header->size)
    return "it is longer than the file of the journal beside it";
  if (identity.birth_ns / 1'000'000'000 > journal_status.st_mtim.tv_sec + step_s)
    return "it was made after the journal beside it";
  return {};
}

/// A file that was delivered is recorded as well, and may be called as a part is. It got mode, time
/// and name after its last write; what a session still wrote to has the mode of a part, and was
/// changed in no other way since.
bool is_unfinished(const struct stat& part) {
  return (part.st_mode & 07777) == part_mode && part.st_mtim.tv_sec == part.st_ctim.tv_sec &&
         part.st_mtim.tv_nsec == part.st_ctim.tv_nsec;
}

class Cleaner {
 public:
  Cleaner(bool is_dry_run, const std::function<void(const CleanItem&)>& report)
      : is_dry_run_{is_dry_run}, report_{report} {}

  /// walk cleans `folder`; `path` is empty or ends with a slash.
  void walk(int folder, const std::string& path, std::size_t depth);

 private:
  /// Left is a file of a dead session, whose lock we hold.
  struct Left {
    std::string name;
    Fd fd;
    struct stat status;
  };
  [[nodiscard]] Left open(const std::string& name);
  void take_session(const std::string& name, std::vector<Left>& sessions);
  void take_stage(const std::string& name);
  void take_part(const std::string& name, const std::string& journal_name);
  void take_journal(const std::string& name, const std::string& part_name);
  bool remove(const Left& left);
  void keep(const std::string& name, std::string_view cause);
  void end(const std::string& name, int errno_value, std::uint64_t bytes);

  const bool is_dry_run_;
  const std::function<void(const CleanItem&)>& report_;
  std::set<std::pair<std::uint64_t, std::int64_t>> made_;  // inode and birth, by sessions that died
  std::size_t failures_ = 0;
  int folder_ = -1;  // where we are
  std::string path_;
};

void Cleaner::keep(const std::string& name, std::string_view cause) {
  report_({.path = path_ + name, .cause = std::string{cause}});
}

void Cleaner::end(const std::string& name, int errno_value, std::uint64_t bytes) {
  using enum CleanItem::Outcome;
  if (errno_value == 0) return report_({.outcome = removed, .path = path_ + name, .bytes = bytes});
  ++failures_;
  report_({.outcome = failed, .path = path_ + name, .cause = cause_of(errno_value, {})});
}

bool Cleaner::remove(const Left& left) {
  const int errno_value = is_dry_run_ ? 0 : unlink_same(folder_, left.name, left.fd.get());
  end(left.name, errno_value, disk_bytes(left.status));
  return errno_value == 0;
}

/// Not open: it stays, and that was said where it is still there.
Cleaner::Left Cleaner::open(const std::string& name) {
  Left left{.name = name, .fd = {}, .status = {}};
  left.fd = open_left(folder_, name, left.status);
  if (!left.fd.is_open() && errno != ENOENT) keep(name, cause_of(errno, not_plain));
  return left;
}

void Cleaner::take_session(const std::string& name, std::vector<Left>& sessions) {
  Left session = open(name);
  if (!session.fd.is_open()) return;
  const auto contents =
      SessionJournal::read(session.fd.get(), [this](const SessionJournal::Mark& mark) {
        // Without its birth an inode may be another file's by now.
        if (mark.identity.birth_ns != 0) made_.emplace(mark.identity.inode, mark.identity.birth_ns);
      });
  // An empty file is one by its mode: nothing can be lost.
  if (!contents || (contents->bytes == 0 && (session.status.st_mode & 07777) != part_mode))
    return keep(name, "it is not the journal of a session");
  sessions.push_back(std::move(session));
}

void Cleaner::take_stage(const std::string& name) {
  Stage stage;
  const int errno_value = stage.take(folder_, name);
  if (errno_value != 0) return keep(name, cause_of(errno_value, not_stage));
  end(name, is_dry_run_ ? 0 : stage.remove(), stage.left_bytes());
}

/// The part goes first: a journal that is left alone is found again.
void Cleaner::take_part(const std::string& name, const std::string& journal_name) {
  const Left part = open(name);
  if (!part.fd.is_open()) return;
  const std::optional<FileIdentity> identity = identity_of(part.fd.get(), "");
  if (!identity) return keep(name, errno_text(errno));
  Left journal{.name = journal_name, .fd = {}, .status = {}};
  journal.fd = open_left(folder_, journal_name, journal.status);
  if (journal.fd.is_open()) {
    const auto fault = fault_of(part.status, *identity, journal.fd.get(), journal.status);
    if (!fault.empty()) return keep(name, fault);
    if (remove(part)) remove(journal);
    return;
  }
  if (errno != ENOENT) return keep(name, "the journal beside it is not one of a session");
  if (!made_.contains({identity->inode, identity->birth_ns}))
    return keep(name, "no journal or record of a session says that one made it");
  if (!is_unfinished(part.status)) return keep(name, "it may be a file that was delivered so");
  remove(part);
}

/// A journal beside its part is taken, or left, with it.
void Cleaner::take_journal(const std::string& name, const std::string& part_name) {
  struct stat status;
  if (::fstatat(folder_, part_name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return;
  const Left journal = open(name);
  if (!journal.fd.is_open()) return;
  if (!is_blank(journal.fd.get(), journal.status) && !read_header(journal.fd.get()))
    return keep(name, "it is not the journal of a file");
  remove(journal);
}

void Cleaner::walk(int folder, const std::string& path, std::size_t depth) {
  folder_ = folder;
  path_ = path;
  const std::size_t failures = failures_;
  std::vector<std::string> names, folders;
  if (const int errno_value = list_names(folder, names); errno_value != 0) end(".", errno_value, 0);
  std::ranges::sort(names);
  std::vector<Left> sessions;  // held until all below is done
  for (const std::string& name : names)
    if (is_own_name(name, session_suffix)) take_session(name, sessions);
  for (const std::string& name : names) {
    struct stat status;
    const bool is_there = ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    const std::string journal_name = sibling_of(name, part_suffix, journal_suffix),
                      part_name = sibling_of(name, journal_suffix, part_suffix);
    if (!is_there) continue;  // its session came to its end meanwhile
    if (is_own_name(name, stage_suffix))
      take_stage(name);
    else if (S_ISDIR(status.st_mode))
      folders.push_back(name);
    else if (!journal_name.empty())
      take_part(name, journal_name);
    else if (!part_name.empty())
      take_journal(name, part_name);
  }
  // No session makes a folder below more of them.
  if (depth == depth_max) folders.clear();
  for (const std::string& name : folders) {
    const Fd next = open_beneath(folder, name, O_RDONLY | O_DIRECTORY);
    if (next.is_open())
      walk(next.get(), path + name + '/', depth + 1);
    else if (errno != ENOENT)
      end(name, errno, 0);
    folder_ = folder;
    path_ = path;
  }
  for (const Left& session : sessions)
    if (failures_ == failures)
      remove(session);
    else
      keep(session.name, "something that it tells of may still be there");
}

}  // namespace

Result<void> clean(const CleanOptions& options,
                   const std::function<void(const CleanItem&)>& report) {
  // The folder's own path may go through links: the user named it. Nothing below it may.
  const Fd root{::open(options.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!root.is_open())
    return errno_error(ExitCode::local_file_error, "clean '" + display_name(options.folder) + "'",
                       "Name a folder");
  Cleaner{options.is_dry_run, report}.walk(root.get(), "", 0);
  return success();
}

}  // namespace onehop::disk
