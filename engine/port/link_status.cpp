// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/link_status.hpp"

#include <asm/socket.h>

#include <cstring>

namespace onehop {

std::optional<bool> wifi_status_of(msghdr& message) noexcept {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_WIFI_STATUS) continue;
    int is_acked = 0;
    if (part->cmsg_len < CMSG_LEN(sizeof is_acked)) return std::nullopt;
    std::memcpy(&is_acked, CMSG_DATA(part), sizeof is_acked);
    return is_acked != 0;
  }
  return std::nullopt;
}

bool LinkStatus::ask(int fd) noexcept {
  const int on = 1;
  if (::setsockopt(fd, SOL_SOCKET, SO_WIFI_STATUS, &on, sizeof on) != 0) return false;
  state_ = State::asked;
  asked_frames_ = 0;
  return true;
}

void LinkStatus::on_sent(int fd, std::uint32_t frames) noexcept {
  if (state_ != State::asked) return;
  asked_frames_ += frames;
  if (asked_frames_ < trial_frames) return;
  const int off = 0;
  (void)::setsockopt(fd, SOL_SOCKET, SO_WIFI_STATUS, &off, sizeof off);
  state_ = State::off;
}

bool LinkStatus::take(msghdr& message) noexcept {
  const auto is_acked = wifi_status_of(message);
  if (!is_acked) return false;
  // Also after giving up: what was asked for is still answered.
  state_ = State::answering;
  acked_total_ += *is_acked ? 1 : 0;
  failed_total_ += *is_acked ? 0 : 1;
  return true;
}

}  // namespace onehop
