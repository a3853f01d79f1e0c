// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace onehop::bench {

namespace {

constexpr std::size_t first_column_min = 12;

struct Column {
  const char* head;
  const char* metric;
  double scale = 1;
};

/// What the overview of a part shows, beside name, spread and ratio. The first column is the one
/// that spread and ratio are of.
std::vector<Column> columns_of(Part part) {
  switch (part) {
    case Part::loop:
    case Part::serve:
    case Part::port:
      return {{"ns/B", "cpu_ns_per_byte"},     {"tx", "sender_ns_per_byte"},
              {"rx", "receiver_ns_per_byte"},  {"busy", "busy_ns_per_byte"},
              {"Gbit/s", "goodput_bps", 1e-9}, {"frames/s", "frames_per_second"}};
    case Part::aead:
      return {{"ns/B", "cpu_ns_per_byte"},
              {"seal", "seal_ns_per_byte"},
              {"open", "open_ns_per_byte"},
              {"ns/frame", "seal_ns_per_frame"},
              {"cycles/B", "cycles_per_byte"}};
    case Part::digest: return {{"ns/B", "cpu_ns_per_byte"}, {"cycles/B", "cycles_per_byte"}};
    case Part::file:
      return {{"ns/B", "cpu_ns_per_byte"},
              {"read", "read_ns_per_byte"},
              {"write", "write_ns_per_byte"},
              {"calls/blk", "syscalls_per_block"}};
    case Part::law: return {{"ns/tick", "ns_per_tick"}, {"cycles", "cycles_per_tick"}};
    case Part::ring: return {{"ns/msg", "ns_per_message"}, {"cycles", "cycles_per_message"}};
  }
  return {};
}

std::string spread_text(const Summary& s) { return figure(s.min) + ".." + figure(s.max); }

std::string median_text(const std::map<std::string, Summary>& summaries, const std::string& name,
                        double scale = 1) {
  const auto found = summaries.find(name);
  return found == summaries.end() ? "-" : figure(found->second.median * scale);
}

/// Cuts a line at the last column.
std::string cut(std::string line) {
  if (line.size() > table_columns) line = line.substr(0, table_columns - 2) + "..";
  return line + '\n';
}

/// line_or_reason: the line where its metric was measured, else why it was not, else nothing.
std::string line_or_reason(const PointResult& result, const std::string& group, bool is_measured,
                           const std::string& line) {
  if (is_measured) return cut("  " + line);
  const auto found = result.latest.missing.find(group);
  return found == result.latest.missing.end() ? "" : cut("  " + group + ": " + found->second);
}

std::string threads_table(const PointResult& result) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, rounds] : result.threads) {
    const auto summaries = by_name(rounds);
    const double total =
        summaries.at("user_ns_per_byte").median + summaries.at("system_ns_per_byte").median;
    rows.push_back({"  " + name, figure(total), median_text(summaries, "user_ns_per_byte"),
                    median_text(summaries, "system_ns_per_byte"),
                    median_text(summaries, "softirq_ns_per_byte")});
  }
  return rows.empty()
             ? std::string{}
             : table({"  thread [ns/B]", "total", "user", "system", "softirq in it"}, rows);
}

std::string parts_text(const std::map<std::string, Summary>& s) {
  if (!s.contains("parts_ns_per_byte")) return {};
  std::string sum;
  for (const char* part : {"port", "aead", "digest", "read", "write", "law"}) {
    const auto found = s.find(std::string{"part_"} + part + "_ns_per_byte");
    if (found == s.end()) continue;
    // Six parts may be longer than a line: the files' begin the second one.
    const bool is_long = std::string_view{part} == "read" || (std::string_view{part} == "write" &&
                                                              !s.contains("part_read_ns_per_byte"));
    sum += fmt::format("{}{} {}",
                       sum.empty() ? "  parts: "
                       : is_long   ? " +\n         "
                                   : " + ",
                       part, figure(found->second.median));
  }
  std::string text = sum + "\n";
  text +=
      cut(fmt::format("  whole {} / sum of parts {} = {} ({})", median_text(s, "cpu_ns_per_byte"),
                      median_text(s, "parts_ns_per_byte"), median_text(s, "whole_over_parts"),
                      spread_text(s.at("whole_over_parts"))));
  if (s.contains("hand_over_ns_per_byte"))
    text += cut(fmt::format("  handing blocks over between threads {}; whole / both = {} ({})",
                            median_text(s, "hand_over_ns_per_byte"),
                            median_text(s, "whole_over_parts_and_hand_over"),
                            spread_text(s.at("whole_over_parts_and_hand_over"))));
  if (s.contains("frames_over_flood"))
    text += cut(
        fmt::format("  frames/s {} / bare flood's {} = {} ({})",
                    median_text(s, "frames_per_second"), median_text(s, "flood_frames_per_second"),
                    median_text(s, "frames_over_flood"), spread_text(s.at("frames_over_flood"))));
  return text;
}

}  // namespace

