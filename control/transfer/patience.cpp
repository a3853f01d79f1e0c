// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/patience.hpp"

#include <thread>

#include "engine/base/time.hpp"

namespace onehop::transfer {

bool Patience::lasts(const session::SessionEnd& end, const PathReport& path) {
  // Where a person shows the code, he has ended it there.
  const bool is_gone =
      end.code == ExitCode::peer_unreachable || end.code == ExitCode::timed_out ||
      (end.code == ExitCode::interrupted && (!end.is_peer_interrupted || is_device_));
  has_moved_ = (path.app_buffer.drained_total + path.app_buffer.occupancy).count > 0;
  if (!is_gone || options_.is_pairing || options_.stream_fd >= 0 ||
      options_.patience_seconds <= 0 || options_.common.io == "dpdk" || (!lost_at_ && !has_moved_))
    return false;
  if (has_moved_) lost_at_ = boot_now();
  return left() > Nanos{0};
}

std::string Patience::text(const session::SessionEnd& end, const std::string& whom) {
  return end.error.attempt + ": " + end.error.cause + ". It goes on when " + whom +
         " is back; Ctrl-C ends it";
}

Nanos Patience::left() const {
  const std::chrono::duration<double> whole{options_.patience_seconds};
  return std::chrono::duration_cast<Nanos>(whole) - (boot_now() - *lost_at_);
}

std::optional<std::string> Patience::find_again() const {
  if (!options_.find_again) {  // one that refuses at once is not asked all the time
    std::this_thread::sleep_for(session::way_retry_pause);
    return std::nullopt;
  }
  std::string found = options_.find_again();
  return found.empty() ? std::nullopt : std::optional{std::move(found)};
}

}  // namespace onehop::transfer
