// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/stranger_log.hpp"

#include <utility>

namespace onehop::transfer {

std::optional<std::uint64_t> StrangerLog::note(const IpAddress& address, Instant now) {
  Line* const own = find_line(address, now);
  Line& line = own != nullptr ? *own : others_;
  if (now - line.said_at < interval) {
    ++line.unsaid_total;
    return std::nullopt;
  }
  line.said_at = now;
  const std::uint64_t unsaid = std::exchange(line.unsaid_total, 0);
  return unsaid + std::exchange(others_.unsaid_total, 0);
}

StrangerLog::Line* StrangerLog::find_line(const IpAddress& address, Instant now) {
  const auto known = lines_.find(address);
  if (known != lines_.end()) return &known->second;
  if (lines_.size() >= addresses_max) {
    std::erase_if(lines_, [this, now](const auto& old) {
      if (now - old.second.said_at < interval) return false;
      others_.unsaid_total += old.second.unsaid_total;
      return true;
    });
  }
  if (lines_.size() >= addresses_max) return nullptr;
  return &lines_.emplace(address, Line{.said_at = never}).first->second;
}

}  // namespace onehop::transfer