std::string figure(double value) {
  const double size = std::abs(value);
  if (size >= 999.5e6) return fmt::format("{:.3g}G", value / 1e9);
  if (size >= 999.5e3) return fmt::format("{:.3g}M", value / 1e6);
  if (size >= 9995) return fmt::format("{:.0f}k", value / 1e3);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.1 || size == 0) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(head.size());
  for (std::size_t i = 0; i < head.size(); ++i) {
    widths[i] = head[i].size();
    for (const auto& row : rows) widths[i] = std::max(widths[i], row[i].size());
  }
  std::size_t others = 0;
  for (std::size_t i = 1; i < widths.size(); ++i) others += widths[i] + 2;
  const std::size_t room =
      table_columns > others + first_column_min ? table_columns - others : first_column_min;
  // A sweep's points differ in the ends of their names: where one does not fit, each name has a
  // line to itself.
  const bool is_tall = widths[0] > room;
  widths[0] = is_tall ? head[0].size() : widths[0];
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    const bool is_head = &row == &head;
    if (is_tall && !is_head) text += cut(row[0]);
    std::string line = is_tall && !is_head ? std::string{} : row[0];
    line.resize(widths[0], ' ');
    for (std::size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], widths[i]);
    text += cut(std::move(line));
  };
  add(head);
  for (const auto& row : rows) add(row);
  return text;
}

std::string overview(const BenchOptions& options, const std::vector<PointResult>& results,
                     std::optional<std::size_t> base) {
  const std::vector<Column> columns = columns_of(options.part);
  const std::string key = columns.front().metric;
  std::vector<std::string> head{name_of(options.part)};
  for (const Column& column : columns) head.push_back(column.head);
  head.insert(head.begin() + 2, "min..max");
  if (base) head.push_back("ratio");
  std::vector<std::vector<std::string>> rows;
  for (const PointResult& result : results) {
    const auto summaries = by_name(result.rounds);
    std::vector<std::string> row{result.name};
    for (const Column& column : columns)
      row.push_back(median_text(summaries, column.metric, column.scale));
    row.insert(row.begin() + 2, summaries.contains(key) ? spread_text(summaries.at(key)) : "-");
    if (base) {
      const auto ratio = ratios_to(result.rounds, results[*base].rounds, key);
      row.push_back(ratio ? figure(ratio->median) : "-");
    }
    rows.push_back(std::move(row));
  }
  return table(head, rows);
}

std::string details(const PointResult& result) {
  const auto s = by_name(result.rounds);
  std::string used;
  for (const char* key : {"io_used", "io_mode", "aead", "file_io"}) {
    const auto found = result.latest.used.find(key);
    if (found != result.latest.used.end()) used += (used.empty() ? "" : ", ") + found->second;
  }
  if (s.contains("frame_bytes"))
    used += fmt::format(", {:.0f}-byte frames", s.at("frame_bytes").median);
  const auto median = [&](const char* name) { return median_text(s, name); };
  std::string text = "\n" + cut(result.name + (used.empty() ? "" : ": " + used));
  text += line_or_reason(
      result, "wake-ups",
      s.contains("sender_frames_per_wakeup") || s.contains("receiver_frames_per_wakeup"),
      fmt::format("frames per wake-up: tx {} rx {}   calls per frame: tx {} rx {}",
                  median("sender_frames_per_wakeup"), median("receiver_frames_per_wakeup"),
                  median("sender_syscalls_per_frame"), median("receiver_syscalls_per_frame")));
  text += cut(fmt::format("  switches per second: tx {} rx {}   frames lost: {}",
                          median("sender_switches_per_second"),
                          median("receiver_switches_per_second"), median("frames_lost")));
  text += line_or_reason(result, "cycles", s.contains("cycles_per_byte"),
                         fmt::format("cycles/B {}  instructions/B {}", median("cycles_per_byte"),
                                     median("instructions_per_byte")));
  text += line_or_reason(
      result, "softirq", s.contains("softirq_all_ns_per_byte"),
      fmt::format("softirq of all CPUs {} ns/B, of it {} while idle",
                  median("softirq_all_ns_per_byte"), median("softirq_idle_ns_per_byte")));
  if (const auto trip = s.find("core_round_trip_ns"); trip != s.end())
    text += cut(fmt::format("  a line's round trip between two CPUs: {} ns ({})",
                            figure(trip->second.median), spread_text(trip->second)));
  text += line_or_reason(result, "energy", s.contains("energy_nj_per_byte"),
                         "energy " + median("energy_nj_per_byte") + " nJ/B");
  return text + threads_table(result) + parts_text(s);
}

}  // namespace onehop::bench
