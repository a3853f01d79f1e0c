// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/ends/link_points.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "control/session/code/code.hpp"
#include "control/transfer/port/dpdk_host.hpp"
#include "engine/base/rate_text.hpp"
#include "tools/labs/bench/ends/flood.hpp"
#include "tools/labs/bench/ends/loop_end.hpp"
#include "tools/labs/bench/ends/pair.hpp"

namespace onehop::bench {

namespace {

constexpr std::uint16_t first_port = 7411;
// The mode that is asked for is the receiving end's, where it decides the cost. The lab's sending
// end sits on a macvlan, which has no native XDP: it takes what it has, as in
// tools/measure/compare.
constexpr const char* sending_mode = "auto";
// A session by time offers more than any link of today carries meanwhile: 200 Gbit/s.
constexpr double offer_bytes_per_second = 25e9;
constexpr double offer_spare_seconds = 20;

/// socket_of is where the two ends of a device without an interface find each other: namespaces
/// have abstract sockets of their own.
std::string socket_of(const Place& place) { return "/run/" + place.hosts.a + ".sock"; }

/// eal_of is --eal for one end: `{iface}` its interface in the lab, `{role}` client where it sends
/// and server where it receives,
/// `{socket}` a path that both know.
std::string eal_of(const BenchOptions& o, const Place& place, bool is_sending, bool is_reverse) {
  const std::string& host =
      is_sending ? sending_host(place, is_reverse) : receiving_host(place, is_reverse);
  std::string eal = o.eal;
  const auto fill_in = [&eal](std::string_view mark, const std::string& value) {
    for (std::size_t at = 0; (at = eal.find(mark)) != std::string::npos;)
      eal.replace(at, mark.size(), value);
  };
  fill_in("{iface}", host == place.hosts.a ? lab::interface_a : lab::interface_b);
  fill_in("{role}", is_sending ? "client" : "server");
  fill_in("{socket}", socket_of(place));
  return eal;
}

transfer::Settings common_of(const Variant& v) {
  transfer::Settings common;
  common.io = v.io;
  common.xdp_mode = v.mode;
  common.frame_bytes = v.frame_bytes;
  common.poll = v.poll;
  common.digest = v.digest == "none" ? "xxh3" : v.digest;
  common.aead = transfer::choice<crypto::AeadBackend>("--aead", v.aead);
  common.rate_max = v.rate == "flood" ? "" : v.rate;
  common.file_io = v.file_io;
  common.law = v.law;
  return common;
}

std::string name_of(const BenchOptions& o, const Variant& v) {
  std::string name = v.mode == "auto" ? v.io : v.io + ":" + v.mode;
  const auto add = [&](bool is_swept, const std::string& text) {
    if (is_swept) name += " " + text;
  };
  add(o.frame_bytes.size() > 1, v.frame_bytes == 0 ? "full" : std::to_string(v.frame_bytes));
  add(o.burst_frames.size() > 1, "x" + std::to_string(v.burst_frames));
  add(o.poll.size() > 1, v.poll);
  add(o.rate.size() > 1, v.rate);
  add(o.digest.size() > 1, v.digest);
  add(o.aead.size() > 1, v.aead);
  add(o.file_io.size() > 1, v.file_io);
  add(o.law.size() > 1, v.law);
  return name;
}

Json settings_of(const BenchOptions& o, const Variant& v) {
  Json settings{{"io", v.io},
                {"mode", v.mode},
                {"frame_bytes", v.frame_bytes},
                {"poll", v.poll},
                {"rate", v.rate}};
  if (o.part == Part::port) {
    settings.update(Json{{"burst_frames", v.burst_frames}, {"window_frames", o.window_frames}});
    return settings;
  }
  settings.update(Json{{"digest", v.digest},
                       {"aead", v.aead},
                       {"file_io", v.file_io},
                       {"law", v.law},
                       {"source", o.source},
                       {"sink", o.sink}});
  return settings;
}

/// Calls `next` with each value of a list written into `field`: one dimension of the sweep.
template <class T, class Next>
void each(const std::vector<T>& values, T& field, Next next) {
  for (const T& value : values) {
    field = value;
    next();
  }
}

Result<std::vector<Variant>> variants_of(const BenchOptions& o) {
  std::vector<Variant> variants;
  for (const std::string& io : o.io) {
    ONEHOP_TRY(choice, parse_io(io));
    Variant v{.io = choice.io, .mode = choice.mode};
    each(o.frame_bytes, v.frame_bytes, [&] {
      each(o.burst_frames, v.burst_frames, [&] {
        each(o.poll, v.poll, [&] {
          each(o.rate, v.rate, [&] {
            each(o.digest, v.digest, [&] {
              each(o.aead, v.aead, [&] {
                each(o.file_io, v.file_io,
                     [&] { each(o.law, v.law, [&] { variants.push_back(v); }); });
              });
            });
          });
        });
      });
    });
  }
  return variants;
}

/// Leftover: what an end leaves behind (a received file, a driver's socket); it goes, so that the
/// next one makes it afresh.
class Leftover {
 public:
  explicit Leftover(std::string path) : path_{std::move(path)} {}
  Leftover(const Leftover&) = delete;
  Leftover& operator=(const Leftover&) = delete;
  ~Leftover() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove(path_, error);
  }

