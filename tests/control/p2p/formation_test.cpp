// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   each way into a group, and each way in which it fails, asks wpa_supplicant for the right
//         things in the right order, and leaves nothing running.
// Method: events by hand, in virtual time. What wpa_supplicant does with the actions is played in
//         tests/vm/p2p_connect by wpa_supplicant itself.
// Bounds: none but equality.
#include "tests/control/p2p/driven.hpp"

using namespace onehop;
using namespace onehop::p2p;

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

TEST_CASE("connect without a name takes the one that accepts among all that are there",
          "[control][p2p]") {
  Plan plan = plan_of(connect_task);
  plan.is_accepting_alone = GENERATE(false, true);
  Driven driven{plan};
  for (const Peer& peer : {box, owner, receiver}) driven.feed(PeerFound{peer});
  SECTION("there is one") {
    driven.pass(4s);
    REQUIRE(driven.all<Connect>().size() == 1);
    CHECK(driven.all<Connect>().front().peer_path == receiver.path);
  }
  SECTION("there are two, and they alone are named") {
    Peer second = desk;
    second.is_accepting = true;
    driven.feed(PeerFound{second});
    driven.pass(4s);
    REQUIRE(driven.ended().error);
    CHECK(driven.ended().error->code == ExitCode::usage);
    CHECK(driven.ended().error->cause ==
          "there are several: desk (02:00:00:00:02:00), "
          "receiver (02:00:00:00:04:00)");
  }
}

TEST_CASE("a sender waits for the one that accepts, whoever else is there", "[control][p2p]") {
  Plan plan = plan_of(connect_task);
  plan.is_accepting_alone = true;
  plan.limit = 60s;
  Driven driven{plan};
  driven.feed(PeerFound{desk});
  driven.feed(PeerFound{box});
  SECTION("devices are there for something else, and another sender is one of them") {
    driven.feed(PeerAsked{desk.path});
    driven.pass(30s);
    CHECK(driven.all<Connect>().empty());
    driven.feed(PeerFound{receiver});
    driven.pass(4s);
    CHECK(driven.all<Connect>().size() == 1);
  }
  SECTION("an owner of a group may be the one: it is asked when nobody else has come") {
    driven.feed(PeerFound{owner});
    driven.pass(9s);
    CHECK(driven.all<Connect>().empty());
    driven.pass(2s);
    REQUIRE(driven.all<Connect>().size() == 1);
    CHECK(driven.all<Connect>().front().is_join);
  }
  SECTION("of several owners it takes none, and goes on waiting") {
    Peer second = owner;
    second.path = "/peers/5";
    driven.feed(PeerFound{owner});
    driven.feed(PeerFound{second});
    driven.pass(15s);
    CHECK(driven.all<Connect>().empty());
    driven.feed(PeerFound{receiver});
    driven.pass(4s);
    REQUIRE(driven.all<Connect>().size() == 1);
    CHECK(driven.all<Connect>().front().peer_path == receiver.path);
  }
  SECTION("nobody comes: it says who was there") {
    driven.pass(61s);
    REQUIRE(driven.ended().error);
    CHECK(driven.ended().error->code == ExitCode::peer_unreachable);
    CHECK(driven.ended().error->cause.find("desk") != std::string::npos);
    CHECK(driven.ended().error->hint ==
          "Run 'onehop recv --p2p' on the other machine, or name it with --peer");
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
    driven.feed(CallDone{refused()});
    CHECK(driven.ended().error->cause == "connect failed");
  }
  SECTION("the band will not do") {
    driven.feed(CallDone{wrong_channel()});
    REQUIRE(driven.all<AddGroup>().size() == 2);
    CHECK(driven.all<AddGroup>().back().frequency == 0);
    CHECK(driven.all<Say>().size() == 1);  // a fallback is told of
    driven.feed(CallDone{wrong_channel()});
    CHECK(driven.ended().error);
  }
}

TEST_CASE("a PIN that is shown stays the same in further attempts", "[control][p2p]") {
  Plan plan = plan_of(connect_task, "box");
  plan.pairing = {Pairing::Method::show_pin, "12345670"};
  Driven driven{plan};
  driven.feed(PeerFound{box});
  driven.feed(CallDone{});
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
