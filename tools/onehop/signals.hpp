// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Interrupts: the first SIGINT, SIGTERM or SIGHUP asks for an orderly stop, the second ends the
// process with 130. Nothing is left behind either way: programs, rings and queues belong to
// descriptors. A process that was started with SIGHUP ignored (nohup) outlives its terminal.
// SIGPIPE is ignored: the reader of the output may end first (`2>&1 | tee log` and Ctrl-C).
#pragma once

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <functional>
#include <utility>

#include "engine/base/result.hpp"

namespace onehop::tool {

class Interrupts {
 public:
  explicit Interrupts(boost::asio::io_context& io) : signals_{io} {
    static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  }
  void start(std::function<void()> on_first) {
    on_first_ = std::move(on_first);
    signals_.add(SIGINT);
    signals_.add(SIGTERM);
    struct sigaction inherited {};
    if (::sigaction(SIGHUP, nullptr, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
      signals_.add(SIGHUP);
    listen();
  }
  void stop() { signals_.cancel(); }

 private:
  void listen() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (error) return;
      if (is_interrupted_) ::_exit(static_cast<int>(ExitCode::interrupted_twice));
      is_interrupted_ = true;
      listen();
      on_first_();
    });
  }
  boost::asio::signal_set signals_;
  std::function<void()> on_first_;
  bool is_interrupted_ = false;
};

}  // namespace onehop::tool
