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

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "tools/onehop/progress.hpp"
#include "tools/onehop/report.hpp"
#include "tools/onehop/signals.hpp"
#include "tools/watch/publisher.hpp"
#include "transfer/settings.hpp"

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
  [[nodiscard]] const Reporter& reporter() const { return reporter_; }
  /// run runs the opened transfer until it is over, writes --report, and returns what the process
  /// exits with.
  [[nodiscard]] ExitCode run(api::Transfer& transfer);
  /// fail tells of an error before the transfer ran.
  [[nodiscard]] ExitCode fail(const Error& error) const;

 private:
  void show(const api::Event& event);
  void on(const api::Started& started);
  void on(const api::Found& found);
  void on(const api::LeftOut& left_out);
  void on(const api::Code& code);
  void on(const api::PortOpened& opened);
  void on(const api::StartRate& start);
  void on(const api::Offer& offer);
  void on(const api::OfferGone&) { asker_ = {}; }
  void on(const api::Progress& progress);
  void on(const api::Interval& interval) { reporter_.interval(interval); }
  void on(const api::FileDone& file) { reporter_.file(file); }
  void on(const api::Notice& notice);
  void on(const api::Error& error) { reporter_.error(host::from_api(error)); }
  void on(const api::End& end);

  const Reporter reporter_;
  ProgressLine progress_;
  boost::asio::io_context io_;
  Interrupts interrupts_;
  const std::thread::id main_thread_ = std::this_thread::get_id();
  api::Transfer* transfer_ = nullptr;              // while it runs
  std::atomic<bool> is_progress_waiting_ = false;  // at most one is on its way to us
  api::Progress newest_;
  const std::string report_file_;
  const bool is_p2p_;
  std::vector<api::LeftOut::Item> left_out_;  // all that came, for the report
  std::unique_ptr<watch::Publisher> publisher_;
  std::jthread asker_;
};

}  // namespace onehop::tool
