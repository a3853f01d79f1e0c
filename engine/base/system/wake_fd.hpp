// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// WakeFd: how another thread ends a wait. Each port owns one.
#pragma once

#include <sys/eventfd.h>

#include <ctime>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop {

class WakeFd {
 public:
  /// Syscalls: eventfd2.
  [[nodiscard]] static Result<WakeFd> open() {
    WakeFd self;
    self.fd_ = Fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (!self.fd_.is_open())
      return errno_error(ExitCode::internal_error, "make the wake-up descriptor");
    return self;
  }
  [[nodiscard]] int get() const noexcept { return fd_.get(); }
  /// wake ends the wait, or the next one. Any thread. Syscalls: write.
  void wake() const noexcept { (void)::eventfd_write(fd_.get(), 1); }
  /// clear takes all wakes back, after the wait. Syscalls: read.
  void clear() const noexcept {
    eventfd_t wakes = 0;
    (void)::eventfd_read(fd_.get(), &wakes);
  }

 private:
  Fd fd_;
};

/// timespec_of is a timeout for ppoll.
[[nodiscard]] constexpr timespec timespec_of(Nanos span) noexcept {
  return {.tv_sec = span / 1s, .tv_nsec = (span % 1s).count()};
}

}  // namespace onehop
