// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// HwsimSocket: the netlink family of mac80211_hwsim, as a program in user space that stands for the
// radio medium sees it.
//
//   mac80211 of a ── frame ──▶ receive() ── ... the medium ... ── deliver() ──▶ mac80211 of b
//                ◀── status ── report()
//
// From open() on hwsim hands over every frame that a radio sends, and waits for its status. When
// the socket is closed, hwsim's own perfect medium is back. Frames without a status stay charged to
// the socket that sent them, so all of them must be reported before. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/system/netlink.hpp"
#include "engine/base/units.hpp"

namespace onehop::vm {

using RadioAddress = std::array<std::byte, 6>;

/// AirFrame: one frame of 802.11, without its check sequence, as a radio sends it.
struct AirFrame {
  RadioAddress radio{};  ///< the radio's own address, not that of an interface on it
  std::vector<std::byte> bytes;
  std::uint32_t flags = 0;
  std::optional<std::uint32_t> frequency_mhz;
  std::uint64_t cookie = 0;
  /// Four pairs of a rate's index and its attempts, as rate control chose them.
  std::array<std::byte, 8> rates{};
  Instant at{};  ///< when it was received

  [[nodiscard]] bool is_unicast() const noexcept {
    return (bytes[4] & std::byte{1}) == std::byte{};
  }
  [[nodiscard]] bool is_data() const noexcept {
    return (bytes[0] & std::byte{0x0c}) == std::byte{0x08};
  }
  [[nodiscard]] RadioAddress receiver() const noexcept { return address_at(4); }
  [[nodiscard]] RadioAddress transmitter() const noexcept { return address_at(10); }

 private:
  [[nodiscard]] RadioAddress address_at(std::size_t offset) const noexcept;
};

class HwsimSocket {
 public:
  /// open becomes the medium of the radios of the first network namespace; they may have been moved
  /// to others since. Syscalls: socket, bind, setsockopt, sendto, recvmsg.
  [[nodiscard]] static Result<HwsimSocket> open();

  /// receive appends what radios have sent meanwhile. Syscalls: recv.
  void receive(std::vector<AirFrame>& frames);
  /// has_frames: some are kept for receive(), and the socket may have none.
  [[nodiscard]] bool has_frames() const noexcept { return !pending_.empty(); }
  /// deliver returns whether the radio takes it: it is on the frame's channel. Frames that come
  /// meanwhile are kept for receive(). Syscalls: sendto, recv.
  [[nodiscard]] bool deliver(const AirFrame& frame, const RadioAddress& radio);
  /// report gives the status of a frame to its sender, and returns whether hwsim takes it. It shows
  /// a frame here before it lists it as one that waits for its status, so a status may come too
  /// early, and must then be given again. Syscalls: sendto, recv.
  [[nodiscard]] bool report(const AirFrame& frame, bool is_acked);

  [[nodiscard]] int fd() const noexcept { return socket_.fd(); }

 private:
  HwsimSocket(NetlinkSocket&& socket, std::uint16_t family)
      : socket_{std::move(socket)}, family_{family} {}
  void begin(std::uint8_t command) noexcept;
  void put(std::uint16_t type, std::span<const std::byte> value) noexcept;
  void send();
  void read_pending();

  NetlinkSocket socket_;
  std::uint16_t family_;
  std::array<std::byte, 8192> message_{};
  std::size_t message_bytes_ = 0;
  std::uint32_t sequence_ = 0;
  std::optional<std::uint32_t> refused_;  // the newest message that hwsim did not take
  std::vector<AirFrame> pending_;
};

}  // namespace onehop::vm
