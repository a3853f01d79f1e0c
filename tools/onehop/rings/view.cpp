// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/rings/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace onehop::rings {

namespace {

using Json = nlohmann::ordered_json;
using watch::Line, watch::Span, watch::Style;

// Ranks of lines: what a small terminal shows last.
constexpr int keep_title = 100, keep_socket = 95, keep_bar = 90, keep_numbers = 60, keep_blank = 10;
constexpr std::size_t name_columns = 12;
// Where a bar changes its colour: with less left, one burst fills (or empties) the ring.
constexpr std::uint32_t margin_part = 8;

std::string size_text(const Capacity& capacity) {
  return fmt::format("{}{}", capacity.most, capacity.is_known() ? "" : " or less");
}

/// drops are frames that were lost for want of room in a ring, or of chunks.
std::uint64_t drops_of(const xdp_statistics& counts) {
  return counts.rx_dropped + counts.rx_ring_full + counts.rx_fill_ring_empty_descs;
}

std::string counts_text(const SocketFacts& facts) {
  if (!facts.counts) return "drops not known";
  const xdp_statistics& c = *facts.counts;
  std::string text = fmt::format("dropped {}", drops_of(c));
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count > 0) text += fmt::format(", {} {}", what, count);
  };
  add(c.rx_ring_full, "rx full");
  add(c.rx_fill_ring_empty_descs, "fill empty");
  add(c.rx_invalid_descs + c.tx_invalid_descs, "invalid");
  return text;
}

Line socket_line(const Socket& socket) {
  const SocketFacts& facts = socket.facts;
  std::string where =
      facts.interface.empty() ? std::string{"  interface not known"} : "  " + facts.interface;
  if (facts.missing.empty() && facts.interface.empty()) where = "  not bound";
  if (facts.queue) where += fmt::format(" queue {}", *facts.queue);
  if (facts.is_zero_copy) where += *facts.is_zero_copy ? ", zero-copy" : ", copy";
  if (facts.umem) where += fmt::format(", UMEM {}", *facts.umem);
  const bool has_drops = facts.counts && drops_of(*facts.counts) > 0;
  return {{{fmt::format("socket {}", socket.inode), Style::strong},
           {where + "  "},
           {counts_text(facts), has_drops ? Style::high : Style::faint}},
          keep_socket};
}

/// state_of says what a ring that is full or empty now means; empty where it means nothing.
std::string_view state_of(RingKind kind, const Ring& ring, bool is_receiving) {
  const bool is_full = ring.use.capacity.is_known() && ring.use.now >= ring.use.capacity.most;
  switch (kind) {
    case RingKind::rx: return is_full ? "full: frames are dropped" : "";
    case RingKind::tx: return is_full ? "full: the program has to wait" : "";
    case RingKind::fill:
      return is_receiving && ring.use.now == 0 && ring.use.last ? "empty: frames are dropped" : "";
    case RingKind::completion: return is_full ? "full: nothing more is sent" : "";
  }
  return "";
}

std::string spark_of(const std::array<std::uint64_t, 10>& tenths, bool is_utf8) {
  static constexpr std::array<std::string_view, 9> blocks{" ", "▁", "▂", "▃", "▄",
                                                          "▅", "▆", "▇", "█"};
  static constexpr std::array<std::string_view, 9> letters{" ", "_", "_", ".", ".",
                                                           "-", "-", "=", "#"};
  const std::uint64_t most = std::max<std::uint64_t>(*std::ranges::max_element(tenths), 1);
  std::string text = "|";
  for (const std::uint64_t count : tenths) {
    const auto step = static_cast<std::size_t>(count == 0 ? 0 : 1 + count * 7 / most);
    text += is_utf8 ? blocks[step] : letters[step];
  }
  return text + "|";
}

LogLinearHistogram held_of(const Ring& ring, bool is_whole) {
  LogLinearHistogram held = ring.use.held;
  if (is_whole) held.merge(ring.all_held);
  return held;
}

std::uint64_t per_second(const Moment& moment, std::uint64_t moved) {
  const double seconds = std::chrono::duration<double>(moment.interval).count();
  return seconds > 0 ? static_cast<std::uint64_t>(static_cast<double>(moved) / seconds) : 0;
}

