// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/air/player.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "engine/base/time.hpp"
#include "tools/labs/lab/air/saturate.hpp"

namespace onehop::lab::air {

namespace {

// A run whose wake-ups are later than this, one in a hundred, had bursts where the air has none: at
// 160 MHz an exchange lasts about 440 us. Measured on two shared cores at real-time priority: 40 to
// 134 us.
constexpr Nanos lateness_p99_max = 200us;
// Fewer say nothing about one in a hundred.
constexpr std::uint64_t wake_ups_min = 1000;
// A stop is noticed within this time when nothing is sent. With a listener the facts' period is
// shorter.
constexpr Nanos idle_wait_max = 100ms;
constexpr Nanos owed_wait = 1ms;
// Now and then another CPU is still sending when frames are counted, and a few go one exchange too
// early.
constexpr std::uint64_t leaked_permille_max = 5;
constexpr Bytes ethernet_header{14}, ip_udp_headers{28};
constexpr Nanos prediction_time = 2s;

}  // namespace

AirPlayer::AirPlayer(const PlayerOptions& options, Taps taps, std::vector<Lane> lanes,
                     std::vector<AirTeller> tellers)
    : options_{options},
      taps_{std::move(taps)},
      lanes_{std::move(lanes)},
      tellers_{std::move(tellers)},
      begun_{monotonic_now()},
      channel_{options.profile.channel, begun_} {}

Result<AirPlayer> AirPlayer::open(const PlayerOptions& options) {
  ONEHOP_TRY(taps, Taps::open(options.directions));
  std::vector<Lane> lanes;
  std::vector<AirTeller> tellers;
  for (std::size_t i = 0; i < ONEHOP_GATE_DIRECTIONS; ++i) {
    ONEHOP_TRY(gate, Gate::open(options.directions[i].sender, options.mtu_bytes));
    lanes.emplace_back(i, std::move(gate), Gate::unit_bytes(options.mtu_bytes));
    ONEHOP_TRY(teller, AirTeller::open(options.facts_paths[i], options.profile.facts,
                                       options.profile.channel.seed + i));
    tellers.push_back(std::move(teller));
  }
  for (std::size_t i = 0; i < ONEHOP_GATE_DIRECTIONS; ++i)
    taps.open_gate(i, options.profile.queue_frames);
  return AirPlayer{options, std::move(taps), std::move(lanes), std::move(tellers)};
}

void AirPlayer::take_arrivals() {
  for (Lane& lane : lanes_) lane.take(taps_, channel_);
  // Contenders always have a full aggregate to send; nobody carries it.
  const std::size_t enough = static_cast<std::size_t>(options_.profile.channel.window_mpdus);
  for (std::size_t i = lanes_.size(); i < options_.profile.channel.stations; ++i)
    while (channel_.queued_mpdus(i) < enough)
      channel_.arrive(i, channel_.idle_since(), Bytes{options_.mtu_bytes} + ethernet_header);
}

void AirPlayer::follow_trace(Instant now) noexcept {
  const AirProfile& profile = options_.profile;
  if (profile.trace.empty()) return;
  const Nanos at = (now - begun_) % profile.trace_period;
  PhyMode mode = channel_.mode();
  for (const McsPoint& point : profile.trace)
    if (point.at <= at) mode.mcs = point.mcs;
  channel_.set_mode(mode);
}

void AirPlayer::sleep_until(Instant deadline) noexcept {
  if (monotonic_now() >= deadline) return;
  const Nanos since_boot = deadline.time_since_epoch();
  const timespec until{.tv_sec = since_boot / 1s, .tv_nsec = (since_boot % 1s).count()};
  (void)::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

void AirPlayer::tell(Instant now) {
  for (std::size_t i = 0; i < tellers_.size(); ++i) {
    if (!tellers_[i].is_due(now)) continue;
    const Bytes frame_max = Bytes{options_.mtu_bytes} + ethernet_header;
    tellers_[i].tell(
        now,
        air_facts(channel_, options_.profile, frame_max,
                  {.at = now,
                   .begun = begun_,
                   .station = i,
                   .refused_total = taps_.refused_total(i),
                   .capacity = frame_max * static_cast<std::int64_t>(options_.profile.queue_frames),
                   .exchange = exchange_[i]}));
  }
}

bool AirPlayer::repeat_grants(Instant now) {
  bool is_there = true;
  for (Lane& lane : lanes_) is_there = lane.repeat(taps_, now) && is_there;
  return is_there;
}

void AirPlayer::wait_idle(Instant now) {
  const bool is_owed =
      std::ranges::any_of(lanes_, [this](const Lane& lane) { return lane.owed_frames(taps_) > 0; });
  const bool is_heard =
      std::ranges::any_of(tellers_, [](const AirTeller& teller) { return teller.is_heard(); });
  is_link_gone_ = std::ranges::any_of(lanes_, [](Lane& lane) { return lane.gate_error() != 0; });
  tell(now);
  taps_.wait_for_arrival(is_owed    ? owed_wait
                         : is_heard ? std::max<Nanos>(options_.profile.facts.period, 1ms)
                                    : idle_wait_max);
}

void AirPlayer::run(const volatile std::sig_atomic_t& stop) {
  while (stop == 0 && !is_link_gone_) {
    take_arrivals();
    Instant now = monotonic_now();
    if (!repeat_grants(now)) break;
    const std::optional<Instant> start = channel_.next_start();
    if (!start) {
      wait_idle(now);
      continue;
    }
    sleep_until(*start);
    take_arrivals();  // what came meanwhile may go along, or go first
    follow_trace(*start);
    const Instant idle_since = channel_.idle_since();
    const Exchange exchange = channel_.begin();
    sleep_until(exchange.end);
    const Release release = channel_.finish();
    now = monotonic_now();
    lateness_ns_.add(static_cast<std::uint64_t>(std::max(now - exchange.end, Nanos{0}).count()));
    if (release.station < lanes_.size()) {
      // With a frame already waiting it lasts from the end of the one before; else from the longest
      // first wait.
      exchange_[release.station] =
          exchange.end - std::max(idle_since, exchange.start - aifs - cw_min * slot_time);
      if (!lanes_[release.station].release(taps_, release, now)) break;
    }
    tell(now);
  }
}

// doubt is why this run is not to be trusted; empty where it is.
std::string AirPlayer::doubt() {
  std::string text;
  if (const Nanos p99{static_cast<Nanos::rep>(lateness_ns_.percentile(990))};
      lateness_ns_.count() >= wake_ups_min && p99 > lateness_p99_max)
    text +=
        fmt::format("; one wake-up in a hundred came more than {} us late, and {} us are allowed",
                    p99 / 1us, lateness_p99_max / 1us);
  constexpr std::array names{"a", "b"};
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const std::uint64_t owed = lanes_[i].owed_frames(taps_),
                        leaked = lanes_[i].counters().leaked_frames_total;
    if (owed > 0)
      text += fmt::format("; {} frames of {} were sent by the model and not by the kernel", owed,
                          names[i]);
    if (leaked * 1000 > channel_.counters(i).released_mpdus_total * leaked_permille_max)
      text += fmt::format("; {} frames of {} left before their time", leaked, names[i]);
    if (const int error = lanes_[i].gate_error(); error != 0)
      text += "; the gate failed: " + std::string{std::strerror(error)};
  }
  return text.empty() ? text : text.substr(2);
}

std::string AirPlayer::report() {
  const ChannelOptions& model = options_.profile.channel;
  const Bytes frame = Bytes{options_.mtu_bytes} + ethernet_header;
  const Saturated best =
      saturate(model, frame, Bytes{options_.mtu_bytes} - ip_udp_headers, prediction_time);
  std::string text = fmt::format(
      "wifi 11{} {} MHz, PHY {:.1f} Mbit/s\n  the model carries {:.1f} Mbit/s of UDP in frames of "
      "MTU size\n",
      model.mode.standard == Standard::ac ? "ac" : "ax", model.mode.width_mhz,
      static_cast<double>(bps(phy_rate(model.mode))) / 1e6,
      static_cast<double>(bps(best.goodput)) / 1e6);
  constexpr std::array names{"a", "b"};
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const StationCounters& own = channel_.counters(i);
    const LaneCounters& lane = lanes_[i].counters();
    text += fmt::format(
        "  {}: {} frames in {} exchanges, air {:.3f} s\n     {} collisions, {} retries, {} "
        "failed\n     {} refused, {} granted again, {} early\n",
        names[i], own.released_mpdus_total, own.exchanges_total,
        static_cast<double>(own.air_total.count()) / 1e9, own.collisions_total,
        own.retried_mpdus_total, own.failed_mpdus_total, taps_.refused_total(i),
        lane.regrants_total, lane.leaked_frames_total);
  }
  timespec cpu{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  const double seconds = static_cast<double>((monotonic_now() - begun_).count()) / 1e9;
  text += fmt::format(
      "  control: {:.1f} % of a core over {:.1f} s\n  wake-ups late by {} us (median), {} us "
      "(p99), {} us (most)\n",
      100 * (static_cast<double>(cpu.tv_sec) + static_cast<double>(cpu.tv_nsec) / 1e9) / seconds,
      seconds, lateness_ns_.percentile(500) / 1000, lateness_ns_.percentile(990) / 1000,
      lateness_ns_.max() / 1000);
  const std::string reason = doubt();
  return text + (reason.empty() ? "  trusted: yes\n" : "  trusted: NO: " + reason + "\n");
}

}  // namespace onehop::lab::air
