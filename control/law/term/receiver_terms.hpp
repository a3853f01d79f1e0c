// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ReceiverTerms: the rates that the peer's two buffers allow. Used by safe-range and by auto.
//
//   ──v_1──▶ [2: rx ring X_2] ──v_2──▶ [3: app buffer X_3] ──v_3──▶ disk
//
//   (2)  X_under,i   = d_i (v_i^up - v_{i-1}^lo)
//   (3)  X_over,i    = X_max,i - d_i (v_{i-1}^up - v_i^lo)
//   (5)  X_i^target  = X_under,i
//   (6)  term_i      = v_i + (X_i^target - X_i) / d_i
//
//   d_2 = srtt, at least 2 ms;   d_3 = the time in which a grain drains, d_2 .. 100 ms
//
// Source: [SMUFF] (control/README.md has the symbols). All payload bytes. v_{i-1} is what flows in,
// and not what the link could carry: while this very term limits the rate the two differ, and with
// the link's rate the target would be 0 and the term would push its own cause down.
//
// The latch: an almost empty buffer passes on what arrives, so its v is a copy of our own rate, and
// its term would allow x1.2 per report. A term takes part only while its buffer is, or lately was,
// backlogged. Pure.
#pragma once

#include <span>

#include "control/law/controller.hpp"
#include "control/law/estimate/drain_meter.hpp"
#include "control/law/safe_range_params.hpp"

namespace onehop::law {

class ReceiverTerms {
 public:
  explicit ReceiverTerms(const SafeRangeParams& params) noexcept;
  /// read takes the peer's newest readings. `frame`: payload of a full frame.
  void read(const PathReport& path, Bytes frame) noexcept;
  /// set_rows writes rows 1 and 2 of the trace. `inflow`: what goes into the first buffer.
  void set_rows(Instant now, Nanos srtt, BytesPerSecond inflow,
                std::span<BufferRow, 3> rows) noexcept;

  /// The ring's capacity; 0: not known.
  [[nodiscard]] Bytes ring_capacity() const noexcept {
    return ring_.is_known ? ring_.capacity : Bytes{};
  }
  [[nodiscard]] bool is_ring_known() const noexcept { return ring_.is_known; }
  /// ring_flow is what the ring passed on in the last round trip; 0: not known.
  [[nodiscard]] BytesPerSecond ring_flow() const noexcept {
    return ring_.meter.has_flow() ? ring_.meter.flow() : BytesPerSecond{};
  }

 private:
  struct Buffer {
    DrainMeter meter;
    Nanos latency{0};  // d_i
    Bytes occupancy{};
    Bytes capacity{};
    Instant backlogged_at{};
    bool was_backlogged = false;
    bool is_known = false;
    bool is_backlogged = false;  // the peer's bit
  };
  /// Inflow: what goes into a buffer, and its bounds within one latency.
  struct Inflow {
    BytesPerSecond rate{};
    Gain lo, up;
  };
  static void read_buffer(Buffer& buffer, const QueueTelemetry& queue, Bytes frame) noexcept;
  [[nodiscard]] BufferRow row_of(Buffer& buffer, const Inflow& inflow, Bytes target_min,
                                 Instant now, Nanos srtt) const noexcept;
  [[nodiscard]] Bytes grain() const noexcept;

  SafeRangeParams params_;
  Buffer ring_, app_;
};

}  // namespace onehop::law
