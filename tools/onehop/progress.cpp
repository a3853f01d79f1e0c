// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/onehop/quantity.hpp"

namespace onehop::tool {

Progress::Progress(bool is_wanted) : is_drawing_{is_wanted && ::isatty(STDERR_FILENO) != 0} {}

void Progress::update(Instant now, const ProgressView& view) {
  if (!is_drawing_ || (has_drawn_ && now - drawn_at_ < redraw_period)) return;
  if (view.bytes_done >= sampled_bytes_ && sampled_at_ != Instant{} && now > sampled_at_) {
    const double seconds = std::chrono::duration<double>(now - sampled_at_).count();
    const double rate = static_cast<double>(view.bytes_done - sampled_bytes_) / seconds;
    rate_now_ = rate_now_ == 0 ? rate : rate_now_ + (rate - rate_now_) * std::min(1.0, seconds);
  }
  sampled_at_ = now;
  sampled_bytes_ = view.bytes_done;
  drawn_at_ = now;
  has_drawn_ = true;
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  fmt::print(stderr, "\r{}\x1b[K", line(view, is_known ? size.ws_col : 80U));
  std::fflush(stderr);
}

void Progress::finish() {
  if (has_drawn_) fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  has_drawn_ = false;
}

std::string Progress::line(const ProgressView& view, std::size_t columns) const {
  std::string text;
  if (view.bytes_total == 0 || view.elapsed <= 0ns) {
    text = view.phase;
  } else {
    // 100 % is for what is verified and on disk, never for what was merely sent.
    const double share = static_cast<double>(view.bytes_done) / static_cast<double>(view.bytes_total);
    const double seconds = std::chrono::duration<double>(view.elapsed).count();
    const double average = static_cast<double>(view.bytes_done) / seconds;
    const std::string eta = average > 0 ? format_span(static_cast<double>(view.bytes_total - view.bytes_done) / average) : "-:--";
    text = fmt::format("{} {:3.0f} %  {} of {}  now {}  avg {}  ETA {}", view.phase, std::min(99.0, 100 * share),
                       format_bytes(view.bytes_done), format_bytes(view.bytes_total),
                       format_rate({static_cast<std::int64_t>(rate_now_)}), format_rate({static_cast<std::int64_t>(average)}), eta);
  }
  if (text.size() >= columns) text.resize(columns == 0 ? 0 : columns - 1);
  return text;
}

}  // namespace onehop::tool
