// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What pairs of real ports share (port_suite.hpp).
#pragma once

#include <poll.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine/base/result.hpp"
#include "engine/base/time.hpp"

namespace onehop::test {

template <class T>
T take_or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(result).value();
}

/// RealTime: a pair whose clock is the machine's.
struct RealTime {
  static const char* skip_reason() { return nullptr; }
  Instant now() const { return monotonic_now(); }
  void pass(Nanos span) {
    (void)::poll(nullptr, 0, static_cast<int>(std::max<std::int64_t>(1, span / 1ms)));
  }
  template <class P>
  Instant wait(P& port, Instant deadline, bool is_rx_wanted) {
    (void)port.wait(deadline, is_rx_wanted);
    return now();
  }
};

}  // namespace onehop::test
