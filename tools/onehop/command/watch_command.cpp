// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop watch: finds the transfers of this machine and shows one of them, as it runs.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "engine/base/time.hpp"
#include "tools/onehop/command/commands.hpp"
#include "tools/onehop/text/quantity.hpp"
#include "tools/onehop/text/report.hpp"
#include "tools/onehop/watch/feed.hpp"
#include "tools/onehop/watch/folder.hpp"
#include "tools/onehop/watch/screen.hpp"
#include "tools/onehop/watch/terminal.hpp"

namespace onehop::tool {

namespace {

constexpr Nanos patience{3s};  // for a process that is to answer at once
constexpr std::size_t history_max = 60;

struct Candidate {
  watch::Running running;
  watch::Feed feed;
};

/// connect_all opens what runs; what ended without removing its socket is passed over.
Result<std::vector<Candidate>> connect_all(const WatchOptions& options) {
  std::vector<Candidate> found;
  for (const watch::Running& running : watch::find_running()) {
    if (options.pid != 0 && running.pid != options.pid) continue;
    auto feed = watch::Feed::open(running.socket);
    if (feed.has_value())
      found.push_back({running, std::move(feed).value()});
    else if (options.pid != 0 && feed.error().errno_value != ECONNREFUSED)
      return feed.error();
  }
  if (!found.empty()) return found;
  const std::string looked = "none answers in " + watch::searched_folders();
  const std::string hint =
      ::geteuid() == 0
          ? "Start 'onehop send' or 'onehop recv'"
          : "Start 'onehop send' or 'onehop recv'; another user's is seen by that user and by root";
  return Error{ExitCode::peer_unreachable,
               options.pid != 0 ? fmt::format("find a transfer with PID {}", options.pid)
                                : std::string{"find a running transfer"},
               looked, hint};
}

std::string summary(const watch::Telemetry& t) {
  const std::string way =
      t.peer.empty()
          ? std::string{name_of(t.phase)}
          : fmt::format("{} {}, {}", t.role == api::Role::sending ? "to" : "from", t.peer,
                        name_of(t.phase));
  return fmt::format("{}, {} of {}, {}", way, format_bytes(t.bytes_done),
                     format_bytes(t.bytes_expected), format_rate(bit_per_s(t.goodput_bps)));
}

/// choose is for several transfers and no PID: it names them.
Error choose(std::vector<Candidate>& found) {
  std::string text;
  for (Candidate& one : found) {
    auto message = one.feed.wait_first(1s);
    const auto* t = message.has_value() ? std::get_if<watch::Telemetry>(&message.value()) : nullptr;
    text += fmt::format("\n  onehop watch {:<8} {}", one.running.pid,
                        t == nullptr ? std::string{"does not answer"}
                                     : fmt::format("{} {}", name_of(t->role), summary(*t)));
  }
  return {ExitCode::usage, "watch a transfer", fmt::format("{} run", found.size()),
          "Choose one:" + text};
}

class Viewer {
 public:
  Viewer(const WatchOptions& options, watch::Feed feed)
      : options_{options},
        feed_{std::move(feed)},
        is_drawing_{!options.is_json && watch::is_terminal()} {
    screen_ = {.columns = 80,
               .rows = 0,
               .is_utf8 = watch::is_utf8_locale(),
               .has_color = is_drawing_ && watch::wants_color()};
    const double fallback = is_drawing_ ? 0.2 : 1;
    interval_ = Nanos{static_cast<Nanos::rep>(options.interval_seconds.value_or(fallback) * 1e9)};
  }

  Result<void> once() {
    ONEHOP_TRY(message, feed_.wait_first(patience));
    ONEHOP_TRYV(take(message));
    print_newest();
    return success();
  }

  Result<void> follow() {
    ONEHOP_TRY(signals, watch::Signals::open());
    Result<void> result = success();
    {
      std::optional<watch::Terminal> terminal;
      if (is_drawing_) terminal.emplace();
      result = run(signals, terminal ? &*terminal : nullptr);
    }
    if (is_drawing_ || is_fresh_)
      print_newest();  // what was seen last stays on the screen that comes back
    if (result.has_value() && is_over_ && !options_.is_json) fmt::print("{}\n", last_words());
    return result;
  }

