// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SenderLoop and ReceiverLoop back to back in virtual time.
#include <catch2/catch.hpp>

#include "tests/engine/run/loop_bench.hpp"

using namespace onehop;
using namespace onehop::run;

TEST_CASE(
    "the loops allocate nothing after their start, and bring every byte over a link that loses and "
    "repeats frames") {
  if (!AllocGuard::is_linked()) WARN("under a sanitizer allocations go unseen");
  Pair pair{{5'000'000, 0, 100}, 1U << 12, {.loss_ppm = 20'000, .duplicate_ppm = 10'000}};
  for (Side* side : {&pair.sender_side, &pair.receiver_side})
    side->command(CommandKind::prove_path);
  for (int i = 0; i < 100; ++i) pair.step();
  CHECK(pair.sender_side.has_event(EventKind::path_proven));
  CHECK(pair.receiver_side.has_event(EventKind::path_proven));
  CHECK(pair.sender->counters().data_bytes_sent_total == 0);  // not before the start
  pair.start();
  REQUIRE(pair.run_until_arrived());
  CHECK(pair.wrong_bytes == 0);
  CHECK(pair.checked_bytes == 5'000'100);
  CHECK(pair.sender->counters().retransmitted_bytes_total > 0);
  CHECK(pair.receiver->counters().auth_failures_total == 0);
  CHECK(pair.receiver->counters().replays_total > 0);
  CHECK(pair.sender_side.report.load().counters.data_bytes_sent_total ==
        pair.sender->counters().data_bytes_sent_total);
}

