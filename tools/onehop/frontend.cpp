// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/frontend.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <boost/asio/post.hpp>

#include <algorithm>
#include <cstdio>
#include <latch>

#include "engine/base/display_name.hpp"
#include "engine/base/system/thread.hpp"
#include "engine/crypto/aead.hpp"
#include "tools/onehop/text/conflicts.hpp"
#include "tools/onehop/text/qr_code.hpp"
#include "tools/onehop/text/quantity.hpp"
#include "tools/onehop/text/terminal.hpp"
#include "tools/onehop/text/tree_text.hpp"
#include "tools/onehop/watch/telemetry.hpp"

namespace onehop::tool {

Frontend::Frontend(const OutputOptions& options, std::string command)
    : reporter_{options, std::move(command)},
      progress_{!options.is_quiet && !options.is_json && !options.is_service},
      interrupts_{io_},
      waiting_timer_{io_},
      report_file_{options.report_file},
      is_pairing_{options.is_pairing},
      is_service_{options.is_service},
      is_verbose_{options.is_verbose},
      has_all_files_{options.has_all_files} {}

api::Handler Frontend::handler() {
  return [this](const api::Event& event) {
    const auto* const notice = std::get_if<api::Notice>(&event);
    const bool is_warning = notice != nullptr && notice->is_warning;
    if (is_warning && std::this_thread::get_id() == main_thread_) return show(event);
    if (const auto* const session = std::get_if<api::InSession>(&event))
      in_session_ = session->number;
    if (std::holds_alternative<api::End>(event) && watched_ == in_session_) watched_ = 0;
    // Of several sessions one is watched, until it ends. Where nobody reads what we print, the main
    // thread waits: of progress the newest alone does.
    if (const auto* const progress = std::get_if<api::Progress>(&event)) {
      if (watched_ == 0) watched_ = progress->session;
      if (progress->session != watched_) return;
      const std::lock_guard lock{arrived_mutex_};
      arrived_ = *progress;
      if (std::exchange(is_progress_waiting_, true)) return;
    }
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

void Frontend::serve(Service& service) {
  service_ = &service;
  service.attend(io_, reporter_, [this](std::uint64_t offer, api::Answer answer) {
    transfer_->answer(offer, answer);
  });
}

ExitCode Frontend::run(api::Transfer& transfer) {
  transfer_ = &transfer;
  interrupts_.start([&transfer] { transfer.interrupt(); });
  api::Error error;
  auto runner = start_thread<std::jthread>("transfer", [&] {
    api::Error how = transfer.run();
    boost::asio::post(io_, [this, &error, how = std::move(how)] {
      error = how;
      wait_for({});
      interrupts_.stop();
      if (publisher_) publisher_->stop();
      if (responder_) responder_->stop();
      if (service_ != nullptr) service_->stop();
#if ONEHOP_HAS_BUS
      announcer_.reset();
#endif
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
  if (service_ != nullptr) service_->note(event, reporter_);
  if (is_waiting_said_ && !std::holds_alternative<api::Progress>(event)) progress_.show(waiting_);
}

void Frontend::wait_for(std::string what) {
  // What is drawn goes again; a line for a program stays.
  const std::chrono::milliseconds moment{progress_.is_drawing() ? 300 : 6000};
  if (what == waiting_) return;
  waiting_ = std::move(what);
  waiting_timer_.cancel();
  if (std::exchange(is_waiting_said_, false)) progress_.finish();
  if (waiting_.empty()) return;
  waiting_timer_.expires_after(moment);
  waiting_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !waiting_.empty()) say_waiting();
  });
}

void Frontend::say_waiting() {
  is_waiting_said_ = true;
  if (!progress_.show(waiting_)) reporter_.say(waiting_);
}

void Frontend::on(const api::Started& started) {
  reporter_.event("start", json_of(started));
  to_ = started.to;
  if (started.role == api::Role::receiving) {
    const auto listens = transfer::parse_endpoint(started.listen);
    if (responder_ && listens) responder_->start(listens.value().port);
#if ONEHOP_HAS_BUS
    if (announcer_ && listens) announcer_->announce(listens.value().port);
#endif
    reporter_.say(is_pairing_
                      ? "pairing on " + started.listen + ": no files are taken"
                      : "listening on " + started.listen + ", receiving into " + started.directory);
    if (!has_code_ && network_)
      print_network(started.ways, {});
    else if (!has_code_ && !is_service_ && !reporter_.is_quiet())
      print_ways(started.ways, {});
  } else if (!is_pairing_ && (started.found.folders > 0 || !started.is_all_found)) {
    reporter_.say(found_text(started.found) + (started.is_all_found ? "" : " so far"));
  }
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
  reporter_.event("code", {{"code", code.code}});
  has_code_ = true;
  // Shown even when quiet: without it nobody can connect. Never as part of a command, which a shell
  // would keep in its history.
  if (network_) return print_network(code.ways, code.code);
  print_ways(code.ways, code.code);
  print_picture(code.code);
}

/// One picture alone fits a screen: it is the network's, and the words stand beside it.
void Frontend::print_network(const std::vector<api::Started::Way>& ways,
                             const std::string& code) const {
  constexpr std::size_t rows_around = 5;
  const auto lines_of = [&](const char* how) {
    std::vector<std::string> lines{
        "On the other machine, in this network:",
        "",
        "  onehop send PATH",
        "  " + (code.empty() ? "the code that this end was given" : code),
        "",
        how,
        "",
        "  SSID        " + display_name(network_->ssid),
        "  passphrase  " + display_name(network_->passphrase),
        "",
        "By Wi-Fi Direct it is joined for you:",
        "",
        "  onehop send PATH --p2p",
    };
    if (!ways.empty())
      for (const std::string& line :
           {std::string{}, std::string{"Where this machine is not found:"}, std::string{},
            "  --to " + ways.front().to})
        lines.push_back(line);
    return lines;
  };
  if (!reporter_.is_quiet() && Terminal::is_there()) {
    const std::string both =
        beside(qr_code(network_->text), lines_of("It is joined by this picture, or as"));
    const auto [rows, columns] = size_of(both);
    if (rows > 0 && rows + rows_around <= Terminal::rows() && columns < Terminal::columns())
      return tell(both);
  }
  std::string text = "\n";
  for (const std::string& line : lines_of("It is joined by any device, as")) text += line + "\n";
  tell(fitted(text + "\n  " + network_->text + "\n\n"));
}

/// The lines that a person types on the other machine stand alone, to be copied as they are.
void Frontend::print_ways(const std::vector<api::Started::Way>& ways,
                          const std::string& code) const {
  const std::string to = ways.empty() ? "THIS-HOST" : ways.front().to;
  const bool is_found = responder_ && responder_->is_there();
  const std::string option = is_pairing_ ? " " : " --to ";
  tell(fmt::format("On the other machine, and then {}:\n\n  onehop {}{}\n{}\n",
                   code.empty() ? "the code that this end was given" : "the code",
                   is_pairing_ ? "pair" : "send PATH", is_found ? "" : option + to,
                   code.empty() ? "" : "  " + code + "\n"));
  if (is_found)
    tell(fitted(fmt::format("It finds this machine as '{}'; where it does not: {}{}\n", found_as_,
                            is_pairing_ ? "onehop pair" : "--to", " " + to)));
  if (to.find("%IF") != std::string::npos)
    tell("IF: the interface of the other machine; where it has one alone, leave IF as it is\n");
  if (ways.size() > 1)
    tell(fmt::format("That leads to {}; another way in:\n", ways.front().interface));
  for (std::size_t i = 1; i < ways.size(); ++i)
    tell(fmt::format("  --to {:<24} {}\n", ways[i].to, ways[i].interface));
}

/// A picture of the code, where a terminal has room for it and for the lines around it.
void Frontend::print_picture(const std::string& code) const {
  constexpr std::ptrdiff_t rows_around = 12;
  if (reporter_.is_quiet() || !Terminal::is_there()) return;
  const std::string picture = qr_code(code);
  if (std::ranges::count(picture, '\n') + rows_around <=
      static_cast<std::ptrdiff_t>(Terminal::rows()))
    tell(picture);
}

void Frontend::on(const api::PortOpened& opened) {
  reporter_.event("port", json_of(opened));
  // That a named port has not got what was asked for is said in any case.
  const bool is_less = opened.io_requested == "afxdp" && opened.io_reason != "asked for";
  if (is_verbose_ || is_less) reporter_.say(io_text(opened));
}

void Frontend::on(const api::StartRate& start) {
  reporter_.say(fmt::format("starting at {}, from the last run to {} over {}",
                            format_rate(bit_per_s(start.rate_bps)), start.peer, start.interface));
}

/// A question waits on a thread of its own, so that it can be taken back.
void Frontend::on(const api::Offer& offer) {
  if (service_ != nullptr) return;  // which has it
  if (!Terminal::is_there()) return transfer_->answer(offer.id, api::Answer::refuse);
  auto asker = start_thread<std::jthread>("asking", [this, offer](const std::stop_token& stop) {
    const api::Answer answer = ask_about(Terminal{stop}, offer);
    if (stop.stop_requested()) Terminal::print("\n");
    transfer_->answer(offer.id, answer);
  });
  if (!asker.has_value()) return transfer_->answer(offer.id, api::Answer::refuse);
  asker_ = std::move(asker).value();
}

void Frontend::on(const api::Progress&) {
  {
    const std::lock_guard lock{arrived_mutex_};
    is_progress_waiting_ = false;
    newest_ = arrived_;
  }
  using enum api::Phase;
  const api::Phase phase = newest_.phase;
  const bool is_sender = newest_.role == api::Role::sending;
  wait_for(is_sender && phase == connecting           ? "waiting for " + to_ + " ..."
           : is_sender && phase == waiting_for_accept ? "waiting for the answer there ..."
                                                        : "");
  // Before there is a data path people are asked for things, on the same line.
  if (phase == proving_path || phase == transferring || phase == verifying)
    progress_.update(newest_);
  else if (waiting_.empty())
    progress_.finish();
  say_link_and_cap();
}

void Frontend::let_watch() {
  auto opened = watch::Publisher::open(io_, [this] { return watch::line_of(newest_); });
  if (opened.has_value())
    publisher_ = std::move(opened).value();
  else
    reporter_.say("not visible to onehop watch: " + opened.error().message());
}

void Frontend::show_network(Network network) {
  network_ = std::move(network);
  reporter_.event("network", {{"ssid", network_->ssid}, {"passphrase", network_->passphrase}});
}

void Frontend::let_find(std::optional<find::Responder::Options> options) {
  if (!options) return;
  options->on_blocked = [this](const std::vector<std::string>& links) {
    std::string names;
    for (const std::string& link : links) names += (names.empty() ? "" : ", ") + link;
    reporter_.say("a firewall of this machine keeps out who looks for receivers on " + names +
                  ": `ufw allow 7411`, or the like, lets UDP and TCP port 7411 in");
  };
  found_as_ = display_name(options->name);
  const find::Responder::Options found = *options;
  auto opened = find::Responder::open(io_, std::move(*options));
  if (opened.has_error())
    return reporter_.say("not found by who looks for receivers: " + opened.error().message());
  responder_ = std::move(opened).value();
#if ONEHOP_HAS_BUS
  if (found.is_pairing) return;
  if (auto started = Announcer::start(found, responder_->instance()); started.has_value())
    announcer_ = std::move(started).value();
#endif
}

/// A terminal has the link in its progress line.
void Frontend::say_link_and_cap() {
  const bool is_down = newest_.link_down_ns.has_value();
  if (std::exchange(is_link_down_said_, is_down) != is_down && !progress_.is_drawing())
    reporter_.say(is_down ? "link down: goes on by itself when it is up" : "link up again");
  const bool is_ours = newest_.cap == api::Cap::max_rate;
  const bool is_limit = is_ours || newest_.cap == api::Cap::max_rate_there;
  if (!is_limit || !newest_.rate_bps || !caps_said_.insert(newest_.cap).second) return;
  progress_.finish();
  reporter_.say(fmt::format("held at {} by {}", format_rate(bit_per_s(*newest_.rate_bps)),
                            is_ours ? "--max-rate"
                                    : "the receiver: its --max-rate, or other sessions there"));
}

void Frontend::on(const api::Error& error) {
  wait_for({});
  reporter_.error(transfer::from_api(error));
}

void Frontend::on(const api::FileDone& file) {
  constexpr std::uint64_t kept_lines_max = 5;  // more push the rest off the screen
  reporter_.event("file", json_of(file));
  const std::string text = file_text(file);
  if (text.empty()) return;
  const bool is_as_offered = file.is_verified || file.outcome == api::Outcome::there_unread;
  if (has_all_files_ || (!is_as_offered && ++files_kept_ <= kept_lines_max)) reporter_.say(text);
  if (!has_all_files_ && !is_as_offered && files_kept_ == kept_lines_max + 1)
    reporter_.say("and more of them: --files lists all");
}

void Frontend::on(const api::Paired& paired) {
  reporter_.event("paired", {{"device", paired.name}, {"fingerprint", paired.fingerprint}});
  wait_for({});
  reporter_.say(
      fmt::format("paired with '{}' (key {}). From now on: onehop send PATH, with nothing to type; "
                  "onehop peers "
                  "lists, renames and forgets",
                  paired.name, paired.fingerprint));
}

void Frontend::on(const api::Notice& notice) {
  notice.is_warning ? reporter_.warn(notice.text) : reporter_.say(notice.text);
}

void Frontend::on(const api::End& end) {
  wait_for({});
  if (is_verbose_ && !end.key_exchange.empty())
    reporter_.say(fmt::format("keys: TLS 1.3 with {}; frames: {}", end.key_exchange,
                              crypto::describe_aead(end.aead)));
  if (is_verbose_ && !end.file_io.empty()) reporter_.say("files: " + end.file_io);
  if (const std::string cost = cost_text(end); is_verbose_ && !cost.empty()) reporter_.say(cost);
  reporter_.end(end);
  files_kept_ = 0;
  if (publisher_)
    publisher_->tell_last(watch::line_of(watch::Ended{.exit_code = static_cast<int>(end.exit_code),
                                                      .bytes_total = end.bytes_total,
                                                      .seconds = end.seconds,
                                                      .goodput_bps = end.goodput_bps()}));
}

}  // namespace onehop::tool
