// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/account/rate_memory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <span>

#include "engine/base/display_name.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/system/private_folder.hpp"
#include "engine/disk/replace_file.hpp"

namespace onehop::transfer {

namespace {

using Json = nlohmann::ordered_json;

constexpr int schema_version = 1;
// An IPv6 address with its zone, an interface's name: 15 bytes, each of which may be escaped.
constexpr std::size_t text_bytes_max = 128;
constexpr mode_t private_file_mode = 0600;

std::optional<RememberedRate> entry_of(const Json& item) {
  if (!item.is_object()) return std::nullopt;
  const auto text = [&](const char* key) -> std::string {
    const auto at = item.find(key);
    return at != item.end() && at->is_string() ? at->get<std::string>() : std::string{};
  };
  RememberedRate entry{text("peer"), text("interface"), {}};
  const auto rate = item.find("rate_bytes_per_s");
  if (rate == item.end() || !rate->is_number_unsigned()) return std::nullopt;
  const auto value = rate->get<std::uint64_t>();
  const bool is_valid = !entry.peer.empty() && entry.peer.size() <= text_bytes_max &&
                        !entry.interface.empty() && entry.interface.size() <= text_bytes_max &&
                        value >= static_cast<std::uint64_t>(RateMemory::rate_min.count) &&
                        value <= static_cast<std::uint64_t>(RateMemory::rate_max.count);
  if (!is_valid) return std::nullopt;
  entry.rate.count = static_cast<std::int64_t>(value);
  return entry;
}

bool is_same_path(const RememberedRate& entry, const std::string& peer,
                  const std::string& interface) {
  return entry.peer == peer && entry.interface == interface;
}

// make_folders makes what is missing of the path, for this user alone.
}  // namespace

void RateMemory::make_folder() const {
  for (std::size_t at = file_.find('/', 1); at != std::string::npos; at = file_.find('/', at + 1))
    (void)make_private_folder(file_.substr(0, at));
}

Result<std::vector<RememberedRate>> RateMemory::read() const {
  const std::string attempt = "read the remembered rates in " + file_;
  const Fd fd{::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!fd.is_open() && errno == ENOENT) return std::vector<RememberedRate>{};
  if (!fd.is_open()) return errno_error(ExitCode::local_file_error, attempt);
  std::string text(file_bytes_max + 1, '\0');
  const std::int64_t size = disk::read_at(fd.get(), std::as_writable_bytes(std::span{text}), 0);
  if (size < 0)
    return errno_error(ExitCode::local_file_error, attempt, "", static_cast<int>(-size));
  text.resize(static_cast<std::size_t>(size));
  const auto damaged = [&](std::string cause) {
    return Error{ExitCode::local_file_error, attempt, std::move(cause),
                 "The end of a transfer replaces it"};
  };
  if (text.size() > file_bytes_max) return damaged("it is too long");
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object() || document.value("schema_version", Json{}) != schema_version ||
      !document.value("rates", Json{}).is_array())
    return damaged("it is damaged");
  std::vector<RememberedRate> entries;
  for (const Json& item : document["rates"]) {
    auto entry = entry_of(item);
    if (!entry || entries.size() == entries_max)
      return damaged("it holds what no run can have left");
    entries.push_back(*std::move(entry));
  }
  return entries;
}

Result<std::optional<BytesPerSecond>> RateMemory::recall(const std::string& peer,
                                                         const std::string& interface) const {
  if (file_.empty()) return std::optional<BytesPerSecond>{};
  ONEHOP_TRY(entries, read());
  for (const RememberedRate& entry : entries)
    if (is_same_path(entry, display_name(peer), display_name(interface)))
      return std::optional{entry.rate};
  return std::optional<BytesPerSecond>{};
}

Result<void> RateMemory::remember(const RememberedRate& path) const {
  if (file_.empty()) return success();
  // The kernel takes any bytes for an interface's name, and JSON text alone.
  const RememberedRate entry{display_name(path.peer), display_name(path.interface), path.rate};
  std::vector<RememberedRate> entries;
  if (auto before = read(); before.has_value()) entries = std::move(before).value();
  std::erase_if(entries, [&](const RememberedRate& old) {
    return is_same_path(old, entry.peer, entry.interface);
  });
  entries.insert(entries.begin(), entry);
  entries.front().rate.count = std::clamp(entry.rate.count, rate_min.count, rate_max.count);
  if (entries.size() > entries_max) entries.resize(entries_max);

  Json list = Json::array();
  for (const RememberedRate& one : entries)
    list.push_back({{"peer", one.peer},
                    {"interface", one.interface},
                    {"rate_bytes_per_s", static_cast<std::uint64_t>(one.rate.count)}});
  const std::string text = Json{{"schema_version", schema_version}, {"rates", list}}.dump(1) + "\n";

  make_folder();
  if (const int errno_value = disk::replace_file(file_, text, private_file_mode); errno_value != 0)
    return errno_error(ExitCode::local_file_error, "remember the rate in " + file_, "",
                       errno_value);
  return success();
}

}  // namespace onehop::transfer
