// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/outstanding_ledger.hpp"

#include <algorithm>

#include "engine/base/check.hpp"

namespace onehop {

void OutstandingLedger::push(Bytes wire, std::uint32_t frames, std::int64_t growth_bytes) noexcept {
  ONEHOP_CHECK(frames > 0);
  ONEHOP_CHECK(wire.count >= frames);
  // The charge of a batch is its growth, unless older batches were freed meanwhile: they go whole,
  // so the growth then falls well below the bytes sent, and what the last undisturbed batch was
  // charged beyond its bytes stands in. (The largest charge per frame ever seen would do worse: two
  // frames are charged half as much again per frame as 44: the queue was read a third too short.)
  std::int64_t truesize = growth_bytes;
  if (growth_bytes >= wire.count * undisturbed_permille / 1000) {
    extra_bytes_ = growth_bytes - wire.count;
    is_charged_ = true;
  } else if (is_charged_) {
    truesize = std::max<std::int64_t>(growth_bytes, wire.count + extra_bytes_);
  }
  // A batch never seen to be charged (loopback: the peer's stack has it already) counts as freed.
  if (truesize <= 0) return;
  truesize_permille_ = std::max<std::int64_t>(1000, truesize * 1000 / wire.count);
  if (batches_.full()) {
    batches_.back().wire += wire;
    batches_.back().truesize_bytes += truesize;
  } else {
    batches_.push_back({.wire = wire, .truesize_bytes = truesize});
  }
  wire_ += wire;
  truesize_bytes_ += truesize;
}

Bytes OutstandingLedger::outstanding(std::int64_t charged_bytes) noexcept {
  while (!batches_.empty() && truesize_bytes_ - batches_.front().truesize_bytes >= charged_bytes) {
    wire_ -= batches_.front().wire;
    truesize_bytes_ -= batches_.front().truesize_bytes;
    batches_.pop_front();
  }
  if (batches_.empty()) return {0};
  const Batch& oldest = batches_.front();
  const std::int64_t newer_bytes = truesize_bytes_ - oldest.truesize_bytes;
  const std::int64_t left_bytes =
      std::clamp<std::int64_t>(charged_bytes - newer_bytes, 0, oldest.truesize_bytes);
  return wire_ - oldest.wire + Bytes{oldest.wire.count * left_bytes / oldest.truesize_bytes};
}

}  // namespace onehop