std::vector<Span> bar_of(RingKind kind, const Ring& ring, std::size_t width, bool is_utf8) {
  const std::int64_t entries = ring.use.capacity.most;
  const std::int64_t margin = entries / margin_part;
  watch::BufferView bar{.occupancy_bytes = ring.use.now, .target_bytes = 0};
  if (kind == RingKind::fill)
    bar.under_bytes = margin;
  else
    bar.over_bytes = entries - margin;
  return watch::bar_of(bar, entries, width, is_utf8);
}

void add_ring(const Moment& moment, RingKind kind, const Socket& socket,
              const watch::ScreenOptions& o, std::vector<Line>& out) {
  const Ring& ring = *socket.rings[static_cast<std::size_t>(kind)];
  const std::string end = fmt::format("] {:>6} of {}", ring.use.now, size_text(ring.use.capacity));
  std::vector<Span> spans{
      {fmt::format("{:<{}}[", ring_names[static_cast<std::size_t>(kind)], name_columns)}};
  const std::size_t used = name_columns + 1 + end.size();
  const std::vector<Span> bar =
      bar_of(kind, ring, o.columns > used + 8 ? o.columns - used : 8, o.is_utf8);
  spans.insert(spans.end(), bar.begin(), bar.end());
  spans.push_back({end});
  out.push_back({std::move(spans), keep_bar});
  const LogLinearHistogram held = held_of(ring, moment.is_whole);
  std::string numbers(name_columns, ' ');
  numbers += held.count() == 0 ? "not read yet"
                               : fmt::format("p50 {}  p99 {}  max {}  {}/s  ", held.percentile(500),
                                             held.percentile(990), held.max(),
                                             per_second(moment, ring.use.moved));
  const bool is_receiving = socket.rings[static_cast<std::size_t>(RingKind::rx)].has_value();
  // Where something is wrong, there is no room for a histogram beside it.
  Span last{std::string{state_of(kind, ring, is_receiving)}, Style::high};
  if (last.text.empty() && held.count() > 0)
    last = {spark_of(tenths_of(held, ring.use.capacity), o.is_utf8), Style::faint};
  out.push_back({{{std::move(numbers), Style::faint}, std::move(last)}, keep_numbers});
}

Json ring_json(const Moment& moment, const std::optional<Ring>& ring) {
  if (!ring) return nullptr;
  const RingUse& use = ring->use;
  const bool is_seen = use.held.count() > 0;
  const auto seen = [&](std::uint64_t value) { return is_seen ? Json(value) : Json(nullptr); };
  return {{"entries", use.capacity.is_known() ? Json(use.capacity.most) : Json(nullptr)},
          {"entries_max", use.capacity.most},
          {"held", use.last ? Json(use.now) : Json(nullptr)},
          {"held_min", seen(use.least)},
          {"held_p50", seen(use.held.percentile(500))},
          {"held_p99", seen(use.held.percentile(990))},
          {"held_max", seen(use.held.max())},
          {"tenths", tenths_of(use.held, use.capacity)},
          {"moved_per_second", per_second(moment, use.moved)},
          {"needs_wakeup", use.last ? (use.last->flags & XDP_RING_NEED_WAKEUP) != 0 : false}};
}

}  // namespace

std::vector<Line> lines_of(const Moment& moment, std::span<const Socket> sockets,
                           const watch::ScreenOptions& options) {
  std::vector<Line> out{
      {{{"rings", Style::strong},
        {fmt::format("  PID {} {}  {} samples", moment.pid, moment.name, moment.samples)}},
       keep_title}};
  if (sockets.empty()) out.push_back({{{"no ring is mapped now", Style::faint}}, keep_socket});
  std::string missing;
  for (const Socket& socket : sockets) {
    out.push_back({{}, keep_blank});
    out.push_back(socket_line(socket));
    for (std::size_t kind = 0; kind < ring_kinds; ++kind)
      if (socket.rings[kind]) add_ring(moment, static_cast<RingKind>(kind), socket, options, out);
    if (!socket.facts.missing.empty()) missing = socket.facts.missing;
  }
  if (!missing.empty())
    out.push_back({{{"interface and queue: " + missing, Style::faint}}, keep_blank + 1});
  return out;
}

