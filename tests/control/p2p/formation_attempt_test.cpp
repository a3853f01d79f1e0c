// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   an attempt that fails, hangs, or comes to half a group is tried again, and ends in one
//         group or with nothing running.
// Method: events by hand, in virtual time.
// Bounds: none but equality.
#include "tests/control/p2p/driven.hpp"

using namespace onehop;
using namespace onehop::p2p;

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
    driven.feed(CallDone{refused()});
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
  SECTION("nothing happens") { driven.pass(41s); }
  CHECK(driven.all<Cancel>().size() == 1);
  driven.feed(PeerFound{box});
  CHECK(driven.all<Connect>().size() == 2);
}

TEST_CASE("a group that comes as its attempt is given up is taken, and no other program's",
          "[control][p2p]") {
  Driven driven{plan_of(connect_task, "box")};
  driven.feed(GroupStarted{group});
  CHECK_FALSE(driven.is_ended());
  driven.feed(PeerFound{box});
  driven.feed(CallDone{});
  driven.pass(41s);
  REQUIRE(driven.all<Cancel>().size() == 1);  // it searches again
  driven.feed(GroupFinished{"/interfaces/9"});
  driven.feed(GroupStarted{group});
  REQUIRE(driven.ended().group);
  CHECK(driven.ended().group->path == group.path);
  CHECK(driven.all<StopFind>().size() == 1);
}

TEST_CASE("the end of another program's group ends no negotiation", "[control][p2p]") {
  Driven driven{plan_of(connect_task, "box")};
  driven.feed(PeerFound{box});
  driven.feed(CallDone{});
  driven.feed(GroupFinished{"/interfaces/9"});
  CHECK(driven.all<Cancel>().empty());
}

TEST_CASE("the owner of a group that was negotiated waits until the peer is in it",
          "[control][p2p]") {
  Driven driven{plan_of(accept_task)};
  driven.feed(PeerFound{box});
  driven.feed(PeerAsked{box.path});
  driven.feed(CallDone{});
  driven.feed(GroupStarted{owned});
  CHECK_FALSE(driven.is_ended());
  SECTION("it joins") {
    driven.feed(PeerJoined{"/groups/9"});
    CHECK_FALSE(driven.is_ended());
    driven.feed(PeerJoined{owned.object});
    REQUIRE(driven.ended().group);
    CHECK(driven.ended().group->path == owned.path);
    CHECK(driven.all<Cancel>().empty());
  }
  SECTION("nobody tells, and the group lives") {
    driven.pass(11s);
    CHECK_FALSE(driven.is_ended());
    driven.pass(2s);
    CHECK(driven.ended().group);
  }
  SECTION("the peer pairs once more, and has as long again") {
    driven.pass(9s);
    driven.feed(GroupStarted{owned});
    driven.pass(9s);
    CHECK_FALSE(driven.is_ended());
    driven.pass(4s);
    CHECK(driven.ended().group);
  }
  SECTION("the group ends, and it is tried again") {
    driven.feed(GroupFinished{"/interfaces/9"});
    CHECK(driven.all<Cancel>().empty());
    driven.feed(GroupFinished{owned.path});
    CHECK(driven.all<Cancel>().size() == 1);
    CHECK(std::get<Find>(driven.last()).frequency == 0);
    driven.pass(1s);
    driven.feed(PeerFound{box});  // it asked before
    CHECK(driven.all<Connect>().size() == 2);
    driven.feed(GroupStarted{owned});
    driven.feed(PeerJoined{owned.object});
    CHECK(driven.ended().group);
  }
  SECTION("the peer comes back by push button, and nobody else") {
    driven.feed(JoinAsked{desk.path});
    CHECK(driven.all<Authorize>().empty());
    driven.feed(JoinAsked{box.path});
    REQUIRE(driven.all<Authorize>().size() == 1);
    CHECK(driven.all<Authorize>().front().group.path == owned.path);
  }
  SECTION("an interrupt") {
    driven.feed(Interrupted{});
    CHECK(driven.ended().error->code == ExitCode::interrupted);
    CHECK(driven.all<Cancel>().size() == 1);
  }
}

