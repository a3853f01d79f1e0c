// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PeerMac: the peer's link address on a link without a kernel: asks for it, and answers for ours.
//
//   set_peer ─▶ due(now)? ─▶ build_question ─▶ port sends it ─▶ on_frame: learnt ─▶ mac()
//
// Sans I/O: the port hands it frames and sends what it builds. A peer that answers from elsewhere
// (its process was started anew) is followed. Engine core only.
#pragma once

#include <optional>
#include <span>

#include "engine/base/units.hpp"
#include "engine/port/dpdk/neighbour.hpp"

namespace onehop::dpdk {

class PeerMac {
 public:
  /// Implementation constants. Between questions while there is no answer: shorter floods a slow
  /// link, longer delays the start. And between confirmations, which find a new address.
  static constexpr Nanos ask_interval{10ms};
  static constexpr Nanos confirm_interval{5s};

  PeerMac() = default;
  PeerMac(const NeighbourHost& self, bool is_ipv6) noexcept : self_{self}, is_ipv6_{is_ipv6} {}

  /// set_peer names the peer's address; another one forgets what was learnt.
  void set_peer(const IpBytes& ip) noexcept {
    if (has_peer_ && ip == peer_ip_) return;
    peer_ip_ = ip;
    has_peer_ = true;
    mac_.reset();
    asked_at_ = {};
  }
  /// is_due: a question should go out now.
  [[nodiscard]] bool is_due(Instant now) const noexcept {
    return has_peer_ && now - asked_at_ >= (mac_ ? confirm_interval : ask_interval);
  }
  /// ask builds the question; returns its length.
  [[nodiscard]] std::size_t ask(Instant now,
                                std::span<std::byte, neighbour_bytes_max> out) noexcept {
    asked_at_ = now;
    return build_question(self_, peer_ip_, is_ipv6_, out);
  }
  /// on_frame takes a frame that is not ours; returns the length of the answer in `out`, or 0.
  [[nodiscard]] std::size_t on_frame(std::span<const std::byte> frame,
                                     std::span<std::byte, neighbour_bytes_max> out) noexcept {
    const auto message = parse_neighbour(frame);
    if (!message || message->is_ipv6 != is_ipv6_) return 0;
    if (has_peer_ && message->sender.ip == peer_ip_) mac_ = message->sender.mac;
    if (!message->is_question || message->target_ip != self_.ip) return 0;
    return build_answer(self_, *message, out);
  }
  /// mac is the peer's, once it is known.
  [[nodiscard]] const std::optional<MacAddress>& mac() const noexcept { return mac_; }

 private:
  NeighbourHost self_;
  IpBytes peer_ip_{};
  std::optional<MacAddress> mac_;
  Instant asked_at_{};
  bool is_ipv6_ = false;
  bool has_peer_ = false;
};

}  // namespace onehop::dpdk
