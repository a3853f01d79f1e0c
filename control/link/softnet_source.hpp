// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SoftnetSource: frames that this host's network stack dropped, from /proc/net/softnet_stat.
// Control thread only; no privilege.
#pragma once

#include <istream>
#include <limits>
#include <string>
#include <string_view>

#include "control/link/fact_source.hpp"
#include "control/link/poll_budget.hpp"
#include "engine/base/system/text_file.hpp"

namespace onehop::link {

/// parse_softnet sums the lines, one per CPU: hexadecimal columns, of which the second is dropped
/// and the third time_squeeze (net/core/net-procfs.c). Nothing where a line has something else in
/// them.
[[nodiscard]] inline std::optional<law::HostCounters> parse_softnet(std::istream& text) {
  law::HostCounters sum;
  bool has_line = false;
  std::uint32_t processed = 0, dropped = 0, squeezed = 0;
  while (text >> std::hex >> processed >> dropped >> squeezed) {
    sum.dropped_total += dropped;
    sum.squeezed_total += squeezed;
    has_line = true;
    text.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return has_line && text.eof() ? std::optional{sum} : std::nullopt;
}

class SoftnetSource final : public FactSource {
 public:
  static constexpr Nanos period = 100ms;

  /// Syscalls: open.
  [[nodiscard]] static Result<SoftnetSource> open(const char* path = "/proc/net/softnet_stat") {
    Fd file{::open(path, O_RDONLY | O_CLOEXEC)};
    if (!file.is_open()) return errno_error(ExitCode::io_unavailable, std::string{"open "} + path);
    return SoftnetSource{std::move(file)};
  }
  [[nodiscard]] std::string_view name() const noexcept override { return "softnet"; }
  /// Syscalls: lseek, read (7 us on two CPUs).
  void read(Instant now, law::LinkFacts& facts) override {
    budget_.run(now, [&] {
      error_.reset();
      std::optional<std::string> read;
      if (::lseek(file_.get(), 0, SEEK_SET) == 0) read = read_text(file_.get());
      std::istringstream text{read.value_or("")};
      if (const auto counters = parse_softnet(text))
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
  explicit SoftnetSource(Fd file) : file_{std::move(file)} {}
  Fd file_;
  PollBudget budget_{period};
};

}  // namespace onehop::link
