// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/p2p/group_session.hpp"

#include "control/p2p/group_link.hpp"
#include "tools/p2p/forming.hpp"
#include "tools/p2p/stop_signals.hpp"

namespace onehop::p2p {

namespace {

/// The receiver owns the group: what it takes is acknowledged by the side that sends the beacons.
constexpr int receiver_intent = 15, sender_intent = 0;
/// People start the two commands by hand, one after the other.
constexpr Nanos form_limit = 300s;
/// From our address to the other end's answer: its address needs a second, and its link another.
constexpr Nanos member_limit = 30s, member_settle = 300ms;

Plan plan_for(const GroupSession::Options& options) {
  Plan plan{.task = options.is_sending ? Plan::Task::connect : Plan::Task::accept,
            .peer = options.peer};
  plan.owner_intent = options.is_sending ? sender_intent : receiver_intent;
  if (!options.is_sending) plan.frequencies = owner_channels();
  plan.limit = form_limit;
  return plan;
}

}  // namespace

Result<GroupSession> GroupSession::form(const Options& options, const tool::Reporter& reporter) {
  const StopSignals stop;
  ONEHOP_TRY(keeper, GroupKeeper::start(options.interface));
  ONEHOP_TRY(supplicant, open_radio(options.interface));
  reporter.say(options.is_sending ? "looking for a machine that runs 'onehop recv --p2p'"
                                  : "waiting for 'onehop send FILE --p2p' on the other machine");
  ONEHOP_TRY(formed, form_with_address(supplicant, plan_for(options), reporter, stop.fd()));
  keeper.keep(formed.group.path);
  tell_group(supplicant, view_of(formed.group, formed.address), reporter);
  GroupSession session{std::move(keeper), std::move(supplicant), formed.group};
  session.own_ = formed.address;
  if (!options.is_sending) return session;
  ONEHOP_TRY(members,
             wait_for_members(session.interface(), member_limit, member_settle, stop.fd()));
  if (members.size() > 1)
    return Error{ExitCode::usage, "find the receiver in the group",
                 std::to_string(members.size()) + " machines answer there",
                 "Leave --p2p out, and name its address with --to", 0};
  session.peer_ = members.front();
  return session;
}

Result<std::shared_ptr<GroupDoor>> GroupSession::keep_open(const tool::Reporter& reporter,
                                                           std::function<void()> on_gone) {
  const auto gone = [&reporter, on_gone = std::move(on_gone)] {
    reporter.warn("the group has ended, and was not formed again. Run it again on both machines");
    on_gone();
  };
  ONEHOP_TRY(door,
             GroupDoor::open(*std::move(supplicant_), group_,
                             {[&reporter](const std::string& text) { reporter.say(text); }, gone}));
  supplicant_.reset();
  return std::shared_ptr<GroupDoor>{std::move(door)};
}

}  // namespace onehop::p2p
