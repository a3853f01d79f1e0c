// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a data path is taken for dead when frames are lost on it, and not when its link is down.
// Method: rounds of a proof by hand; what is heard on the control connection and what the link does
//         in each.
#include "control/session/path_proof.hpp"

#include <catch2/catch.hpp>

using namespace onehop;
using namespace onehop::session;
using Verdict = PathProof::Verdict;

namespace {

constexpr Nanos round_span = 2s;

/// Rounds plays proofs one after the other.
struct Rounds {
  PathProof proof;
  Instant now{10s};
  Rounds() { proof.begin(now, true); }
  /// play ends a round in which the peer answered on the control connection, or not.
  Verdict play(bool is_answered, bool can_fall_back = false, bool is_link_up = true) {
    proof.begin_round(now, is_link_up);
    const Instant heard_at = is_answered ? now + 5ms : now - 5ms;
    now += round_span;
    return proof.end_round(now, heard_at, can_fall_back);
  }
};

}  // namespace

TEST_CASE("two rounds without a frame over a live control connection are a dead path",
          "[control][session]") {
  Rounds rounds;
  CHECK(rounds.play(true) == Verdict::again);  // the other end takes its other port in it
  CHECK(rounds.play(true) == Verdict::dead);
}

TEST_CASE("N10 a round in which the control connection is silent, or our link down, does not count",
          "[control][session]") {
  Rounds rounds;
  CHECK(rounds.play(true) == Verdict::again);
  for (int i = 0; i < 10; ++i) CHECK(rounds.play(false) == Verdict::again);
  CHECK(rounds.play(true) == Verdict::again);  // the link may have come back in it
  CHECK(rounds.play(true, false, false) == Verdict::again);
  rounds.proof.begin_round(rounds.now, true);
  rounds.proof.note_link(false);  // fell and came back in the middle
  rounds.proof.note_link(true);
  CHECK(rounds.proof.end_round(rounds.now + round_span, rounds.now + 1s, false) == Verdict::again);
  CHECK(rounds.play(true) == Verdict::again);
  CHECK(rounds.play(true) == Verdict::dead);
}

TEST_CASE("a link that comes and goes is not waited for forever", "[control][session]") {
  Rounds rounds;
  int count = 0;
  for (; count < 100 && rounds.play(count % 2 == 0) != Verdict::dead; ++count) {
  }
  CHECK(count * round_span >= PathProof::total_max - round_span);
  CHECK(count * round_span <= PathProof::total_max + round_span);
}

TEST_CASE("an end with another port takes it before the path counts as dead",
          "[control][session]") {
  Rounds rounds;
  CHECK_FALSE(rounds.proof.is_fall_back_due(rounds.now + 1999ms, rounds.now + 1ms));
  CHECK(rounds.proof.is_fall_back_due(rounds.now + 2s, rounds.now + 1ms));
  CHECK_FALSE(
      rounds.proof.is_fall_back_due(rounds.now + 2s, rounds.now - 1ms));  // a link that is down
  CHECK(rounds.play(false, true) == Verdict::again);
  CHECK(rounds.play(true, true) == Verdict::fall_back);
  CHECK(rounds.play(true) == Verdict::again);
  CHECK(rounds.play(true) == Verdict::dead);
  Rounds proven;
  proven.proof.note_proven();
  CHECK_FALSE(proven.proof.is_fall_back_due(proven.now + 3s, proven.now + 1s));
  CHECK_FALSE(proven.proof.is_over());
  proven.proof.note_peer_ready();
  CHECK(proven.proof.is_over());
}
