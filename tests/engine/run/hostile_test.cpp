// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What frames without the session's key may do to a loop: be counted as dropped, and nothing else.
#include <catch2/catch.hpp>

#include "tests/engine/run/loop_bench.hpp"

using namespace onehop;
using namespace onehop::run;
using Frame = RawPeer::Frame;

namespace {

std::vector<std::byte> body_of(std::size_t bytes) {
  return std::vector<std::byte>(bytes, std::byte{0x33});
}
std::vector<std::byte> ping_body(std::size_t bytes) { return std::vector<std::byte>(bytes); }

Frame feedback_frame(RawPeer& peer, std::uint64_t number, const wire::Feedback& feedback) {
  std::vector<std::byte> body(wire::feedback_body_bytes_max);
  std::size_t covered = 0;
  body.resize(wire::encode_feedback(feedback, body, covered));
  return peer.sealed(
      {.type = wire::FrameType::feedback, .packet_number = number, .settled = number}, body);
}

/// Target: a loop that is attacked at one end of a link, the attacker and the true peer at the
/// other.
template <class Loop>
struct Target {
  Target(bool is_sender, const auto& config)
      : port{link, is_sender ? 0U : 1U},
        loop{std::make_unique<Loop>(port, keys_of(is_sender), config, side.links())},
        peer{link, is_sender ? 1U : 0U, keys_of(!is_sender)},
        stranger{link, is_sender ? 1U : 0U, keys_of(!is_sender, 9)},
        itself{link, is_sender ? 1U : 0U, keys_of(is_sender)} {}
  VirtualLink link{{.seed = 3, .frames_max = 4096}};
  VirtualPort port;
  Side side;
  std::unique_ptr<Loop> loop;
  RawPeer peer, stranger, itself;
  std::vector<std::byte> memory = std::vector<std::byte>(4 * block_bytes);
  Instant now{1s};
  void turn(Nanos span = 1ms) {
    now += span;
    link.run_until(now);
    (void)loop->turn(now);
  }
  /// attack delivers each frame, some at a time.
  void attack(const std::vector<Frame>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      peer.send(now, frames[i]);
      if (i % 32 == 31) turn(1ms);
    }
    for (int i = 0; i < 3; ++i) turn(2ms);  // for the answers to arrive as well
  }
};

struct SenderTarget : Target<SenderLoop<VirtualPort>> {
  SenderTarget() : Target{true, sender_config()} {}
};

constexpr std::array<std::uint64_t, 2> receiver_sizes{10'000'000, 0};
struct ReceiverTarget : Target<ReceiverLoop<VirtualPort>> {
  ReceiverTarget() : Target{false, receiver_config(receiver_sizes)} {
    for (std::uint32_t slot = 0; slot < 4; ++slot)
      REQUIRE(side.from_file.push(
          {.data = memory.data() + std::size_t{slot} * block_bytes, .slot = slot}));
    turn();
  }
};