 private:
  std::string path_;
};

Result<LoopSpec> loop_spec(const BenchOptions& o, const Place& place, const Variant& v) {
  LoopSpec spec;
  spec.common = common_of(v);
  ONEHOP_TRY(code, session::make_code());
  spec.code = code.text();
  spec.is_source_file = o.source == "file";
  spec.is_sink_file = o.sink == "file";
  if (v.digest == "none")
    spec.digest = std::nullopt;
  else
    spec.digest = v.digest == "sha256" ? crypto::DigestKind::sha256 : crypto::DigestKind::xxh3;
  spec.bytes = o.bytes != 0
                   ? o.bytes
                   : static_cast<std::uint64_t>((o.seconds + o.omit_seconds + offer_spare_seconds) *
                                                offer_bytes_per_second);
  spec.source_path = place.folder + "/source";
  spec.sink_folder = place.folder + "/sink";
  return spec;
}

Result<RunResult> run_loop(const BenchOptions& o, const Place& place, const Variant& v,
                           const RunMode& mode) {
  PairSpec pair{.ends = {},
                .seconds = o.seconds,
                .bytes = o.bytes,
                .omit_seconds = o.omit_seconds,
                .interval_seconds = o.interval_seconds,
                .mode = mode};
  ONEHOP_TRY(base, loop_spec(o, place, v));
  const std::vector<bool> ways = directions(o);
  std::vector<LoopSpec> specs(ways.size(), base), sending(ways.size());
  std::vector<SharedBoard> senders(ways.size()), receivers(ways.size());
  const Leftover received{base.is_sink_file ? base.sink_folder + "/source" : ""};
  const Leftover received_memory{base.is_sink_file ? base.sink_folder + "/onehop-bench" : ""};
  const Leftover socket{v.io == "dpdk" ? socket_of(place) : ""};
  for (std::size_t i = 0; i < ways.size(); ++i) {
    specs[i].port = static_cast<std::uint16_t>(first_port + i);
    specs[i].address = receiving_address(ways[i]);
    specs[i].is_sender_held = true;
    if (v.io == "dpdk") specs[i].common.eal = eal_of(o, place, false, ways[i]);
    pair.ends.push_back({.is_sending = false,
                         .host = receiving_host(place, ways[i]),
                         .cpu = o.receiver_cpu,
                         .board = &*receivers[i],
                         .body = [&spec = specs[i], &board = *receivers[i]] {
                           return run_loop_receiver(spec, board);
                         }});
  }
  for (std::size_t i = 0; i < ways.size(); ++i) {
    sending[i] = specs[i];
    sending[i].common.xdp_mode = sending_mode;
    if (const char* model = std::getenv(ways[i] ? "ONEHOP_LAB_FACTS_B" : "ONEHOP_LAB_FACTS_A");
        model != nullptr)
      sending[i].common.link_model = model;
    if (v.io == "dpdk") sending[i].common.eal = eal_of(o, place, true, ways[i]);
    pair.ends.push_back({.is_sending = true,
                         .host = sending_host(place, ways[i]),
                         .cpu = o.sender_cpu,
                         .board = &*senders[i],
                         .body = [&spec = sending[i], &board = *senders[i]] {
                           return run_loop_sender(spec, board);
                         }});
  }
  ONEHOP_TRY(result, run_pair(pair));
  if (o.has_parts && !mode.is_counted) {
    ONEHOP_TRYV(add_parts(o, place, v, result));
  }
  return std::move(result);
}

/// run_own_end runs this host's end of a session with another host.
Result<RunResult> run_own_end(const BenchOptions& o, const LoopSpec& spec, const RunMode& mode) {
  const SharedBoard board;
  const bool is_sending = o.part == Part::loop;
  const Leftover received{spec.is_sink_file && !is_sending ? spec.sink_folder + "/source" : ""};
  const Leftover received_memory{
      spec.is_sink_file && !is_sending ? spec.sink_folder + "/onehop-bench" : ""};
  PairSpec pair{.ends = {},
                .seconds = 0,
                .bytes = spec.bytes,
                .is_waiting = !is_sending,
                .interval_seconds = o.interval_seconds,
                .mode = mode};
  pair.ends.push_back(
      {.is_sending = is_sending, .host = "", .cpu = o.sender_cpu, .board = &*board, .body = [&] {
         return is_sending ? run_loop_sender(spec, *board) : run_loop_receiver(spec, *board);
       }});
  return run_pair(pair);
}

}  // namespace

