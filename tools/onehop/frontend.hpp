// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Frontend: the program's side of one Transfer: signals, terminal, JSON lines, questions, and the
// socket of `onehop watch`.
//
//   own thread: transfer.run() ── event ──▶ main thread: io_context ─▶ stdout, stderr, watchers
//                            ◀── interrupt(), answer() ──
//
// Members are the main thread's, but for handler()'s function.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "control/find/responder.hpp"
#include "control/transfer/settings.hpp"
#if ONEHOP_HAS_BUS
#include "tools/onehop/service/announcer.hpp"
#endif
#include "tools/onehop/service/service.hpp"
#include "tools/onehop/signals.hpp"
#include "tools/onehop/text/progress.hpp"
#include "tools/onehop/text/report.hpp"
#include "tools/onehop/watch/publisher.hpp"

namespace onehop::tool {

class Frontend {
 public:
  Frontend(const OutputOptions& options, std::string command);

  /// handler is for the Transfer. What comes before run() is shown when that begins, but for
  /// warnings, which come before the code is asked for.
  [[nodiscard]] api::Handler handler();
  /// let_watch lets `onehop watch` see this process, as the user that it now is, from run() on. A
  /// machine without a place for the socket is no reason not to transfer: it is said.
  void let_watch();
  /// let_find has senders on the link find this receiver, from run() on, by our questions and by
  /// Avahi; nothing: it is hidden. Before there are threads.
  void let_find(std::optional<find::Responder::Options> options);
  /// show_network has the screen say how the other machine gets into a network that this one made.
  struct Network {
    std::string ssid, passphrase;
    std::string text;  ///< of a QR code
  };
  void show_network(Network network);
  /// serve: `service` notes all events from now on, and answers Offers. It outlives run().
  void serve(Service& service);
  [[nodiscard]] const Reporter& reporter() const { return reporter_; }
  /// run runs the opened transfer until it is over, writes --report, and returns what the process
  /// exits with.
  [[nodiscard]] ExitCode run(api::Transfer& transfer);
  /// fail tells of an error before the transfer ran.
  [[nodiscard]] ExitCode fail(const Error& error) const;

 private:
  void show(const api::Event& event);
  /// wait_for has it said that `what` is waited for, where that takes longer than a moment.
  void wait_for(std::string what);
  void say_waiting();
  void say_link_and_cap();
  void print_ways(const std::vector<api::Started::Way>& ways, const std::string& code) const;
  void print_picture(const std::string& code) const;
  void print_network(const std::vector<api::Started::Way>& ways, const std::string& code) const;
  void on(const api::Started& started);
  void on(const api::InSession& session) { reporter_.set_session(session.number); }
  void on(const api::Beat&) {}
  void on(const api::Found& found);
  void on(const api::LeftOut& left_out);
  void on(const api::Code& code);
  void on(const api::PortOpened& opened);
  void on(const api::StartRate& start);
  void on(const api::Offer& offer);
  void on(const api::OfferGone&) { asker_ = {}; }
  void on(const api::Progress& progress);
  void on(const api::Interval& interval) { reporter_.interval(interval); }
  void on(const api::FileDone& file);
  void on(const api::Paired& paired);
  void on(const api::Notice& notice);
  void on(const api::Error& error);
  void on(const api::End& end);

  Reporter reporter_;
  ProgressLine progress_;
  boost::asio::io_context io_;
  Interrupts interrupts_;
  const std::thread::id main_thread_ = std::this_thread::get_id();
  api::Transfer* transfer_ = nullptr;           // while it runs
  std::uint64_t watched_ = 0, in_session_ = 0;  // the session whose progress is shown; the newest
  std::mutex arrived_mutex_;
  bool is_progress_waiting_ = false;  // at most one is on its way to us; both below the mutex
  api::Progress arrived_;
  api::Progress newest_;
  std::string to_;       // whom a sender sends to
  std::string waiting_;  // what is waited for, as people read it; empty: nothing
  boost::asio::steady_timer waiting_timer_;  // until it is said
  bool is_waiting_said_ = false, is_link_down_said_ = false, has_code_ = false;
  std::set<api::Cap> caps_said_;
  const std::string report_file_;
  const bool is_pairing_, is_service_, is_verbose_, has_all_files_;
  std::optional<Network> network_;
  Service* service_ = nullptr;
  std::uint64_t files_kept_ = 0;              // of this session, each of which would have a line
  std::vector<api::LeftOut::Item> left_out_;  // all that came, for the report
  std::unique_ptr<watch::Publisher> publisher_;
  std::string found_as_;
  std::unique_ptr<find::Responder> responder_;
#if ONEHOP_HAS_BUS
  std::optional<Announcer> announcer_;
#endif
  std::jthread asker_;
};

}  // namespace onehop::tool