Json json_of(const Moment& moment, const Socket& socket) {
  const SocketFacts& facts = socket.facts;
  const auto count = [&](__u64 xdp_statistics::*member) {
    return facts.counts ? Json(std::uint64_t{(*facts.counts).*member}) : Json(nullptr);
  };
  const Json nothing = nullptr;
  return {{"pid", moment.pid},
          {"program", moment.name},
          {"t_ns", moment.at.count()},
          {"interval_ns", moment.interval.count()},
          {"samples", moment.samples},
          {"socket", socket.inode},
          {"interface", facts.interface.empty() ? nothing : Json(facts.interface)},
          {"queue", facts.queue ? Json(*facts.queue) : nothing},
          {"is_zero_copy", facts.is_zero_copy ? Json(*facts.is_zero_copy) : nothing},
          {"umem", facts.umem ? Json(*facts.umem) : nothing},
          {"missing", facts.missing},
          {"rx", ring_json(moment, socket.rings[0])},
          {"tx", ring_json(moment, socket.rings[1])},
          {"fill", ring_json(moment, socket.rings[2])},
          {"completion", ring_json(moment, socket.rings[3])},
          {"rx_dropped_total", count(&xdp_statistics::rx_dropped)},
          {"rx_ring_full_total", count(&xdp_statistics::rx_ring_full)},
          {"fill_ring_empty_total", count(&xdp_statistics::rx_fill_ring_empty_descs)},
          {"rx_invalid_total", count(&xdp_statistics::rx_invalid_descs)},
          {"tx_invalid_total", count(&xdp_statistics::tx_invalid_descs)},
          {"tx_ring_empty_total", count(&xdp_statistics::tx_ring_empty_descs)}};
}

std::array<std::uint64_t, 10> tenths_of(const LogLinearHistogram& held, const Capacity& capacity) {
  std::array<std::uint64_t, 10> tenths{};
  held.for_each([&](std::uint64_t upper, std::uint64_t count) {
    tenths[std::min<std::size_t>(std::min(upper, held.max()) * 10 / capacity.most, 9)] += count;
  });
  return tenths;
}

Result<Threshold> read_threshold(const std::string& text, bool is_above) {
  Threshold threshold{.kind = {}, .percent = 0, .is_above = is_above};
  const auto refuse = [&](std::string cause) {
    return Error{ExitCode::usage, fmt::format("read the threshold '{}'", text), std::move(cause),
                 "Give PERCENT for any ring, or RING=PERCENT with rx, tx, fill or completion"};
  };
  std::string_view rest = text;
  if (const std::size_t equals = rest.find('='); equals != std::string_view::npos) {
    const auto found = std::ranges::find(ring_names, rest.substr(0, equals));
    if (found == ring_names.end()) return refuse("there is no such ring");
    threshold.kind = static_cast<RingKind>(found - ring_names.begin());
    rest.remove_prefix(equals + 1);
  }
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), threshold.percent);
  if (error != std::errc{} || end != rest.data() + rest.size() ||
      !(threshold.percent >= 0 && threshold.percent <= 100))
    return refuse("it is no percentage of 0 to 100");
  return threshold;
}

std::vector<std::string> crossed(std::span<const Socket> sockets,
                                 std::span<const Threshold> thresholds) {
  std::vector<std::string> found;
  for (const Socket& socket : sockets)
    for (std::size_t kind = 0; kind < ring_kinds; ++kind)
      for (const Threshold& threshold : thresholds) {
        const auto& ring = socket.rings[kind];
        if (!ring || ring->use.held.count() == 0) continue;
        if (threshold.kind && *threshold.kind != static_cast<RingKind>(kind)) continue;
        const std::uint64_t held = threshold.is_above ? ring->use.held.max() : ring->use.least;
        const double percent = ring->use.percent(static_cast<std::uint32_t>(held));
        if (threshold.is_above ? percent > threshold.percent : percent < threshold.percent)
          found.push_back(fmt::format("{} of socket {} held {} of {} entries ({:.1f} %)",
                                      ring_names[kind], socket.inode, held,
                                      size_text(ring->use.capacity), percent));
      }
  return found;
}

}  // namespace onehop::rings