TEST_CASE("what follows a negotiation has its time, and a client looks for the group where it is",
          "[control][p2p]") {
  Driven driven{plan_of(connect_task, "box")};
  driven.feed(PeerFound{box});
  driven.feed(CallDone{});
  driven.pass(38s);  // the user there takes so long
  driven.feed(Negotiated{5180});
  driven.pass(10s);
  CHECK(driven.all<Cancel>().empty());
  driven.feed(AttemptFailed{"no handshake"});
  REQUIRE(std::holds_alternative<Find>(driven.last()));
  CHECK(std::get<Find>(driven.last()).frequency == 5180);
  CHECK_FALSE(std::get<Find>(driven.last()).is_social);
  driven.pass(4s);
  CHECK(std::get<Find>(driven.last()).frequency == 0);
  Peer with_group = box;
  with_group.is_group_owner = true;
  driven.feed(PeerFound{with_group});
  CHECK(driven.all<Connect>().back().is_join);
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

TEST_CASE("connect takes the next channel at once, and gives up behind the last",
          "[control][p2p]") {
  Plan plan = plan_of(connect_task, "box");
  plan.frequencies = {5180, 5745};
  Driven driven{plan};
  driven.feed(PeerFound{box});
  driven.feed(CallDone{wrong_channel()});
  REQUIRE(driven.all<Connect>().size() == 2);
  CHECK(driven.all<Connect>().back().frequency == 5745);
  CHECK(driven.all<Cancel>().empty());
  driven.feed(CallDone{wrong_channel()});
  CHECK(driven.ended().error->errno_value == ECHRNG);
}

TEST_CASE("the next channel is tried where the two have none in common", "[control][p2p]") {
  Plan plan = plan_of(connect_task, "box");
  plan.frequencies = {5180, 0};
  Driven driven{plan};
  driven.feed(PeerFound{box});
  driven.feed(CallDone{});
  driven.feed(AttemptFailed{.cause = "no channel", .kind = AttemptFailed::Kind::channel});
  driven.feed(PeerFound{box});
  REQUIRE(driven.all<Connect>().size() == 2);
  CHECK(driven.all<Connect>().back().frequency == 0);
}

TEST_CASE("an owner whose group fails twice in a row takes the next channel", "[control][p2p]") {
  Plan plan = plan_of(accept_task);
  plan.owner_intent = GENERATE(15, 0);
  plan.frequencies = {5180, 0};
  Driven driven{plan};
  driven.feed(PeerFound{box});
  driven.feed(PeerAsked{box.path});
  using Kind = AttemptFailed::Kind;
  for (const Kind kind : {Kind::group, Kind::other, Kind::group, Kind::group}) {
    CHECK(driven.all<Connect>().back().frequency == 5180);
    driven.feed(CallDone{});
    driven.feed(AttemptFailed{"no access point", kind});
    driven.pass(1s);
    driven.feed(PeerFound{box});
  }
  CHECK(driven.all<Connect>().back().frequency == (plan.owner_intent == 15 ? 0 : 5180));
}

TEST_CASE("who was chosen because nobody else was there, and does not accept, is chosen no more",
          "[control][p2p]") {
  Driven driven{plan_of(connect_task)};
  driven.feed(PeerFound{desk});
  driven.pass(4s);
  REQUIRE(driven.all<Connect>().size() == 1);
  driven.feed(CallDone{});
  driven.pass(41s);
  driven.feed(PeerFound{desk});
  CHECK(driven.all<Connect>().size() == 1);
  SECTION("another is there by now, and both are named") {
    driven.feed(PeerFound{box});
    driven.pass(4s);
    REQUIRE(driven.ended().error);
    CHECK(driven.ended().error->code == ExitCode::usage);
  }
  SECTION("it is still alone") {
    driven.pass(4s);
    CHECK(driven.all<Connect>().size() == 2);
  }
}

TEST_CASE("who looks for a peer without its name does not take one that looks as well",
          "[control][p2p]") {
  Driven driven{plan_of(connect_task)};
  driven.feed(PeerAsked{desk.path});  // before it is seen
  driven.feed(PeerFound{desk});
  driven.feed(PeerAsked{desk.path});  // and after that
  driven.feed(PeerFound{box});
  CHECK(driven.all<Connect>().empty());
  driven.pass(4s);
  CHECK(driven.ended().error->code == ExitCode::usage);
}

TEST_CASE("a failed pairing asks for the PIN only where there is one", "[control][p2p]") {
  Plan plan = plan_of(connect_task, "box");
  const bool has_pin = GENERATE(true, false);
  if (has_pin) plan.pairing = {Pairing::Method::enter_pin, "12345670"};
  plan.limit = 10s;
  Driven driven{plan};
  driven.feed(PeerFound{box});
  driven.feed(AttemptFailed{"pairing failed", AttemptFailed::Kind::pairing});
  driven.pass(11s);
  CHECK((driven.ended().error->cause.find("PIN") != std::string::npos) == has_pin);
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
