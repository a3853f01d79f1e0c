// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FrameRatio: payload bytes to wire bytes and back, by what a full frame holds of each. Pure.
#pragma once

#include "engine/base/path.hpp"

namespace onehop::law {

class FrameRatio {
 public:
  /// read takes the ratio from a report; one that makes no sense leaves the last one.
  void read(const PathReport& path) noexcept {
    if (path.payload_per_frame <= Bytes{0} || path.wire_per_frame < path.payload_per_frame) return;
    payload_ = path.payload_per_frame.count;
    wire_ = path.wire_per_frame.count;
  }
  [[nodiscard]] Bytes to_payload(Bytes wire) const noexcept {
    return scale(wire.count, payload_, wire_);
  }
  [[nodiscard]] Bytes to_wire(Bytes payload) const noexcept {
    return scale(payload.count, wire_, payload_);
  }
  [[nodiscard]] BytesPerSecond to_payload(BytesPerSecond wire) const noexcept {
    return {to_payload(Bytes{wire.count}).count};
  }
  [[nodiscard]] BytesPerSecond to_wire(BytesPerSecond payload) const noexcept {
    return {to_wire(Bytes{payload.count}).count};
  }
  [[nodiscard]] Bytes wire_frame() const noexcept { return {wire_}; }
  [[nodiscard]] Bytes payload_frame() const noexcept { return {payload_}; }

 private:
  static Bytes scale(std::int64_t count, std::int64_t num, std::int64_t den) noexcept {
    return {static_cast<std::int64_t>(static_cast<Wide>(count) * num / den)};
  }
  std::int64_t payload_ = 1, wire_ = 1;
};

}  // namespace onehop::law
