// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The FWP paper's comparisons in its own emulator; the tables for people are tools/labs/ns3/fwp.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <deque>

#include "tools/labs/ns3/fwp/measure.hpp"
#include "tools/labs/ns3/fwp/table.hpp"

namespace onehop::fwp {

TEST_CASE("a block-ack window that loses its first frame sends nothing new", "[fwp]") {
  AmpduQueue clean{0.0, 1}, dead{1.0, 1};
  CHECK(clean.next_aggregate(100) == aggregate_frames_max);
  CHECK(clean.send(32) == 32);
  CHECK(clean.next_aggregate(100) == aggregate_frames_max);
  for (int tries = 0; tries < 8; ++tries) {
    CHECK(dead.next_aggregate(100) == aggregate_frames_max);
    CHECK(dead.send(32) == 0);
    CHECK(dead.open() == (tries == 7 ? 0 : 32));  // given up after the eighth
  }
}

TEST_CASE("an estimate is the mean and Student's interval", "[fwp]") {
  const Estimate cell = estimate({1.0, 2.0, 3.0});
  CHECK(cell.mean == Approx(2.0));
  CHECK(cell.half_width == Approx(4.30265 / std::sqrt(3.0)));
  CHECK(estimate({7.0}).half_width == 0);
  CHECK(estimate({}).count == 0);
}

TEST_CASE("a bound is met where the whole interval keeps it", "[fwp]") {
  Table table{.metric = "share",
              .rows = {{"a"}, {"b"}, {"c"}, {"not judged", false}},
              .columns = {"x"},
              .paper = {"1"},
              .bounds = {{.column = "x", .at_least = 0.9, .at_most = 1.1}}};
  table.values = {{{0.99, 1.0, 1.01}}, {{0.8, 1.0, 1.2}}, {{1.2, 1.2, 1.2}}, {{9.0}}};
  const auto judgements = judge(table);
  REQUIRE(judgements.size() == 3);
  CHECK(judgements[0].is_held);
  CHECK(judgements[0].text == "share, a, x: 1.00 +-0.02 >= 0.90 and <= 1.10, met");
  CHECK_FALSE(judgements[1].is_held);  // the mean does, and says little
  CHECK_FALSE(judgements[2].is_held);
  CHECK(judgements[2].text.ends_with("not met"));
  CHECK(text_of(table).find("MISS share, b, x") != std::string::npos);
  const auto json = json_of(table);
  CHECK(json["bounds"].size() == 3);
  CHECK(json["metrics"][0]["cells"][0][0]["count"] == 3);
  CHECK(json["points"].size() == 10);
}

//= [FWP] figures of speed-up by frame error rate and by competitors  type=test
// Goal:   full aggregates and repair from lists carry more than aggregates that a block-ack window
// holds back. Bounds: the paper's: > 1.6 at 10 %, > 2 at 40 %, nearly the same for 1 to 9
// competitors; without errors nobody gains. Means of
//         seeds 1 to 5 over 10 s; that their 95 % interval keeps the bounds too is what onehop-fwp
//         plays longer runs for. Measured over 8 seeds of 5 s: 1.65 +-0.02 and 1.66 +-0.06 at 10 %
//         for 1 and 9, 2.18 +-0.10 at 40 % for 9.
TEST_CASE("a lazy station gains over A-MPDU stations as the paper says", "[fwp]") {
  const std::size_t competitors = GENERATE(1U, 4U, 9U);
  const auto mean = [&](double frame_error_rate) {
    std::vector<double> values;
    for (std::uint64_t seed = 1; seed <= 5; ++seed)
      values.push_back(speed_up(competitors, frame_error_rate, true, seed, 10s));
    return estimate(values).mean;
  };
  CAPTURE(competitors);
  CHECK(mean(0.0) == Approx(1.0).margin(0.05));
  CHECK(mean(0.1) >= 1.6);
  CHECK(mean(0.4) >= 2.0);
}

/// Ready counts how often a station was asked, and how often it had a whole aggregate.
class Ready final : public Station {
 public:
  explicit Ready(Station& station) : station_{station} {}
  std::size_t ready_frames() override {
    const std::size_t frames = station_.ready_frames();
    ++asked_;
    if (frames == aggregate_frames_max) ++whole_;
    return frames;
  }
  void serve(Instant at) override { station_.serve(at); }
  bool has_block_ack() const override { return station_.has_block_ack(); }
  void play(Instant until) override { station_.play(until); }
  [[nodiscard]] double share() const {
    return static_cast<double>(whole_) / static_cast<double>(asked_);
  }

 private:
  Station& station_;
  std::uint64_t asked_ = 0, whole_ = 0;
};

// Goal:   neither form of repair leaves the air to others: whoever asks, a whole aggregate waits.
// Then no form can carry more. Bounds: measured with reports acknowledged, as on every link: 0.992
// and more. With reports lost as data is, lists come late and leave lazy
//         repair 0.946 and 0.967.
TEST_CASE("a whole aggregate always waits, with eager and with lazy repair", "[fwp]") {
  const bool is_lazy = GENERATE(false, true);
  const std::size_t competitors = GENERATE(1U, 9U);
  double least = 1;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    FwpSession session{{.seed = seed, .frame_error_rate = 0.4, .is_repair_lazy = is_lazy}};
    std::deque<AmpduStation> others;
    Ready ready{session.sender_station()};
    Air air{seed};
    air.add(ready);
    air.add(session.receiver_station());
    for (std::size_t i = 0; i < competitors; ++i) air.add(others.emplace_back(0.4, seed * 100 + i));
    air.run(Nanos{5s} * static_cast<int>(competitors + 1));
    least = std::min(least, ready.share());
  }
  CAPTURE(is_lazy, competitors, least);
  CHECK(least >= 0.985);
}

// Bounds: the paper's: within 10 % of equal for round-trip times of 30 to 70 ms.
TEST_CASE("a lazy station shares equally with a Cubic-like flow", "[fwp]") {
  const int rtt_ms = GENERATE(30, 50, 70);
  std::vector<double> values;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    values.push_back(share_beside_cubic(rtt_ms * 1ms, 0.001, seed, 15s));
  CAPTURE(rtt_ms, values);
  CHECK(estimate(values).mean == Approx(1.0).margin(0.1));
}

}  // namespace onehop::fwp
