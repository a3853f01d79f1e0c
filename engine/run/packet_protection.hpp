// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PacketProtection: the one place where a frame is sealed on its way out and opened on its way in.
//
//   plan ─▶ [header | AEAD: block ─▶ port's slot] ─▶ commit
//   receive ─▶ [header | AEAD: frame ─▶ its place in the block]
//
// The AEAD is the only thing that moves file bytes. Owned and called by the engine core.
#pragma once

#include <array>
#include <span>

#include "engine/base/check.hpp"
#include "engine/base/counters.hpp"
#include "engine/crypto/frame_sealer.hpp"
#include "engine/port/port.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::run {

/// SessionKeys: one secret per direction, from this end's point of view.
struct SessionKeys {
  crypto::DirectionSecret send;
  crypto::DirectionSecret receive;
  std::uint64_t key_interval_packets = 1U << 22;
  crypto::AeadBackend backend = crypto::AeadBackend::automatic;
};

/// session_keys derives one end's keys from what both ends have in common.
[[nodiscard]] inline SessionKeys session_keys(const crypto::ExporterSecret& exporter,
                                              bool is_sender) {
  using crypto::Direction;
  return {.send = crypto::direction_secret(
              exporter, is_sender ? Direction::from_sender : Direction::from_receiver, 0),
          .receive = crypto::direction_secret(
              exporter, is_sender ? Direction::from_receiver : Direction::from_sender, 0)};
}

class PacketProtection {
 public:
  explicit PacketProtection(const SessionKeys& keys)
      : sealer_{keys.send, keys.key_interval_packets, keys.backend},
        opener_{keys.receive, {.interval = keys.key_interval_packets, .backend = keys.backend}} {}

  /// seal sets the key phase, writes the frame into `slot`, of body + overhead_bytes; returns that.
  [[nodiscard]] std::size_t seal(wire::FrameHeader& header, std::span<const std::byte> body,
                                 std::span<std::byte> slot) noexcept {
    ONEHOP_CHECK(slot.size() >= body.size() + wire::overhead_bytes);
    header.key_phase = sealer_.key_phase(header.packet_number);
    const auto aad = slot.first<wire::header_bytes>();
    wire::encode_header(header, aad);
    sealer_.seal(header.packet_number, aad, body, slot.data() + wire::header_bytes);
    return body.size() + wire::overhead_bytes;
  }

  /// open authenticates `frame`, whose header lies in its first piece, and writes its body to
  /// `out`. On failure `out` holds garbage, and the frame is counted.
  [[nodiscard]] bool open(const wire::FrameHeader& header, Pieces frame, std::byte* out,
                          DataPathCounters& counters) noexcept {
    const auto verdict =
        opener_.open(header.packet_number, header.key_phase, frame.first.first(wire::header_bytes),
                     frame.without_head(wire::header_bytes), out);
    if (verdict == crypto::FrameOpener::Verdict::ok) return true;
    if (verdict == crypto::FrameOpener::Verdict::replay)
      ++counters.replays_total;
    else
      ++counters.auth_failures_total;
    return false;
  }

  [[nodiscard]] std::uint64_t key_updates_total() const noexcept {
    return sealer_.key_updates_total();
  }

  /// scratch: for bodies that are not file data (feedback, pings, duplicates).
  [[nodiscard]] std::span<std::byte> scratch() noexcept { return scratch_; }

 private:
  crypto::FrameSealer sealer_;
  crypto::FrameOpener opener_;
  std::array<std::byte, 64 * 1024> scratch_;  // zeros would touch all its pages
};

}  // namespace onehop::run
