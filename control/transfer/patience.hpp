// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Patience: whether a sender waits for a receiver that is gone, and for how long. Time is by
// CLOCK_BOOTTIME, and begins anew whenever something has arrived. The thread in run().
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
  /// lasts: the session has ended for a reason that may pass, and there is time left. `path` is
  /// what its data path counted last.
  [[nodiscard]] bool lasts(const session::SessionEnd& end, const PathReport& path);
  /// is_news: something had arrived in the session that lasts() was asked about.
  [[nodiscard]] bool is_news() const noexcept { return has_moved_; }
  [[nodiscard]] static std::string text(const session::SessionEnd& end, const std::string& whom);
  [[nodiscard]] Nanos left() const;
  /// find_again gives where to try next; nothing: nobody has answered. It takes 100 ms to 1 s.
  [[nodiscard]] std::optional<std::string> find_again() const;
  /// set_device: a paired device receives, and nobody may sit there.
  void set_device() noexcept { is_device_ = true; }

 private:
  const api::SendOptions& options_;
  std::optional<Instant> lost_at_;  // of boot_now(): since when nothing has arrived
  bool is_device_ = false, has_moved_ = false;
};

}  // namespace onehop::transfer