Result<std::vector<Point>> host_points(const BenchOptions& o, const Place& place) {
  ONEHOP_TRY(endpoint, transfer::parse_endpoint(o.part == Part::loop ? o.to : o.listen));
  if (o.part == Part::loop && endpoint.host.empty())
    return Error{ExitCode::usage, "bench loop", "--to names no host",
                 "Write --to HOST or --to HOST:PORT"};
  ONEHOP_TRY(code, session::read_code({.file = o.code_file}));
  ONEHOP_TRY(variants, variants_of(o));
  std::vector<Point> points;
  for (const Variant& v : variants) {
    ONEHOP_TRY(spec, loop_spec(o, place, v));
    spec.code = code.text();
    spec.address = endpoint.host;
    spec.port = endpoint.port;
    spec.common.interface = o.interface;
    points.push_back(
        {.name = name_of(o, v),
         .settings = settings_of(o, v),
         .run = [&o, spec](const RunMode& mode) { return run_own_end(o, spec, mode); }});
  }
  return points;
}

std::vector<bool> directions(const BenchOptions& options) {
  std::vector<bool> ways;
  for (int i = 0; i < options.parallel; ++i) {
    if (options.is_both_ways || !options.is_reverse) ways.push_back(false);
    if (options.is_both_ways || options.is_reverse) ways.push_back(true);
  }
  return ways;
}

const std::string& sending_host(const Place& place, bool is_reverse) {
  return is_reverse ? place.hosts.b : place.hosts.a;
}
const std::string& receiving_host(const Place& place, bool is_reverse) {
  return is_reverse ? place.hosts.a : place.hosts.b;
}
const char* sending_address(bool is_reverse) {
  return is_reverse ? lab::address_b4 : lab::address_a4;
}
const char* receiving_address(bool is_reverse) {
  return is_reverse ? lab::address_a4 : lab::address_b4;
}

Result<RunResult> run_flood(const BenchOptions& o, const Place& place, const Variant& v,
                            const RunMode& mode) {
  PairSpec pair{.ends = {},
                .is_flood = true,
                .seconds = o.seconds,
                .bytes = o.bytes,
                .omit_seconds = o.omit_seconds,
                .interval_seconds = o.interval_seconds,
                .mode = mode};
  FloodSpec base{.common = common_of(v),
                 .peer = {},
                 .burst_frames = v.burst_frames,
                 .window_frames = o.window_frames};
  if (v.rate != "flood") {
    ONEHOP_TRY(rate, parse_rate(v.rate));
    base.rate = rate;
  }
  const std::vector<bool> ways = directions(o);
  std::vector<FloodSpec> senders(ways.size(), base), receivers(ways.size(), base);
  std::vector<SharedBoard> sending(ways.size()), receiving(ways.size());
  const Leftover socket{v.io == "dpdk" ? socket_of(place) : ""};
  for (std::size_t i = 0; i < ways.size(); ++i) {
    receivers[i].port = senders[i].port = static_cast<std::uint16_t>(first_port + i);
    receivers[i].peer = sending_address(ways[i]);
    if (v.io == "dpdk") {
      receivers[i].common.eal = eal_of(o, place, false, ways[i]);
      senders[i].common.eal = eal_of(o, place, true, ways[i]);
    }
    senders[i].peer = receiving_address(ways[i]);
    senders[i].common.xdp_mode = sending_mode;
    pair.ends.push_back({.is_sending = false,
                         .host = receiving_host(place, ways[i]),
                         .cpu = o.receiver_cpu,
                         .board = &*receiving[i],
                         .body = [&spec = receivers[i], &board = *receiving[i]] {
                           return run_flood_receiver(spec, board);
                         }});
  }
  for (std::size_t i = 0; i < ways.size(); ++i)
    pair.ends.push_back({.is_sending = true,
                         .host = sending_host(place, ways[i]),
                         .cpu = o.sender_cpu,
                         .board = &*sending[i],
                         .body = [&spec = senders[i], &board = *sending[i], &far = *receiving[i]] {
                           return run_flood_sender(spec, board, far);
                         }});
  return run_pair(pair);
}

Result<std::vector<Point>> link_points(const BenchOptions& o, const Place& place) {
  ONEHOP_TRY(variants, variants_of(o));
  std::vector<Point> points;
  for (const Variant& v : variants) {
    transfer::Settings common = common_of(v);
    if (v.io == "dpdk") common.eal = eal_of(o, place, true, o.is_reverse);
    ONEHOP_TRYV(transfer::check_eal(common));
    points.push_back({.name = name_of(o, v),
                      .settings = settings_of(o, v),
                      .run =
                          [&o, &place, v](const RunMode& mode) {
                            return o.part == Part::loop ? run_loop(o, place, v, mode)
                                                        : run_flood(o, place, v, mode);
                          },
                      .is_counted_apart = true});
  }
  if (o.baseline == "iperf3-tcp" || o.baseline == "iperf3-udp")
    points.push_back(iperf3_point(o, place, o.baseline == "iperf3-udp"));
  if (o.part == Part::loop && is_quic(o.baseline)) {
    ONEHOP_TRY(point, quic_point(o, place));
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace onehop::bench
