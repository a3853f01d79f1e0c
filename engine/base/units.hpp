// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Units of everything that crosses an interface: bytes, bytes per second, gains, and time.
//
// Raw integers appear only at the kernel's and the wire's edge, with the unit in the name. Rates
// are bytes per second; bits per second exist only on the command line and in link reports.
#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>

namespace onehop {

using namespace std::chrono_literals;

/// Products of a rate and a time need more than 64 bits on the way.
__extension__ typedef __int128 Wide;

/// Nanos is a span of time. Instant is a point on the monotonic clock, or in virtual time; only
/// *_thread files, the ports' waits and PollBudget read the real clock, all else is handed `now`.
using Nanos = std::chrono::nanoseconds;
struct MonotonicTimeline {
  using rep = Nanos::rep;
  using period = Nanos::period;
  using duration = Nanos;
};
using Instant = std::chrono::time_point<MonotonicTimeline, Nanos>;

/// Bytes counts bytes. It is signed, so that a difference is a number and not a wrap.
struct Bytes {
  std::int64_t count = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes b) noexcept {
    count += b.count;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes b) noexcept {
    count -= b.count;
    return *this;
  }
};
constexpr Bytes operator+(Bytes a, Bytes b) noexcept { return {a.count + b.count}; }
constexpr Bytes operator-(Bytes a, Bytes b) noexcept { return {a.count - b.count}; }
constexpr Bytes operator*(Bytes a, std::int64_t n) noexcept { return {a.count * n}; }
constexpr Bytes operator/(Bytes a, std::int64_t n) noexcept { return {a.count / n}; }
constexpr Bytes kib(std::int64_t n) noexcept { return {n * 1024}; }
constexpr Bytes mib(std::int64_t n) noexcept { return {n * 1024 * 1024}; }

/// Gain is a dimensionless factor in thousandths: Gain{1500} is 1.5.
struct Gain {
  std::int64_t permille = 1000;
  constexpr auto operator<=>(const Gain&) const = default;
};

/// BytesPerSecond is a rate.
struct BytesPerSecond {
  std::int64_t count = 0;
  constexpr auto operator<=>(const BytesPerSecond&) const = default;
};
constexpr BytesPerSecond operator+(BytesPerSecond a, BytesPerSecond b) noexcept {
  return {a.count + b.count};
}
constexpr BytesPerSecond operator-(BytesPerSecond a, BytesPerSecond b) noexcept {
  return {a.count - b.count};
}
constexpr BytesPerSecond operator*(BytesPerSecond a, Gain g) noexcept {
  return {static_cast<std::int64_t>(static_cast<Wide>(a.count) * g.permille / 1000)};
}
constexpr Bytes operator*(Bytes a, Gain g) noexcept {
  return {static_cast<std::int64_t>(static_cast<Wide>(a.count) * g.permille / 1000)};
}
constexpr Bytes operator*(BytesPerSecond r, Nanos t) noexcept {
  return {static_cast<std::int64_t>(static_cast<Wide>(r.count) * t.count() / 1'000'000'000)};
}
/// A rate over a span. The span must be positive.
constexpr BytesPerSecond operator/(Bytes b, Nanos t) noexcept {
  return {static_cast<std::int64_t>(static_cast<Wide>(b.count) * 1'000'000'000 / t.count())};
}
/// The time that `r` needs for `b`; Nanos::max() where the rate is zero.
constexpr Nanos time_for(Bytes b, BytesPerSecond r) noexcept {
  if (r.count <= 0) return Nanos::max();
  const Wide ns = static_cast<Wide>(b.count) * 1'000'000'000 / r.count;
  return Nanos{static_cast<Nanos::rep>(std::min<Wide>(ns, Nanos::max().count()))};
}
constexpr BytesPerSecond mbit_per_s(std::int64_t n) noexcept { return {n * 125'000}; }
constexpr BytesPerSecond bit_per_s(std::int64_t n) noexcept { return {n / 8}; }
/// The rate in bits; the nearest number where it does not fit.
constexpr std::int64_t bps(BytesPerSecond r) noexcept {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;
  return std::clamp(r.count, -most, most) * 8;
}

}  // namespace onehop
