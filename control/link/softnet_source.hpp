// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SoftnetSource: frames that this host's network stack dropped, from /proc/net/softnet_stat.
// Control thread only; no privilege.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "control/link/fact_source.hpp"
#include "control/link/poll_budget.hpp"
#include "engine/base/fd.hpp"

namespace onehop::link {

/// take_hex reads one column and the space before it.
inline bool take_hex(std::string_view& line, std::uint32_t& out) {
  while (line.starts_with(' ')) line.remove_prefix(1);
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out, 16);
  if (error != std::errc{}) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return line.empty() || line.front() == ' ';
}

/// parse_softnet sums the lines, one per CPU: hexadecimal columns, of which the second is dropped
/// and the third time_squeeze (net/core/net-procfs.c). Nothing where a line has fewer columns or
/// something else in them.
[[nodiscard]] inline std::optional<law::HostCounters> parse_softnet(std::string_view text) {
  law::HostCounters sum;
  bool has_line = false;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    std::uint32_t processed = 0, dropped = 0, squeezed = 0;
    if (!take_hex(line, processed) || !take_hex(line, dropped) || !take_hex(line, squeezed))
      return std::nullopt;
    sum.dropped_total += dropped;
    sum.squeezed_total += squeezed;
    has_line = true;
  }
  return has_line ? std::optional{sum} : std::nullopt;
}

class SoftnetSource final : public FactSource {
 public:
  static constexpr Nanos period = 100ms;
  /// 140 bytes a line: far more CPUs than Debian's kernels take.
  static constexpr std::size_t text_bytes_max = 128 * 1024;

  /// Syscalls: open.
  [[nodiscard]] static Result<SoftnetSource> open(Stopwatch stopwatch,
                                                  const char* path = "/proc/net/softnet_stat") {
    Fd file{::open(path, O_RDONLY | O_CLOEXEC)};
    if (!file.is_open()) return errno_error(ExitCode::io_unavailable, std::string{"open "} + path);
    return SoftnetSource{std::move(file), std::move(stopwatch)};
  }
  [[nodiscard]] std::string_view name() const noexcept override { return "softnet"; }
  /// Syscalls: pread (3 us).
  void read(Instant now, law::LinkFacts& facts) override {
    if (!budget_.is_due(now)) return;
    error_.reset();
    budget_.run(now, stopwatch_, [&] {
      std::string text(4096, '\0');
      std::size_t filled = 0;
      for (;;) {
        const ssize_t got = ::pread(file_.get(), text.data() + filled, text.size() - filled,
                                    static_cast<off_t>(filled));
        if (got < 0) {
          error_ = errno_error(ExitCode::io_unavailable, "read the network stack's counters");
          return;
        }
        if (got == 0) break;
        filled += static_cast<std::size_t>(got);
        if (filled == text.size() && text.size() < text_bytes_max)
          text.resize(text.size() * 2);
        else if (filled == text.size())
          break;
      }
      const auto counters = parse_softnet(std::string_view{text}.substr(0, filled));
      if (counters)
        facts.host = {*counters, now, budget_.period()};
      else
        error_ = Error{ExitCode::io_unavailable,
                       "read the network stack's counters",
                       "they are not written as expected",
                       {},
                       0};
    });
  }

 private:
  SoftnetSource(Fd&& file, Stopwatch stopwatch)
      : file_{std::move(file)}, stopwatch_{std::move(stopwatch)} {}
  Fd file_;
  Stopwatch stopwatch_;
  PollBudget budget_{period};
};

}  // namespace onehop::link
