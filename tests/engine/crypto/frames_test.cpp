// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FrameSealer, FrameOpener and the replay window.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "engine/crypto/frame_sealer.hpp"
#include "tests/engine/base/child.hpp"

using namespace onehop::crypto;
using Verdict = FrameOpener::Verdict;

namespace {

constexpr std::uint64_t u64_max = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t short_interval = key_interval_min;

DirectionSecret secret(Direction direction, std::uint16_t queue = 0) {
  ExporterSecret exporter;
  for (auto& b : exporter.writable()) b = std::byte{0x42};
  return direction_secret(exporter, direction, queue);
}

struct Frame {
  std::uint64_t number = 0;
  bool key_phase = false;
  std::array<std::byte, 28> aad{};
  std::vector<std::byte> sealed;
};

// Link: a sealer, an opener, and frames between them.
struct Link {
  std::uint64_t interval;
  FrameSealer sealer;
  FrameOpener opener;

  explicit Link(std::uint64_t interval_packets, AeadBackend backend = AeadBackend::automatic)
      : interval{interval_packets},
        sealer{secret(Direction::from_sender), interval, backend},
        opener{secret(Direction::from_sender), {.interval = interval, .backend = backend}} {}

  [[nodiscard]] Frame seal(std::uint64_t number) {
    Frame frame{.number = number, .key_phase = sealer.key_phase(number)};
    frame.aad[8] = static_cast<std::byte>(number);
    const std::array<std::byte, 20> body{static_cast<std::byte>(number), std::byte{1},
                                         std::byte{2}};
    frame.sealed.resize(body.size() + aead_tag_bytes);
    sealer.seal(number, frame.aad, body, frame.sealed.data());
    return frame;
  }
  [[nodiscard]] Verdict open(const Frame& frame) {
    std::array<std::byte, 20> out{};
    const Verdict verdict =
        opener.open(frame.number, frame.key_phase, frame.aad, frame.sealed, out.data());
    if (verdict == Verdict::ok) CHECK(out[0] == static_cast<std::byte>(frame.number));
    return verdict;
  }
  [[nodiscard]] Verdict pass(std::uint64_t number) { return open(seal(number)); }
};

// forged gives a frame that claims `number` but carries nonsense, with the phase bit that the
// number asks for.
Frame forged(const Link& link, std::uint64_t number) {
  return {.number = number,
          .key_phase = link.sealer.key_phase(number),
          .aad = {},
          .sealed = std::vector<std::byte>(36, std::byte{0x66})};
}

}  // namespace

TEST_CASE("frames pass a key update at every interval, in every backend", "[crypto][frames]") {
  for (const AeadBackend backend :
       {AeadBackend::openssl, AeadBackend::automatic, AeadBackend::chacha20}) {
    Link link{short_interval, backend};
    for (std::uint64_t number = 1; number <= 3 * short_interval + 5; ++number)
      REQUIRE(link.pass(number) == Verdict::ok);
    CHECK(link.sealer.key_updates_total() == 3);
    CHECK(link.opener.key_updates_total() == 3);
    CHECK(link.opener.failures_total() == 0);
    CHECK_FALSE(link.sealer.key_phase(255));
    CHECK(link.sealer.key_phase(256));
    CHECK_FALSE(link.sealer.key_phase(512));
  }
}

TEST_CASE("a sealer and an opener of different backends understand each other",
          "[crypto][frames]") {
  FrameSealer sealer{secret(Direction::from_sender), short_interval, AeadBackend::openssl};
  FrameOpener opener{secret(Direction::from_sender), {.interval = short_interval}};
  const std::array<std::byte, 28> aad{};
  const std::array<std::byte, 3> body{};
  std::array<std::byte, 19> sealed{};
  for (std::uint64_t number = 250; number < 262; ++number) {
    sealer.seal(number, aad, body, sealed.data());
    CHECK(opener.open(number, sealer.key_phase(number), aad, sealed, sealed.data()) == Verdict::ok);
  }
}

TEST_CASE("frames overtaken across a key update still open", "[crypto][frames]") {
  Link link{short_interval};
  std::vector<Frame> frames;
  for (std::uint64_t number = 200; number < 312; ++number) frames.push_back(link.seal(number));
  std::mt19937_64 random{31};
  std::shuffle(frames.begin(), frames.end(), random);
  for (const Frame& frame : frames) REQUIRE(link.open(frame) == Verdict::ok);
  for (const Frame& frame : frames) REQUIRE(link.open(frame) == Verdict::replay);
}

TEST_CASE("a jump over a long loss is one key update", "[crypto][frames]") {
  Link link{short_interval};
  REQUIRE(link.pass(10) == Verdict::ok);
  const std::uint64_t far = FrameOpener::jump_packets_max + 300;
  // Of generations between: they were on the way during the jump.
  const Frame late = link.seal(far - 2 * short_interval), later = link.seal(far - short_interval);
  REQUIRE(link.pass(far) == Verdict::ok);
  CHECK(link.opener.key_updates_total() == 1);
  CHECK(link.open(late) == Verdict::ok);
  CHECK(link.open(later) == Verdict::ok);
  CHECK(link.pass(far + 1) == Verdict::ok);  // the late ones took nothing away from the current key
  CHECK(link.opener.key_updates_total() == 1);
}

