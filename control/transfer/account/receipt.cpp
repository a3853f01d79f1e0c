// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/account/receipt.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "engine/base/display_name.hpp"
#include "engine/crypto/sha256.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/disk/own_names.hpp"

namespace onehop::transfer {

namespace {

constexpr int receipt_schema = 1;
// Written at once. Smaller: a call for every few lines. Larger: nothing is gained.
constexpr std::size_t receipt_buffer_bytes = 64 * 1024;
constexpr mode_t file_mode = 0666;  // less the umask, as any output file

std::string attempt_to_write(const std::string& file) { return "write the receipt " + file; }
constexpr const char* receipt_hint = "Name a file with --receipt in a folder that you may write to";

/// A name is UTF-8 once it is escaped; a command line is bytes.
std::string quoted(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string now_text() { return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr))); }

bool is_delivered(FileOutcome outcome) {
  return outcome != FileOutcome::kept && outcome != FileOutcome::not_compared &&
         session::is_named(outcome);
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text});
}

/// name_beside is an unpredictable name beside `file`, under which `make` made something. Empty:
/// errno says why there is none.
template <class Make>
std::string name_beside(const std::string& file, const Make& make) {
  std::string name = file + disk::random_tag();
  return make(name.c_str()) ? name : std::string{};
}

}  // namespace

Result<std::unique_ptr<Receipt>> Receipt::open(const api::Options& options, std::string_view role) {
  const std::string& file = options.receipt_file;
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return Error{ExitCode::local_file_error, attempt_to_write(file), "that is no regular file",
                 receipt_hint, EEXIST};
  const std::size_t slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash + 1);
  // Without a name it is not found where its folder is sent, and a kill leaves nothing.
  std::string temporary;
  Fd fd{::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, file_mode)};
  if (!fd.is_open() && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT))
    temporary = name_beside(file, [&](const char* name) {
      fd = Fd{::open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, file_mode)};
      return fd.is_open();
    });
  if (!fd.is_open())
    return errno_error(ExitCode::local_file_error, attempt_to_write(file), receipt_hint);
  std::unique_ptr<Receipt> receipt{new Receipt{file, std::move(fd), std::move(temporary)}};
  receipt->write_head(options, role);
  return receipt;
}

Receipt::Receipt(std::string file, Fd fd, std::string temporary)
    : file_{std::move(file)},
      fd_{std::move(fd)},
      temporary_{std::move(temporary)},
      root_{crypto::sha256(bytes_of("onehop receipt 1"))} {}

Receipt::~Receipt() {
  if (!temporary_.empty()) (void)::unlink(temporary_.c_str());
}

void Receipt::write_head(const api::Options& options, std::string_view role) {
  append(
      fmt::format("{{\n\"schema_version\": {},\n\"command_line\": {},\n\"version\": \"{}\",\n"
                  "\"role\": \"{}\",\n\"started_at\": \"{}\",\n\"entries\": [",
                  receipt_schema, quoted(options.command_line), ONEHOP_VERSION, role, now_text()));
}

void Receipt::add(const list::ManifestEntry& entry, const session::FileDone& done,
                  std::string_view digest_kind) {
  const bool has_digest = !entry.is_folder() && is_delivered(done.outcome) && done.root != Digest{};
  items_.insert_or_assign(
      done.file,
      Item{.entry = entry,
           .outcome = done.outcome,
           .name_number = done.name_number,
           .digest = has_digest ? fmt::format("{}:{}", digest_kind, hex(done.root, digest_kind))
                                : std::string{}});
}

void Receipt::write_oldest() {
  write_item(items_.begin()->second);
  items_.erase(items_.begin());
}

void Receipt::on_volume_over(std::size_t entries) {
  for (; entries > 0 && !items_.empty(); --entries) write_oldest();
}

void Receipt::on_restart() {
  std::erase_if(items_, [](const auto& item) { return item.second.entry.is_folder(); });
  while (!items_.empty()) write_oldest();
}

