// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LinkSource: one place where the backlog of the lower queue can be read, other than the port itself.
//
//   qdisc (RTM_GETQDISC dump)  ──▶ LowerQueue ──▶ RateLoop ──▶ LinkSample.lower_queue
//
// Called by the control thread only: a netlink dump can wait for rtnl_lock for milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::link {

/// LowerQueue is one reading, in L2 bytes, of all flows together.
struct LowerQueue {
  Instant at{};
  Bytes occupancy{};
  Bytes drained_total{};
  Bytes capacity{};             ///< 0: unknown
  std::uint64_t drops_total = 0;
};

class LinkSource {
 public:
  virtual ~LinkSource() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// poll returns nothing where there is no queue to read or the reading failed; never a zero that was not read.
  [[nodiscard]] virtual std::optional<LowerQueue> poll(Instant now) = 0;
  /// error is why the last poll failed; nothing while all is well or there simply is no queue.
  [[nodiscard]] virtual const std::optional<Error>& error() const noexcept = 0;
};

}  // namespace onehop::link
