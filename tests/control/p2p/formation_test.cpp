// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   each way into a group, and each way in which it fails, asks wpa_supplicant for the right
//         things in the right order, and leaves nothing running.
// Method: events by hand, in virtual time. What wpa_supplicant does with the actions is played in
//         tests/vm/p2p_connect by wpa_supplicant itself.
// Bounds: none but equality.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cerrno>

#include "control/p2p/formation.hpp"

using namespace onehop;
using namespace onehop::p2p;

namespace {

const Peer box{
    .path = "/peers/1", .name = "box", .address = "02:00:00:00:01:00", .signal_dbm = -40};
const Peer desk{.path = "/peers/2", .name = "desk", .address = "02:00:00:00:02:00"};
const Peer owner{
    .path = "/peers/3", .name = "owner", .address = "02:00:00:00:03:00", .is_group_owner = true};
const Group group{.path = "/interfaces/1", .interface_name = "p2p-wlan0-0"};

/// Driven is a Formation with its clock and everything that it asked for.
class Driven {
 public:
  explicit Driven(const Plan& plan) : formation_{plan} { feed(Begun{}); }

  void feed(const Event& event) {
    for (Action& action : formation_.step(now_, event)) actions_.push_back(std::move(action));
  }
  /// pass runs the clock on, with every wake-up that is asked for.
  void pass(Nanos span) {
    const Instant until = now_ + span;
    while (!formation_.is_ended() && formation_.next_wakeup() <= until) {
      now_ = std::max(now_, formation_.next_wakeup());
      feed(TimePassed{});
      REQUIRE(++steps_ < 1000);
    }
    now_ = until;
  }
  template <class A>
  [[nodiscard]] std::vector<A> all() const {
    std::vector<A> found;
    for (const Action& action : actions_)
      if (const auto* one = std::get_if<A>(&action)) found.push_back(*one);
    return found;
  }
  [[nodiscard]] const Ended& ended() const {
    REQUIRE_FALSE(actions_.empty());
    const auto* last = std::get_if<Ended>(&actions_.back());
    REQUIRE(last != nullptr);
    return *last;
  }
  [[nodiscard]] bool is_ended() const { return formation_.is_ended(); }

 private:
  Formation formation_;
  Instant now_{1000s};
  std::vector<Action> actions_;
  int steps_ = 0;
};

Plan plan_of(Plan::Task task, std::string peer = {}) {
  return {.task = task, .peer = std::move(peer)};
}
constexpr auto find_task = Plan::Task::find, connect_task = Plan::Task::connect,
               accept_task = Plan::Task::accept, host_task = Plan::Task::host;

Error refused() { return {ExitCode::io_unavailable, "connect", "connect failed"}; }

Error wrong_channel() {
  Error error = refused();
  error.errno_value = ECHRNG;
  return error;
}

}  // namespace

TEST_CASE("find shows each peer once and ends without an error", "[control][p2p]") {
  Plan plan = plan_of(find_task);
  plan.limit = 10s;
  Driven driven{plan};
  REQUIRE(driven.all<Find>().size() == 1);
  CHECK_FALSE(driven.all<Find>().front().is_social);  // owners of groups are on any channel
  driven.feed(PeerFound{box});
  driven.feed(PeerFound{box});
  driven.feed(PeerFound{owner});
  CHECK(driven.all<ShowPeer>().size() == 2);
  driven.pass(11s);
  CHECK_FALSE(driven.ended().error);
  CHECK(driven.all<StopFind>().size() == 1);
}

TEST_CASE("connect negotiates with the peer that is named, by name or address", "[control][p2p]") {
  const std::string wanted = GENERATE(std::string{"box"}, std::string{"02:00:00:00:01:00"});
  Driven driven{plan_of(connect_task, wanted)};
  driven.feed(PeerFound{desk});
  CHECK(driven.all<Connect>().empty());
  driven.feed(PeerFound{box});
  REQUIRE(driven.all<Connect>().size() == 1);
  CHECK(driven.all<Connect>().front().peer_path == box.path);
  CHECK_FALSE(driven.all<Connect>().front().is_join);
  driven.feed(CallDone{});
  driven.feed(GroupStarted{group});
  REQUIRE(driven.ended().group);
  CHECK(driven.ended().group->interface_name == "p2p-wlan0-0");
}

