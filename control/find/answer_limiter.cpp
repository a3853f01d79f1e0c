// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/find/answer_limiter.hpp"

#include <algorithm>

namespace onehop::find {

bool AnswerLimiter::take(IpAddress asker, Instant now) {
  constexpr std::size_t network_bytes = 8;  // of a /64
  if (asker.is_v6) std::fill(asker.bytes.begin() + network_bytes, asker.bytes.end(), std::byte{0});
  while (!answered_.empty() && now - answered_.front().at >= window) answered_.pop_front();
  const auto of_asker = std::ranges::count(answered_, asker, &Answered::asker);
  if (answered_.size() >= total_max || static_cast<std::size_t>(of_asker) >= per_asker_max)
    return false;
  answered_.push_back({now, asker});
  return true;
}

}  // namespace onehop::find