std::vector<Frame> join(std::initializer_list<std::vector<Frame>> lists) {
  std::vector<Frame> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

TEST_CASE(
    "N1 N3 N6 frames without the key change nothing at the receiver, and nothing is sent back") {
  ReceiverTarget target;
  const Frame data = target.peer.sealed({.packet_number = 5, .offset = 2000}, body_of(1000));
  const Frame ping =
      target.peer.sealed({.type = wire::FrameType::ping, .packet_number = 6}, ping_body(64));
  const DataPathCounters before = target.loop->counters();
  const auto frames = join(
      {forgeries_of(data),
       forgeries_of(ping),
       {target.stranger.sealed({.packet_number = 7, .offset = 2000}, body_of(1000)),
        target.stranger.sealed({.type = wire::FrameType::ping, .packet_number = 8}, ping_body(64)),
        // Its own direction, reflected.
        target.itself.sealed({.packet_number = 9, .offset = 2000}, body_of(1000)),
        target.itself.sealed({.type = wire::FrameType::ping, .packet_number = 10}, ping_body(64)),
        // Numbers far ahead, which would move a window that trusts them.
        target.stranger.sealed({.packet_number = 1ULL << 40, .settled = (1ULL << 40) - 1},
                               body_of(1000))}});
  target.attack(frames);
  for (int i = 0; i < 300; ++i) target.turn();  // time for any timer that a frame may have armed
  CHECK(is_same(target.loop->counters(), before));
  CHECK(drops_of(target.loop->counters()) - drops_of(before) == frames.size());
  CHECK(target.peer.take().empty());
  const protocol::ReceiverTotals& totals = target.loop->receiver().totals();
  CHECK((totals.bytes_accepted == 0 && totals.reports == 0));
  CHECK(target.loop->receiver().last_received_at() == Instant{});
  CHECK(target.loop->receiver().totals().bytes_accepted == 0);
  CHECK(target.side.take_events().empty());
  // The true frames are as good as before: no replay window has moved.
  target.attack({data, ping});
  CHECK(target.loop->counters().frames_received_total == 2);
  CHECK(target.loop->receiver().totals().bytes_accepted == 1000);
  CHECK_FALSE(target.peer.take().empty());
}

TEST_CASE(
    "N1 N3 N6 frames without the key change nothing at the sender, and nothing is sent back") {
  SenderTarget target;
  wire::Feedback feedback;
  feedback.sequence = 1;
  feedback.credit_bytes_total = 10'000'000;
  const Frame told = feedback_frame(target.peer, 5, feedback);
  const Frame ping = target.peer.sealed(
      {.type = wire::FrameType::ping, .packet_number = 6, .settled = 6}, ping_body(64));
  const DataPathCounters before = target.loop->counters();
  wire::Feedback lie = feedback;
  lie.has_received = true;
  lie.largest = 1'000'000;  // of numbers never sent: fatal if it were authentic
  const auto frames =
      join({forgeries_of(told),
            forgeries_of(ping),
            {feedback_frame(target.stranger, 7, lie), feedback_frame(target.itself, 8, lie),
             target.itself.sealed({.packet_number = 9}, body_of(1000)),
             target.stranger.sealed({.type = wire::FrameType::ping, .packet_number = 10},
                                    ping_body(64))}});
  target.attack(frames);
  for (int i = 0; i < 300; ++i) target.turn();
  CHECK(is_same(target.loop->counters(), before));
  CHECK(drops_of(target.loop->counters()) - drops_of(before) == frames.size());
  CHECK(target.peer.take().empty());
  CHECK(target.loop->sender().feedback_at() == Instant{});
  CHECK(target.loop->sender().totals().feedback_frames == 0);
  CHECK(target.side.take_events().empty());
  CHECK(target.side.report.load().rate_offer.count == 0);
  target.attack({told});
  CHECK(target.loop->sender().totals().feedback_frames == 1);
}

TEST_CASE("N2 a replayed frame is dropped: neither feedback nor data acts twice") {
  SenderTarget sender;
  wire::Feedback feedback;
  feedback.sequence = 1;
  const Frame told = feedback_frame(sender.peer, 5, feedback);
  sender.attack({told, told, told});
  CHECK(sender.loop->counters().replays_total == 2);
  CHECK(sender.loop->counters().frames_received_total == 1);

  ReceiverTarget receiver;
  const Frame data = receiver.peer.sealed({.packet_number = 5, .offset = 0}, body_of(1000));
  const Frame ping =
      receiver.peer.sealed({.type = wire::FrameType::ping, .packet_number = 6}, ping_body(64));
  receiver.attack({data, ping});
  const std::size_t answers = receiver.peer.take().size();
  CHECK(answers >= 1);
  receiver.attack({data, data, ping, ping});
  CHECK(receiver.loop->counters().replays_total == 4);
  CHECK(receiver.loop->receiver().totals().bytes_accepted == 1000);
  for (const Frame& frame : receiver.peer.take())
    CHECK(std::to_integer<int>(frame[0]) != static_cast<int>(wire::FrameType::pong));
}

TEST_CASE("N1 a forged copy of a frame does not spoil the bytes of the true one") {
  ReceiverTarget target;
  const auto body = body_of(1400);
  const Frame data = target.peer.sealed({.packet_number = 5, .offset = 0}, body);
  target.attack({data});
  for (int i = 0; i < 3; ++i) target.attack(forgeries_of(data));
  std::size_t found = 0;
  for (std::uint32_t slot = 0; slot < 4; ++slot)
    found += std::memcmp(target.memory.data() + std::size_t{slot} * block_bytes, body.data(),
                         body.size()) == 0
                 ? 1
                 : 0;
  CHECK(found == 1);
}

TEST_CASE("N4 an authentic peer that acknowledges what was never sent ends the session, once") {
  SenderTarget target;
  wire::Feedback lie;
  lie.sequence = 1;
  lie.has_received = true;
  lie.from = 1;
  lie.largest = 50;
  target.attack({feedback_frame(target.peer, 5, lie)});
  ++lie.sequence;
  target.attack({feedback_frame(target.peer, 6, lie)});
  auto events = target.side.take_events();
  std::erase_if(events, [](const Event& event) { return event.kind == EventKind::peer_heard; });
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == EventKind::protocol_error);
  CHECK(events[0].value == static_cast<std::uint64_t>(wire::Violation::acked_unsent));
}