TEST_CASE("connect joins a peer that owns a group already", "[control][p2p]") {
  Driven driven{plan_of(connect_task, "owner")};
  driven.feed(PeerFound{owner});
  REQUIRE(driven.all<Connect>().size() == 1);
  CHECK(driven.all<Connect>().front().is_join);
}

TEST_CASE("join takes nobody who owns no group", "[control][p2p]") {
  Plan plan = plan_of(connect_task);
  plan.is_join = true;
  Driven driven{plan};
  CHECK_FALSE(driven.all<Find>().front().is_social);
  driven.feed(PeerFound{box});
  driven.pass(5s);
  CHECK(driven.all<Connect>().empty());
  driven.feed(PeerFound{owner});
  driven.pass(5s);
  CHECK(driven.all<Connect>().size() == 1);
}

TEST_CASE("connect without a name waits whether there is a second peer", "[control][p2p]") {
  Driven driven{plan_of(connect_task)};
  driven.feed(PeerFound{box});
  CHECK(driven.all<Connect>().empty());
  SECTION("there is none") {
    driven.pass(4s);
    CHECK(driven.all<Connect>().size() == 1);
  }
  SECTION("there is one, and both are named") {
    driven.feed(PeerFound{desk});
    driven.pass(4s);
    REQUIRE(driven.ended().error);
    CHECK(driven.ended().error->code == ExitCode::usage);
    CHECK(driven.ended().error->cause.find("box") != std::string::npos);
    CHECK(driven.ended().error->cause.find("desk") != std::string::npos);
  }
}

TEST_CASE("accept answers a request, of the peer that is named", "[control][p2p]") {
  Driven driven{plan_of(accept_task, "box")};
  driven.feed(PeerFound{box});
  driven.feed(PeerFound{desk});
  CHECK(driven.all<Connect>().empty());
  driven.feed(PeerAsked{desk.path});
  CHECK(driven.all<Connect>().empty());
  driven.feed(PeerAsked{box.path});
  CHECK(driven.all<Connect>().size() == 1);
}

TEST_CASE("accept waits for the name of a peer that asks before it was seen", "[control][p2p]") {
  Driven driven{plan_of(accept_task)};
  driven.feed(PeerAsked{box.path});
  CHECK(driven.all<Connect>().empty());
  driven.feed(PeerFound{desk});
  CHECK(driven.all<Connect>().empty());
  driven.feed(PeerFound{box});
  REQUIRE(driven.all<Connect>().size() == 1);
  CHECK(driven.all<Connect>().front().peer_path == box.path);
}

TEST_CASE("a peer that is not named is not accepted, though it asked before it was seen",
          "[control][p2p]") {
  Driven driven{plan_of(accept_task, "box")};
  driven.feed(PeerAsked{desk.path});
  driven.feed(PeerFound{desk});
  CHECK(driven.all<Connect>().empty());
  driven.feed(PeerFound{box});
  driven.feed(PeerAsked{box.path});
  CHECK(driven.all<Connect>().size() == 1);
}

TEST_CASE("a search that ends is begun again, and the end of the one before ends nothing",
          "[control][p2p]") {
  Driven driven{plan_of(accept_task)};
  driven.feed(FindEnded{});
  CHECK(driven.all<Find>().size() == 1);
  driven.pass(2s);
  driven.feed(FindEnded{});
  CHECK(driven.all<Find>().size() == 2);
  driven.pass(11s);  // and where nobody tells of an end
  CHECK(driven.all<Find>().size() == 3);
}

