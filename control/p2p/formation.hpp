// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Formation: the state machine that forms a Wi-Fi Direct group, without I/O.
//
//              ┌────── attempt failed, Connect refused ──────┐
//              ▼                                             │
//   begin ─▶ finding ── the peer is there, or asks ─▶ negotiating ── GroupStarted ─▶ ended (group)
//     │        ▲                                             │ as its owner                ▲
//     │        └──────────── the group ended ──────────── settling ── the peer joined ─────┤
//     └────▶ starting (host) ─────────────────────────────── GroupStarted ─────────────────┘
//                   any ── limit, interrupt ─▶ ended (error), with Cancel and StopFind before
//
// step() takes the time and one event and returns the actions to perform; the caller passes their
// results back as events. So tests run it in virtual time. It owns only its state; one thread.
//
// Properties of wpa_supplicant that require a state machine: it refuses Connect for a peer of which
// it heard only a request, until the next search has seen the peer; two searches may miss each
// other for seconds; a negotiation may fail if both sides begin one at the same moment; an owner
// gets GroupStarted before the peer has joined, and the group ends after 10 s if that fails.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/p2p/types.hpp"
#include "engine/base/result.hpp"

namespace onehop::p2p {

// Events.
struct Begun {};
struct PeerFound {
  Peer peer;
};
struct PeerLost {
  std::string path;
};
struct FindEnded {};
/// A peer asks for a group by a GO negotiation request.
struct PeerAsked {
  std::string path;
};
/// Both sides agreed on the owner and the channel; Wi-Fi Protected Setup follows.
struct Negotiated {
  int frequency = 0;  ///< MHz
};
/// A peer asks by push button to join a group that we own.
struct JoinAsked {
  std::string path;
};
/// The result of Connect or AddGroup. An error with errno_value ECHRNG: another channel may work.
struct CallDone {
  std::optional<Error> error;
};
/// The negotiation, or the Wi-Fi Protected Setup after it, failed.
struct AttemptFailed {
  enum class Kind {
    other,
    channel,  ///< the two have none in common
    pairing,
    group,  ///< the agreed group did not start
  };
  std::string cause;
  Kind kind = Kind::other;
};
struct GroupStarted {
  Group group;
};
struct GroupFinished {
  std::string path;  ///< of the group's interface
};
/// A peer joined a group that we own; its key is proven.
struct PeerJoined {
  std::string group_object;
};
struct Interrupted {};
struct TimePassed {};
using Event =
    std::variant<Begun, PeerFound, PeerLost, FindEnded, PeerAsked, Negotiated, JoinAsked, CallDone,
                 AttemptFailed, GroupStarted, GroupFinished, PeerJoined, Interrupted, TimePassed>;

// Actions.
struct Find {
  Nanos span{};
  /// Search only channels 1, 6 and 11, where devices without a group listen: a round takes less
  /// than a second. Only a scan of all channels finds owners of groups.
  bool is_social = true;
  int frequency = 0;  ///< MHz; if not social: only this channel and the social ones
};
struct StopFind {};
struct Connect {
  std::string peer_path, peer_address;
  Pairing pairing;
  int owner_intent = 7;
  int frequency = 0;
  bool is_join = false;  ///< the peer owns a group
  bool is_persistent = false;
};
struct AddGroup {
  int frequency = 0;
  bool is_persistent = false;
};
struct Cancel {};
/// Authorize presses the button of a group that we own.
struct Authorize {
  Group group;
};
struct ShowPeer {
  Peer peer;
};
struct ShowPin {
  std::string pin;
};
struct Say {
  std::string text;
};
/// The last action. find: neither of the two.
struct Ended {
  std::optional<Error> error;
  std::optional<Group> group;
};
using Action = std::variant<Find, StopFind, Connect, AddGroup, Cancel, Authorize, ShowPeer, ShowPin,
                            Say, Ended>;

class Formation {
 public:
  explicit Formation(Plan plan) : plan_{std::move(plan)} {}

  /// step processes one event. Perform the actions in order; the results of Connect and AddGroup
  /// are the next events. After Ended it returns nothing.
  [[nodiscard]] std::vector<Action> step(Instant now, const Event& event);
  /// next_wakeup is when step() wants a TimePassed, if no other event comes before.
  [[nodiscard]] Instant next_wakeup() const;
  [[nodiscard]] bool is_ended() const { return state_ == State::ended; }

 private:
  enum class State { idle, finding, negotiating, settling, starting, ended };

  void on(const Begun&);
  void on(const PeerFound& found);
  void on(const PeerLost& lost);
  void on(const FindEnded&);
  void on(const PeerAsked& asked);
  void on(const Negotiated& negotiated);
  void on(const JoinAsked& asked);
  void on(const CallDone& done);
  void on(const AttemptFailed& failed);
  void on(const GroupStarted& started);
  void on(const GroupFinished& finished);
  void on(const PeerJoined& joined);
  void on(const Interrupted&);
  void on(const TimePassed&) {}

  void look_at_time();
  void find();
  void choose();
  void connect(const Peer& peer);
  void start();
  void retry(const std::string& cause);
  bool take_next_channel(const std::string& cause);
  void fail(ExitCode code, std::string cause, std::string hint);
  void end(std::optional<Error> error, std::optional<Group> group);
  void time_out();
  [[nodiscard]] bool is_meant(const Peer& peer) const;
  [[nodiscard]] std::string attempt() const;
  [[nodiscard]] bool is_task(Plan::Task task) const { return plan_.task == task; }

  Plan plan_;
  State state_ = State::idle;
  Instant now_{}, give_up_at_{}, found_from_{}, find_again_at_{}, choose_at_{}, attempt_ends_at_{};
  std::map<std::string, Peer> peers_;  // by path
  std::string asking_;                 // path of a peer that asked before it was known
  Peer target_;
  Group group_;             // while it settles
  int frequency_ = 0;       // that the newest negotiation agreed on
  std::string last_cause_;  // of the newest failed attempt
  int attempts_ = 0, finds_ = 0;
  int group_failures_ = 0;   // in a row
  std::size_t channel_ = 0;  // of plan_.frequencies
  std::vector<Action> actions_;
};

}  // namespace onehop::p2p
