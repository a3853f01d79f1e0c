// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DataPath, the link below a session: what is read of it, and what happens when the path gets
// another one.
#include <algorithm>

#include "control/transfer/data_path.hpp"
#include "engine/base/rate_text.hpp"
#include "engine/base/system/interface.hpp"

namespace onehop::transfer {

Result<Limits> DataPath::limits_on(int ifindex) const {
  Limits limits;
  if (auto link = read_interface(ifindex);
      has_kernel_link() && link.has_value() && !is_software(link.value()))
    limits.link_rate = read_link_rate(link.value().name);
  if (!settings_.rate_max.empty()) {
    ONEHOP_TRY(made, parse_rate(settings_.rate_max));
    limits.rate_max = std::move(made);
  }
  return limits;
}

Result<void> DataPath::open_link_sources(const PathUpdate& path) {
  const PortKind* const kind = port_kind(account_.facts.io_used);
  link::LinkOptions link_options{.ifindex = path.ifindex,
                                 .peer = std::nullopt,
                                 .has_qdisc = kind != nullptr && kind->has_own_qdisc,
                                 .model_path = settings_.link_model};
  // The peer's link address stands first in the header template, where the neighbour is known.
  const auto target = std::span{path.header}.first<6>();
  if (path.has_neighbour) std::ranges::copy(target, link_options.peer.emplace().begin());
  auto watch = link::LinkWatch::open(link_options);
  if (!watch.has_value() && !settings_.link_model.empty()) return watch.error();
  if (watch.has_value())
    link_ = std::move(watch).value();
  else
    events_.say("no facts of the link: " + watch.error().message());
  account_.facts.link_source = link_ ? std::string{link_->name()} : "none";
  if (!drops_) drops_.emplace();
  if (auto followed = drops_->follow(path.ifindex); !followed.has_value())
    events_.say(followed.error().message());
  return success();
}

Result<void> DataPath::follow_path(const std::string& interface, const PathUpdate& path) {
  if (path.ifindex == ifindex_ || !has_kernel_link()) return success();
  if (auto moved = port_->move_to(interface); !moved.has_value()) {
    if (moved.error().code != ExitCode::privilege_missing) return moved.error();
    return Error{ExitCode::privilege_missing,
                 "use the " + account_.facts.io_used + " port on " + interface,
                 account_.facts.interface +
                     " is gone, and what opens the port anew was given up with root's privileges",
                 "Run the same command again to go on"};
  }
  ONEHOP_TRY(limits, limits_on(path.ifindex));
  links_->limits.store(limits);
  ifindex_ = path.ifindex;
  account_.facts.interface = interface;
  path_ = path;
  return reopen_link_sources(path);
}

Result<void> DataPath::fall_back() {
  ONEHOP_TRY(port, port_->local_port());
  const onehop::Endpoint local{*port_address_, port};
  const std::string interface = account_.facts.interface;
  ONEHOP_TRYV(port_->fall_back(
      {.settings = settings_, .interface = interface, .local = local, .role = port_role()}, peer_,
      engine_ != nullptr));
  tell_port(interface);
  events_.warn("--io auto: " + account_.facts.io_reason + "; goes on over UDP");
  return reopen_link_sources(path_);
}

/// The law goes on with what it has learnt; only who reads the link is another one.
Result<void> DataPath::reopen_link_sources(const PathUpdate& path) {
  if (!rate_thread_.joinable()) return success();
  rate_thread_.request_stop();
  rate_thread_.join();
  // Facts of the old link would be a lie, and the model's socket takes one reader.
  rate_->set_source(nullptr);
  link_.reset();
  ONEHOP_TRYV(open_link_sources(path));
  rate_->set_source(link_ ? &*link_ : nullptr);
  ONEHOP_TRY(started, rate::start_rate_thread(*rate_));
  rate_thread_ = std::move(started);
  return success();
}

void DataPath::note_drops() noexcept {
  if (!drops_) return;
  auto& known = account_.facts.interface_drops;
  known.reset();
  if (auto dropped = drops_->since_followed(); dropped.has_value())
    known = std::move(dropped).value();
}

}  // namespace onehop::transfer
