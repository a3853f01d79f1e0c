// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tests/support/slow_disk/plan.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <thread>
#include <utility>

namespace onehop::slow_disk {

namespace {

struct Unit {
  std::string_view suffix;
  double factor;
};

/// A positive number with one of the units behind it.
template <std::size_t n>
bool parse_number(const std::string& text, const std::array<Unit, n>& units, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(value >= 0)) return false;
  for (const Unit& unit : units) {
    if (unit.suffix != end) continue;
    value *= unit.factor;
    return true;
  }
  return false;
}

constexpr std::array<Unit, 6> rate_units{
    {{"bit", 0.125}, {"Kbit", 125}, {"Mbit", 125e3}, {"Gbit", 125e6}, {"MB", 1e6}, {"", 1}}};
constexpr std::array<Unit, 3> time_units{{{"ms", 1e6}, {"s", 1e9}, {"", 1e9}}};
constexpr std::array<Unit, 5> size_units{
    {{"", 1}, {"K", 1024}, {"M", 1048576}, {"G", 1073741824}, {"B", 1}}};
constexpr std::array<std::pair<std::string_view, int>, 9> errors{{{"ENOSPC", ENOSPC},
                                                                  {"EIO", EIO},
                                                                  {"EDQUOT", EDQUOT},
                                                                  {"EROFS", EROFS},
                                                                  {"EACCES", EACCES},
                                                                  {"EINTR", EINTR},
                                                                  {"EPERM", EPERM},
                                                                  {"EINVAL", EINVAL},
                                                                  {"EOPNOTSUPP", EOPNOTSUPP}}};
constexpr std::array<std::string_view, 11> calls{"write",     "read",     "fsync",    "rename",
                                                 "open",      "chmod",    "utimens",  "link",
                                                 "noreplace", "fsyncdir", "fallocate"};

bool parse_stall(const std::string& text, Stall& stall) {
  const std::size_t colon = text.find(':');
  double at = 0, span = 0;
  if (colon == std::string::npos || !parse_number(text.substr(0, colon), time_units, at) ||
      !parse_number(text.substr(colon + 1), time_units, span))
    return false;
  stall = {std::chrono::nanoseconds{static_cast<std::int64_t>(at)},
           std::chrono::nanoseconds{static_cast<std::int64_t>(span)}};
  return true;
}

/// CALL[@BYTES][:NAME]=ERROR
bool parse_fault(const std::string& text, Fault& fault) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return false;
  const std::size_t colon = std::min(text.find(':'), equals), at = std::min(text.find('@'), colon);
  double after = 0;
  if (at < colon && !parse_number(text.substr(at + 1, colon - at - 1), size_units, after))
    return false;
  fault = {.call = text.substr(0, at),
           .name = colon < equals ? text.substr(colon + 1, equals - colon - 1) : "",
           .after_bytes = static_cast<std::uint64_t>(after),
           .error_number = 0};
  for (const auto& [name, number] : errors)
    if (name == text.substr(equals + 1)) fault.error_number = number;
  return fault.error_number != 0 &&
         std::ranges::find(calls, std::string_view{fault.call}) != calls.end();
}

}  // namespace

std::optional<Settings> parse_settings(int argc, char** argv, std::string& wrong) {
  Settings settings;
  std::vector<std::string> folders;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (!option.starts_with("--")) {
      folders.push_back(option);
      continue;
    }
    if (option == "--fat") {
      settings.is_fat = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    bool is_good = false;
    if (option == "--owner" || option == "--name") {
      unsigned& number = option == "--owner" ? settings.owner : settings.name_bytes;
      number = static_cast<unsigned>(std::atoi(value.c_str()));
      is_good = number != 0;
    }
    if (option == "--rate") is_good = parse_number(value, rate_units, settings.rate_bytes_per_s);
    if (option == "--read-rate")
      is_good = parse_number(value, rate_units, settings.read_rate_bytes_per_s);
    if (option == "--stall") is_good = parse_stall(value, settings.stalls.emplace_back());
    if (option == "--error") is_good = parse_fault(value, settings.faults.emplace_back());
    if (is_good) continue;
    wrong = option + " '" + value + "' is not understood";
    return std::nullopt;
  }
  if (folders.size() != 2) {
    wrong = "two folders are needed";
    return std::nullopt;
  }
  settings.backing = folders[0];
  settings.mount_point = folders[1];
  return settings;
}

/// The disk serves one request after the other: a request starts when the one before it has ended,
/// and takes bytes / rate. A stall moves the start behind its end. Like a real disk it has a little
/// cache: what it could have written in the last cache_span while nobody asked is taken at once, so
/// that one writer with one request at a time, who needs a moment between two, gets the whole rate.
constexpr auto cache_span = std::chrono::milliseconds{10};

void Plan::wait(std::uint64_t bytes, double rate_bytes_per_s) {
  Clock::time_point done;
  {
    const std::lock_guard lock{mutex_};
    Clock::time_point begin = std::max(idle_at_, Clock::now() - cache_span);
    for (const Stall& stall : settings_.stalls)
      if (begin >= start_ + stall.at && begin < start_ + stall.at + stall.span)
        begin = start_ + stall.at + stall.span;
    const double seconds = rate_bytes_per_s > 0 ? static_cast<double>(bytes) / rate_bytes_per_s : 0;
    idle_at_ = begin + std::chrono::nanoseconds{static_cast<std::int64_t>(seconds * 1e9)};
    done = idle_at_;
  }
  std::this_thread::sleep_until(done);
}

int Plan::fault(std::string_view call, std::uint64_t bytes, std::string_view path) {
  const std::lock_guard lock{mutex_};
  for (const Fault& fault : settings_.faults) {
    const bool is_due = fault.after_bytes == 0 || written_bytes_ + bytes > fault.after_bytes;
    if (fault.call == call && is_due && path.ends_with(fault.name)) return fault.error_number;
  }
  written_bytes_ += bytes;
  return 0;
}

}  // namespace onehop::slow_disk
