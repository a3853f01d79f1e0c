// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/watch/screen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/onehop/text/quantity.hpp"

namespace onehop::watch {

namespace {

using tool::files_text, tool::format_bytes, tool::format_rate, tool::format_span;

// Ranks of lines: what a small terminal shows last.
constexpr int keep_title = 100, keep_progress = 95, keep_rates = 90, keep_bar = 80,
              keep_numbers = 60, keep_law = 50, keep_counters = 40, keep_history = 30,
              keep_blank = 10;

constexpr std::array<std::string_view, 3> sender_names{"our queue to the link", "receiver's ring",
                                                       "receiver's disk queue"};
constexpr std::array<std::string_view, 3> receiver_names{"our queue of answers", "our ring",
                                                         "our disk queue"};

std::string bytes(std::int64_t b) {
  return format_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(b, 0)));
}

std::string rate(std::int64_t bps) { return format_rate(bit_per_s(bps)); }

/// has_crossed: below the one end the link may run dry, above the other the buffer overflow, and
/// the ends leave nothing between them.
bool has_crossed(const BufferView& b) {
  return b.under_bytes && b.over_bytes && *b.under_bytes > *b.over_bytes;
}

/// is_untold: nobody has said yet what it holds, which is not the same as nothing.
bool is_untold(const BufferView& b) { return b.scope == "none" && !b.under_bytes && !b.over_bytes; }

/// state_of puts a buffer's place in its safe range into words.
Span state_of(const BufferView& b) {
  if (is_untold(b)) return {"not known", Style::faint};
  if (!b.under_bytes && !b.over_bytes)
    return {b.occupancy_bytes > 0 ? "holds data" : "empty", Style::faint};
  if (has_crossed(b)) return {"too small for a safe range", Style::low};
  if (b.over_bytes && b.occupancy_bytes > *b.over_bytes)
    return {"above its safe range", Style::high};
  if (b.under_bytes && b.occupancy_bytes < *b.under_bytes)
    return b.takes_part ? Span{"below its safe range", Style::low}
                        : Span{"below: not limiting", Style::faint};
  return {"in its safe range", Style::good};
}

std::size_t width_of(const std::vector<Span>& spans) {
  std::size_t width = 0;
  for (const Span& span : spans) width += columns_of(span.text);
  return width;
}

/// justify puts `right` at the end of the line where both have room.
Line justify(std::vector<Span> left, std::vector<Span> right, std::size_t columns, int keep) {
  const std::size_t used = width_of(left) + width_of(right);
  left.push_back({std::string(used + 2 <= columns ? columns - used : 2, ' ')});
  left.insert(left.end(), right.begin(), right.end());
  return {std::move(left), keep};
}

Line title(const Telemetry& t, const ScreenOptions& o) {
  std::string text = fmt::format("  PID {}", t.pid);
  if (!t.peer.empty())
    text += fmt::format("  {} {}", t.role == api::Role::sending ? "to" : "from", t.peer);
  if (!t.interface.empty()) text += " over " + t.interface;
  if (!t.io.empty()) text += ", " + t.io + (t.io_mode.empty() ? "" : "/" + t.io_mode);
  std::string phase{name_of(t.phase)};
  std::ranges::replace(phase, '_', ' ');
  return justify({{fmt::format("onehop {}", name_of(t.role)), Style::strong}, {text}},
                 {{phase, Style::strong}}, o.columns, keep_title);
}