void Receipt::write_item(const Item& item) {
  const list::ManifestEntry& entry = item.entry;
  const std::string_view kind = list::name_of(entry.kind);
  // Modulo 2^64: from 2262 on it has no sign.
  const std::string mtime = disk::time_of(entry.mtime_ns).tv_sec < 0
                                ? std::to_string(entry.mtime_ns)
                                : std::to_string(static_cast<std::uint64_t>(entry.mtime_ns));
  if (is_delivered(item.outcome)) {
    const std::string record = entry.name + '\0' +
                               fmt::format("{} {} {:04o} {} {}", kind, entry.size, entry.mode,
                                           mtime, item.digest.empty() ? "-" : item.digest);
    root_ = crypto::sha256(root_, bytes_of(record));
  }
  ++entries_;
  if (!session::is_named(item.outcome))
    ++names_refused_;
  else
    ++(entry.is_folder() ? folders_ : files_.at(static_cast<std::size_t>(item.outcome)));
  std::string line = fmt::format(
      "{}\n{{\"name\": {}, \"kind\": \"{}\", \"size\": {}, \"mode\": \"{:04o}\", "
      "\"mtime_ns\": {}, \"digest\": {}, \"outcome\": \"{}\"",
      entries_ == 1 ? "" : ",", quoted(display_name(entry.name)), kind, entry.size, entry.mode,
      mtime, item.digest.empty() ? "null" : '"' + item.digest + '"',
      name_of(outcome_of(item.outcome)));
  if (item.name_number != 0)
    line += fmt::format(", \"final_name\": {}",
                        quoted(display_name(list::final_name(entry.name, item.name_number))));
  append(line + '}');
}

void Receipt::write_account(const api::End& end, bool is_complete) {
  const auto files = [this](FileOutcome outcome) {
    return files_.at(static_cast<std::size_t>(outcome));
  };
  append(fmt::format(
      "\n],\n\"complete\": {},\n\"root\": {},\n\"ended_at\": \"{}\",\n\"exit_code\": {},\n"
      "\"peer\": {},\n\"directory\": {},\n\"seconds\": {:.6f},\n\"goodput_bps\": {},\n"
      "\"bytes_total\": {},\n\"bytes_skipped_total\": {},\n\"folders\": {},\n"
      "\"files_received\": {},\n\"files_there\": {},\n\"files_there_unread\": {},\n"
      "\"files_kept\": {},\n\"names_refused\": {}",
      is_complete, is_complete ? '"' + root_text() + '"' : "null", now_text(),
      static_cast<int>(end.exit_code), quoted(end.peer), quoted(end.directory), end.seconds,
      end.goodput_bps(), end.bytes_total, end.bytes_skipped_total, folders_,
      files(FileOutcome::received), files(FileOutcome::there), files(FileOutcome::there_unread),
      files(FileOutcome::kept) + files(FileOutcome::not_compared), names_refused_));
}

void Receipt::sign(const pair::DeviceKey& signer) {
  append(fmt::format(",\n\"device_key\": \"{}\"", pair::to_hex(signer.public_key())));
  flush();
  append(pair::signature_mark);
  append(pair::to_hex(pair::sign_hash(signer, written_.finish())) + '"');
}

Result<std::string> Receipt::close(const api::End& end, bool is_complete,
                                   const pair::DeviceKey* signer) {
  while (!items_.empty()) write_oldest();
  if (entries_ == 0 && !is_complete) return std::string{};
  write_account(end, is_complete);
  if (signer != nullptr) sign(*signer);
  append("\n}\n");
  flush();
  if (errno_value_ == 0 && ::fsync(fd_.get()) != 0) errno_value_ = errno;
  if (errno_value_ == 0) errno_value_ = give_name();
  if (errno_value_ != 0)
    return errno_error(ExitCode::local_file_error, attempt_to_write(file_), receipt_hint,
                       errno_value_);
  return is_complete ? root_text() : std::string{};
}

/// 0 or errno. A name cannot be given over another one, so it gets one beside it first.
int Receipt::give_name() {
  if (temporary_.empty()) {
    const std::string nameless = fmt::format("/proc/self/fd/{}", fd_.get());
    temporary_ = name_beside(file_, [&](const char* name) {
      return ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
    });
    if (temporary_.empty()) return errno;
  }
  if (std::rename(temporary_.c_str(), file_.c_str()) != 0) return errno;
  temporary_.clear();
  return 0;
}

std::string Receipt::root_text() const { return "sha256:" + pair::to_hex(root_); }

void Receipt::append(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= receipt_buffer_bytes) flush();
}

/// After an error nothing more is written: the file will not get its name.
void Receipt::flush() {
  if (errno_value_ == 0) errno_value_ = disk::write_at(fd_.get(), bytes_of(buffer_), offset_);
  written_.update(bytes_of(buffer_));
  offset_ += buffer_.size();
  buffer_.clear();
}

}  // namespace onehop::transfer
