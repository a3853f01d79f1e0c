// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// StopSignals: SIGINT, SIGTERM and SIGHUP as a descriptor that becomes readable, for as long as the
// object lives. A process that was started with SIGHUP ignored (nohup) outlives its terminal. Made
// on the main thread before there are others, which inherit the blocked signals.
#pragma once

#include <sys/signalfd.h>

#include <csignal>

#include "engine/base/fd.hpp"

namespace onehop::p2p {

class StopSignals {
 public:
  StopSignals() {
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGINT);
    ::sigaddset(&signals_, SIGTERM);
    struct sigaction inherited {};
    if (::sigaction(SIGHUP, nullptr, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
      ::sigaddset(&signals_, SIGHUP);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    fd_ = Fd{::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK)};
  }
  /// One that came too late to be seen is swallowed: what it was to end has ended.
  ~StopSignals() {
    signalfd_siginfo info;
    while (::read(fd_.get(), &info, sizeof info) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  sigset_t signals_{}, before_{};
  Fd fd_;
};

}  // namespace onehop::p2p
