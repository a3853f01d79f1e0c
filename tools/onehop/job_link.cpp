// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Job, the link below a session: what is read of it, and what happens when the path gets another one.
#include <algorithm>

#include "control/link/link_info.hpp"
#include "engine/base/rate_text.hpp"
#include "engine/base/time.hpp"
#include "tools/onehop/job.hpp"

namespace onehop::tool {

Result<Limits> Job::limits_on(int ifindex) const {
  Limits limits;
  limits.ifindex = has_kernel_link() ? ifindex : 0;
  if (auto link = link::read_link_info(ifindex); has_kernel_link() && link.has_value()) {
    limits.link_rate = link.value().rate;
    limits.is_link_virtual = link.value().is_virtual;
  }
  if (!options_.rate_max.empty()) {
    ONEHOP_TRY(made, parse_rate(options_.rate_max));
    limits.rate_max = std::move(made);
  }
  return limits;
}

Result<void> Job::open_link_sources(const PathUpdate& path) {
  const bool has_own_qdisc = facts_.io_used == "udp";
  if (auto qdisc = link::QdiscSource::open(path.ifindex, has_own_qdisc); qdisc.has_value()) qdisc_ = std::move(qdisc).value();
  else reporter_.say("no reading of the queue discipline: " + qdisc.error().message());
  link::LinkOptions link_options{.ifindex = path.ifindex, .peer = std::nullopt, .has_qdisc = has_own_qdisc,
                                 .model_path = options_.link_model};
  // The peer's link address stands first in the header template, where the neighbour is known.
  const auto target = std::span{path.header}.first<6>();
  if (path.has_neighbour) std::ranges::copy(target, link_options.peer.emplace().begin());
  auto watch = link::LinkWatch::open(link_options, monotonic_now);
  if (!watch.has_value() && !options_.link_model.empty()) return watch.error();
  if (watch.has_value()) link_ = std::move(watch).value();
  else reporter_.say("no facts of the link: " + watch.error().message());
  facts_.link_source = link_ ? std::string{link_->name()} : "none";
  if (!drops_) drops_.emplace();
  if (auto followed = drops_->follow(path.ifindex); !followed.has_value()) reporter_.say(followed.error().message());
  return success();
}

Result<void> Job::follow_path(const std::string& interface, const PathUpdate& path) {
  if (path.ifindex == ifindex_ || !has_kernel_link()) return success();
  if (auto moved = port_->move_to(interface); !moved.has_value()) {
    if (moved.error().code != ExitCode::privilege_missing) return moved.error();
    return Error{ExitCode::privilege_missing, "use the " + facts_.io_used + " port on " + interface,
                 facts_.interface + " is gone, and what opens the port anew was given up with root's privileges", "Run the same command again to go on"};
  }
  ONEHOP_TRY(limits, limits_on(path.ifindex));
  links_->limits.store(limits);
  ifindex_ = path.ifindex;
  facts_.interface = interface;
  if (!rate_thread_) return success();
  // The law goes on with what it has learnt; only who reads the link is another one.
  rate_thread_->stop();
  ONEHOP_TRYV(open_link_sources(path));
  rate_->set_sources(qdisc_ ? &*qdisc_ : nullptr, link_ ? &*link_ : nullptr);
  ONEHOP_TRYV(rate_thread_->start());
  rate_thread_->wake();
  return success();
}

void Job::note_drops() noexcept {
  if (!drops_) return;
  auto dropped = drops_->since_followed();
  if (dropped.has_value()) facts_.interface_drops = std::move(dropped).value();
  else facts_.interface_drops.reset();
}

}  // namespace onehop::tool
