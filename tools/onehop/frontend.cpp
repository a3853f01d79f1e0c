// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/frontend.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <boost/asio/post.hpp>

#include <cstdio>
#include <latch>

#include "engine/base/thread.hpp"
#include "tools/onehop/conflicts.hpp"
#include "tools/onehop/quantity.hpp"
#include "tools/onehop/tree_text.hpp"
#include "tools/watch/telemetry.hpp"

namespace onehop::tool {

Frontend::Frontend(const OutputOptions& options, std::string command)
    : reporter_{options, std::move(command)},
      progress_{!options.is_quiet && !options.is_json},
      interrupts_{io_},
      report_file_{options.report_file},
      is_p2p_{options.is_p2p} {}

api::Handler Frontend::handler() {
  return [this](const api::Event& event) {
    const auto* const notice = std::get_if<api::Notice>(&event);
    const bool is_warning = notice != nullptr && notice->is_warning;
    if (is_warning && std::this_thread::get_id() == main_thread_) return show(event);
    // Where nobody reads what we print, the main thread waits: progress is dropped meanwhile.
    if (std::holds_alternative<api::Progress>(event) && is_progress_waiting_.exchange(true)) return;
    if (!std::holds_alternative<api::End>(event) || std::this_thread::get_id() == main_thread_)
      return boost::asio::post(io_, [this, event] { show(event); });
    // The transfer goes on to close its port, and what DPDK prints then is captured: for as long as
    // that takes, descriptors 1 and 2 are not ours. So it waits until the account is shown.
    std::latch is_shown{1};
    boost::asio::post(io_, [&] {
      show(event);
      is_shown.count_down();
    });
    is_shown.wait();
  };
}

ExitCode Frontend::run(api::Transfer& transfer) {
  transfer_ = &transfer;
  interrupts_.start([&transfer] { transfer.interrupt(); });
  api::Error error;
  auto runner = start_thread<std::jthread>("transfer", [&] {
    api::Error how = transfer.run();
    boost::asio::post(io_, [this, &error, how = std::move(how)] {
      error = how;
      interrupts_.stop();
      if (publisher_) publisher_->stop();
    });
  });
  if (!runner.has_value()) return fail(runner.error());
  io_.run();
  if (!report_file_.empty())
    if (const auto written = write_report(report_file_, left_out_); !written.has_value()) {
      const ExitCode code = fail(written.error());
      if (error.status == api::Status::done) return code;
    }
  return static_cast<ExitCode>(error.status);
}

ExitCode Frontend::fail(const Error& error) const {
  reporter_.error(error);
  return error.code;
}

void Frontend::show(const api::Event& event) {
  if (!std::holds_alternative<api::Progress>(event)) progress_.finish();
  std::visit([this](const auto& one) { on(one); }, event);
}

void Frontend::on(const api::Started& started) {
  reporter_.event("start", json_of(started));
  if (started.role == "recv")
    reporter_.say("listening on " + started.listen + ", receiving into " + started.directory);
  else if (started.found.folders > 0 || !started.is_all_found)
    reporter_.say(found_text(started.found) + (started.is_all_found ? "" : " so far"));
}

void Frontend::on(const api::Found& found) {
  reporter_.event("manifest", json_of(found));
  reporter_.say("in all " + found_text(found));
}

void Frontend::on(const api::LeftOut& left_out) {
  reporter_.event("left_out", json_of(left_out));
  reporter_.say(left_out_text(left_out, reporter_.command() == "send"));
  if (!report_file_.empty())
    left_out_.insert(left_out_.end(), left_out.items.begin(), left_out.items.end());
}

void Frontend::on(const api::Code& code) {
  const std::string to = code.ways.empty() ? "THIS-HOST" : code.ways.front().to;
  reporter_.event("code", {{"code", code.code}});
  // Shown even when quiet: without it nobody can connect. Never as part of a command, which a shell
  // would keep in its history.
  if (is_p2p_) {
    fmt::print(stderr, "Code, which 'onehop send --p2p' asks for on the other machine:\n\n  {}\n\n",
               code.code);
    return;
  }
  fmt::print(stderr,
             "On the other machine:\n\n  onehop send FILE --to {}\n\nIt asks for this code:\n\n"
             "  {}\n\n",
             to, code.code);
  if (to.find("%IF") != std::string::npos)
    fmt::print(stderr, "IF: the other machine's interface, as `ip link` there has it\n");
  if (code.ways.size() > 1)
    fmt::print(stderr, "That leads to {}; another way in:\n", code.ways.front().interface);
  for (std::size_t i = 1; i < code.ways.size(); ++i)
    fmt::print(stderr, "  --to {:<24} {}\n", code.ways[i].to, code.ways[i].interface);
}

void Frontend::on(const api::PortOpened& opened) {
  const std::string& asked = opened.io_requested;
  if (asked == "auto" || (asked == "afxdp" && opened.io_reason != "asked for"))
    reporter_.say(io_text(opened));
}

void Frontend::on(const api::StartRate& start) {
  reporter_.say(fmt::format("starting at {}, from the last run to {} over {}",
                            format_rate(bit_per_s(start.rate_bps)), start.peer, start.interface));
}

/// A question waits on a thread of its own, so that it can be taken back.
void Frontend::on(const api::Offer& offer) {
  if (!Terminal::is_there()) return transfer_->answer(offer.id, api::Answer::refuse);
  auto asker = start_thread<std::jthread>("asking", [this, offer](const std::stop_token& stop) {
    const api::Answer answer = ask_about(Terminal{stop}, offer);
    if (stop.stop_requested()) Terminal::print("\n");
    transfer_->answer(offer.id, answer);
  });
  if (!asker.has_value()) return transfer_->answer(offer.id, api::Answer::refuse);
  asker_ = std::move(asker).value();
}

void Frontend::on(const api::Progress& progress) {
  is_progress_waiting_ = false;
  newest_ = progress;
  // Before there is a data path people are asked for things, on the same line.
  if (progress.phase == "proving_path" || progress.phase == "transferring" ||
      progress.phase == "verifying")
    progress_.update(progress);
  else
    progress_.finish();
}

void Frontend::let_watch() {
  auto opened = watch::Publisher::open(io_, [this] { return watch::line_of(newest_); });
  if (opened.has_value())
    publisher_ = std::move(opened).value();
  else
    reporter_.say("not visible to onehop watch: " + opened.error().message());
}

void Frontend::on(const api::Notice& notice) {
  notice.is_warning ? reporter_.warn(notice.text) : reporter_.say(notice.text);
}

void Frontend::on(const api::End& end) {
  reporter_.end(end);
  if (publisher_)
    publisher_->tell_last(watch::line_of(watch::Ended{.exit_code = static_cast<int>(end.exit_code),
                                                      .bytes_total = end.bytes_total,
                                                      .seconds = end.seconds,
                                                      .goodput_bps = end.goodput_bps()}));
}

}  // namespace onehop::tool