Line progress(const Telemetry& t, const ScreenOptions& o) {
  const double share =
      std::min(1.0, static_cast<double>(t.bytes_done) / static_cast<double>(t.bytes_expected));
  // 100 % is for what is verified and on disk.
  const double shown = t.phase == api::Phase::done ? 100 : std::min(99.0, 100 * share);
  std::string text = fmt::format(" {:3.0f} %  {} of {}", shown, format_bytes(t.bytes_done),
                                 format_bytes(t.bytes_expected));
  if (t.files_total > 1) text += "  " + files_text(t.files_done, t.files_total, t.is_all_known);
  const std::size_t width = o.columns > text.size() + 12 ? o.columns - text.size() - 2 : 10;
  const BufferView bar{.occupancy_bytes = static_cast<std::int64_t>(share * 10'000)};
  std::vector<Span> spans{{"["}};
  for (Span& span : bar_of(bar, 10'000, width, o.is_utf8)) spans.push_back({std::move(span.text)});
  spans.push_back({"]" + text});
  return {std::move(spans), keep_progress};
}

Line rates(const Telemetry& t) {
  std::vector<Span> spans{{"goodput "}, {rate(t.goodput_bps), Style::strong}};
  if (t.rate_bps)
    spans.push_back({fmt::format("   granted {}   drains {}", rate(*t.rate_bps),
                                 rate(t.buffers[0].drain_bps))});
  if (t.link_rate_bps) spans.push_back({"   link " + rate(*t.link_rate_bps)});
  return {std::move(spans), keep_rates};
}

Line times(const Telemetry& t) {
  const double seconds = static_cast<double>(t.elapsed_ns) / 1e9;
  const Bytes done{static_cast<std::int64_t>(t.bytes_done)};
  const BytesPerSecond average = t.elapsed_ns > 0 ? done / Nanos{t.elapsed_ns} : BytesPerSecond{};
  std::string text =
      fmt::format("elapsed {}   ETA {}   average {}   round trip {:.1f} ms", format_span(seconds),
                  t.eta_seconds ? format_span(*t.eta_seconds) : "-:--", format_rate(average),
                  static_cast<double>(t.srtt_ns) / 1e6);
  return {{{std::move(text)}}, keep_bar - 1};  // in ten rows there are bars for all buffers
}

Line history_line(const History& history, const ScreenOptions& o) {
  static constexpr std::array<std::string_view, 8> blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<std::string_view, 8> letters{"_", "_", ".", ".", "-", "-", "=", "#"};
  std::int64_t most = 1;
  for (const std::int64_t one : history) most = std::max(most, one);
  std::string text;
  const std::string label = fmt::format("goodput of the last minute, to {}  ", rate(most));
  const std::size_t room = o.columns > label.size() ? o.columns - label.size() : 0;
  for (std::size_t i = history.size() > room ? history.size() - room : 0; i < history.size(); ++i) {
    const auto step = static_cast<std::size_t>(static_cast<Wide>(history[i]) * 7 / most);
    text += o.is_utf8 ? blocks[std::min<std::size_t>(step, 7)]
                      : letters[std::min<std::size_t>(step, 7)];
  }
  return {{{label, Style::faint}, {text, Style::good}}, keep_history};
}

void add_buffer(const Telemetry& t, std::size_t i, const ScreenOptions& o, std::vector<Line>& out) {
  const BufferView& b = t.buffers[i];
  const bool is_sender = t.role == api::Role::sending;
  const bool is_bottleneck = is_sender && main_bottleneck(t) == buffer_names[i];
  std::vector<Span> right{state_of(b)};
  if (is_bottleneck)
    right.push_back({o.is_utf8 ? "  ◀ BOTTLENECK" : "  <- BOTTLENECK", Style::strong});
  out.push_back({{}, keep_blank});
  std::vector<Span> name{{std::string{is_sender ? sender_names[i] : receiver_names[i]},
                          is_bottleneck ? Style::strong : Style::plain}};
  if (b.drain_bps > 0) name.push_back({"  out " + rate(b.drain_bps), Style::faint});
  out.push_back(justify(std::move(name), std::move(right), o.columns, keep_bar + 1));
  const std::int64_t scale = scale_of(b);
  const std::string end = is_untold(b) ? "]" : "] " + bytes(scale);
  std::vector<Span> spans{{"["}};
  const std::size_t width = o.columns > end.size() + 9 ? o.columns - end.size() - 1 : 8;
  const std::vector<Span> bar = bar_of(b, scale, width, o.is_utf8);
  spans.insert(spans.end(), bar.begin(), bar.end());
  spans.push_back({end});
  out.push_back({std::move(spans), keep_bar});
  std::string numbers = is_untold(b) ? "held: not known" : "held " + bytes(b.occupancy_bytes);
  if (b.capacity_bytes > 0) numbers += " of " + bytes(b.capacity_bytes);
  if (b.target_bytes > 0) numbers += "  target " + bytes(b.target_bytes);
  if (has_crossed(b))
    numbers +=
        fmt::format("  dry below {}, full above {}", bytes(*b.under_bytes), bytes(*b.over_bytes));
  else if (b.under_bytes && b.over_bytes)
    numbers += fmt::format("  safe {} to {}", bytes(*b.under_bytes), bytes(*b.over_bytes));
  else if (b.under_bytes)
    numbers += fmt::format("  safe from {}", bytes(*b.under_bytes));
  if (b.refused_total > 0) numbers += fmt::format("  refused {}", b.refused_total);
  out.push_back({{{std::move(numbers), Style::faint}}, keep_numbers});
}

std::string detail_text(const std::string& key, std::int64_t value) {
  const auto name = [&](std::string_view unit) { return key.substr(0, key.size() - unit.size()); };
  if (key.ends_with("_bytes_per_s"))
    return name("_bytes_per_s") + " " + (value < 0 ? "-" : "") +
           format_rate({value < 0 ? -value : value});
  if (key.ends_with("_bytes")) return name("_bytes") + " " + bytes(value);
  if (key.ends_with("_ns"))
    return fmt::format("{} {:.2f} ms", name("_ns"), static_cast<double>(value) / 1e6);
  if (key.ends_with("_permille"))
    return fmt::format("{} {:.2f}", name("_permille"), static_cast<double>(value) / 1000);
  return fmt::format("{} {}", key, value);
}

std::vector<Line> law_lines(const Telemetry& t, const ScreenOptions& o) {
  std::vector<Line> out;
  if (t.role != api::Role::sending) return out;
  const std::string why = words_of(t);
  out.push_back({{{"bottleneck: "}, {std::string{why}, Style::strong}}, keep_rates - 2});
  std::vector<std::string> rows{"law " + t.law};
  const auto add = [&](const std::string& word, const char* between, std::size_t rows_max) {
    if (rows.back().size() + std::string_view{between}.size() + word.size() <= o.columns)
      rows.back() += between + word;
    else if (rows.size() < rows_max)
      rows.push_back("  " + word);
  };
  add(t.repair + " repair", ", ", 2);
  add("queue read by " + t.sensor, ", ", 2);
  if (t.is_degraded) add("no safe range", ", ", 2);
  if (t.link_source != "none") add("link by " + t.link_source, ", ", 2);
  const std::size_t plain_rows = rows.size();
  for (const auto& [key, value] : t.details) {
    const std::string word = detail_text(key, value);
    if (rows.size() == plain_rows)
      rows.push_back("  " + word);
    else
      add(word, "   ", plain_rows + 2);
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    out.push_back({{{rows[i], i < plain_rows ? Style::plain : Style::faint}},
                   keep_law - static_cast<int>(i)});
  return out;
}

Line counters(const Telemetry& t) {
  const double loss = t.packets_sent_total == 0 ? 0
                                                : 100 * static_cast<double>(t.packets_lost_total) /
                                                      static_cast<double>(t.packets_sent_total);
  std::uint64_t refused = 0;
  for (const BufferView& b : t.buffers) refused += b.refused_total;
  std::string text = t.role == api::Role::sending
                         ? fmt::format("lost {} packets ({:.2f} %)   sent again {}   refused {}",
                                       t.packets_lost_total, loss,
                                       format_bytes(t.retransmitted_bytes_total), refused)
                         : fmt::format("refused {}", refused);
  if (t.auth_failures_total > 0) text += fmt::format("   not authentic {}", t.auth_failures_total);
  return {{{fmt::format("{}   CPU {:.1f} s", text, t.cpu_seconds)}}, keep_counters};
}

std::string_view sgr_of(Style style) {
  switch (style) {
    case Style::plain: return "";
    case Style::strong: return "\x1b[1m";
    case Style::faint: return "\x1b[2m";
    case Style::good: return "\x1b[32m";
    case Style::low: return "\x1b[33m";
    case Style::high: return "\x1b[31m";
  }
  return "";
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// cut keeps the first `columns` glyphs.
std::string_view cut(std::string_view text, std::size_t columns) {
  std::size_t end = 0, seen = 0;
  while (end < text.size()) {
    if (!is_continuation(text[end]) && seen++ == columns) break;
    ++end;
  }
  return text.substr(0, end);
}

}  // namespace

std::string words_of(const Telemetry& t) {
  const std::string_view bottleneck = main_bottleneck(t);
  if (bottleneck == "tx_queue") return "the link";
  if (bottleneck == "rx_ring") return "the receiver's CPU: its ring fills";
  if (bottleneck == "app_buffer") return "the receiver's disk";
  if (bottleneck == "source") return "this machine: no data is ready to be sent";
  if (bottleneck != "cap") return "none yet";
  const std::string at = t.rate_bps ? ", " + format_rate(bit_per_s(*t.rate_bps)) : "";
  switch (t.cap) {
    case api::Cap::max_rate: return "a cap: --max-rate" + at;
    case api::Cap::max_rate_there: return "a cap: what the receiver takes" + at;
    case api::Cap::airtime: return "a cap: our share of the air" + at;
    case api::Cap::loss: return "a cap: loss by overload" + at;
    case api::Cap::law: return "a cap: the law's fixed rate" + at;
    case api::Cap::none: break;
  }
  return "a cap";
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

std::vector<Line> lines_of(const Telemetry& t, const History& history, const ScreenOptions& o) {
  // Before a session there is nothing that a bar or a rate could tell.
  if (t.bytes_expected == 0)
    return {title(t, o),
            {{{t.role == api::Role::sending ? "no session yet" : "no sender yet", Style::faint}},
             keep_progress}};
  std::vector<Line> out{title(t, o), progress(t, o), rates(t), times(t)};
  if (history.size() > 1) out.push_back(history_line(history, o));
  for (std::size_t i = 0; i < buffer_names.size(); ++i) add_buffer(t, i, o, out);
  out.push_back({{}, keep_blank});
  for (Line& line : law_lines(t, o)) out.push_back(std::move(line));
  out.push_back(counters(t));
  return out;
}

std::string text_of(const std::vector<Line>& lines, const ScreenOptions& o) {
  std::vector<bool> is_shown(lines.size(), true);
  for (std::size_t shown = lines.size(); o.rows > 0 && shown > o.rows; --shown) {
    std::size_t least = lines.size();
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (is_shown[i] && (least == lines.size() || lines[i].keep <= lines[least].keep)) least = i;
    is_shown[least] = false;
  }
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!is_shown[i]) continue;
    std::size_t left = o.columns;
    for (const Span& span : lines[i].spans) {
      const std::string_view part = cut(span.text, left);
      left -= columns_of(part);
      const std::string_view sgr = o.has_color ? sgr_of(span.style) : "";
      text.append(sgr).append(part).append(sgr.empty() ? "" : "\x1b[0m");
    }
    text += '\n';
  }
  return text;
}

}  // namespace onehop::watch
