// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Gate: a TBF that lets packets go when it is told to, and not by its rate.
//
// Its rate is one byte a second, so tokens do not come by themselves (a full frame's worth in 25
// minutes). Each change sets the tokens to the whole burst: grant() changes the burst to what the
// next frames cost, and exactly those leave. A size table makes the costs known: a packet up to
// `unit` bytes costs `unit`; a larger one is GSO and counts as more than any burst, so TBF cuts it
// into frames that cost their true length. A change does not wake a queue that sleeps, so a kick
// follows: a frame of less than 32 bytes, which the table makes cost next to nothing. It goes to
// the queue's end and leaves when its turn comes; the tap behind the gate takes it away. (A kick
// that TBF drops would wake the queue as well, but then the queue says that it dropped frames, and
// whoever reads it slows down.)
//
// A control process that is killed or stopped leaves the gate shut but for the rest of one grant.
// Source: net/sched/sch_tbf.c (tbf_change, tbf_enqueue, tbf_segment) and sch_api.c (qdisc_change)
// of Linux 6.18.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "tools/labs/lab/air/taps.hpp"

namespace onehop::lab::air {

class Gate {
 public:
  /// open puts the gate on a device's egress, shut. Syscalls: socket, setns, sendto, recv.
  [[nodiscard]] static Result<Gate> open(const Place& place, int mtu_bytes);
  Gate(Gate&&) = default;

  /// unit_bytes is what a packet of up to that size costs.
  [[nodiscard]] static constexpr std::uint32_t unit_bytes(int mtu_bytes) noexcept {
    return (static_cast<std::uint32_t>(mtu_bytes) + 14U + 15U) / 16U * 16U;
  }
  /// is_cut says whether a GSO packet is cut into frames before the gate; if not, its frames leave
  /// as one, for one unit.
  [[nodiscard]] static bool is_cut(std::uint32_t packet_bytes, std::uint32_t unit) noexcept;
  /// grant sets the tokens to `cost_bytes` and has the queue send what they pay for. Syscalls:
  /// sendto, twice. Returns false where the kernel refuses: the device is gone.
  [[nodiscard]] bool grant(std::uint32_t cost_bytes) noexcept;
  /// error is what the kernel said of earlier grants; 0 if nothing. Syscalls: recv.
  [[nodiscard]] int error() noexcept;

 private:
  Gate(Fd netlink, Fd packet) : netlink_{std::move(netlink)}, packet_{std::move(packet)} {}
  void write_message(int ifindex, int mtu_bytes);

  Fd netlink_;
  Fd packet_;
  int ifindex_ = 0;
  std::uint32_t unit_ = 0;
  std::vector<std::byte> message_;
  std::size_t burst_at_ = 0;  ///< where the burst stands in message_
};

}  // namespace onehop::lab::air
