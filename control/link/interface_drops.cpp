// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/interface_drops.hpp"

#include <algorithm>

#include "engine/base/system/interface.hpp"

namespace onehop::link {

namespace {

Error no_count(const std::string& interface, const char* cause) {
  return {ExitCode::io_unavailable, "count the frames that " + interface + " drops", cause};
}

}  // namespace

Result<void> InterfaceDrops::follow(int ifindex) {
  std::erase_if(starts_,
                [](const Start& start) { return !read_interface(start.ifindex).has_value(); });
  ONEHOP_TRY(stack, read_stack(ifindex));
  for (const Interface& link : stack) {
    if (!link.tx_dropped_total) return no_count(link.name, "the kernel does not tell");
    const bool is_known = std::ranges::any_of(
        starts_, [&](const Start& start) { return start.ifindex == link.ifindex; });
    if (!is_known) starts_.push_back({link.ifindex, *link.tx_dropped_total});
  }
  return success();
}

Result<InterfaceDrops::Drops> InterfaceDrops::since_followed() const {
  Drops out;
  for (const Start& start : starts_) {
    ONEHOP_TRY(link, read_interface(start.ifindex));
    if (!link.tx_dropped_total || *link.tx_dropped_total < start.dropped_total)
      return no_count(link.name, "its counter began anew");
    const std::uint64_t frames = *link.tx_dropped_total - start.dropped_total;
    if (frames > 0) out.emplace_back(link.name, frames);
  }
  return out;
}

}  // namespace onehop::link