TEST_CASE("N5 authentic frames with absurd bodies are dropped") {
  SenderTarget sender;
  const auto count = GENERATE(0U, 1U, 23U, 130U, 1200U);
  std::vector<Frame> frames;
  for (const auto type : {wire::FrameType::feedback, wire::FrameType::pong, wire::FrameType::ping})
    frames.push_back(
        sender.peer.sealed({.type = type, .packet_number = frames.size() + 1, .settled = 1},
                           std::vector<std::byte>(count, std::byte{0xFF})));
  sender.attack(frames);
  CHECK(sender.loop->counters().malformed_total == frames.size());
  CHECK(sender.loop->sender().feedback_at() == Instant{});
  CHECK(sender.loop->sender().srtt() == 0ns);
}

TEST_CASE(
    "N5 the peer's own frames with numbers at the end of their range leave a receiver that "
    "reports") {
  const std::uint64_t last = GENERATE(std::uint64_t{wire::packet_number_max},
                                      wire::packet_number_max + 1, ~std::uint64_t{0});
  CAPTURE(last);
  ReceiverTarget target;
  std::vector<Frame> frames;
  std::uint64_t legal = 0;
  for (const std::uint64_t number : {last - 1, last}) {
    frames.push_back(target.peer.sealed(
        {.packet_number = number, .settled = number, .offset = frames.size() * 1000},
        body_of(1000)));
    legal += number <= wire::packet_number_max ? 1 : 0;
  }
  target.attack({frames[1], frames[0]});
  for (int i = 0; i < 300; ++i) target.turn();
  CHECK(target.loop->receiver().totals().bytes_accepted == legal * 1000);
  CHECK(target.loop->counters().malformed_total == 2 - legal);
  CHECK((target.loop->receiver().totals().reports > 0) == (legal > 0));
}

TEST_CASE(
    "I6 a peer that only asks, and never acknowledges, gets no more answers than there are "
    "numbers") {
  SenderTarget target;
  for (std::uint64_t number = 1; number < 6000; ++number) {
    target.peer.send(
        target.now, target.peer.sealed(
                        {.type = wire::FrameType::ping, .packet_number = number, .settled = number},
                        ping_body(wire::ping_body_bytes_min)));
    target.turn(50us);
    (void)target.peer.take();
  }
  CHECK(target.loop->sender().in_flight() <= 4096);
  CHECK(target.loop->counters().frames_sent_total <= 4096);
  CHECK(target.loop->counters().frames_sent_total > 3000);
}