 private:
  Result<void> run(const watch::Signals& signals, watch::Terminal* terminal) {
    Instant shown_at{};
    for (;;) {
      const Nanos left = shown_at == Instant{} ? Nanos{0} : shown_at + interval_ - monotonic_now();
      if (newest_ && left <= Nanos{0} && (is_fresh_ || terminal != nullptr)) {
        show(terminal);
        shown_at = monotonic_now();
        continue;
      }
      std::array<pollfd, 3> entries{
          pollfd{feed_.fd(), POLLIN, 0}, pollfd{signals.fd(), POLLIN, 0},
          pollfd{terminal != nullptr && terminal->has_keys() ? STDIN_FILENO : -1, POLLIN, 0}};
      const Nanos wait = std::max(left, Nanos{1ms});
      const timespec timeout{.tv_sec = wait / 1s,
                             .tv_nsec = static_cast<long>((wait % 1s).count())};
      if (::ppoll(entries.data(), entries.size(), newest_ && is_fresh_ ? &timeout : nullptr,
                  nullptr) < 0 &&
          errno != EINTR)
        return errno_error(ExitCode::internal_error, "wait for what the transfer tells");
      if (entries[0].revents != 0) {
        ONEHOP_TRY(is_open, take_messages());
        if (!is_open) return success();
      }
      const watch::Wish wish = watch::attend(signals, terminal, entries[2].revents);
      if (wish == watch::Wish::end) return success();
      if (wish == watch::Wish::draw) shown_at = {};
    }
  }

  Result<bool> take_messages() {
    std::vector<watch::Message> messages;
    ONEHOP_TRY(is_open, feed_.read(messages));
    for (const watch::Message& message : messages) {
      ONEHOP_TRYV(take(message));
    }
    if (!is_open) is_over_ = true;
    return bool{is_open};
  }

  Result<void> take(const watch::Message& message) {
    if (const auto* refused = std::get_if<watch::Refused>(&message))
      return Error{ExitCode::refused_by_peer, "watch the transfer", refused->reason,
                   "End one of them"};
    if (const auto* ended = std::get_if<watch::Ended>(&message)) {
      ended_ = *ended;
      if (!options_.is_json) return success();
      if (is_fresh_) print_newest();
      print(watch::line_of(*ended) + "\n");
      return success();
    }
    newest_ = std::get<watch::Telemetry>(message);
    is_fresh_ = true;
    if (history_.empty() || newest_->t_ns - recorded_at_ns_ >= 1'000'000'000) {
      recorded_at_ns_ = newest_->t_ns;
      history_.push_back(newest_->goodput_bps);
      if (history_.size() > history_max) history_.pop_front();
    }
    return success();
  }

  void show(watch::Terminal* terminal) {
    if (terminal == nullptr) return print_newest();
    const watch::Size size = watch::terminal_size();
    screen_.columns = size.columns;
    screen_.rows = size.rows;
    is_fresh_ = false;
    terminal->draw(watch::text_of(watch::lines_of(*newest_, history_, screen_), screen_));
  }

  void print_newest() {
    if (!newest_) return;
    is_fresh_ = false;
    if (options_.is_json) return print(watch::line_of(*newest_) + "\n");
    screen_.rows = 0;
    print(watch::text_of(watch::lines_of(*newest_, history_, screen_), screen_) +
          (is_drawing_ || options_.is_once ? "" : "\n"));
  }

  static void print(const std::string& text) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  [[nodiscard]] std::string last_words() const {
    if (!ended_) return "the transfer's process has gone";
    if (ended_->exit_code != 0)
      return fmt::format("the transfer ended with exit code {}", ended_->exit_code);
    return fmt::format("done and verified: {} in {:.2f} s, {}", format_bytes(ended_->bytes_total),
                       ended_->seconds, format_rate(bit_per_s(ended_->goodput_bps)));
  }

  const WatchOptions& options_;
  watch::Feed feed_;
  const bool is_drawing_;
  watch::ScreenOptions screen_;
  Nanos interval_{0};
  std::optional<watch::Telemetry> newest_;
  std::optional<watch::Ended> ended_;
  bool is_fresh_ = false, is_over_ = false;
  watch::History history_;
  std::int64_t recorded_at_ns_ = 0;
};

Result<void> run(const WatchOptions& options) {
  ONEHOP_TRY(found, connect_all(options));
  if (options.is_once) {
    for (Candidate& one : found) {
      ONEHOP_TRYV((Viewer{options, std::move(one.feed)}.once()));
    }
    return success();
  }
  if (found.size() > 1) return choose(found);
  return Viewer{options, std::move(found.front().feed)}.follow();
}

}  // namespace

ExitCode watch_command(const WatchOptions& options) {
  OutputOptions common;
  common.is_json = options.is_json;
  auto done = run(options);
  if (done.has_value()) return ExitCode::done;
  Reporter{common, "watch"}.error(done.error());
  return done.error().code;
}

void add_watch_options(CLI::App& command, WatchOptions& watch) {
  command.add_option("PID", watch.pid, "process of the send or recv (default: the one that runs)")
      ->check(CLI::Range(1, 4'194'304));
  command
      .add_option("--interval", watch.interval_seconds,
                  "seconds between two pictures (default: 0.2 on a terminal, else 1)")
      ->check(CLI::Range(0.1, 3600.0));
  command.add_flag("--once", watch.is_once,
                   "show the present state once, of each transfer, and end");
  command.add_flag("--json", watch.is_json, "one JSON line per interval on standard output");
}

}  // namespace onehop::tool
