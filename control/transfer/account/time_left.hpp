// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// time_left: a forecast from two counts that grow together, bytes and files. Pure.
//
//   bytes: left / rate          files: left / rate          the larger of both
//
// With many small files the receiver finishes a number of files per second, whatever the link can
// carry. With large ones the number says nothing: one that takes a minute does not mean a minute
// for each that follows. So files count only while the files done now are small.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "engine/list/pack.hpp"

namespace onehop::transfer {

struct Left {
  std::uint64_t bytes = 0, files = 0;
};
/// Pace: over about the last seconds.
struct Pace {
  double bytes_per_s = 0, files_per_s = 0;
};

/// time_left is in seconds; nullopt: what is left does not move.
[[nodiscard]] inline std::optional<double> time_left(const Left& left, const Pace& pace) {
  const bool are_small =
      pace.files_per_s > 0 &&
      pace.bytes_per_s <= static_cast<double>(list::packed_bytes_max) * pace.files_per_s;
  if ((left.bytes > 0 && pace.bytes_per_s <= 0) ||
      (left.bytes == 0 && left.files > 0 && pace.files_per_s <= 0))
    return std::nullopt;
  const double by_bytes = left.bytes == 0 ? 0 : static_cast<double>(left.bytes) / pace.bytes_per_s;
  const bool do_files_count = left.files > 0 && (are_small || left.bytes == 0);
  return do_files_count ? std::max(by_bytes, static_cast<double>(left.files) / pace.files_per_s)
                        : by_bytes;
}

}  // namespace onehop::transfer