TEST_CASE("generations too far ahead, or behind the previous one, are refused without work",
          "[crypto][frames]") {
  Link link{short_interval};
  const std::uint64_t ahead = FrameOpener::jump_packets_max / short_interval + 2;  // generations
  REQUIRE(link.pass(0) == Verdict::ok);
  const Frame last = link.seal(ahead * short_interval);
  const Frame beyond = link.seal((ahead + 1) * short_interval);
  CHECK(link.open(beyond) == Verdict::bad_tag);
  CHECK(link.opener.failures_total() == 0);
  CHECK(link.open(last) == Verdict::ok);
  CHECK(link.open(beyond) == Verdict::ok);  // it is next to current now

  Link old{short_interval};
  std::vector<Frame> frames;
  for (std::uint64_t generation = 0; generation < 4; ++generation) {
    frames.push_back(old.seal(generation * short_interval));
    frames.push_back(old.seal(generation * short_interval + 1));
  }
  for (std::size_t i = 0; i < frames.size(); i += 2) REQUIRE(old.open(frames[i]) == Verdict::ok);
  CHECK(old.open(frames[1]) == Verdict::bad_tag);  // generation 0: true, but long gone
  CHECK(old.open(frames[3]) == Verdict::bad_tag);
  CHECK(old.open(frames[5]) == Verdict::ok);  // the previous one
  CHECK(old.open(frames[7]) == Verdict::ok);
  CHECK(old.opener.failures_total() == 0);
}

TEST_CASE("N1 forged generations evict nothing", "[crypto][frames]") {
  Link link{short_interval};
  REQUIRE(link.pass(1) == Verdict::ok);
  REQUIRE(link.pass(short_interval + 1) == Verdict::ok);  // current is 1, previous is 0
  for (int i = 0; i < 50; ++i)
    REQUIRE(link.open(forged(link, 2 * short_interval + 7)) == Verdict::bad_tag);
  for (std::uint64_t g = 3; g < 53; ++g)
    REQUIRE(link.open(forged(link, g * short_interval)) == Verdict::bad_tag);
  CHECK(link.opener.failures_total() == 100);
  CHECK(link.opener.key_updates_total() == 1);
  CHECK(link.pass(short_interval + 2) ==
        Verdict::ok);  // current is still there, and the numbers were not marked
  CHECK(link.pass(2 * short_interval + 7) == Verdict::ok);
  CHECK(link.opener.key_updates_total() == 2);

  // Before the first true frame a forged one may not fix the generation either.
  Link fresh{short_interval};
  CHECK(fresh.open(forged(fresh, u64_max)) == Verdict::bad_tag);
  CHECK(fresh.pass(1) == Verdict::ok);
}

TEST_CASE("N1 a wrong phase bit, direction, queue or session does not open", "[crypto][frames]") {
  Link link{short_interval};
  Frame frame = link.seal(5);
  frame.key_phase = !frame.key_phase;
  CHECK(link.open(frame) == Verdict::bad_tag);
  CHECK(link.opener.failures_total() == 0);
  frame.key_phase = !frame.key_phase;
  std::array<std::byte, 64> out{};
  // Reflected: our own frame sent back to us arrives at the opener of the other direction.
  FrameOpener reflected{secret(Direction::from_receiver), {.interval = short_interval}};
  FrameOpener other_queue{secret(Direction::from_sender, 1), {.interval = short_interval}};
  FrameOpener other_session{DirectionSecret{}, {.interval = short_interval}};
  for (FrameOpener* const opener : {&reflected, &other_queue, &other_session})
    CHECK(opener->open(frame.number, frame.key_phase, frame.aad, frame.sealed, out.data()) ==
          Verdict::bad_tag);
  CHECK(link.opener.open(5, false, frame.aad, std::span{frame.sealed}.first(15), out.data()) ==
        Verdict::bad_tag);
  CHECK(link.open(frame) == Verdict::ok);
}

TEST_CASE("N2 T2 replayed frames are not opened, also near 2^64", "[crypto][frames]") {
  const auto start = GENERATE(std::uint64_t{1}, std::uint64_t{1} << 32, u64_max - 700);
  CAPTURE(start);
  Link link{short_interval};
  std::vector<Frame> frames;
  for (std::uint64_t i = 0; i <= 700; ++i) {
    frames.push_back(link.seal(start + i));
    REQUIRE(link.open(frames.back()) == Verdict::ok);
  }
  std::array<std::byte, 20> out{};
  for (const Frame& frame : frames) {
    out.fill(std::byte{0xcc});
    REQUIRE(link.opener.open(frame.number, frame.key_phase, frame.aad, frame.sealed, out.data()) ==
            Verdict::replay);
    REQUIRE(std::all_of(out.begin(), out.end(), [](std::byte b) { return b == std::byte{0xcc}; }));
  }
}