TEST_CASE("a refused Connect is tried again after a search", "[control][p2p]") {
  const auto task = GENERATE(connect_task, accept_task);
  Driven driven{plan_of(task, "box")};
  const auto begin = [&] {
    driven.feed(PeerFound{box});
    if (task == accept_task) driven.feed(PeerAsked{box.path});
  };
  begin();
  for (std::size_t tries = 1; tries <= 4; ++tries) {
    REQUIRE(driven.all<Connect>().size() == tries);
    driven.feed(CallDone{refused(), {}});
    CHECK(driven.all<Cancel>().size() == tries);  // nothing half done is left
    driven.pass(1s);
    driven.feed(PeerFound{box});  // seen anew
  }
  driven.feed(CallDone{});
  driven.feed(GroupStarted{group});
  CHECK(driven.ended().group);
}

TEST_CASE("a negotiation that fails, or hangs, is tried again", "[control][p2p]") {
  Driven driven{plan_of(connect_task, "box")};
  driven.feed(PeerFound{box});
  driven.feed(CallDone{});
  SECTION("it fails") { driven.feed(AttemptFailed{"no channel in common"}); }
  SECTION("its group ends again") { driven.feed(GroupFinished{group.path}); }
  SECTION("nothing happens") { driven.pass(41s); }
  CHECK(driven.all<Cancel>().size() == 1);
  driven.feed(PeerFound{box});
  CHECK(driven.all<Connect>().size() == 2);
}

TEST_CASE("after its limit it gives up, says the last cause, and leaves nothing",
          "[control][p2p]") {
  Plan plan = plan_of(connect_task, "box");
  plan.limit = 30s;
  Driven driven{plan};
  SECTION("no peer was there") {
    driven.pass(31s);
    CHECK(driven.ended().error->code == ExitCode::peer_unreachable);
  }
  SECTION("the peer never accepted") {
    driven.feed(PeerFound{box});
    driven.feed(CallDone{});
    driven.pass(31s);
    CHECK(driven.ended().error->code == ExitCode::timed_out);
    CHECK(driven.all<Cancel>().size() == 1);
  }
  SECTION("it failed") {
    driven.feed(PeerFound{box});
    driven.feed(AttemptFailed{"the two have no channel in common"});
    driven.pass(31s);
    CHECK(driven.ended().error->cause == "the two have no channel in common");
  }
  CHECK_FALSE(driven.all<StopFind>().empty());
}

TEST_CASE("an interrupt ends everything that runs", "[control][p2p]") {
  Driven driven{plan_of(connect_task, "box")};
  SECTION("in the search") {}
  SECTION("in the negotiation") {
    driven.feed(PeerFound{box});
    driven.feed(CallDone{});
  }
  const bool is_negotiating = !driven.all<Connect>().empty();
  driven.feed(Interrupted{});
  CHECK(driven.ended().error->code == ExitCode::interrupted);
  CHECK(driven.all<Cancel>().size() == (is_negotiating ? 1U : 0U));
  CHECK(driven.all<StopFind>().size() == 1);
  driven.feed(PeerFound{desk});
  CHECK(std::holds_alternative<Ended>(Action{driven.ended()}));  // nothing follows it
}

TEST_CASE("host starts a group and says why it cannot", "[control][p2p]") {
  Plan plan = plan_of(host_task);
  plan.frequencies = {5, 0};
  Driven driven{plan};
  REQUIRE(driven.all<AddGroup>().size() == 1);
  CHECK(driven.all<AddGroup>().front().frequency == 5);
  SECTION("it starts") {
    driven.feed(CallDone{});
    driven.feed(GroupStarted{group});
    CHECK(driven.ended().group);
  }
  SECTION("it is refused") {
    driven.feed(CallDone{refused(), {}});
    CHECK(driven.ended().error->cause == "connect failed");
  }
  SECTION("the band will not do") {
    driven.feed(CallDone{wrong_channel(), {}});
    REQUIRE(driven.all<AddGroup>().size() == 2);
    CHECK(driven.all<AddGroup>().back().frequency == 0);
    CHECK(driven.all<Say>().size() == 1);  // a fallback is told of
    driven.feed(CallDone{wrong_channel(), {}});
    CHECK(driven.ended().error);
  }
}

