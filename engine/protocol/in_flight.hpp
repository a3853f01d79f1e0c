// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// InFlight: what each unsettled packet number carries. A ring by number, in fixed memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/base/check.hpp"
#include "engine/base/units.hpp"
#include "engine/base/zeroed_array.hpp"

namespace onehop::protocol {

enum class PacketState : std::uint8_t {
  resolved,  ///< arrived, or its bytes went out under a newer number, or it had none
  in_flight,
  skipped,  ///< never sent on purpose
};

/// SentPacket: bytes of zero are one that is resolved.
struct SentPacket {
  Instant sent_at{};
  std::uint32_t slot = 0;  ///< of the block; meaningless without length
  std::uint32_t offset_in_block = 0;
  std::uint32_t length = 0;
  bool has_data = false;   ///< false: ping or pong, nothing to resend
  bool is_repair = false;  ///< its bytes were sent before
  PacketState state = PacketState::resolved;
};

class InFlight {
 public:
  InFlight(std::size_t capacity, std::uint64_t first_number)
      : mask_{std::bit_ceil(capacity) - 1},
        packets_(mask_ + 1),
        oldest_{first_number},
        next_{first_number},
        settled_{first_number} {}

  /// oldest: the smallest number not resolved, or next().
  [[nodiscard]] std::uint64_t oldest() const noexcept { return oldest_; }
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  [[nodiscard]] std::size_t span() const noexcept {
    return static_cast<std::size_t>(next_ - oldest_);
  }
  [[nodiscard]] bool is_full() const noexcept { return span() > mask_; }
  [[nodiscard]] SentPacket& at(std::uint64_t number) noexcept { return packets_[number & mask_]; }
  [[nodiscard]] const SentPacket& at(std::uint64_t number) const noexcept {
    return packets_[number & mask_];
  }

  /// push takes the next number for `state`. The record is filled in place, field by field: a
  /// temporary that is copied here is read back wider than it was written, and such a read waits
  /// until the AEAD's stores of the last frame have left the store buffer.
  SentPacket& push(Instant now, PacketState state) noexcept {
    ONEHOP_CHECK(!is_full());
    SentPacket& packet = packets_[next_++ & mask_];
    packet.sent_at = now;
    packet.length = 0;
    packet.has_data = packet.is_repair = false;
    packet.state = state;
    return packet;
  }
  void settle() noexcept {
    while (oldest_ != next_ && at(oldest_).state == PacketState::resolved) ++oldest_;
  }
  /// settled: the smallest number that may still arrive and matter; skipped ones never do.
  [[nodiscard]] std::uint64_t settled() noexcept {
    if (settled_ < oldest_) settled_ = oldest_;
    while (settled_ != next_ && at(settled_).state != PacketState::in_flight) ++settled_;
    return settled_;
  }

 private:
  std::size_t mask_;
  ZeroedArray<SentPacket> packets_;
  std::uint64_t oldest_;
  std::uint64_t next_;
  std::uint64_t settled_;
};

}  // namespace onehop::protocol