TEST_CASE("N2 a forged frame does not use up a number", "[crypto][frames]") {
  Link link{key_interval_default};
  const Frame frame = link.seal(100);
  CHECK(link.open(forged(link, 100)) == Verdict::bad_tag);
  CHECK(link.open(forged(link, 100 + ReplayWindow::window_packets)) == Verdict::bad_tag);
  CHECK(link.open(frame) == Verdict::ok);
  CHECK(link.open(frame) == Verdict::replay);
}

TEST_CASE("K1 a packet number used twice, or backwards, stops the sender", "[crypto][frames]") {
  const auto ends = [](std::uint64_t first, std::uint64_t second) {
    return onehop::test::run_in_child([&] {
      Link link{short_interval};
      (void)link.seal(first);
      (void)link.seal(second);
    });
  };
  CHECK(ends(5, 6).signal == 0);
  CHECK(ends(0, 0).signal == SIGABRT);
  CHECK(ends(5, 5).said.find("packet_number > newest_") != std::string::npos);
  CHECK(ends(5, 4).signal == SIGABRT);
  CHECK(ends(u64_max, 0).signal == SIGABRT);  // a wrap is a reuse
}

TEST_CASE("K1 a forked child cannot go on with its parent's key", "[crypto][frames]") {
  Link link{short_interval};
  (void)link.seal(1);
  const auto end = onehop::test::run_in_child([&] { (void)link.seal(2); });
  CHECK(end.signal == SIGABRT);
  CHECK(end.said.find("fork_generation") != std::string::npos);
  (void)link.seal(2);  // the parent goes on
}

TEST_CASE("K2 beyond the limit of forgeries nothing is opened", "[crypto][frames]") {
  const AeadBackend backend = GENERATE(AeadBackend::automatic, AeadBackend::chacha20);
  CHECK(FrameOpener::failures_max(backend) == std::uint64_t{1}
                                                  << (backend == AeadBackend::chacha20 ? 36 : 52));
  FrameSealer sealer{secret(Direction::from_sender), short_interval, backend};
  FrameOpener opener{secret(Direction::from_sender),
                     {.interval = short_interval,
                      .backend = backend,
                      .failures_total = FrameOpener::failures_max(backend) - 2}};
  const std::array<std::byte, 28> aad{};
  const std::array<std::byte, 4> body{};
  std::array<std::byte, 20> sealed{}, bad{}, out{};
  const auto open_next = [&](std::uint64_t number) {
    sealer.seal(number, aad, body, sealed.data());
    return opener.open(number, sealer.key_phase(number), aad, sealed, out.data());
  };
  CHECK(open_next(1) == Verdict::ok);
  CHECK(opener.open(50, false, aad, bad, out.data()) == Verdict::bad_tag);
  CHECK_FALSE(opener.is_exhausted());
  CHECK(open_next(2) == Verdict::ok);
  CHECK(opener.open(51, false, aad, bad, out.data()) == Verdict::bad_tag);
  CHECK(opener.is_exhausted());
  CHECK(open_next(3) == Verdict::bad_tag);
}

// Goal:   the bitmap says the same as a plain set of the numbers seen.
// Method: random numbers around a newest one that creeps, jumps within the window, and jumps beyond
// it.
TEST_CASE("N2 T2 the replay window agrees with a plain set of numbers", "[crypto][replay_window]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U);
  CAPTURE(seed);
  std::mt19937_64 random{seed};
  constexpr std::uint64_t window = ReplayWindow::window_packets;
  const std::uint64_t start = seed % 2 == 0 ? u64_max - 4'000'000 : random() % 100;
  ReplayWindow replay;
  std::set<std::uint64_t> seen;
  std::uint64_t newest = start;
  std::uint64_t wrong = 0;
  for (int i = 0; i < 60'000; ++i) {
    const std::uint64_t forward = random() % 1000 == 0 ? random() % (3 * window) : random() % 4;
    const std::uint64_t back = random() % 3 == 0 ? random() % (window + 100) : 0;
    std::uint64_t number = u64_max - newest < forward ? u64_max : newest + forward;
    number -= std::min(back, number);
    const bool is_fresh =
        seen.empty() || number > newest || (newest - number < window && seen.count(number) == 0);
    wrong += replay.check(number) != is_fresh;
    if (!is_fresh || random() % 5 == 0) continue;
    replay.mark(number);
    seen.insert(number);
    newest = seen.size() == 1 ? number : std::max(newest, number);
  }
  CHECK(wrong == 0);
  CHECK(seen.size() > 10'000);
}

TEST_CASE("N2 the replay window is exactly as wide as it says", "[crypto][replay_window]") {
  constexpr std::uint64_t window = ReplayWindow::window_packets;
  for (const std::uint64_t newest : {window - 1, window + 62, 10 * window + 63, u64_max}) {
    CAPTURE(newest);
    ReplayWindow replay;
    CHECK(replay.is_empty());
    replay.mark(newest);
    CHECK_FALSE(replay.check(newest));
    CHECK(replay.check(newest - (window - 1)));
    if (newest >= window) CHECK_FALSE(replay.check(newest - window));
    replay.mark(newest - (window - 1));
    CHECK_FALSE(replay.check(newest - (window - 1)));
    CHECK(replay.newest() == newest);
  }
}
