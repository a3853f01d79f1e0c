// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/pair/private_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "engine/base/system/private_folder.hpp"
#include "engine/base/system/text_file.hpp"

namespace onehop::pair {

namespace {

constexpr mode_t file_mode = 0600;
constexpr mode_t others_write = S_IWGRP | S_IWOTH, others_any = S_IRWXG | S_IRWXO;
constexpr off_t file_bytes_max = 64 * 1024;

Error fault(const std::string& path, std::string cause, std::string hint) {
  return {ExitCode::local_file_error, "use " + path, std::move(cause), std::move(hint)};
}

Error file_error(const std::string& path) {
  return errno_error(ExitCode::local_file_error, "use " + path);
}

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(fd, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
  return ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace

Result<std::optional<PrivateFolder>> PrivateFolder::open(const std::string& path, uid_t owner,
                                                         bool is_made) {
  if (is_made)
    for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
      (void)make_private_folder(path.substr(0, at));
      if (at == std::string::npos) break;
    }
  Fd fd{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)};
  // A home that this user may not look into (HOME of somebody else) holds no key of his.
  if (!fd.is_open() && (errno == ENOENT || errno == EACCES) && !is_made)
    return std::optional<PrivateFolder>{};
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) return file_error(path);
  if (status.st_uid != owner)
    return fault(path, "the folder belongs to another user (" + std::to_string(status.st_uid) + ")",
                 "Move it away: whoever owns it can put another key there");
  if ((status.st_mode & others_write) != 0)
    return fault(path, "others can write to the folder", "Run: chmod go-w '" + path + "'");
  return std::optional{PrivateFolder{path, owner, std::move(fd)}};
}

Result<std::optional<std::string>> PrivateFolder::read(const std::string& name) const {
  const Fd fd{::openat(fd_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (!fd.is_open() && errno == ENOENT) return std::optional<std::string>{};
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) return file_error(path_of(name));
  if (!S_ISREG(status.st_mode) || status.st_size > file_bytes_max)
    return fault(path_of(name), "that is no file of onehop's", "Move it away");
  if (status.st_uid != owner_)
    return fault(path_of(name), "it belongs to another user", "Move it away");
  if ((status.st_mode & others_any) != 0)
    return fault(path_of(name), "others may have read it, for its mode allows them to",
                 "Where somebody else may have: remove it and pair anew. Else: chmod 600 '" +
                     path_of(name) + "'");
  auto text = read_text(fd.get());
  if (!text) return file_error(path_of(name));
  return text;
}

Result<void> PrivateFolder::write(const std::string& name, std::string_view text,
                                  bool is_new) const {
  const std::string beside = ".new-" + std::to_string(::getpid()) + "-" + name;
  (void)::unlinkat(fd_.get(), beside.c_str(), 0);  // of a run that was killed
  const Fd fd{::openat(fd_.get(), beside.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, file_mode)};
  if (!fd.is_open()) return file_error(path_of(name));
  int errno_value = write_all(fd.get(), text);
  const int dir = fd_.get();
  if (errno_value == 0 && (is_new ? ::linkat(dir, beside.c_str(), dir, name.c_str(), 0)
                                  : ::renameat(dir, beside.c_str(), dir, name.c_str())) != 0)
    errno_value = errno;
  if (errno_value != 0 || is_new) (void)::unlinkat(dir, beside.c_str(), 0);
  if (errno_value == 0) (void)::fsync(dir);
  if (errno_value == 0) return success();
  return errno_error(ExitCode::local_file_error, "write " + path_of(name), "", errno_value);
}

Result<void> PrivateFolder::remove(const std::string& name) const {
  if (::unlinkat(fd_.get(), name.c_str(), 0) != 0) return file_error(path_of(name));
  return success();
}

Result<Fd> PrivateFolder::lock() const {
  Fd own{::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!own.is_open() || ::flock(own.get(), LOCK_EX) != 0) return file_error(path_);
  return own;
}

std::vector<std::string> PrivateFolder::names(std::string_view ending) const {
  std::vector<std::string> names;
  const int again = ::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder{::fdopendir(again), &::closedir};
  if (folder == nullptr) return names;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name{entry->d_name};
    if (name.ends_with(ending) && !name.starts_with('.')) names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

Result<Values> read_values(std::string_view text, const std::string& where) {
  Values values;
  std::size_t number = 0;
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    const auto skip = [&] {
      while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    };
    skip();
    if (line.empty() || line.front() == '#') continue;
    const std::string key{line.substr(0, line.find_first_of(" \t="))};
    line.remove_prefix(key.size());
    skip();
    bool is_read = !key.empty() && line.starts_with('=');
    if (is_read) line.remove_prefix(1);
    skip();
    is_read = is_read && line.starts_with('"');
    std::string value;
    if (is_read) line.remove_prefix(1);
    for (; is_read && !line.starts_with('"'); line.remove_prefix(1)) {
      if (line.starts_with('\\')) line.remove_prefix(1);
      is_read = !line.empty();
      if (is_read) value += line.front();
      if (!is_read) break;
    }
    if (is_read) line.remove_prefix(1);
    skip();
    const bool is_again = std::ranges::count(values, key, &Values::value_type::first) > 0;
    if (!is_read || is_again || (!line.empty() && line.front() != '#'))
      return Error{ExitCode::local_file_error, "read " + where,
                   "line " + std::to_string(number) + " is not one of key = \"value\"" +
                       (is_again ? ", or its key is there twice" : ""),
                   "Put it right, or move the file away and pair anew"};
    values.emplace_back(key, std::move(value));
  }
  return values;
}

std::string write_values(std::string_view comment, const Values& values) {
  std::string text{comment};
  for (const auto& [key, value] : values) {
    text += key + " = \"";
    for (const char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += "\"\n";
  }
  return text;
}

std::string value_of(const Values& values, std::string_view key) {
  const auto at = std::ranges::find(values, key, &Values::value_type::first);
  return at == values.end() ? std::string{} : at->second;
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text(bytes.size() * 2 + 1, '\0');
  ::sodium_bin2hex(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                   bytes.size());
  text.pop_back();
  return text;
}

bool from_hex(std::string_view text, std::span<std::byte> out) {
  std::size_t size = 0;
  return ::sodium_hex2bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), text.data(),
                          text.size(), nullptr, &size, nullptr) == 0 &&
         size == out.size() && text.size() == 2 * out.size();
}

}  // namespace onehop::pair
