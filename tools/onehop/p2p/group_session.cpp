// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/p2p/group_session.hpp"

#include "control/p2p/group_link.hpp"
#include "control/p2p/station.hpp"
#include "control/p2p/stop_fd.hpp"
#include "engine/base/time.hpp"
#include "tools/onehop/p2p/forming.hpp"
#include "tools/onehop/p2p/stop_signals.hpp"

namespace onehop::p2p {

namespace {

/// The receiver owns the group: what it takes is acknowledged by the side that sends the beacons.
constexpr int sender_intent = 0;
/// People start the two commands by hand, one after the other.
constexpr Nanos form_limit = 300s;
/// From our address to the other end's answer: its address needs a second, and its link another.
constexpr Nanos member_limit = 30s;

Plan plan_for(const GroupSession::Options& options) {
  Plan plan{.task = options.is_sending ? Plan::Task::connect : Plan::Task::host,
            .peer = options.peer};
  plan.owner_intent = sender_intent;
  plan.is_accepting_alone = options.is_sending;
  if (!options.is_sending) plan.frequencies = host_bands();
  plan.limit = form_limit;
  return plan;
}

/// find_receiver: in our group the receiver is its owner.
Result<std::string> find_receiver(Supplicant& supplicant, const Formed& formed, int stop_fd) {
  const auto members = wait_for_members(formed.group.interface_name, member_limit, stop_fd);
  // Read now: it is missing while the client is not connected.
  const auto group = supplicant.group_at(formed.group.path);
  const bool is_client = group && group->role == Role::client;
  return receiver_of(members, is_client ? link_local_of(group->bssid) : "");
}

}  // namespace

Result<std::string> receiver_of(const Result<std::vector<std::string>>& members,
                                const std::string& owner) {
  if (members.has_error() && (owner.empty() || members.error().code == ExitCode::interrupted))
    return members.error();
  if (members.has_error() || (members.value().size() > 1 && !owner.empty())) return owner;
  if (members.value().size() == 1) return members.value().front();
  return Error{ExitCode::usage, "find the receiver in the group",
               std::to_string(members.value().size()) + " machines answer there",
               "Leave --p2p out, and name its address with --to", 0};
}

Result<GroupSession> GroupSession::form(const Options& options, const tool::Reporter& reporter) {
  const StopSignals stop;
  ONEHOP_TRY(keeper, GroupKeeper::start(options.interface));
  ONEHOP_TRY(supplicant, open_radio(options.interface));
  if (options.is_sending) reporter.say("looking for a machine that runs 'onehop recv --p2p'");
  Plan plan = plan_for(options);
  const Instant give_up_at = monotonic_now() + plan.limit;
  // Once for all attempts; the keeper gives it back.
  ONEHOP_TRYV(take_radio(supplicant, stop.fd(),
                         [&reporter](const std::string& text) { reporter.say(text); }));
  for (;;) {
    auto formed = form_with_address(supplicant, plan, reporter, stop.fd());
    if (formed.has_value())
      tell_group(supplicant, view_of(formed.value().group, formed.value().address), reporter);
    Result<std::string> peer = std::string{};
    if (formed.has_error())
      peer = formed.error();
    else if (options.is_sending)
      peer = find_receiver(supplicant, formed.value(), stop.fd());
    // One that came in the last moments would be swallowed.
    if (is_stopped(stop.fd(), Nanos{0}))
      return Error{ExitCode::interrupted, "form a group", "interrupted"};
    if (peer.has_value()) {
      keeper.keep(formed.value().group.path);
      GroupSession session{std::move(keeper), std::move(supplicant), formed.value().group};
      session.own_ = formed.value().address;
      session.peer_ = peer.value();
      return session;
    }
    plan.limit = give_up_at - monotonic_now();
    const bool is_group_over = peer.error().code == ExitCode::timed_out &&
                               peer.error().errno_value == 0;  // else the bus does not answer
    if (!is_group_over || plan.limit <= Nanos{0}) return peer.error();
    if (formed.has_value()) (void)supplicant.remove_group(formed.value().group.path);
    reporter.warn(peer.error().message() + ". Forming the group again");
  }
}

Result<std::shared_ptr<GroupDoor>> GroupSession::keep_open(const tool::Reporter& reporter,
                                                           std::function<void()> on_gone) {
  const auto gone = [&reporter, on_gone = std::move(on_gone)] {
    reporter.warn("the group has ended, and was not formed again. Run it again on both machines");
    on_gone();
  };
  ONEHOP_TRY(door, GroupDoor::open(
                       *std::move(supplicant_), group_,
                       {.on_text = [&reporter](const std::string& text) { reporter.say(text); },
                        .on_gone = gone}));
  supplicant_.reset();
  return std::shared_ptr<GroupDoor>{std::move(door)};
}

}  // namespace onehop::p2p
