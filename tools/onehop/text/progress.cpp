// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/text/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/onehop/text/quantity.hpp"
#include "tools/onehop/text/report.hpp"
#include "tools/onehop/text/terminal.hpp"

namespace onehop::tool {

namespace {

std::string eta_text(const std::optional<double>& seconds) {
  // A stalled transfer has no end in sight, and no room for it
  constexpr double seconds_max = 100 * 3600;
  return seconds && *seconds < seconds_max - 1 ? format_span(*seconds) : "-:--";
}

double share_of(const api::Progress& view) {
  const auto share = [](std::uint64_t done, std::uint64_t expected) {
    return static_cast<double>(done) / static_cast<double>(expected);
  };
  return view.bytes_expected > 0 ? share(view.bytes_done, view.bytes_expected)
                                 : share(view.files_done, view.files_total);
}

}  // namespace

ProgressLine::ProgressLine(bool is_wanted)
    : is_drawing_{is_wanted && ::isatty(STDERR_FILENO) != 0} {}

void ProgressLine::update(const api::Progress& view) {
  const std::int64_t now_ns = view.t_ns;
  if (!is_drawing_ || (has_drawn_ && now_ns - drawn_at_ns_ < redraw_period_ns)) return;
  drawn_at_ns_ = now_ns;
  show(line(view, Terminal::columns()));
}

bool ProgressLine::show(const std::string& text) {
  if (!is_drawing_) return false;
  has_drawn_ = true;
  tell(fmt::format("\r{}\x1b[K", text));
  std::fflush(stderr);
  return true;
}

void ProgressLine::finish() {
  if (has_drawn_) tell("\r\x1b[K");
  std::fflush(stderr);
  has_drawn_ = false;
}

std::string ProgressLine::line(const api::Progress& view, std::size_t columns) {
  if (view.link_down_ns)
    return fmt::format("link down for {}, goes on by itself",
                       format_span(static_cast<double>(*view.link_down_ns) / 1e9))
        .substr(0, columns == 0 ? 0 : columns - 1);
  if (view.phase == api::Phase::transferring && view.bytes_to_compare > 0 &&
      view.bytes_done >= view.bytes_expected)
    return fmt::format("comparing what is there: {} left", format_bytes(view.bytes_to_compare))
        .substr(0, columns == 0 ? 0 : columns - 1);
  std::string phase{name_of(view.phase)};
  std::ranges::replace(phase, '_', ' ');
  if ((view.bytes_expected == 0 && view.files_total == 0) || view.elapsed_ns <= 0)
    return phase.substr(0, columns == 0 ? 0 : columns - 1);
  // 100 % is for what is verified and on disk, never for what was merely sent.
  const std::string percent = fmt::format("{:3.0f} % ", std::min(99.0, 100 * share_of(view)));
  const double average =
      static_cast<double>(view.bytes_done) / (static_cast<double>(view.elapsed_ns) / 1e9);
  const bool are_several = view.files_total > 1;
  const std::string total = "of " + format_bytes(view.bytes_expected) + "  ";
  const std::string now = "now " + format_rate(bit_per_s(view.goodput_bps)) + "  ";
  const std::string files =
      are_several ? files_text(view.files_done, view.files_total, view.is_all_known) + "  " : "";
  const std::string mean =
      are_several ? "" : "avg " + format_rate({static_cast<std::int64_t>(average)}) + "  ";
  const std::string left = "ETA " + eta_text(view.eta_seconds);
  // All of it has room in 80 columns, whatever the numbers. What a narrower terminal lacks goes in
  // this order; the time that is left goes last.
  for (const std::string& text :
       {phase + " " + percent + total + files + now + mean + left,
        phase + " " + percent + files + now + left, percent + files + now + left,
        percent + now + left, percent + left, left})
    if (text.size() < columns) return text;
  return left.substr(0, columns == 0 ? 0 : columns - 1);
}

}  // namespace onehop::tool
