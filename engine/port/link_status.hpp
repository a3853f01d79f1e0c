// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LinkStatus: link acknowledgements of single frames, as Wi-Fi drivers of mac80211 report them to
// the socket that sent the frame (SO_WIFI_STATUS; Documentation/networking of the kernel has no
// page on it, net/core/skbuff.c skb_complete_wifi_ack).
//
//   socket ─▶ mac80211 ─▶ air ─▶ block ack ─▶ SCM_WIFI_STATUS on the socket's error queue
//                                               └─▶ acked_total, failed_total
//
// An acknowledgement says that the peer's Wi-Fi had the frame, not that its host kept it: nothing
// is ever taken for delivered because of it. Segments of a UDP_SEGMENT batch carry no request, so
// with segmentation only frames that left alone are reported: a sample. Each report is a message on
// the error queue, which the socket's owner has to read.
//
// It is off unless asked for. Once asked for, it goes off again when a good number of frames
// brought no answer (every driver but some Wi-Fi ones). The socket owns it; engine core only.
#pragma once

#include <asm/socket.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace onehop {

/// wifi_status_of: was the frame acknowledged? nullopt: the message is no such report.
[[nodiscard]] inline std::optional<bool> wifi_status_of(msghdr& message) noexcept {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_WIFI_STATUS) continue;
    int is_acked = 0;
    if (part->cmsg_len < CMSG_LEN(sizeof is_acked)) return std::nullopt;
    std::memcpy(&is_acked, CMSG_DATA(part), sizeof is_acked);
    return is_acked != 0;
  }
  return std::nullopt;
}

class LinkStatus {
 public:
  /// Implementation constant: frames sent alone without any answer before reports are turned off.
  /// An answer takes the time of the queue below, in which that many frames of probing and feedback
  /// do not leave. Too low: a deep queue looks like silence. Too high: a slow path for nothing.
  static constexpr std::uint32_t trial_frames = 512;

  enum class State : std::uint8_t { off, asked, answering };

  /// ask turns reports on; false where the kernel knows none (before 3.3). Syscalls: setsockopt.
  bool ask(int fd) noexcept {
    if (!set_reports(fd, 1)) return false;
    state_ = State::asked;
    asked_frames_ = 0;
    return true;
  }
  /// on_sent counts frames sent alone, up to the trial. Syscalls: setsockopt, once.
  void on_sent(int fd, std::uint32_t frames) noexcept {
    if (state_ != State::asked) return;
    asked_frames_ += frames;
    if (asked_frames_ < trial_frames) return;
    (void)set_reports(fd, 0);
    state_ = State::off;
  }
  /// take looks for a report in a message of the error queue; true where it is one.
  bool take(msghdr& message) noexcept {
    const auto is_acked = wifi_status_of(message);
    if (!is_acked) return false;
    // Also after giving up: what was asked for is still answered.
    state_ = State::answering;
    ++(*is_acked ? acked_total_ : failed_total_);
    return true;
  }

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] std::uint64_t acked_total() const noexcept { return acked_total_; }
  /// failed_total: frames that the link gave up after its last retry.
  [[nodiscard]] std::uint64_t failed_total() const noexcept { return failed_total_; }

 private:
  static bool set_reports(int fd, int is_on) noexcept {
    return ::setsockopt(fd, SOL_SOCKET, SO_WIFI_STATUS, &is_on, sizeof is_on) == 0;
  }

  State state_ = State::off;
  std::uint32_t asked_frames_ = 0;
  std::uint64_t acked_total_ = 0;
  std::uint64_t failed_total_ = 0;
};

}  // namespace onehop
