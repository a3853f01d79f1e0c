// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Samples: series of any length in at most 2 N buckets of equal width, with least, most and mean
// kept. When the last bucket is full, neighbours are merged and buckets become twice as wide, so
// memory depends on N alone and no peak is lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/units.hpp"

namespace onehop::plot {

struct Bucket {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  double sum = 0;
  std::uint64_t count = 0;

  [[nodiscard]] bool is_empty() const noexcept { return count == 0; }
  [[nodiscard]] double mean() const noexcept {
    return count == 0 ? 0 : sum / static_cast<double>(count);
  }
  void add(double value) noexcept { merge({value, value, value, 1}); }
  void merge(const Bucket& other) noexcept {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
    sum += other.sum;
    count += other.count;
  }
};

class Samples {
 public:
  Samples(std::size_t series, std::size_t buckets_min)
      : buckets_min_{std::max<std::size_t>(buckets_min, 1)}, series_(series) {}

  /// add puts one value into each series that has one. `at` counts from the first row and never
  /// goes back.
  void add(Nanos at, std::span<const std::optional<double>> values) {
    auto index = static_cast<std::size_t>(at / width_);
    while (index >= 2 * buckets_min_) {
      halve();
      index = static_cast<std::size_t>(at / width_);
    }
    size_ = std::max(size_, index + 1);
    for (std::size_t i = 0; i < series_.size() && i < values.size(); ++i) {
      if (series_[i].size() < size_) series_[i].resize(size_);
      if (values[i]) series_[i][index].add(*values[i]);
    }
  }

  [[nodiscard]] const std::vector<Bucket>& series(std::size_t i) const { return series_[i]; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Nanos width() const noexcept { return width_; }

 private:
  void halve() {
    width_ *= 2;
    size_ = (size_ + 1) / 2;
    for (std::vector<Bucket>& buckets : series_) {
      for (std::size_t i = 0; 2 * i < buckets.size(); ++i) {
        Bucket merged = buckets[2 * i];
        if (2 * i + 1 < buckets.size()) merged.merge(buckets[2 * i + 1]);
        buckets[i] = merged;
      }
      buckets.resize((buckets.size() + 1) / 2);
    }
  }

  std::size_t buckets_min_;
  Nanos width_{1ms};  // a tick of control; shorter ones share a bucket
  std::size_t size_ = 0;
  std::vector<std::vector<Bucket>> series_;
};

}  // namespace onehop::plot
