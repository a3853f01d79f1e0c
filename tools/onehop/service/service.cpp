// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/service/service.hpp"

#include <fmt/format.h>

#include <utility>

#include "tools/onehop/text/conflicts.hpp"

namespace onehop::tool {

Result<void> Service::start() {
  if (!options_.metrics_file.empty()) {
    ONEHOP_TRYV(metrics_.write(options_.metrics_file));
  }
  if (!options_.on_received.empty()) {
    ONEHOP_TRY(started, Arrivals::start(options_.on_received));
    arrivals_ = std::move(started);
  }
#if ONEHOP_HAS_BUS
  if (is_desktop_possible()) {
    ONEHOP_TRY(started, Desktop::start());
    desktop_ = std::move(started);
  }
#endif
  return success();
}

#if ONEHOP_HAS_BUS
bool Service::is_desktop_possible() { return Desktop::is_possible(); }

void Service::attend(boost::asio::io_context& io, const Reporter& reporter, Answer answer) {
  answer_ = std::move(answer);
  if (!desktop_) return;
  const auto say = [this, &reporter](const std::string& trouble) {
    if (!std::exchange(is_trouble_said_, true))
      reporter.say("no notifications: " + trouble +
                   ". While that is so, a device whose rule is 'ask' is refused");
  };
  const auto give = [this](std::uint64_t offer, api::Answer how) {
    if (how != api::Answer::unasked) is_trouble_said_ = false;
    answer_(offer, how);
  };
  desktop_->listen(io, {.answer = give, .trouble = say});
}

void Service::stop() {
  if (desktop_) desktop_->stop();
}
#else
bool Service::is_desktop_possible() { return false; }
void Service::attend(boost::asio::io_context&, const Reporter&, Answer answer) {
  answer_ = std::move(answer);
}
void Service::stop() {}
#endif

void Service::note(const api::Event& event, const Reporter& reporter) {
  if (std::holds_alternative<api::Started>(event)) notifier_.tell("READY=1");
  if (std::holds_alternative<api::Beat>(event)) notifier_.tell("WATCHDOG=1");
  if (const auto* end = std::get_if<api::End>(&event)) note_end(*end, reporter);
  if (const auto* offer = std::get_if<api::Offer>(&event)) ask(*offer, reporter);
#if ONEHOP_HAS_BUS
  const auto* const gone = std::get_if<api::OfferGone>(&event);
  if (desktop_ && gone != nullptr) desktop_->withdraw(gone->id);
#endif
}

void Service::ask(const api::Offer& offer, const Reporter& reporter) {
#if ONEHOP_HAS_BUS
  if (desktop_) {
    reporter.say(offer_line(offer) + ": asking by a notification");
    return desktop_->ask(offer);
  }
#endif
  (void)reporter;
  answer_(offer.id, api::Answer::unasked);
}

void Service::note_end(const api::End& end, const Reporter& reporter) {
  metrics_.count(end);
  if (!options_.metrics_file.empty())
    if (const auto written = metrics_.write(options_.metrics_file); written.has_error())
      reporter.warn(written.error().message());
  if (end.exit_code != api::Status::done || end.files_total == 0) return;
#if ONEHOP_HAS_BUS
  if (desktop_) desktop_->tell(end);
#endif
  if (!arrivals_) return;
  const auto run =
      arrivals_->run({end.device, end.peer, end.directory, end.files_total == 1 ? end.path : "",
                      std::to_string(end.files_total), std::to_string(end.bytes_total),
                      fmt::format("{:.3f}", end.seconds)});
  if (run.has_error()) reporter.warn(run.error().message());
}

}  // namespace onehop::tool
