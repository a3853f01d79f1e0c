// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/text/tree_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <span>

#include "control/transfer/settings.hpp"
#include "engine/base/display_name.hpp"
#include "engine/base/system/text_file.hpp"
#include "engine/list/ignore.hpp"
#include "engine/list/tree_scan.hpp"
#include "tools/onehop/text/encoding.hpp"
#include "tools/onehop/text/quantity.hpp"

namespace onehop::tool {

namespace {

constexpr std::size_t lines_max = 5;  // of what is left out; more push the rest off the screen

std::string count_of(std::uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

std::string found_text(const api::Found& found) {
  std::string text =
      fmt::format("{} in {}, {}", count_of(found.files, "file"), count_of(found.folders, "folder"),
                  format_bytes(found.bytes_total));
  if (found.hard_links > 0)
    text +=
        fmt::format("; {}{} of the files {} a hard link to another, and sent as a file of its own",
                    found.has_more_hard_links ? "at least " : "", found.hard_links,
                    found.hard_links == 1 ? "is" : "are each");
  return text;
}

std::string left_out_text(const api::LeftOut& left_out, bool is_sender) {
  std::string text;
  const std::size_t shown = std::min(left_out.items.size(), lines_max);
  for (const api::LeftOut::Item& item : std::span{left_out.items}.first(shown))
    text += fmt::format("{}not {}: {}: {}", text.empty() ? "" : "\n",
                        is_sender ? "sent" : "received", item.path, item.cause);
  if (shown < left_out.items.size())
    text += fmt::format("\nand {} more", left_out.items.size() - shown);
  return text;
}

Result<void> write_report(const std::string& file, const std::vector<api::LeftOut::Item>& items) {
  Json list = Json::array();
  for (const api::LeftOut::Item& item : items)
    list.push_back({{"path", item.path}, {"kind", item.kind}, {"cause", item.cause}});
  const Json report{{"schema_version", schema_version},
                    {"command_line", command_line()},
                    {"version", ONEHOP_VERSION},
                    {"left_out", list}};
  // A command line is bytes, and JSON is UTF-8.
  const std::string text = report.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
  // std::ofstream opens without O_CLOEXEC.
  if (std::FILE* const out = std::fopen(file.c_str(), "we"); out != nullptr) {
    const bool is_written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
    if (std::fclose(out) == 0 && is_written) return success();
  }
  return errno_error(ExitCode::local_file_error, "write --report " + file,
                     "Give a file in a folder that you may write to");
}

Result<std::vector<std::string>> read_excludes(const std::vector<ExcludeWord>& words) {
  std::vector<std::string> patterns;
  for (const ExcludeWord& word : words) {
    if (word.text.empty())
      return Error{ExitCode::usage, "read --exclude, --include or --exclude-from",
                   "the value is empty", "Leave the option out, or give a pattern or a file"};
    if (word.kind != ExcludeWord::Kind::file) {
      patterns.push_back((word.kind == ExcludeWord::Kind::include ? "!" : "") + word.text);
      continue;
    }
    const std::string attempt = "read --exclude-from " + word.text;
    const TextFile in{word.text};
    if (in.fail())
      return errno_error(ExitCode::usage, attempt, "Give a file of patterns, one a line");
    const std::string text = in.str();
    if (std::string fault = encoding_fault(text); !fault.empty())
      return Error{ExitCode::usage, attempt, std::move(fault), encoding_hint};
    std::ranges::move(list::patterns_of(text), std::back_inserter(patterns));
  }
  return patterns;
}

Result<void> dry_run(const api::SendOptions& options) {
  list::ScanOptions scan_options = transfer::scan_options(options);
  scan_options.lists_excluded = true;
  ONEHOP_TRY(found, list::scan(options.paths, scan_options));
  for (const list::ManifestEntry& entry : found.source.manifest.files)
    fmt::print("send      {}{}\n", display_name(entry.name),
               entry.is_folder()    ? "/"
               : entry.is_symlink() ? "  symbolic link"
                                    : "  " + format_bytes(entry.size));
  for (const list::Excluded& one : found.excluded)
    fmt::print("excluded  {}  by {}\n", display_name(one.path), display_name(one.rule));
  for (const list::ScanProblem& problem : found.problems)
    fmt::print("left out  {}  {}\n", display_name(problem.path), problem.cause);
  fmt::print("{}; {} excluded, {} left out. Nothing was sent\n",
             found_text({.files = found.counts.files,
                         .folders = found.counts.folders,
                         .bytes_total = found.counts.bytes,
                         .hard_links = found.counts.hard_links,
                         .has_more_hard_links = found.counts.has_more_hard_links}),
             found.counts.excluded, found.problems.size());
  return success();
}

}  // namespace onehop::tool
