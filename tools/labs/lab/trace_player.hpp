// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TracePlayer changes the link's rate on a thread of its own, as the profile's trace says, again
// and again.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "tools/labs/lab/link.hpp"
#include "tools/labs/lab/rate_log.hpp"

namespace onehop::lab {

class TracePlayer {
 public:
  /// It starts at once, where the profile has a trace. `hosts`, `profile` and `log` must outlive
  /// it; `log` may be null.
  TracePlayer(const HostNames& hosts, const Profile& profile, RateLog* log);

  /// stop ends it; the error is the first change that failed, after which the rate stayed as it
  /// was.
  [[nodiscard]] std::optional<Error> stop();

 private:
  void play(const std::stop_token& stopping);

  const HostNames& hosts_;
  const Profile& profile_;
  RateLog* log_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::optional<Error> error_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace onehop::lab
