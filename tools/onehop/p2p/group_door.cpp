// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/p2p/group_door.hpp"

#include <net/if.h>
#include <poll.h>

#include "engine/base/system/thread.hpp"
#include "engine/base/time.hpp"

namespace onehop::p2p {

namespace {

/// Between two looks whether the interface is there, and at the longest until the thread ends.
constexpr int poll_interval_ms = 300;

}  // namespace

Result<std::unique_ptr<GroupDoor>> GroupDoor::open(Supplicant supplicant, Group group,
                                                   Callbacks callbacks) {
  std::unique_ptr<GroupDoor> door{
      new GroupDoor{std::move(supplicant), std::move(group), std::move(callbacks)}};
  ONEHOP_TRY(thread,
             start_thread<std::jthread>(
                 "group", [self = door.get()](const std::stop_token& stop) { self->serve(stop); }));
  door->thread_ = std::move(thread);
  return door;
}

void GroupDoor::serve(const std::stop_token& stop) {
  Instant seen_at = monotonic_now();
  bool is_bus_lost = false;  // then nobody else joins, and the group is still watched
  while (!stop.stop_requested()) {
    pollfd fd{is_bus_lost ? -1 : supplicant_.fd(), supplicant_.events(), 0};
    (void)::poll(&fd, 1, poll_interval_ms);
    if (!is_bus_lost) is_bus_lost = !let_in();
    if (::if_nametoindex(group_.interface_name.c_str()) != 0) seen_at = monotonic_now();
    if (monotonic_now() - seen_at > callbacks_.gone_limit) return callbacks_.on_gone();
  }
}

bool GroupDoor::let_in() {
  const auto processed = supplicant_.process([this](const Event& event) {
    if (!std::holds_alternative<JoinAsked>(event)) return;
    // Only while it waits for somebody who asks: a button that is always pressed lets all in.
    const auto done = supplicant_.authorize(group_, {});
    callbacks_.on_text(done.has_value() ? "a machine joins the group" : done.error().message());
  });
  if (processed.has_error()) callbacks_.on_text(processed.error().message());
  return processed.has_value();
}

}  // namespace onehop::p2p
