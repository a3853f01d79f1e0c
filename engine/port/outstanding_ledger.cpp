// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// See outstanding_ledger.hpp.
#include "engine/port/outstanding_ledger.hpp"

#include <algorithm>
#include <bit>

#include "engine/base/check.hpp"

namespace onehop {

void OutstandingLedger::push(Bytes wire, std::uint32_t frames, std::int64_t growth_bytes) noexcept {
  ONEHOP_CHECK(frames > 0);
  ONEHOP_CHECK(wire.count >= frames);
  const auto frame_bytes = static_cast<std::uint32_t>(wire.count / frames);
  const auto size_class =
      std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(frame_bytes)), classes / 2 - 1);
  std::int64_t& learnt = frame_truesize_bytes_[size_class + (frames > 1 ? classes / 2 : 0)];
  learnt = std::max(learnt, growth_bytes / frames);

  // A batch that was never seen to be charged (loopback: the peer's stack has it already) counts as freed.
  const std::int64_t truesize = std::max(growth_bytes, learnt * frames);
  if (truesize <= 0) return;
  truesize_permille_ = std::max<std::int64_t>(1000, truesize * 1000 / wire.count);
  if (tail_ - head_ == batches_max) {
    at(tail_ - 1).wire += wire;
    at(tail_ - 1).truesize_bytes += truesize;
  } else {
    at(tail_) = {.wire = wire, .truesize_bytes = truesize};
    tail_ += 1;
  }
  wire_ += wire;
  truesize_bytes_ += truesize;
}

Bytes OutstandingLedger::outstanding(std::int64_t charged_bytes) noexcept {
  while (head_ != tail_ && truesize_bytes_ - at(head_).truesize_bytes >= charged_bytes) {
    wire_ -= at(head_).wire;
    truesize_bytes_ -= at(head_).truesize_bytes;
    head_ += 1;
  }
  if (head_ == tail_) return {0};
  const Batch& oldest = at(head_);
  const std::int64_t newer_bytes = truesize_bytes_ - oldest.truesize_bytes;
  const std::int64_t left_bytes = std::clamp<std::int64_t>(charged_bytes - newer_bytes, 0, oldest.truesize_bytes);
  return wire_ - oldest.wire + Bytes{oldest.wire.count * left_bytes / oldest.truesize_bytes};
}

}  // namespace onehop
