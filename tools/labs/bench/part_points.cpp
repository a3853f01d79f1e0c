// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/part_points.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "control/transfer/settings.hpp"
#include "engine/disk/file_io.hpp"
#include "engine/wire/frame.hpp"
#include "tools/labs/bench/meters.hpp"
#include "tools/labs/bench/parts/core_distance.hpp"
#include "tools/labs/bench/parts/file_part.hpp"
#include "tools/labs/bench/parts/micro.hpp"

namespace onehop::bench {

namespace {

constexpr std::uint64_t file_bytes_default = std::uint64_t{256} << 20;

Nanos nanos(double seconds) { return Nanos{static_cast<Nanos::rep>(seconds * 1e9)}; }

/// Counter counts the cycles and instructions of what is run between its construction and add().
class Counter {
 public:
  Counter() : counters_{PerfCounters::open(::getpid())} {
    if (counters_.has_value()) before_ = counters_.value().read();
  }
  void add(RunResult& result, double bytes_or_items, const char* per) const {
    const auto now = counters_.has_value() ? counters_.value().read() : std::nullopt;
    if (!now || !before_) {
      result.missing["cycles"] =
          "not available: " +
          (counters_.has_error() ? counters_.error().cause : std::string{"they cannot be read"});
      return;
    }
    result.metrics[std::string{"cycles_per_"} + per] =
        static_cast<double>(now->cycles - before_->cycles) / bytes_or_items;
    result.metrics[std::string{"instructions_per_"} + per] =
        static_cast<double>(now->instructions - before_->instructions) / bytes_or_items;
  }

 private:
  Result<PerfCounters> counters_;
  std::optional<PerfCounters::Counts> before_;
};

double ns_per_byte(Work& work, const Timing& timing) {
  return timing.seconds * 1e9 / static_cast<double>(timing.runs * work.bytes_per_run());
}
double ns_per_item(Work& work, const Timing& timing) {
  return timing.seconds * 1e9 / static_cast<double>(timing.runs * work.items_per_run());
}

RunResult measure_items(Work& work, double seconds, const char* item) {
  RunResult result;
  const Counter counter;
  const Timing timing = time_work(work, nanos(seconds));
  counter.add(result, static_cast<double>(timing.runs * work.items_per_run()), item);
  result.metrics[std::string{"ns_per_"} + item] = ns_per_item(work, timing);
  return result;
}

Result<RunResult> measure_core_distance(std::pair<int, int> cpus) {
  const auto trip = core_round_trip(cpus);
  if (!trip)
    return Error{ExitCode::io_unavailable,
                 fmt::format("measure between CPUs {} and {}", cpus.first, cpus.second),
                 "a thread cannot be pinned there"};
  RunResult result;
  result.metrics["ns_per_message"] = static_cast<double>(trip->count());
  result.missing["cycles"] = "not available: its two threads do nothing but wait";
  return result;
}

}  // namespace

Result<RunResult> measure_aead(const std::string& backend_name, std::size_t frame_bytes,
                               double seconds) {
  const auto backend = transfer::choice<crypto::AeadBackend>("--aead", backend_name);
  if (!crypto::is_available(backend))
    return Error{ExitCode::io_unavailable, "measure --aead " + backend_name,
                 "this build does not have it",
                 "Install libipsec-mb-dev and build again, or take --aead openssl"};
  if (frame_bytes <= wire::overhead_bytes)
    return Error{ExitCode::usage, "measure frames of " + std::to_string(frame_bytes) + " bytes",
                 "header and tag alone take " + std::to_string(wire::overhead_bytes)};
  RunResult result;
  const auto seal = make_seal(backend, frame_bytes), open = make_open(backend, frame_bytes);
  const Counter counter;
  const Timing sealed = time_work(*seal, nanos(seconds / 2)),
               opened = time_work(*open, nanos(seconds / 2));
  // Seal and open of the same bytes are one payload byte's cost, at both ends together.
  counter.add(result, static_cast<double>((sealed.runs + opened.runs) * seal->bytes_per_run()) / 2,
              "byte");
  result.metrics["seal_ns_per_byte"] = ns_per_byte(*seal, sealed);
  result.metrics["open_ns_per_byte"] = ns_per_byte(*open, opened);
  result.metrics["seal_ns_per_frame"] = ns_per_item(*seal, sealed);
  result.metrics["open_ns_per_frame"] = ns_per_item(*open, opened);
  result.metrics["cpu_ns_per_byte"] =
      result.metrics["seal_ns_per_byte"] + result.metrics["open_ns_per_byte"];
  result.used["aead"] = crypto::name(crypto::resolve(backend));
  return result;
}

RunResult measure_digest(const std::string& kind, double seconds) {
  RunResult result;
  const auto work =
      make_digest(kind == "sha256" ? crypto::DigestKind::sha256 : crypto::DigestKind::xxh3);
  const Counter counter;
  const Timing timing = time_work(*work, nanos(seconds));
  counter.add(result, static_cast<double>(timing.runs * work->bytes_per_run()), "byte");
  result.metrics["cpu_ns_per_byte"] = ns_per_byte(*work, timing);
  return result;
}

Result<RunResult> measure_law(const std::string& law, double seconds) {
  ONEHOP_TRY(work, make_law_step(law));
  return measure_items(*work, seconds, "tick");
}

Result<std::vector<Point>> part_points(const BenchOptions& o) {
  std::vector<Point> points;
  switch (o.part) {
    case Part::aead:
      for (const std::string& backend : o.aead)
        for (const std::size_t frame : o.frame_bytes)
          points.push_back({.name = backend + " " + std::to_string(frame),
                            .settings = {{"aead", backend}, {"frame_bytes", frame}},
                            .run = [=, seconds = o.seconds](const RunMode&) {
                              return measure_aead(backend, frame, seconds);
                            }});
      break;
    case Part::digest:
      for (const std::string& kind : o.digest)
        points.push_back({.name = kind,
                          .settings = {{"digest", kind}},
                          .run = [=, seconds = o.seconds](const RunMode&) -> Result<RunResult> {
                            return measure_digest(kind, seconds);
                          }});
      break;
    case Part::file:
      for (const std::string& name : o.file_io) {
        points.push_back(
            {.name = name,
             .settings = {{"file_io", name}, {"folder", o.folder}},
             .run = [name, folder = o.folder, bytes = o.bytes == 0 ? file_bytes_default : o.bytes](
                        const RunMode&) { return measure_file(name, folder, bytes); }});
      }
      break;
    case Part::law:
      for (const std::string& law : o.law) {
        ONEHOP_TRYV(make_law_step(law));  // an unknown one is told before anything runs
        points.push_back({.name = law,
                          .settings = {{"law", law}},
                          .run = [=, seconds = o.seconds](const RunMode&) {
                            return measure_law(law, seconds);
                          }});
      }
      break;
    case Part::ring:
      points.push_back({.name = "SpscRing<BlockRef>",
                        .settings = Json::object(),
                        .run = [seconds = o.seconds](const RunMode&) -> Result<RunResult> {
                          return measure_items(*make_ring(), seconds, "message");
                        }});
      if (const auto cpus = first_two_cpus())
        points.push_back(
            {.name = fmt::format("CPUs {} and {}, a line's round trip", cpus->first, cpus->second),
             .settings = Json::object(),
             .run = [cpus = *cpus](const RunMode&) { return measure_core_distance(cpus); }});
      break;
    case Part::loop:
    case Part::serve:
    case Part::port: break;
  }
  return points;
}

}  // namespace onehop::bench
