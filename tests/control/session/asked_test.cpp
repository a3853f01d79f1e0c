// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   an offer is no question about the receiver's files: what nobody has agreed to compare is
//         refused without a reason, and slowly. A receiver gets the digest that it asks for.
// Method: real sessions over loopback TCP and TLS; the host refuses, or requires.
#include <catch2/catch.hpp>

#include <chrono>

#include "tests/control/session/raw_peer.hpp"

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

namespace {

Error refusal(std::string cause) {
  return {ExitCode::local_file_error, "receive 'pin.txt'", std::move(cause), "", EEXIST};
}
list::Answer unsaid(Error why) {
  list::Answer decision;
  decision.refusal = std::move(why);
  return decision;
}

}  // namespace

TEST_CASE("P5 a refusal tells the peer nothing of this machine that nobody agreed to tell",
          "[control][session]") {
  std::string told[2];
  for (int i = 0; i < 2; ++i) {
    World world;
    world.recv_host.answer = [&](const OfferedVolume&, const Decide& decide) {
      decide(unsaid(refusal(i == 0 ? "that name exists" : "another file system")));
    };
    world.listen();
    REQUIRE(world.send_to_end() == ExitCode::refused_by_peer);
    CHECK(world.recv_end->code == ExitCode::local_file_error);  // its own person is told
    CHECK(world.recv_end->error.message().find("pin.txt") != std::string::npos);
    told[i] = world.send_end->error.message();
    CHECK(told[i].find("pin") == std::string::npos);
    CHECK(told[i].find("exist") == std::string::npos);
  }
  const auto behind_address = [](const std::string& text) { return text.substr(text.find(": ")); };
  CHECK(behind_address(told[0]) == behind_address(told[1]));
}

TEST_CASE("what an offer itself is refused for is told", "[control][session]") {
  World world;
  world.recv_host.answer = [&](const OfferedVolume&, const Decide& decide) {
    decide(refusal("too little room"));
  };
  world.listen();
  world.send();
  REQUIRE(world.run_to_end());
  CHECK(world.send_end->error.message().find("too little room") != std::string::npos);
}

// Bounds: the pause of a wrong code lies before the next attempt, and not before the first.
TEST_CASE("P5 a sender that was refused without a reason waits before it can ask again",
          "[control][session]") {
  World world;
  world.recv_options.is_once = false;
  world.recv_options.limits.guess_pause = 300ms;
  world.recv_host.answer = [&](const OfferedVolume&, const Decide& decide) {
    decide(unsaid(refusal("that name exists")));
  };
  world.listen();
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    world.send_end.reset();
    world.send();
    REQUIRE(world.run([&] { return world.send_end.has_value(); }));
    CHECK(world.send_end->code == ExitCode::refused_by_peer);
  }
  CHECK(std::chrono::steady_clock::now() - begun >= 600ms);
  world.server->interrupt();
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
}

TEST_CASE("a receiver that requires SHA-256 gets it from a sender that did not ask for it",
          "[control][session]") {
  World world;
  world.recv_options.is_sha256_required = true;
  world.listen();
  REQUIRE(world.send_to_end() == ExitCode::done);
  CHECK(world.recv_host.offer->digest == crypto::DigestKind::sha256);
  CHECK(world.send_host.plan->context.digest == crypto::DigestKind::sha256);
  CHECK(std::ranges::equal(world.send_host.plan->compare_key.bytes(),
                           world.recv_host.plan->compare_key.bytes()));
  CHECK_FALSE(std::ranges::equal(world.send_host.plan->compare_key.bytes(),
                                 world.send_host.plan->secret.bytes().first<16>()));
}

TEST_CASE("a sender that does not follow is refused, and told what was asked for",
          "[control][session]") {
  World world;
  world.recv_options.is_sha256_required = true;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender}};
  peer.connect(world.recv_host.port, offer_messages(some_manifest()));  // XXH3
  REQUIRE(world.run([&] { return peer.is_over; }));
  CHECK(peer.find<RequireSha256>() != nullptr);
  REQUIRE(peer.find<Refuse>() != nullptr);
  CHECK(peer.find<Refuse>()->text.find("SHA-256") != std::string::npos);
  CHECK(world.recv_host.offer == nullptr);
}
