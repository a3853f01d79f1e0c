// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// All laws over the same schedule, side by side. The table is printed (law_test "[table]" -s shows
// it again); the bounds below it are what each law promises, not what it happened to reach.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "control/law/make_law.hpp"
#include "tests/control/law/air_link.hpp"

namespace onehop::test {
namespace {

struct Row {
  std::string law, schedule;
  double use = 0, queue_ms = 0, p95_ms = 0;
};

std::unique_ptr<law::Controller> make(const std::string& spec) {
  const bool has_qcut = spec.ends_with("+qcut");
  const std::string bare = has_qcut ? spec.substr(0, spec.size() - 5) : spec;
  auto made = law::make_law({.spec = bare, .has_qcut = has_qcut});
  REQUIRE(made);
  return std::move(made).value();
}

Row measure(AirLink& link, const std::string& law, const std::string& schedule) {
  Row row{law, schedule};
  double queue = 0;
  for (auto& s : link.stations) {
    row.use += link.use(*s);
    row.p95_ms = std::max(row.p95_ms, s->delay_ms(0.95));
    queue += s->mean_queue_bytes() / static_cast<double>(link.line_rate(s->p.phy).count) * 1e3;
  }
  row.queue_ms = queue / static_cast<double>(link.stations.size());
  return row;
}

void run_schedules(const std::string& spec, std::vector<Row>& rows) {
  for (const bool is_air : {false, true}) {
    auto law = make(spec);
    AirLink link{is_air ? ChannelParams{} : wire_channel()};
    auto& s = link.add(*law, {.phy = is_air ? mbit_per_s(1201) : mbit_per_s(600)});
    s.medium = is_air ? law::Medium::wifi : law::Medium::wired;
    s.told.has_channel = s.told.has_own_airtime = s.told.has_stations = is_air;
    const std::string where = is_air ? "air" : "wire";
    link.run(500ms);
    link.open_window();
    link.run(1s);
    rows.push_back(measure(link, spec, where + " steady"));
    for (const int permille : {250, 4000}) {
      s.p.phy = s.p.phy * Gain{permille};
      link.open_window();
      link.run(500ms);
      rows.push_back(measure(link, spec, where + (permille < 1000 ? " /4" : " x4")));
    }
    s.told.is_exact_frozen = s.told.is_phy_frozen = s.told.is_channel_frozen = true;
    link.run(100ms);
    link.open_window();
    link.run(500ms);
    rows.push_back(measure(link, spec, where + " facts stale"));
  }
  std::vector<std::unique_ptr<law::Controller>> laws;
  AirLink link{ChannelParams{}};
  for (int i = 0; i < 3; ++i) {
    laws.push_back(make(spec));
    link.add(*laws.back(), {.start_at = Instant{1s} + i * 500ms});
  }
  link.run(2500ms);
  link.open_window();
  link.run(2s);
  rows.push_back(measure(link, spec, "air, 3 senders"));
}

/// Delays: the most that 95 % of the frames wait, in ms: at the usual rates, at a quarter of the
/// rate, on stale facts.
struct Delays {
  double usual, slower, stale;
};

/// Promise: the least use on the wire, on the air, and by three senders together; the delays there.
struct Promise {
  std::string law;
  double wire_use_min, air_use_min, shared_use_min;
  Delays wire_max, air_max;
  double shared_max_ms;
};

double use_min(const Promise& promise, const std::string& schedule) {
  if (schedule == "air, 3 senders") return promise.shared_use_min;
  return schedule.starts_with("wire") ? promise.wire_use_min : promise.air_use_min;
}

double p95_max_ms(const Promise& promise, const std::string& schedule) {
  if (schedule == "air, 3 senders") return promise.shared_max_ms;
  const Delays& delays = schedule.starts_with("wire") ? promise.wire_max : promise.air_max;
  return schedule.ends_with("/4")      ? delays.slower
         : schedule.ends_with("stale") ? delays.stale
                                       : delays.usual;
}

// Bounds: what each law is for, and a tenth to a fifth above what it reaches there; a worse law is
// beyond them by more.
//   safe-range        8 ms of data; a quarter of the rate lets what stood there wait twice as long,
//   once auto              two exchanges of a whole aggregate where the queue is known; safe-range
//   where nothing is; of the air its share,
//                     so three senders leave a tenth free
//   wdtcp             one exchange and its reserve
//   wdtcp:paper       swings: half of the line, and aggregates' time around it
//   cupid             safe-range on the wire; on the air its share of what it takes the channel for
//   fixed:500M        500 of 600 or 800 Mbit/s, without delay; all of a slower link, and its whole
//   queue then with qcut         tau, 4 ms on the wire and 8 on the air; what asks for less is not
//   touched by it
TEST_CASE("every law over the same schedule", "[control][law][table]") {
  const std::vector<Promise> promises{
      {"auto", 0.985, 0.975, 0.85, {1.2, 1.3, 10.0}, {1.5, 4.5, 10.5}, 2.4},
      {"safe-range", 0.99, 0.99, 0.99, {10.5, 20.0, 10.0}, {10.5, 15.0, 10.5}, 11.0},
      {"wdtcp", 0.99, 0.93, 0.98, {0.7, 1.7, 0.6}, {1.8, 4.2, 2.0}, 5.0},
      {"wdtcp:paper", 0.43, 0.46, 0.85, {3.5, 11.0, 3.2}, {4.5, 11.0, 4.0}, 9.0},
      {"cupid", 0.99, 0.70, 0.85, {10.5, 20.0, 10.0}, {1.8, 1.9, 10.5}, 2.4},
      {"fixed:500M", 0.82, 0.60, 0.99, {16.0, 62.0, 1.9}, {12.0, 37.0, 1.6}, 37.0},
      {"safe-range+qcut", 0.99, 0.99, 0.99, {5.5, 8.8, 5.5}, {9.2, 14.0, 9.2}, 10.5},
      {"auto+qcut", 0.985, 0.975, 0.85, {1.2, 1.3, 4.5}, {1.5, 4.5, 9.2}, 2.4}};
  std::vector<Row> rows;
  for (const Promise& promise : promises) {
    std::vector<Row> own;
    run_schedules(promise.law, own);
    REQUIRE(own.size() == 9);
    for (const Row& row : own) {
      CAPTURE(row.law, row.schedule, row.use, row.queue_ms, row.p95_ms);
      CHECK(row.use >= use_min(promise, row.schedule));
      CHECK(row.use <= 1.01);  // more than the link carries would be a fault of this test
      CHECK(row.p95_ms <= p95_max_ms(promise, row.schedule));
      rows.push_back(row);
    }
  }
  fmt::print("{:<16} {:<16} {:>8} {:>10} {:>10}\n", "law", "schedule", "use", "queue ms", "p95 ms");
  for (const Row& row : rows)
    fmt::print("{:<16} {:<16} {:>8.3f} {:>10.2f} {:>10.2f}\n", row.law, row.schedule, row.use,
               row.queue_ms, row.p95_ms);
}

}  // namespace
}  // namespace onehop::test
