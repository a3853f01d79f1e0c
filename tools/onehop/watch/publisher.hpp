// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Publisher reports to observers on this machine, ten times a second, what the transfer is doing.
//
//   watcher ── connect ──▶ PID.sock ── accept, SO_PEERCRED ──▶ [watcher] ◀─ 10 lines/s ─ make_line
//
// Session thread only, and none of it runs without a watcher. It only ever sends: it never reads
// what a watcher writes. A watcher that does not read loses lines, but not the last one; it is
// never waited for. Owns the socket file and removes it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::watch {

class Publisher {
 public:
  using MakeLine = std::function<std::string()>;

  /// open makes the socket of this process. `make_line` is called on the thread that runs `io`.
  /// Removes what processes that are gone left behind.
  [[nodiscard]] static Result<std::unique_ptr<Publisher>> open(boost::asio::io_context& io,
                                                               MakeLine make_line);
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// tell sends a line to all that watch, now. Syscalls: send.
  void tell(std::string_view line);
  /// tell_last tells how it ended. Who has not read for long gets that line, too: its socket takes
  /// more for it. Syscalls: setsockopt, send.
  void tell_last(std::string_view line);
  /// stop ends accepting and the timer, so that the io_context can run out. tell() still reaches
  /// who watches already.
  void stop();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  /// Watcher: `rest` is what the socket did not take of the last line. While there is any, newer
  /// lines are dropped.
  struct Watcher {
    Fd fd;
    std::string rest;
    bool is_gone = false;
  };

  Publisher(boost::asio::io_context& io, std::string path, int fd, MakeLine make_line);
  void accept();
  /// take_watcher lets one in or turns it away; false: there is no descriptor for it now.
  [[nodiscard]] bool take_watcher();
  void tick();
  static void send(Watcher& watcher, std::string_view line);
  void forget_gone();

  MakeLine make_line_;
  std::string path_;
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::steady_timer timer_, pause_;
  bool is_ticking_ = false;
  std::string line_at_end_;  // the report at the end of a transfer
  bool is_stopped_ = false;
  std::vector<Watcher> watchers_;
};

}  // namespace onehop::watch
