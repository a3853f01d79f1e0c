// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/profile.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/base/rate_text.hpp"
#include "tools/labs/lab/air/read_air_profile.hpp"
#include "tools/labs/lab/profile_reader.hpp"

namespace onehop::lab {

namespace {

// Queue of 1 MB: 13 ms at 600 Mbit/s, about what a desktop's lower queues hold. Burst of 256 KB:
// with less than one 64-KB super-packet every shaped TCP looks ten times dearer than it is, because
// the shaper cuts each packet itself.
constexpr Bytes queue_default{1'000'000};
constexpr Bytes burst_default{256'000};
constexpr std::int64_t mtu_min = 1280,
                       mtu_max =
                           9000;  // IPv6 needs 1280; XSK frames with one buffer end far below 9000
constexpr int mtu_wifi_max = 2304;  // an 802.11 MSDU
constexpr std::int64_t trace_points_max = 10'000;
constexpr double super_packet_bytes = 65'536;

Nanos seconds(double value) { return Nanos{static_cast<Nanos::rep>(std::llround(value * 1e9))}; }

Result<void> read_trace(const ProfileReader& reader, Profile& profile) {
  const toml::array* const points = reader.table()["trace"].as_array();
  if (points == nullptr || points->empty() || points->size() > trace_points_max)
    return reader.refuse("trace", "it must be one or more [[trace]] tables");
  for (const toml::node& node : *points) {
    if (node.as_table() == nullptr)
      return reader.refuse("trace", "it must be one or more [[trace]] tables");
    const ProfileReader point{*node.as_table(), "a [[trace]] of " + profile.name};
    ONEHOP_TRYV(point.unknown_keys({"at", "rate"}));
    ONEHOP_TRY(at, point.number("at", 0, 0, 86'400));
    ONEHOP_TRY(rate, point.rate("rate"));
    if (!profile.trace.empty() && seconds(at) <= profile.trace.back().at)
      return point.refuse("at", "the points must follow each other in time");
    profile.trace.push_back({seconds(at), rate});
  }
  if (profile.trace.front().at != Nanos{0})
    return reader.refuse("trace", "its first point must be at = 0");
  ONEHOP_TRY(period, reader.number("trace_period", 0, 0, 86'400));
  profile.trace_period = seconds(period);
  if (profile.trace_period <= profile.trace.back().at)
    return reader.refuse("trace_period", "it must be given and lie behind the last point");
  profile.rate = profile.trace.front().rate;
  return success();
}

// A Wi-Fi link has its rate, queue and loss from [wifi].
Result<void> read_wifi(const ProfileReader& reader, Profile& profile) {
  for (const char* const key : {"rate", "trace", "trace_period", "reverse_rate", "queue", "burst",
                                "direct", "loss_permille", "reverse_loss_permille"})
    if (reader.has(key))
      return reader.refuse(key, "there is a [wifi] table, which says what the link is like");
  if (profile.mtu_bytes > mtu_wifi_max)
    return reader.refuse("mtu", fmt::format("with [wifi] it must be at most {}", mtu_wifi_max));
  if (reader.table()["wifi"].as_table() == nullptr)
    return reader.refuse("wifi", "it must be a table");
  ONEHOP_TRY(wifi, air::read_air_profile(*reader.table()["wifi"].as_table(), profile.name));
  profile.wifi = std::move(wifi);
  return success();
}

Result<void> read_reverse(const ProfileReader& reader, Profile& profile) {
  ONEHOP_TRY(reverse, reader.text("reverse_rate", "same"));
  profile.is_reverse_same = reverse == "same";
  profile.is_reverse_shaped = reverse != "none" && (reverse != "same" || profile.rate.has_value());
  if (profile.is_reverse_shaped && profile.is_reverse_same) profile.reverse_rate = *profile.rate;
  if (profile.is_reverse_shaped && !profile.is_reverse_same) {
    ONEHOP_TRY(rate, parse_rate(reverse));
    profile.reverse_rate = rate;
  }
  return success();
}

Result<void> read_disk(const toml::table& table, Profile& profile) {
  const ProfileReader reader{table, "[disk] of " + profile.name};
  ONEHOP_TRYV(reader.unknown_keys({"rate", "read_rate", "stall", "errors", "folder"}));
  ONEHOP_TRY(rate, reader.text("rate", ""));
  ONEHOP_TRY(read_rate, reader.text("read_rate", ""));
  for (const std::string& given : {rate, read_rate})
    if (!given.empty()) {
      ONEHOP_TRYV(parse_rate(given));
    }
  ONEHOP_TRY(stalls, reader.texts("stall"));
  ONEHOP_TRY(errors, reader.texts("errors"));
  ONEHOP_TRY(folder, reader.text("folder", "/dev/shm"));
  if (!folder.starts_with('/')) return reader.refuse("folder", "it must be an absolute path");
  profile.disk = DiskProfile{std::move(rate), std::move(read_rate), std::move(stalls),
                             std::move(errors), std::move(folder)};
  return success();
}

Result<toml::table> parse_toml(const std::string& text, const std::string& name) {
  try {
    return toml::parse(text, std::string_view{name});
  } catch (const toml::parse_error& error) {  // Debian's library is built to throw
    return Error{ExitCode::usage, "read the profile " + name,
                 fmt::format("line {}: {}", error.source().begin.line, error.description()),
                 "It is TOML"};
  }
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file{path};
  if (!file) return errno_error(ExitCode::usage, "read the profile " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Shaper shaper_of(const Profile& profile) noexcept {
  if (!profile.rate) return Shaper::none;
  for (std::size_t i = 0; i < profile.trace.size(); ++i) {
    const Nanos end = i + 1 < profile.trace.size() ? profile.trace[i + 1].at : profile.trace_period;
    const Bytes carried = profile.trace[i].rate * (end - profile.trace[i].at);
    if (static_cast<double>(carried.count) < super_packet_bytes) return Shaper::tbf;
  }
  return profile.trace.empty() ? Shaper::tbf : Shaper::htb;
}

Result<Profile> parse_profile(const std::string& text, const std::string& name) {
  ONEHOP_TRY(table, parse_toml(text, name));
  const ProfileReader reader{table, "the profile " + name};
  ONEHOP_TRYV(reader.unknown_keys({"description", "rate", "trace", "trace_period", "reverse_rate",
                                   "queue", "burst", "mtu", "direct", "gro", "loss_permille",
                                   "reverse_loss_permille", "disk", "wifi"}));
  Profile profile{.name = name};
  ONEHOP_TRY(description, reader.text("description", ""));
  profile.description = description;
  if (reader.has("rate") && reader.has("trace"))
    return reader.refuse("rate", "there is a trace as well: give one of them");
  if (reader.has("trace_period") && !reader.has("trace"))
    return reader.refuse("trace_period", "there is no [[trace]]");
  if (reader.has("rate")) {
    ONEHOP_TRY(rate, reader.rate("rate"));
    profile.rate = rate;
  }
  if (reader.has("trace")) {
    ONEHOP_TRYV(read_trace(reader, profile));
  }
  ONEHOP_TRYV(read_reverse(reader, profile));
  ONEHOP_TRY(queue, reader.size("queue", queue_default));
  ONEHOP_TRY(burst, reader.size("burst", burst_default));
  ONEHOP_TRY(mtu, reader.number("mtu", 1500, mtu_min, mtu_max));
  ONEHOP_TRY(loss, reader.number("loss_permille", 0, 0, 1000));
  ONEHOP_TRY(reverse_loss, reader.number("reverse_loss_permille", loss, 0, 1000));
  profile.queue = queue;
  profile.burst = burst;
  profile.mtu_bytes = static_cast<int>(mtu);
  profile.loss_ppm = static_cast<std::uint32_t>(std::lround(loss * 1000));
  profile.reverse_loss_ppm = static_cast<std::uint32_t>(std::lround(reverse_loss * 1000));
  ONEHOP_TRY(is_direct, reader.flag("direct"));
  profile.is_direct = is_direct;
  ONEHOP_TRY(is_gro_on, reader.flag("gro"));
  profile.is_gro_on = is_gro_on;
  if (is_direct && (profile.loss_ppm > 0 || profile.reverse_loss_ppm > 0))
    return reader.refuse("direct",
                         "loss is injected by the middle that a direct link does not have");
  if (reader.has("wifi")) {
    ONEHOP_TRYV(read_wifi(reader, profile));
  }
  if (reader.has("disk")) {
    if (table["disk"].as_table() == nullptr) return reader.refuse("disk", "it must be a table");
    ONEHOP_TRYV(read_disk(*table["disk"].as_table(), profile));
  }
  return profile;
}

std::vector<std::string> profile_folders() {
  std::vector<std::string> folders;
  if (const char* const own = std::getenv("ONEHOP_CONFIGS"); own != nullptr && *own != '\0')
    folders.push_back(std::string{own} + "/lab");
  folders.emplace_back("configs/lab");
  // Of the sources, seen from a program of the build: BUILD/tools/labs/lab/onehop-lab.
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  folders.push_back((self.parent_path() / "../../../../configs/lab").lexically_normal());
  folders.emplace_back(ONEHOP_LAB_PROFILES_INSTALLED);
  return folders;
}

Result<Profile> load_profile(const std::string& name_or_path) {
  const std::filesystem::path path{name_or_path};
  if (path.has_parent_path() || path.extension() == ".toml") {
    ONEHOP_TRY(text, read_file(path));
    return parse_profile(text, path.stem());
  }
  for (const std::string& folder : profile_folders()) {
    const std::filesystem::path candidate =
        std::filesystem::path{folder} / (name_or_path + ".toml");
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(candidate, ignored)) continue;
    ONEHOP_TRY(text, read_file(candidate));
    return parse_profile(text, name_or_path);
  }
  std::string cause = "there is no " + name_or_path + ".toml in";
  for (const std::string& folder : profile_folders()) cause += " " + folder;
  return Error{ExitCode::usage, "find the profile " + name_or_path, std::move(cause),
               "configs/lab in the sources has them"};
}

}  // namespace onehop::lab
