// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/formation.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include "engine/base/display_name.hpp"

namespace onehop::p2p {

namespace {

/// A search that wpa_supplicant ends by itself, unless we do before. Too short: the two ends miss
/// each other. Too long: a peer that Connect was refused for is looked for too late.
constexpr Nanos find_span = 10s;
/// Within this a search does not end by itself; a report of an end is about the one before. Too
/// long: a search that wpa_supplicant broke off is begun again later than it could be.
constexpr Nanos echo_span = 1s;
/// After a refused Connect: long enough for a round over the three social channels, which took 1 to
/// 2 s on mac80211_hwsim.
constexpr Nanos retry_span = 3s;
/// From the first peer to the choice, where none was named: a second one has to be noticed.
constexpr Nanos choice_span = 3s;
/// The same for an owner of a group, which does not tell whether it is meant: printers and
/// screens own some. Too short: such a one is asked before the receiver was heard. Too long: a
/// sender that comes back to its receiver's group waits for nothing.
constexpr Nanos owner_choice_span = 10s;
/// One negotiation with Wi-Fi Protected Setup took 3 to 8 s on mac80211_hwsim. The other side may
/// need time to accept; wpa_supplicant waits for that, so a long attempt costs nothing.
constexpr Nanos attempt_span = 40s;
/// From an owner's GroupStarted to the first member. wpa_supplicant ends the group after 10 s
/// without one (P2P_MAX_INITIAL_CONN_WAIT_GO), so a group that lives longer has one, even
/// unreported.
constexpr Nanos settle_span = 12s;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string said_name(const Peer& peer) {
  return display_name(peer.name) + " (" + peer.address + ")";
}

void add_name(std::string& names, const Peer& peer) {
  names += (names.empty() ? "" : ", ") + said_name(peer);
}

}  // namespace

std::vector<Action> Formation::step(Instant now, const Event& event) {
  now_ = now;
  if (!is_ended()) std::visit([this](const auto& one) { on(one); }, event);
  if (!is_ended() && state_ != State::idle) look_at_time();
  return std::exchange(actions_, {});
}

Instant Formation::next_wakeup() const {
  if (is_ended() || state_ == State::idle) return Instant::max();
  Instant at = give_up_at_;
  for (const Instant other : {find_again_at_, choose_at_, attempt_ends_at_})
    if (other != Instant{}) at = std::min(at, other);
  return at;
}

void Formation::on(const Begun&) {
  give_up_at_ = now_ + plan_.limit;
  // The side that enters it needs it before it can ask.
  if (plan_.pairing.method == Pairing::Method::show_pin)
    actions_.push_back(ShowPin{plan_.pairing.pin});
  if (!is_task(Plan::Task::host)) return find();
  start();
}

void Formation::start() {
  state_ = State::starting;
  actions_.push_back(AddGroup{plan_.frequencies[channel_], plan_.is_persistent});
}

bool Formation::take_next_channel(const std::string& cause) {
  if (channel_ + 1 >= plan_.frequencies.size()) return false;
  const auto name = [](int frequency) {
    return frequency == 0   ? std::string{"a channel of the radio's own choice"}
           : frequency < 10 ? std::to_string(frequency) + " GHz"
                            : std::to_string(frequency) + " MHz";
  };
  const std::string before = name(plan_.frequencies[channel_]);
  ++channel_;
  actions_.push_back(
      Say{before + ": " + cause + ". Now trying " + name(plan_.frequencies[channel_])});
  return true;
}

void Formation::on(const PeerFound& found) {
  const bool is_new = peers_.insert_or_assign(found.peer.path, found.peer).second;
  if (is_task(Plan::Task::find)) {
    if (is_new) actions_.push_back(ShowPeer{found.peer});
    return;
  }
  if (state_ != State::finding) return;
  if (!is_meant(found.peer)) return;
  if (found.peer.path == asking_) return connect(found.peer);
  if (!is_task(Plan::Task::connect)) return;
  if (!plan_.peer.empty() || found.peer.path == target_.path) return connect(found.peer);
  const bool is_sure = found.peer.is_accepting || !plan_.is_accepting_alone;
  const Instant at = now_ + (is_sure ? choice_span : owner_choice_span);
  choose_at_ = choose_at_ == Instant{} ? at : std::min(choose_at_, at);
}

void Formation::on(const PeerLost& lost) { peers_.erase(lost.path); }

void Formation::on(const FindEnded&) {
  if (state_ != State::finding || is_task(Plan::Task::find)) return;
  // A new search ends the previous one, and FindEnded of that comes after the new one has begun.
  if (now_ - found_from_ >= echo_span) find();
}

void Formation::on(const PeerAsked& asked) {
  if (state_ != State::finding || is_task(Plan::Task::find)) return;
  // A user who looks for the only peer there is has not asked for a peer that does the same.
  if (is_task(Plan::Task::connect) && plan_.peer.empty() && asked.path != target_.path) return;
  const auto known = peers_.find(asked.path);
  if (known == peers_.end()) {
    asking_ = asked.path;  // the search that runs tells its name
    return;
  }
  // A `connect` that is asked by its own peer answers at once.
  if (is_meant(known->second)) connect(known->second);
}

void Formation::on(const Negotiated& negotiated) {
  if (state_ != State::negotiating) return;
  frequency_ = negotiated.frequency;
  attempt_ends_at_ = now_ + attempt_span;  // it has accepted: do not cancel what follows
}

void Formation::on(const JoinAsked& asked) {
  // Its first try failed behind the negotiation, and it has found the group that came of that.
  if (state_ == State::settling && asked.path == target_.path &&
      plan_.pairing.method == Pairing::Method::button)
    actions_.push_back(Authorize{group_});
}

void Formation::on(const CallDone& done) {
  if (!done.error) return;
  const bool is_channel = done.error->errno_value == ECHRNG;
  const bool has_next = is_channel && take_next_channel(done.error->cause);
  if (state_ == State::starting) return has_next ? start() : end(done.error, std::nullopt);
  if (state_ != State::negotiating) return;
  if (has_next) return connect(target_);
  // No channel will do: further attempts would end alike.
  is_channel ? end(done.error, std::nullopt) : retry(done.error->cause);
}

void Formation::on(const AttemptFailed& failed) {
  if (state_ != State::negotiating) return;
  using Kind = AttemptFailed::Kind;
  group_failures_ = failed.kind == Kind::group ? group_failures_ + 1 : 0;
  // Twice in a row: our access point may not start where it should.
  const bool is_channel = failed.kind == Kind::channel ||
                          (group_failures_ == 2 && plan_.owner_intent >= likely_owner_intent);
  if (is_channel) {
    (void)take_next_channel(failed.cause);
    group_failures_ = 0;
  }
  const bool has_pin = plan_.pairing.method != Pairing::Method::button;
  retry(failed.cause + (failed.kind == Kind::pairing && has_pin ? " (was the PIN right?)" : ""));
}

void Formation::on(const GroupStarted& started) {
  // Somebody has paired once more, and has as long again to join.
  if (state_ == State::settling && started.group.path == group_.path)
    attempt_ends_at_ = now_ + settle_span;
  // One that comes as its attempt is given up is ours; without an attempt it is another program's.
  const bool is_late = state_ == State::finding && attempts_ > 0;
  if (!is_late && state_ != State::negotiating && state_ != State::starting) return;
  if (state_ == State::starting || started.group.role == Role::client)
    return end(std::nullopt, started.group);
  if (is_late) actions_.push_back(StopFind{});
  group_ = started.group;
  state_ = State::settling;
  choose_at_ = find_again_at_ = Instant{};
  attempt_ends_at_ = now_ + settle_span;
}

void Formation::on(const GroupFinished& finished) {
  if (state_ == State::settling && finished.path == group_.path)
    retry("the group ended before the other side was in it");
}

void Formation::on(const PeerJoined& joined) {
  if (state_ == State::settling && joined.group_object == group_.object) end(std::nullopt, group_);
}

void Formation::on(const Interrupted&) { fail(ExitCode::interrupted, "interrupted", ""); }

void Formation::look_at_time() {
  if (now_ >= give_up_at_) return time_out();
  const auto is_due = [this](Instant& at) {
    return at != Instant{} && now_ >= at && (at = Instant{}, true);
  };
  if (is_due(choose_at_)) choose();
  if (is_due(find_again_at_) && state_ == State::finding) find();
  if (!is_due(attempt_ends_at_)) return;
  if (state_ == State::negotiating) {
    retry("the other side has not accepted");
    // Without a name it may not be the one that is meant: choose anew among all that are there.
    if (plan_.peer.empty() && is_task(Plan::Task::connect)) target_ = {};
  }
  if (state_ == State::settling) end(std::nullopt, group_);
}

void Formation::find() {
  state_ = State::finding;
  found_from_ = now_;
  const bool is_all = is_task(Plan::Task::find);
  const Nanos left = give_up_at_ - now_;
  const Nanos span = is_all ? left : std::min(left, find_span);
  find_again_at_ = is_all ? Instant{} : now_ + span;
  // Owners of groups are on any channel: every third search looks at all of them.
  const bool is_social =
      !is_all && !plan_.is_join && (is_task(Plan::Task::accept) || finds_ % 3 != 2);
  ++finds_;
  actions_.push_back(Find{span, is_social});
}

void Formation::choose() {
  if (state_ != State::finding || !is_task(Plan::Task::connect)) return;
  std::vector<const Peer*> meant;
  for (const auto& [path, peer] : peers_)
    if (is_meant(peer)) meant.push_back(&peer);
  const auto is_silent = [](const Peer* peer) { return !peer->is_accepting; };
  const bool is_any_accepting = !std::ranges::all_of(meant, is_silent);
  if (is_any_accepting) std::erase_if(meant, is_silent);
  if (meant.size() == 1) return connect(*meant.front());
  // Owners of groups are no reason to end: the one that is meant may still come.
  if (meant.empty() || (plan_.is_accepting_alone && !is_any_accepting)) return;
  std::string names;
  for (const Peer* peer : meant) add_name(names, *peer);
  fail(ExitCode::usage, "there are several: " + names,
       plan_.is_accepting_alone ? "Name the one that is meant with --peer"
                                : "Name the one that is meant");
}

void Formation::connect(const Peer& peer) {
  target_ = peer;
  asking_.clear();
  choose_at_ = find_again_at_ = Instant{};
  state_ = State::negotiating;
  attempt_ends_at_ = now_ + attempt_span;
  if (attempts_++ == 0) actions_.push_back(Say{"connecting to " + said_name(peer)});
  actions_.push_back(Connect{.peer_path = peer.path,
                             .peer_address = peer.address,
                             .pairing = plan_.pairing,
                             .owner_intent = plan_.owner_intent,
                             .frequency = peer.is_group_owner ? 0 : plan_.frequencies[channel_],
                             .is_join = peer.is_group_owner,
                             .is_persistent = plan_.is_persistent});
}

void Formation::retry(const std::string& cause) {
  last_cause_ = cause;
  attempt_ends_at_ = Instant{};
  actions_.push_back(Cancel{});
  peers_.clear();  // the next search reports them anew, and knows them
  if (is_task(Plan::Task::accept)) asking_ = target_.path;
  state_ = State::finding;
  found_from_ = now_;
  find_again_at_ = now_ + retry_span;
  // A group may have come of it at the other end, for some seconds: look where it would be.
  const int frequency = is_task(Plan::Task::connect) ? std::exchange(frequency_, 0) : 0;
  actions_.push_back(Find{retry_span, !target_.is_group_owner && frequency == 0, frequency});
}

void Formation::time_out() {
  if (is_task(Plan::Task::find)) return end(std::nullopt, std::nullopt);
  if (state_ == State::settling) return end(std::nullopt, group_);
  if (is_task(Plan::Task::host))
    return fail(ExitCode::timed_out, "wpa_supplicant has not started it", "See its log");
  const bool is_sender = plan_.is_accepting_alone;
  if (attempts_ > 0)
    return fail(ExitCode::timed_out,
                last_cause_.empty() ? "the other side has not accepted" : last_cause_,
                is_sender ? "Run 'onehop recv --p2p' there"
                          : "Run 'onehop p2p accept' there, with the same PIN or none");
  if (is_task(Plan::Task::accept))
    return fail(ExitCode::timed_out, "no peer has asked for a group",
                "Run 'onehop p2p connect' on the other machine");
  std::string names;
  for (const auto& [path, peer] : peers_) add_name(names, peer);
  const std::string other = is_sender ? "recv --p2p" : "p2p accept";
  fail(ExitCode::peer_unreachable,
       names.empty() ? "no peer was found" : "it is not among the peers that were found: " + names,
       "Run 'onehop " + other + "' on the other machine, " +
           (is_sender && plan_.peer.empty() ? "or name it with --peer"
                                            : "and see 'onehop p2p find' here"));
}

void Formation::fail(ExitCode code, std::string cause, std::string hint) {
  end(Error{code, attempt(), std::move(cause), std::move(hint)}, std::nullopt);
}

void Formation::end(std::optional<Error> error, std::optional<Group> group) {
  // Cancel also removes the interface of a group that is half formed.
  if (error && (state_ == State::negotiating || state_ == State::settling))
    actions_.push_back(Cancel{});
  if (state_ == State::finding || error) actions_.push_back(StopFind{});
  state_ = State::ended;
  actions_.push_back(Ended{std::move(error), std::move(group)});
}

bool Formation::is_meant(const Peer& peer) const {
  if (plan_.is_join && !peer.is_group_owner) return false;
  if (!plan_.peer.empty()) return plan_.peer == peer.name || lower(plan_.peer) == peer.address;
  return !plan_.is_accepting_alone || peer.is_accepting || peer.is_group_owner;
}

std::string Formation::attempt() const {
  const std::string with = plan_.peer.empty() ? "a peer" : plan_.peer;
  switch (plan_.task) {
    case Plan::Task::find: return "find peers";
    case Plan::Task::connect: return (plan_.is_join ? "join the group of " : "connect to ") + with;
    case Plan::Task::accept: return "accept " + with;
    case Plan::Task::host: return "start a group";
  }
  return {};
}

}  // namespace onehop::p2p
