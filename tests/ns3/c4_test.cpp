// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// C4 against the numbers of draft-huitema-ccwg-c4-spec: thresholds, phases, and what each signal
// does. Every acknowledgement here ends an era, unless it is of a packet sent before.
#include <catch2/catch.hpp>

#include <cstdint>

#include "tools/labs/ns3/c4.hpp"

namespace onehop::sim {
namespace {

using State = C4::State;

constexpr std::uint32_t packet_bytes = 1000;
constexpr double interface_rate = 1e9, fast = 20e6, rtt_s = 0.02;  // fast: sensitivity 1

/// Line tells a C4 what it wants to hear.
struct Line {
  C4 c4{packet_bytes, interface_rate};
  std::uint64_t total = 0;

  C4::Ack next(double rate, double rtt) {
    C4::Ack ack{.rtt_s = rtt, .since_sent_s = rtt};
    ack.acked_bytes = static_cast<std::uint64_t>(rate * rtt + 0.5);
    ack.delivered_bytes_at_send = total;
    ack.delivered_bytes_total = total += ack.acked_bytes;
    return ack;
  }
  void era(double rate, double rtt = rtt_s) { c4.on_ack(next(rate, rtt)); }
  /// late tells of the first packet of all, at `rate` since then: it ends no era.
  C4::Ack late(double rate, double rtt = rtt_s) {
    C4::Ack ack = next(rate, rtt);
    ack.delivered_bytes_at_send = 0;
    ack.since_sent_s = static_cast<double>(total) / rate;
    return ack;
  }
  void to_cruising() {
    for (int i = 0; i < 4; ++i) era(fast);
    REQUIRE(c4.state() == State::recovery);
    era(fast);
    REQUIRE(c4.state() == State::cruising);
    for (int i = 0; i < 100; ++i) {  // until the longest round trip is the only one
      era(fast);
      if (c4.state() == State::cruising && c4.nominal_max_rtt_s() < 1.001 * rtt_s) return;
    }
    FAIL("it never cruises with what it saw");
  }
  void to_probing() {
    to_cruising();
    for (int i = 0; i < 8 && c4.state() != State::probing; ++i) era(fast);
    REQUIRE(c4.state() == State::probing);
  }
};

}  // namespace

TEST_CASE("c4's thresholds follow the rate: the draft's corner points", "[ns3][c4]") {
  struct Point {
    double rate, sensitivity;
  };
  for (const Point point : {Point{40e3, 0},
                            {50e3, 0},
                            {525e3, 0.46},
                            {1e6, 0.92},
                            {5.5e6, 0.96},
                            {10e6, 1},
                            {20e6, 1}}) {
    Line line;
    line.era(point.rate);
    CAPTURE(point.rate);
    const double s = point.sensitivity;
    CHECK(line.c4.sensitivity() == Approx(s).margin(1e-4));
    CHECK(line.c4.loss_threshold() == Approx(0.02 + 0.5 * (1 - s)).epsilon(1e-3));
    CHECK(line.c4.ecn_threshold() == Approx((2 - s) * 3 / 32).epsilon(1e-3));
    CHECK(line.c4.delay_threshold_s() == Approx((1 + 3 * (1 - s)) / 16 * rtt_s).epsilon(1e-3));
  }
  Line line;
  line.era(40e3, 0.4);
  CHECK(line.c4.delay_threshold_s() == Approx(0.025));  // a fourth would be 100 ms
}

TEST_CASE("c4 begins with ten packets, doubles, and leaves when the rate stays", "[ns3][c4]") {
  Line line;
  CHECK(line.c4.state() == State::initial);
  CHECK(line.c4.alpha() == 2);
  CHECK(line.c4.window_bytes() == 10 * packet_bytes);
  CHECK(line.c4.pacing_rate() == interface_rate);
  line.era(1000);
  CHECK(line.c4.pacing_rate() == Approx(1'048'576 / 8));
  line.era(fast);
  CHECK(line.c4.pacing_rate() == Approx(2 * fast));
  CHECK(line.c4.window_bytes() == Approx(10'020 + fast * rtt_s));
  line.era(fast);
  line.era(fast);
  C4::Ack limited = line.next(fast, rtt_s);
  limited.is_app_limited = true;
  line.c4.on_ack(limited);
  CHECK(line.c4.state() == State::initial);
  line.era(fast);
  CHECK(line.c4.state() == State::recovery);
  const double window = 10'020 + 5 * fast * rtt_s;
  CHECK(line.c4.nominal_max_rtt_s() == Approx(window / 2 / fast));
}

TEST_CASE("c4 leaves its start by delay and loss only where they can be believed", "[ns3][c4]") {
  Line delayed;
  delayed.era(fast);
  delayed.era(fast, 0.2);
  CHECK(delayed.c4.state() == State::initial);
  delayed.era(fast);
  CHECK(delayed.c4.state() == State::initial);
  delayed.c4.on_ack(delayed.late(fast, 0.2));
  CHECK(delayed.c4.state() == State::recovery);

  Line lossy;
  C4::Ack few = lossy.next(1e6, 0.02);  // twenty packets
  few.lost_packets = 20;
  lossy.c4.on_ack(few);
  CHECK(lossy.c4.state() == State::initial);
  C4::Ack more = lossy.next(1e6, 0.02);
  more.lost_packets = 20;
  lossy.c4.on_ack(more);
  CHECK(lossy.c4.state() == State::recovery);
  CHECK(lossy.c4.nominal_rate() == Approx(1e6));  // as it was
}

TEST_CASE("c4 cruises two eras, probes by a sixteenth, and recovers", "[ns3][c4]") {
  Line line;
  line.to_probing();
  CHECK(line.c4.alpha() == 17.0 / 16);
  line.era(fast);
  CHECK(line.c4.state() == State::recovery);
  CHECK(line.c4.alpha() == 15.0 / 16);
  CHECK(line.c4.pacing_rate() == Approx(fast * 15 / 16));
  line.era(fast);
  CHECK(line.c4.state() == State::cruising);
  CHECK(line.c4.alpha() == 1);
  line.era(fast);
  CHECK(line.c4.state() == State::cruising);
  line.era(fast);
  CHECK(line.c4.state() == State::probing);
}

TEST_CASE("c4 pushes after a probe that grew, as long as the rate does", "[ns3][c4]") {
  Line line;
  line.to_probing();
  line.era(fast);
  line.era(fast * 17 / 16);
  CHECK(line.c4.state() == State::pushing);
  CHECK(line.c4.alpha() == 1.25);
  const auto grow = [&] { line.era(line.c4.nominal_rate() * 19 / 16 * 1.001); };
  line.era(fast);  // what was sent before: it is not asked to grow
  CHECK(line.c4.state() == State::pushing);
  SECTION("it ends when the rate stays") {
    grow();
    CHECK(line.c4.state() == State::pushing);
    line.era(line.c4.nominal_rate() * 18 / 16);
    CHECK(line.c4.state() == State::recovery);
  }
  SECTION("more than three eras begin the start anew") {
    grow();
    grow();
    CHECK(line.c4.state() == State::pushing);
    grow();
    CHECK(line.c4.state() == State::initial);
    CHECK(line.c4.window_bytes() ==
          Approx(line.c4.nominal_rate() * line.c4.nominal_max_rtt_s()).epsilon(0.01));
  }
  SECTION("congestion ends it and takes nothing of the rate") {
    C4::Ack ack = line.late(fast);
    ack.lost_packets = 1;
    line.c4.on_ack(ack);
    CHECK(line.c4.state() == State::recovery);
    CHECK(line.c4.nominal_rate() == Approx(fast * 17 / 16));
  }
}

TEST_CASE("c4 answers loss by a fourth, and delay and marks by their excess", "[ns3][c4]") {
  Line line;
  line.to_cruising();
  const double rate = line.c4.nominal_rate();
  SECTION("loss") {
    C4::Ack ack = line.late(fast);
    ack.acked_bytes = packet_bytes;
    ack.lost_packets = 1;  // a sixteenth, and two per cent are allowed
    line.c4.on_ack(ack);
    CHECK(line.c4.nominal_rate() == Approx(0.75 * rate));
  }
  SECTION("delay") {
    const double threshold_s = line.c4.delay_threshold_s();
    const double limit_s = line.c4.nominal_max_rtt_s() + threshold_s;
    line.c4.on_ack(line.late(fast / 2, limit_s * 0.999));
    CHECK(line.c4.state() == State::cruising);
    line.c4.on_ack(line.late(fast / 2, limit_s + 0.1 * threshold_s));
    CHECK(line.c4.nominal_rate() == Approx(0.9 * rate).epsilon(1e-6));
  }
  SECTION("much delay") {
    line.c4.on_ack(line.late(fast / 2, 0.2));
    CHECK(line.c4.nominal_rate() == Approx(0.75 * rate));
  }
  SECTION("marks, a few at a time") {
    double seen = 0;
    for (int i = 0; i < 6; ++i) {
      CHECK(line.c4.state() == State::cruising);
      C4::Ack ack = line.late(fast);
      ack.ce_marks = 3;
      ack.ect1_marks = 7;
      line.c4.on_ack(ack);
      seen += (0.3 - seen) / 16;
    }
    const double threshold = 3.0 / 32;
    CHECK(line.c4.nominal_rate() == Approx((1 - (seen - threshold) / threshold) * rate));
    line.era(fast);
    for (int i = 0; i < 3 && line.c4.state() != State::probing; ++i) line.era(fast);
    CHECK(line.c4.alpha() == 33.0 / 32);
  }
  SECTION("marks on half of all") {
    C4::Ack ack = line.late(fast);
    ack.ce_marks = ack.ect1_marks = 1;
    line.c4.on_ack(ack);
    CHECK(line.c4.nominal_rate() == Approx(0.75 * rate));
  }
  CHECK(line.c4.state() != State::initial);
}

TEST_CASE("c4 believes no rate of what was sent before the congestion", "[ns3][c4]") {
  Line line;
  line.to_cruising();
  const double rate = line.c4.nominal_rate();
  line.c4.on_ack(line.late(fast / 2, 0.2));
  line.c4.on_ack(line.late(fast));
  CHECK(line.c4.nominal_rate() == Approx(0.75 * rate));
  line.era(fast);
  CHECK(line.c4.state() == State::cruising);
  CHECK(line.c4.nominal_rate() == Approx(0.75 * rate));
  line.era(fast);
  CHECK(line.c4.nominal_rate() == Approx(fast));
}

TEST_CASE("c4 takes the measured rate after a second congestion in a row", "[ns3][c4]") {
  Line line;
  line.to_cruising();
  const auto lose = [&] {
    C4::Ack ack = line.late(5e6);
    ack.lost_packets = 1;
    line.c4.on_ack(ack);
  };
  lose();
  line.era(5e6);
  CHECK(line.c4.nominal_rate() == Approx(0.75 * fast));
  lose();
  line.era(5e6);
  CHECK(line.c4.nominal_rate() == Approx(5e6).epsilon(0.01));
}

TEST_CASE("c4's longest round trip jumps up, at most by 250 ms, and forgets by eighths",
          "[ns3][c4]") {
  Line line;
  line.to_cruising();
  line.c4.on_ack(line.late(fast / 2, 0.1));
  REQUIRE(line.c4.state() == State::recovery);
  line.era(fast / 2, 0.6);
  const double longest_s = line.c4.nominal_max_rtt_s();
  CHECK(longest_s > 0.25);
  CHECK(longest_s < 0.25 + 0.6 / 8 + rtt_s);
  CHECK(line.c4.state() == State::initial);  // the path jitters: once
  for (int i = 0; i < 40 && line.c4.state() != State::cruising; ++i) line.era(fast);
  REQUIRE(line.c4.state() == State::cruising);
  const double before_s = line.c4.nominal_max_rtt_s();
  line.era(fast);
  CHECK(line.c4.nominal_max_rtt_s() == Approx(7.0 / 8 * before_s + rtt_s / 8));
  line.c4.on_ack(line.late(fast / 2, 0.5));
  line.era(fast / 2, 0.5);
  CHECK(line.c4.state() == State::cruising);  // not a second time
}

TEST_CASE("c4's window is the rate over the longest round trip and a margin", "[ns3][c4]") {
  Line line;
  line.to_cruising();
  CHECK(line.c4.window_bytes() == Approx(fast * rtt_s * 1.25).epsilon(1e-3));
  Line far;
  for (int i = 0; i < 4; ++i) far.era(fast, 0.2);
  CHECK(far.c4.window_bytes() ==
        Approx(fast * 15 / 16 * (far.c4.nominal_max_rtt_s() + 0.015)).epsilon(1e-6));
  Line near;
  for (int i = 0; i < 200; ++i) near.era(fast, 1e-4);
  CHECK(near.c4.window_bytes() >= 15.0 / 16 * fast * 0.00125);  // as of 1 ms
  Line slow;
  for (int i = 0; i < 4; ++i) slow.era(1e3, 1e-3);
  CHECK(slow.c4.state() == State::recovery);
  CHECK(slow.c4.window_bytes() >= 2.0 * packet_bytes);
}

TEST_CASE("c4 measures over the longer of what sending and answering took", "[ns3][c4]") {
  Line line;
  C4::Ack ack = line.next(fast, rtt_s);
  ack.send_delay_s = 2 * rtt_s;
  line.c4.on_ack(ack);
  CHECK(line.c4.nominal_rate() == Approx(fast / 2));
}

}  // namespace onehop::sim
