// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LogLinearHistogram: percentiles of non-negative numbers in fixed memory, with HdrHistogram's
// rule: 16 linear buckets per power of two, so a percentile is at most 1/16 too high.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace onehop {

class LogLinearHistogram {
 public:
  /// add counts `value` `weight` times.
  void add(std::uint64_t value, std::uint64_t weight = 1) noexcept {
    buckets_[index_of(value)] += weight;
    count_ += weight;
    sum_ += value * weight;
    max_ = std::max(max_, value);
  }

  /// merge counts what `other` has counted.
  void merge(const LogLinearHistogram& other) noexcept {
    for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
  }
  /// for_each calls `use(upper edge, count)` for each bucket that is not empty, in ascending order.
  template <class Use>
  void for_each(Use use) const {
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      if (buckets_[i] > 0) use(upper_edge(i), buckets_[i]);
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  [[nodiscard]] std::uint64_t mean() const noexcept { return count_ == 0 ? 0 : sum_ / count_; }

  /// percentile is the upper edge of the bucket that holds the rank, at most max(); 0 when empty.
  [[nodiscard]] std::uint64_t percentile(std::uint32_t permille) const noexcept {
    const std::uint64_t rank = (count_ * permille + 999) / 1000;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen >= rank && seen > 0) return std::min(upper_edge(i), max_);
    }
    return max_;
  }

 private:
  static constexpr unsigned linear_bits = 4;
  static constexpr std::size_t linear = 1U << linear_bits;

  static std::size_t index_of(std::uint64_t value) noexcept {
    if (value < linear) return static_cast<std::size_t>(value);
    const unsigned exponent = static_cast<unsigned>(std::bit_width(value)) - 1 - linear_bits;
    return (exponent + 1) * linear + static_cast<std::size_t>((value >> exponent) & (linear - 1));
  }
  static std::uint64_t upper_edge(std::size_t index) noexcept {
    if (index < linear) return index;
    const unsigned exponent = static_cast<unsigned>(index / linear) - 1;
    return ((linear + index % linear + 1) << exponent) - 1;
  }

  std::array<std::uint64_t, (65 - linear_bits) * linear> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace onehop
