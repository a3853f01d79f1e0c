// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Patience decides whether a sender waits for a receiver that is gone, and how long. Time is
// measured by CLOCK_BOOTTIME, and restarts when something has arrived. The thread in run().
#pragma once

#include <optional>
#include <string>

#include "control/session/session.hpp"
#include "control/transfer/api/transfer.hpp"
#include "engine/base/path.hpp"

namespace onehop::transfer {

class Patience {
 public:
  /// `options` outlive it.
  explicit Patience(const api::SendOptions& options) : options_{options} {}
  /// lasts: the session ended for a reason that may pass, and time is left. `path` is the last
  /// report of its data path.
  [[nodiscard]] bool lasts(const session::SessionEnd& end, const PathReport& path);
  /// is_news: data had arrived in the session that lasts() was called for.
  [[nodiscard]] bool is_news() const noexcept { return has_moved_; }
  [[nodiscard]] static std::string text(const session::SessionEnd& end, const std::string& whom);
  [[nodiscard]] Nanos left() const;
  /// find_again returns the address to try next; nullopt: no receiver answered. It takes 100 ms to
  /// 1 s.
  [[nodiscard]] std::optional<std::string> find_again() const;
  /// set_device: the receiver is a paired device, perhaps without a user present.
  void set_device() noexcept { is_device_ = true; }

 private:
  const api::SendOptions& options_;
  std::optional<Instant> lost_at_;  // of boot_now(): since when nothing has arrived
  bool is_device_ = false, has_moved_ = false;
};

}  // namespace onehop::transfer
