// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/crypto/frame_sealer.hpp"

#include <bit>

#include "engine/base/check.hpp"

namespace onehop::crypto {

namespace {
unsigned bits_of(std::uint64_t interval) noexcept {
  ONEHOP_CHECK(is_key_interval(interval));
  return static_cast<unsigned>(std::countr_zero(interval));
}
}  // namespace

void GenerationKey::set(const DirectionSecret& secret, std::uint64_t new_generation) noexcept {
  const FrameKey derived = frame_key(secret, new_generation, aead.key_bytes());
  aead.set_key(derived.key.bytes().first(aead.key_bytes()));
  iv = derived.iv;
  generation = new_generation;
  is_set = true;
}

FrameSealer::FrameSealer(const DirectionSecret& secret, std::uint64_t interval, AeadBackend backend)
    : secret_{secret},
      interval_bits_{bits_of(interval)},
      key_{backend},
      fork_generation_{fork_generation()} {}

void FrameSealer::seal(std::uint64_t packet_number, std::span<const std::byte> aad,
                       std::span<const std::byte> body, std::byte* out) noexcept {
  ONEHOP_CHECK(!has_sealed_ || packet_number > newest_);
  ONEHOP_CHECK(fork_generation_ == fork_generation());
  const std::uint64_t generation = packet_number >> interval_bits_;
  if (!key_.holds(generation)) [[unlikely]] {
    if (has_sealed_) ++key_updates_total_;
    key_.set(secret_, generation);
  }
  has_sealed_ = true;
  newest_ = packet_number;
  key_.aead.seal(nonce_of(key_.iv.bytes(), packet_number), aad, body, out);
}

FrameOpener::FrameOpener(const DirectionSecret& secret, const FrameOpenerParams& params)
    : secret_{secret},
      interval_bits_{bits_of(params.interval)},
      keys_{GenerationKey{params.backend}, GenerationKey{params.backend},
            GenerationKey{params.backend}},
      failures_max_{failures_max(params.backend)},
      failures_total_{params.failures_total} {}

// key_for finds or derives the key of a generation that may be true; null for one that cannot be.
// Only the candidate's slot is ever written, so a forged number takes no proven key away.
GenerationKey* FrameOpener::key_for(std::uint64_t generation) noexcept {
  for (GenerationKey& key : keys_)
    if (key.holds(generation)) return &key;
  const GenerationKey& current = keys_[roles_.current];
  if (current.is_set) {
    const GenerationKey& previous = keys_[roles_.previous];
    const std::uint64_t ahead_max = (jump_packets_max >> interval_bits_) + 2;
    if (generation > current.generation && generation - current.generation > ahead_max)
      return nullptr;
    // Behind current, only the previous one and what lies between (after a jump) can still be on
    // the way. Without a previous one: the one next to current, for frames overtaken at the start.
    const std::uint64_t behind = current.generation == 0 ? 0 : current.generation - 1;
    if (generation < (previous.is_set ? previous.generation : behind)) return nullptr;
  }
  GenerationKey& candidate = keys_[roles_.candidate];
  candidate.set(secret_, generation);
  return &candidate;
}

// commit makes a candidate that opened a frame the current key, if it is newer.
void FrameOpener::commit(const GenerationKey& proven) noexcept {
  if (&proven != &keys_[roles_.candidate]) return;
  const GenerationKey& current = keys_[roles_.current];
  if (current.is_set && proven.generation < current.generation) return;
  if (current.is_set) ++key_updates_total_;
  // The oldest key's slot becomes the next candidate's.
  roles_ = {.previous = roles_.current, .current = roles_.candidate, .candidate = roles_.previous};
  keys_[roles_.candidate].is_set = false;
}

FrameOpener::Verdict FrameOpener::open(std::uint64_t packet_number, bool key_phase,
                                       std::span<const std::byte> aad, Pieces sealed,
                                       std::byte* out) noexcept {
  const std::uint64_t generation = packet_number >> interval_bits_;
  if (sealed.size() < aead_tag_bytes || key_phase != ((generation & 1) != 0) || is_exhausted())
    return Verdict::bad_tag;
  if (!window_.check(packet_number)) return Verdict::replay;
  GenerationKey* const key = key_for(generation);
  if (key == nullptr) return Verdict::bad_tag;
  if (!key->aead.open(nonce_of(key->iv.bytes(), packet_number), aad, sealed, out)) {
    ++failures_total_;
    return Verdict::bad_tag;
  }
  commit(*key);
  window_.mark(packet_number);
  return Verdict::ok;
}

}  // namespace onehop::crypto