TEST_CASE("connect takes the next channel at once, and gives up behind the last",
          "[control][p2p]") {
  Plan plan = plan_of(connect_task, "box");
  plan.frequencies = {5180, 5745};
  Driven driven{plan};
  driven.feed(PeerFound{box});
  driven.feed(CallDone{wrong_channel(), {}});
  REQUIRE(driven.all<Connect>().size() == 2);
  CHECK(driven.all<Connect>().back().frequency == 5745);
  CHECK(driven.all<Cancel>().empty());
  driven.feed(CallDone{wrong_channel(), {}});
  CHECK(driven.ended().error->errno_value == ECHRNG);
}

TEST_CASE("the next channel is tried where the two have none in common", "[control][p2p]") {
  Plan plan = plan_of(connect_task, "box");
  plan.frequencies = {5180, 0};
  Driven driven{plan};
  driven.feed(PeerFound{box});
  driven.feed(CallDone{});
  driven.feed(AttemptFailed{.cause = "no channel", .is_channel = true});
  driven.feed(PeerFound{box});
  REQUIRE(driven.all<Connect>().size() == 2);
  CHECK(driven.all<Connect>().back().frequency == 0);
}

TEST_CASE("a PIN that is shown stays the same in further attempts", "[control][p2p]") {
  Plan plan = plan_of(connect_task, "box");
  plan.pairing.method = Pairing::Method::show_pin;
  Driven driven{plan};
  driven.feed(PeerFound{box});
  driven.feed(CallDone{std::nullopt, "12345670"});
  driven.feed(AttemptFailed{"once"});
  driven.feed(PeerFound{box});
  REQUIRE(driven.all<Connect>().size() == 2);
  CHECK(driven.all<Connect>().back().pairing.pin == "12345670");
  driven.feed(CallDone{});
  CHECK(driven.all<ShowPin>().size() == 1);
}

TEST_CASE("a PIN that is made here is shown at once, and ends in its check digit",
          "[control][p2p]") {
  CHECK(make_pin(1234567) == "12345670");
  CHECK(make_pin(0) == "00000000");
  CHECK(make_pin(4607) == "00046077");
  Plan plan = plan_of(accept_task);
  plan.pairing = {Pairing::Method::show_pin, make_pin(1234567)};
  Driven driven{plan};
  REQUIRE(driven.all<ShowPin>().size() == 1);
  CHECK(driven.all<ShowPin>().front().pin == "12345670");
}

TEST_CASE("after a failure a peer that asks is answered when the new search knows it",
          "[control][p2p]") {
  Driven driven{plan_of(accept_task)};
  driven.feed(PeerFound{box});
  driven.feed(PeerAsked{box.path});
  REQUIRE(driven.all<Connect>().size() == 1);
  driven.feed(AttemptFailed{"no answer"});
  driven.feed(PeerAsked{box.path});  // wpa_supplicant would refuse a Connect now
  CHECK(driven.all<Connect>().size() == 1);
  driven.feed(PeerFound{box});
  CHECK(driven.all<Connect>().size() == 2);
}

TEST_CASE("Z4 a peer's name cannot write to the terminal", "[control][p2p]") {
  const auto said_of = [](std::string name) {
    Driven driven{plan_of(connect_task, "02:00:00:00:01:00")};
    Peer peer = box;
    peer.name = std::move(name);
    driven.feed(PeerFound{peer});
    REQUIRE(driven.all<Say>().size() == 1);
    return driven.all<Say>().front().text;
  };
  CHECK(said_of("a\x1b[2Jb\n") == "connecting to a\\u{1B}[2Jb\\u{A} (02:00:00:00:01:00)");
  CHECK(said_of("a\xc2\x9b"
                "2J") == "connecting to a\\u{9B}2J (02:00:00:00:01:00)");
  CHECK(said_of("a\xe2\x80\xae"
                "b") == "connecting to a\\u{202E}b (02:00:00:00:01:00)");  // right to left
  CHECK(said_of("M\xc3\xbcller") == "connecting to M\xc3\xbcller (02:00:00:00:01:00)");

  Driven several{plan_of(connect_task)};
  Peer other = desk;
  other.name = "b\x1b]0;";
  several.feed(PeerFound{box});
  several.feed(PeerFound{other});
  several.pass(5s);
  CHECK(several.ended().error->cause.find("b\\u{1B}]0;") != std::string::npos);
}
