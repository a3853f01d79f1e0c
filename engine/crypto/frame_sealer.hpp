// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FrameSealer and FrameOpener: the two ends of one direction of one queue.
//
//   file block ─▶ seal(number, header, body): key of generation g ─▶ frame )))
//   frame ─▶ open(number, phase, header, body): replay window ─▶ key of generation g ─▶ tag ─▶ mark
//                 g = number / interval, key phase bit = g & 1
//
// A generation's key is derived when its first frame passes. Owned and called by the engine core;
// after construction nothing allocates, locks, logs or makes a system call. They know no frame
// layout: the header arrives as associated data, and the phase bit is handed over beside it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/crypto/aead.hpp"
#include "engine/crypto/key_schedule.hpp"
#include "engine/crypto/replay_window.hpp"

namespace onehop::crypto {

/// GenerationKey: a slot for the key of one generation. set() expands in place.
struct GenerationKey {
  explicit GenerationKey(AeadBackend backend) : aead{backend} {}
  void set(const DirectionSecret& secret, std::uint64_t new_generation) noexcept;
  [[nodiscard]] bool holds(std::uint64_t wanted) const noexcept {
    return is_set && generation == wanted;
  }

  AeadKey aead;
  Secret<aead_nonce_bytes> iv;
  std::uint64_t generation = 0;
  bool is_set = false;
};

class FrameSealer {
 public:
  /// interval must satisfy is_key_interval(); the backend must be available.
  FrameSealer(const DirectionSecret& secret, std::uint64_t interval, AeadBackend backend);

  /// seal writes body.size() + 16 bytes at `out`, which equals body.data() or does not overlap it.
  /// Packet numbers must strictly grow, and the process must be the one that made the sealer (not a
  /// fork of it): a nonce used twice would give away the key, so either stops the program.
  void seal(std::uint64_t packet_number, std::span<const std::byte> aad,
            std::span<const std::byte> body, std::byte* out) noexcept;

  /// key_phase is the header's bit; it is in the associated data, so it is asked before seal().
  [[nodiscard]] bool key_phase(std::uint64_t packet_number) const noexcept {
    return ((packet_number >> interval_bits_) & 1) != 0;
  }
  [[nodiscard]] std::uint64_t key_updates_total() const noexcept { return key_updates_total_; }

 private:
  DirectionSecret secret_;
  unsigned interval_bits_;
  GenerationKey key_;
  std::uint64_t newest_ = 0;
  bool has_sealed_ = false;
  std::uint32_t fork_generation_;
  std::uint64_t key_updates_total_ = 0;
};

struct FrameOpenerParams {
  std::uint64_t interval = key_interval_default;
  AeadBackend backend = AeadBackend::automatic;
  std::uint64_t failures_total = 0;  ///< failed opens so far; tests begin next to the limit
};

class FrameOpener {
 public:
  enum class Verdict : std::uint8_t {
    ok,       ///< authentic and new; the plaintext is at `out`
    bad_tag,  ///< not authentic; `out` may hold garbage
    replay,   ///< a number seen before or too old; it was not opened and `out` is untouched
  };

  /// Frames of the farthest jump ahead that is followed: 188 MB of loss without one frame between.
  static constexpr std::uint64_t jump_packets_max = std::uint64_t{1} << 17;
  /// RFC 9001 6.6: after 2^52 forgeries under AES-GCM, 2^36 under ChaCha20-Poly1305, a key may no
  /// longer be trusted. Counted over all keys of the direction, which is the safe side. Nothing is
  /// opened beyond it.
  [[nodiscard]] static constexpr std::uint64_t failures_max(AeadBackend backend) noexcept {
    return std::uint64_t{1} << (backend == AeadBackend::chacha20 ? 36 : 52);
  }

  FrameOpener(const DirectionSecret& secret, const FrameOpenerParams& params);

  /// open checks the number, then the tag, and only then remembers anything. `sealed` is body and
  /// tag; `out` gets sealed.size() - 16 bytes, see AeadKey::open().
  [[nodiscard]] Verdict open(std::uint64_t packet_number, bool key_phase,
                             std::span<const std::byte> aad, Pieces sealed,
                             std::byte* out) noexcept;

  [[nodiscard]] std::uint64_t key_updates_total() const noexcept { return key_updates_total_; }
  /// failures_total counts opens whose tag was wrong (not frames refused without work).
  [[nodiscard]] std::uint64_t failures_total() const noexcept { return failures_total_; }
  [[nodiscard]] bool is_exhausted() const noexcept { return failures_total_ >= failures_max_; }

 private:
  // Slots of keys_. Roles change when a newer generation has proven itself; keys stay.
  struct Roles {
    std::size_t previous = 0, current = 1, candidate = 2;
  };

  [[nodiscard]] GenerationKey* key_for(std::uint64_t generation) noexcept;
  void commit(const GenerationKey& proven) noexcept;

  DirectionSecret secret_;
  unsigned interval_bits_;
  std::array<GenerationKey, 3> keys_;
  Roles roles_;
  ReplayWindow window_;
  std::uint64_t key_updates_total_ = 0;
  std::uint64_t failures_max_;
  std::uint64_t failures_total_;
};

}  // namespace onehop::crypto
