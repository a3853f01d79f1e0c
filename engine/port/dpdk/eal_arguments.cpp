// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/dpdk/eal_arguments.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include "engine/base/system/text_file.hpp"

namespace onehop::dpdk {

namespace {

// Implementation constants. The pools need 30 to 60 MB and EAL some for itself: less in huge pages,
// and it runs without them. Too low: EAL fails half-way. Too high: huge pages are left unused.
constexpr std::uint64_t huge_bytes_min = 128U << 20;
constexpr const char* memory_megabytes = "256";

constexpr std::string_view blanks = " \t\n\r";

/// is_option: `word` is this option, alone or with its value ("--vdev", "--vdev=net_null0", "-l0").
bool is_option(std::string_view word, std::string_view option) {
  if (word == option) return true;
  const bool is_long = option.starts_with("--");
  if (is_long)
    return word.starts_with(option) && word.size() > option.size() && word[option.size()] == '=';
  return word.starts_with(option) && !word.starts_with("--");
}

bool has_any(const std::vector<std::string>& words,
             std::initializer_list<std::string_view> options) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return std::ranges::any_of(options,
                               [&](std::string_view option) { return is_option(word, option); });
  });
}

Error refuse(std::string cause, std::string hint) {
  return {ExitCode::usage, "read --eal", std::move(cause), std::move(hint)};
}

/// Calls f(word) for the value of each --vdev, wherever it stands; f may change it.
template <class Words, class F>
void for_each_device(Words& words, F f) {
  constexpr std::string_view joined = "--vdev=";
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i].starts_with(joined))
      f(words[i], joined.size());
    else if (words[i] == "--vdev" && i + 1 < words.size())
      f(words[++i], std::size_t{0});
}

/// is_driver: "net_af_xdp0,iface=va" is of driver "net_af_xdp": a number or nothing follows.
bool is_driver(std::string_view device, std::string_view driver) {
  if (!device.starts_with(driver)) return false;
  device.remove_prefix(driver.size());
  const std::string_view name = device.substr(0, device.find(','));
  return std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool has_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && blanks.find(c) != std::string_view::npos) {
      if (has_word) words.push_back(std::exchange(word, {}));
      has_word = false;
      continue;
    }
    has_word = true;
    if (quote != 0 && c == quote)
      quote = 0;
    else if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (c == '\\' && quote != '\'' && i + 1 < text.size())
      word += text[++i];
    else
      word += c;
  }
  if (quote != 0)
    return refuse(fmt::format("the quote {} is not closed", quote), "Write --eal \"ARGS\"");
  if (has_word) words.push_back(std::move(word));
  return words;
}

Result<void> check_words(const std::vector<std::string>& words) {
  if (has_any(words, {"-h", "--help"}))
    return refuse("EAL's help ends the program", "See doc.dpdk.org, EAL parameters");
  if (has_any(words, {"--proc-type"}))
    return refuse("a secondary process cannot set up a device", "Leave --proc-type out");
  if (!has_any(words, {"--vdev", "-a", "--allow"}))
    return refuse(
        words.empty() ? "it is missing" : "it names no device",
        "Write --eal \"--vdev=net_af_xdp0,iface=IF\" or \"-a PCI-ADDRESS\" (docs/dpdk.md)");
  return success();
}

HostFacts read_host(int main_cpu) {
  HostFacts host{.process_id = ::getpid(), .main_cpu = main_cpu};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{"/sys/kernel/mm/hugepages", error}) {
    constexpr std::string_view prefix = "hugepages-";  // hugepages-2048kB
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix)) continue;
    std::uint64_t pages = 0;
    TextFile{entry.path() / "free_hugepages"} >> pages;
    host.huge_bytes_free += pages * std::strtoull(name.c_str() + prefix.size(), nullptr, 10) * 1024;
  }
  return host;
}

EalArguments complete(std::vector<std::string> words, const HostFacts& host) {
  const bool has_memory_kind = has_any(words, {"--no-huge", "--in-memory", "--huge-dir",
                                               "--legacy-mem", "--huge-unlink", "--no-shconf"});
  EalArguments out{.words = std::move(words)};
  const auto add = [&](std::string word) { out.words.push_back(std::move(word)); };
  out.is_huge = !has_any(out.words, {"--no-huge"}) &&
                (has_memory_kind || host.huge_bytes_free >= huge_bytes_min);
  // EAL refuses the two together: without huge pages its memory belongs to the process anyway.
  if (!has_memory_kind) add(out.is_huge ? "--in-memory" : "--no-huge");
  if (!out.is_huge && !has_any(out.words, {"--no-shconf"})) add("--no-shconf");
  if (!out.is_huge && !has_any(out.words, {"-m", "--socket-mem"})) {
    add("-m");
    add(memory_megabytes);
  }
  if (!has_any(out.words, {"--file-prefix"}))
    add("--file-prefix=onehop-" + std::to_string(host.process_id));
  if (!has_any(out.words, {"-l", "-c", "--lcores"}))
    add("--lcores=0@" + std::to_string(host.main_cpu));
  if (!has_any(out.words, {"--telemetry", "--no-telemetry"})) add("--no-telemetry");
  if (!has_any(out.words, {"-a", "--allow", "-b", "--block", "--no-pci"})) add("--no-pci");
  return out;
}

std::string device_argument(const std::vector<std::string>& words, std::string_view driver,
                            std::string_view key) {
  std::string value;
  for_each_device(words, [&](const std::string& word, std::size_t begin) {
    const std::string_view device = std::string_view{word}.substr(begin);
    if (!value.empty() || !is_driver(device, driver)) return;
    const std::string wanted = fmt::format(",{}=", key);
    const std::size_t at = device.find(wanted);
    if (at == std::string_view::npos) return;
    const std::string_view rest = device.substr(at + wanted.size());
    value = rest.substr(0, rest.find(','));
  });
  return value;
}

bool has_device(const std::vector<std::string>& words, std::string_view driver) {
  bool has = false;
  for_each_device(words, [&](const std::string& word, std::size_t begin) {
    has = has || is_driver(std::string_view{word}.substr(begin), driver);
  });
  return has;
}

void add_device_argument(std::vector<std::string>& words, std::string_view driver,
                         std::string_view text) {
  for_each_device(words, [&](std::string& word, std::size_t begin) {
    if (is_driver(std::string_view{word}.substr(begin), driver)) word.append(",").append(text);
  });
}

}  // namespace onehop::dpdk