// Goal:   what was sent again because the peer was quiet is told apart from what was lost.
// Method: the receiver stands still for 40 ms when all has been sent, as its thread does on a busy
// machine. Bounds: a probe after 10 ms, twice that after the first: two; each frame of them arrives
// a second time.
TEST_CASE("a peer that stands still is asked after by tail probes, and nothing counts as lost") {
  const bool is_quiet = GENERATE(false, true);
  CAPTURE(is_quiet);
  Pair pair{{1'000'000}};
  pair.start();
  const auto sent = [&] { return pair.sender->counters().data_bytes_sent_total; };
  for (int i = 0; i < 100'000 && sent() < 1'000'000; ++i) pair.step();
  for (int i = 0; is_quiet && i < 400; ++i) {
    pair.now += 100us;
    pair.link.run_until(pair.now);
    (void)pair.sender->turn(pair.now);
  }
  REQUIRE(pair.run_until_arrived());
  const PathReport report = pair.sender_side.report.load();
  CHECK(report.packets_lost_total == 0);
  CHECK(report.counters.tail_probes_total == (is_quiet ? 2 : 0));
  CHECK(report.counters.retransmitted_bytes_total <= 2 * bench_frame_bytes);
  CHECK(report.counters.retransmitted_bytes_total ==
        pair.receiver->counters().duplicate_bytes_total);
  CHECK(pair.wrong_bytes == 0);
}

// Goal:   what our own queue refused never counts as lost on the path, though the path lost before.
// Method: 5 % of loss at first; then none, and a queue of 30 KB that throws away what is above.
// Bounds: the count of the first part stays, and never falls meanwhile: from a smaller number the
// law would see the difference as new loss.
TEST_CASE("what our own queue refuses is never loss on the path") {
  Pair pair{{8'000'000}, 1U << 12, {.loss_ppm = 50'000}};
  pair.start();
  const auto lost = [&] { return pair.sender_side.report.load().packets_lost_total; };
  while (lost() < 100) pair.step();
  pair.link.config(0).loss_ppm = 0;
  for (int i = 0; i < 200; ++i) pair.step();  // what was lost by now is known
  const std::uint64_t before = lost();
  pair.link.config(0).is_drop_tail = true;
  pair.link.config(0).queue_capacity = Bytes{30'000};
  pair.sender_side.grant.store({.rate = mbit_per_s(1500), .backlog_max = kib(256)});
  std::uint64_t least = before;
  for (int i = 0; i < 200; ++i) {
    pair.step();
    least = std::min(least, lost());
  }
  CHECK(pair.sender_side.report.load().tx_queue.refused_total >= 44);
  CHECK(least == before);
  CHECK(lost() == before);
}

TEST_CASE("K2 keys change each 256 packets, through loss and reordering") {
  Pair pair{{3'000'000}, 256, {.loss_ppm = 50'000, .reorder_ppm = 50'000}};
  pair.start();
  REQUIRE(pair.run_until_arrived());
  CHECK(pair.wrong_bytes == 0);
  CHECK(pair.sender->counters().key_updates_total >= 2000 / 256);
  CHECK(pair.receiver->counters().auth_failures_total == 0);
}

TEST_CASE("N1 a link that flips bits and cuts frames costs repeats and nothing else") {
  Pair pair{{3'000'000}, 1U << 12, {.corrupt_ppm = 30'000, .truncate_ppm = 30'000}};
  pair.start();
  REQUIRE(pair.run_until_arrived());
  CHECK(pair.wrong_bytes == 0);
  CHECK(pair.receiver->counters().auth_failures_total > 0);
  for (Side* side : {&pair.sender_side, &pair.receiver_side})
    for (const Event& event : side->take_events()) CHECK(event.kind != EventKind::protocol_error);
}

TEST_CASE("events come in order: first data, blocks sent, all arrived, closed") {
  Pair pair{{600'000, 0}};
  pair.start();
  REQUIRE(pair.run_until_arrived());
  pair.sender_side.command(CommandKind::finish);
  pair.receiver_side.command(CommandKind::finish);
  pair.step();
  std::vector<EventKind> kinds;
  std::vector<std::uint64_t> sent;
  for (const Event& event : pair.sender_side.take_events()) {
    if (event.kind == EventKind::peer_heard) continue;
    kinds.push_back(event.kind);
    if (event.kind == EventKind::block_sent)
      sent.push_back(event.block.file * 10'000'000ULL + event.block.offset);
  }
  using enum EventKind;
  CHECK(kinds == std::vector{first_data, block_sent, block_sent, block_sent, block_sent,
                             all_arrived, closed});
  CHECK(sent == std::vector<std::uint64_t>{0, block_bytes, 2 * block_bytes, 10'000'000});
  CHECK(pair.sender->is_closed());
  CHECK(pair.receiver->is_closed());
  CHECK(pair.receiver_side.has_event(closed));
}

// Goal:   a sender whose user allows little sleeps as long as that allows, and one whose rate may
// grow still looks out for it. Method: turn the sender when it asks for it, a second of virtual
// time, at a rate far below the link's. Bounds: 4 ms is the longest nap, so 250 turns; a report
// from the peer or a timer each 8 ms on top. The rate holds within 5 %;
//         it counts 1514 bytes for a frame that carries 1400.
TEST_CASE(
    "a sender naps as long as a final rate allows, and not longer than 0.5 ms under one that may "
    "grow") {
  struct Run {
    std::uint64_t turns = 0, bytes = 0;
  };
  const auto run = [](BytesPerSecond rate, bool is_final) {
    Pair pair{{500'000'000}};
    pair.sender_side.grant.store(
        {.rate = rate, .backlog_max = rate * 18ms, .batch_frames = 1, .is_rate_final = is_final});
    pair.start();
    for (int i = 0; i < 100; ++i) pair.step();
    const DataPathCounters before = pair.sender->counters();
    for (const Instant end = pair.now + 1s; pair.now < end;) {
      pair.feed();
      pair.link.run_until(pair.now);
      const NextWakeup rest = pair.sender->turn(pair.now);
      (void)pair.receiver->turn(pair.now);
      pair.drain();
      pair.now = std::max(rest.deadline, pair.now + 20us);
    }
    const DataPathCounters& after = pair.sender->counters();
    return Run{after.turns_total - before.turns_total,
               after.data_bytes_sent_total - before.data_bytes_sent_total};
  };
  const Run slow = run(mbit_per_s(5), true), watchful = run(mbit_per_s(5), false);
  CHECK(slow.turns <= 375);
  CHECK(watchful.turns >= 1500);
  for (const Run& one : {slow, watchful}) CHECK(one.bytes * 1514 / 1400 >= 625'000 * 95 / 100);
  const Run fast = run(mbit_per_s(200), true), fast_watchful = run(mbit_per_s(200), false);
  CHECK(fast.turns == fast_watchful.turns);
  CHECK(fast.bytes == fast_watchful.bytes);
}

// Goal:   a well filled queue is left alone until it is due: neither reports nor PINGs cost turns
// of their own, and batches are whole. Method: 600 Mbit/s; the sender turns at its deadline, or
// with the first arrival where it says that it wants to know. Bounds: 60 % of 450 KB at 660 Mbit/s
// are 3.3 ms, less what is left of a batch; 200 reports and 100 PINGs a second come beside them.
TEST_CASE(
    "a sender whose queue is well filled turns when it has drained, and sends whole batches") {
  constexpr std::size_t batch_frames = 20;
  Pair pair{{500'000'000}, 1U << 12, {.rate = mbit_per_s(600), .queue_capacity = kib(1024)}};
  pair.sender_side.grant.store(
      {.rate = mbit_per_s(660), .backlog_max = Bytes{450'000}, .batch_frames = batch_frames});
  pair.start();
  for (int i = 0; i < 1000; ++i) pair.step();
  const std::uint64_t reports_before = pair.sender->sender().totals().feedback_frames;
  int turns = 0, dry = 0, broken = 0;
  NextWakeup rest;
  for (const Instant end = pair.now + 1s; pair.now < end;) {
    pair.now += 50us;
    pair.feed();
    pair.link.run_until(pair.now);
    if (pair.now >= rest.deadline || (rest.is_rx_wanted && pair.link.has_arrived(0))) {
      const std::uint64_t before = pair.sender->counters().data_bytes_sent_total;
      rest = pair.sender->turn(pair.now);
      ++turns;
      const std::size_t payload = pair.sender->sender().frame_payload_bytes();
      const std::uint64_t frames =
          (pair.sender->counters().data_bytes_sent_total - before + payload - 1) / payload;
      broken += (frames + 2) % batch_frames > 2 ? 1 : 0;  // a PING and a PONG may be in it
    }
    dry += pair.link.lower_queue(0).occupancy == Bytes{0} ? 1 : 0;
    (void)pair.receiver->turn(pair.now);
    pair.drain();
  }
  CHECK(pair.sender->sender().totals().feedback_frames - reports_before >= 150);
  CHECK(turns <= 330);
  CHECK(dry == 0);
  CHECK(broken <= turns / 20);
  CHECK(pair.sender_side.report.load().srtt > Nanos{0});
}

// Goal:   blocks that will not be sent soon stay in the ring, where the file thread sees them and
// stops reading: what was read long before it is sealed has left the cache. Method: 16 blocks are
// there at once, at 10 Mbit/s. Bounds: 4 are held; at any time one at least, so that a queue that
// is due does not wait for a block.
TEST_CASE("a sender takes the blocks that it will send soon, and leaves the others in the ring") {
  Pair pair{{50'000'000}};
  pair.sender_side.grant.store({.rate = mbit_per_s(10), .backlog_max = kib(32)});
  pair.start();
  std::size_t most = 0, least = 16, waiting = 0;
  for (int i = 0; i < 2000; ++i) {
    pair.step();
    if (i < 100) continue;
    most = std::max(most, pair.sender->sender().unsent_blocks());
    least = std::min(least, pair.sender->sender().unsent_blocks());
    waiting = std::max(waiting, pair.sender_side.from_file.size());
  }
  CHECK(most == 4);
  CHECK(least >= 1);
  CHECK(waiting >= 10);
}

TEST_CASE("skipped blocks go through in order, none lost when the ring is full") {
  Pair pair{{1}};
  std::vector<std::uint64_t> expected;
  Side& side = pair.receiver_side;
  std::uint64_t next = 0;
  const auto push_some = [&] {
    while (next < 600 && side.commands.push({.kind = CommandKind::skip_block,
                                             .block = {.offset = next,
                                                       .kind = next % 2 == 0 ? BlockKind::skipped
                                                                             : BlockKind::hole}}))
      expected.push_back(next++);
  };
  for (int i = 0; i < 20;
       ++i) {  // nobody takes from the file ring: it fills, and the commands wait
    push_some();
    pair.now += 1ms;
    (void)pair.receiver->turn(pair.now);
  }
  CHECK(next < 600);
  for (int i = 0; i < 40; ++i) {
    pair.drain();
    push_some();
    pair.now += 1ms;
    (void)pair.receiver->turn(pair.now);
  }
  pair.drain();
  std::vector<std::uint64_t> got;
  for (const BlockRef& message : pair.receiver_messages) got.push_back(message.offset);
  CHECK(got == expected);
  CHECK(got.size() == 600);
}

TEST_CASE("a checkpoint stops the sender's data and reaches the receiver's file side") {
  Pair pair{{40'000'000}};
  pair.start();
  for (int i = 0; i < 100; ++i) pair.step();
  REQUIRE(pair.checked_bytes > 0);
  pair.sender_side.command(CommandKind::checkpoint);
  pair.receiver_side.command(CommandKind::checkpoint);
  pair.step();
  const std::uint64_t sent = pair.sender->counters().data_bytes_sent_total;
  for (int i = 0; i < 1000; ++i) pair.step();
  CHECK(pair.sender->counters().data_bytes_sent_total == sent);
  REQUIRE(pair.receiver_messages.size() == 1);
  CHECK(pair.receiver_messages[0].kind == BlockKind::checkpoint);
}

TEST_CASE("the receive ring is called backlogged only while turns end before it is empty") {
  Pair pair{{1'000'000},
            1U << 12,
            {.rate = mbit_per_s(100'000), .queue_capacity = mib(64), .ring_frames = 8192}};
  const auto is_backlogged = [&] { return pair.receiver_side.report.load().rx_ring.is_backlogged; };
  const auto turn_after = [&](std::size_t frames) {
    for (std::size_t i = 0; i < frames; ++i) {
      const auto slot = pair.sender_port.lend(64);
      std::memset(slot.data(), 0xFF, slot.size());
      pair.sender_port.commit(slot.size());
      (void)pair.sender_port.flush(pair.now);
    }
    pair.link.run_until(pair.now += 10ms);
    (void)pair.receiver->turn(pair.now);
  };
  turn_after(ReceiverLoop<VirtualPort>::rx_batches_per_turn_max * rx_batch_max + 10);
  CHECK(is_backlogged());
  turn_after(0);
  CHECK_FALSE(is_backlogged());
  // In a transfer frames stand in the ring at most turns, and each turn takes them all: our rate is
  // the sender's.
  pair.start();
  bool was_backlogged = false;
  for (int i = 0; i < 2000; ++i) {
    pair.step();
    was_backlogged = was_backlogged || is_backlogged();
  }
  CHECK(pair.receiver->receiver().is_complete());
  CHECK_FALSE(was_backlogged);
}

// Goal:   a ring that holds less than the link carries in 2 ms neither holds the sender to one ring
// per 2 ms, nor passes for a
//         backlog because its reports are close together.
// Method: 4 MB at 20 Gbit/s through a ring of 256 frames, whose three quarters are 274 KB. One ring
// per 2 ms: 290 turns of 100 us. Bounds: half of those turns.
TEST_CASE("a ring smaller than the link asks for reports as the credit runs out") {
  Pair pair{{4'000'000},
            1U << 12,
            {.rate = mbit_per_s(20'000), .queue_capacity = mib(64), .ring_frames = 256}};
  pair.sender_side.grant.store({.rate = mbit_per_s(20'000), .backlog_max = mib(4)});
  pair.start();
  int turns = 0;
  bool was_backlogged = false;
  for (; turns < 1000 && !pair.receiver->receiver().is_complete(); ++turns) {
    pair.step();
    was_backlogged = was_backlogged || pair.receiver_side.report.load().rx_ring.is_backlogged;
  }
  CHECK(turns <= 145);
  CHECK_FALSE(was_backlogged);
}
