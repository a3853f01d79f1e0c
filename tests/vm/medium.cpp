// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tests/vm/medium.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <iterator>

#include "engine/base/time.hpp"
#include "tools/labs/lab/air/phy.hpp"
#include "tools/labs/lab/air/saturate.hpp"

namespace onehop::vm {

namespace air = lab::air;

namespace {
// Ours: as a driver's ring. Low: a law that asks for more sees drops that a radio has not. High:
// hwsim itself keeps 200 frames, and then throws away the oldest hundred.
constexpr std::size_t queue_frames_max = 128;
// What 802.11 has that Ethernet has not: QoS header 26 and LLC 8 for a header of 14.
constexpr std::size_t header_difference_bytes = 20;
// Ours: larger frames carry file data. Low: reports count as such. High: nothing does.
constexpr std::size_t bulk_bytes_min = 1000;
// A frame of that size proves the path before the ends have agreed on what is sent, 16 to 26 ms
// before file data flows; seldom two.
constexpr std::uint64_t probe_frames_max = 2;
constexpr Nanos probe_pause_min{5ms};
constexpr Nanos wait_max{100ms};  // ours, so that a signal is seen
constexpr timespec again_timeout{.tv_sec = 0, .tv_nsec = 1'000'000};  // ours, at the end
// Ours. Low: a frame whose sender lost its CPU before hwsim had it listed stays charged to its
// socket, and an AF_XDP queue bound. High: one that hwsim has thrown away is asked for longer.
constexpr Nanos unreported_max{2s};
constexpr Nanos saturated_span{2s};  // of virtual time; thousands of exchanges
constexpr std::int64_t permille = 1000;

Bytes ethernet_bytes(const AirFrame& frame) noexcept {
  const std::size_t bytes = frame.bytes.size();
  return {static_cast<std::int64_t>(std::max(bytes, header_difference_bytes + 1) -
                                    header_difference_bytes)};
}

double milliseconds(std::uint64_t us) noexcept { return static_cast<double>(us) / 1000; }

double seconds(Nanos span) noexcept { return static_cast<double>(span.count()) / 1e9; }

/// percentile of sorted numbers; 0 where there are none.
std::uint64_t percentile(const std::vector<std::uint32_t>& sorted, std::size_t part) noexcept {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() * part / 1000, sorted.size() - 1)];
}

std::string text_of(const RadioAddress& address) {
  std::string text;
  for (const std::byte octet : address)
    text += fmt::format("{}{:02x}", text.empty() ? "" : ":", static_cast<unsigned>(octet));
  return text;
}
}  // namespace

Medium::Medium(HwsimSocket&& socket, const MediumOptions& options)
    : socket_{std::move(socket)},
      options_{options},
      begun_at_{monotonic_now()},
      channel_{options.channel, begun_at_} {}

const TraceStep& Medium::step_at(Instant now) const noexcept {
  const Nanos into = (now - begun_at_) % options_.period;
  const auto next = std::ranges::upper_bound(options_.trace, into, {}, &TraceStep::at);
  return *std::prev(next);
}

void Medium::run(const volatile std::sig_atomic_t& stop) {
  while (stop == 0) {
    receive();
    const Instant now = monotonic_now();
    if (now - begun_at_ >= options_.span) break;
    play(now);
    report_again();
    Nanos wait = std::clamp(next_wakeup(now) - monotonic_now(), Nanos{0}, wait_max);
    if (socket_.has_frames()) wait = Nanos{0};
    const timespec timeout{.tv_sec = 0, .tv_nsec = wait.count()};
    pollfd readable{.fd = socket_.fd(), .events = POLLIN, .revents = 0};
    (void)::ppoll(&readable, 1, &timeout, nullptr);
  }
  ended_at_ = monotonic_now();
  // The sender's socket stays charged with a frame that is never reported.
  receive();
  for (Radio& radio : radios_)
    for (const AirFrame& frame : radio.queue) report_status(frame, false);
  while (!unreported_.empty()) {
    (void)::ppoll(nullptr, 0, &again_timeout, nullptr);
    report_again();
  }
}

void Medium::report_status(const AirFrame& frame, bool is_acked) {
  if (!socket_.report(frame, is_acked))
    unreported_.push_back({.frame = frame, .is_acked = is_acked, .since = monotonic_now()});
}

void Medium::report_again() {
  const Instant now = monotonic_now();
  std::erase_if(unreported_, [&](const Unreported& each) {
    const bool is_reported = socket_.report(each.frame, each.is_acked);
    reported_again_total_ += is_reported ? 1 : 0;
    return is_reported || now - each.since >= unreported_max;
  });
}

void Medium::receive() {
  socket_.receive(received_);
  for (AirFrame& frame : received_) {
    auto radio = std::ranges::find(radios_, frame.radio, &Radio::address);
    if (radio == radios_.end()) {
      if (radios_.size() == options_.channel.stations) {
        report_status(frame, false);
        continue;
      }
      radio = radios_.insert(radio, {.address = frame.radio, .queue = {}, .carried = {}});
    }
    const auto station = static_cast<std::size_t>(radio - radios_.begin());
    owner_of_[frame.transmitter()] = station;
    if (radio->queue.size() >= queue_frames_max) {
      radio->carried.dropped_total += 1;
      report_status(frame, false);
      continue;
    }
    channel_.arrive(station, frame.at, ethernet_bytes(frame));
    radio->queue.push_back(std::move(frame));
  }
  received_.clear();
}

// play lets everything happen on the air that is over by `now`.
void Medium::play(Instant now) {
  for (;;) {
    if (exchange_) {
      if (exchange_->end > now) return;
      late_us_.add(static_cast<std::uint64_t>((now - exchange_->end) / 1us));
      finish_exchange();
      receive();  // what came meanwhile may be part of the next aggregate
    }
    const std::optional<Instant> start = channel_.next_start();
    if (!start || *start > now) return;
    const TraceStep& step = step_at(now);
    if (!step.mcs) return;
    air::PhyMode mode = channel_.mode();
    mode.mcs = *step.mcs;
    channel_.set_mode(mode);
    exchange_ = channel_.begin();
  }
}

void Medium::finish_exchange() {
  const air::Release release = channel_.finish();
  exchange_.reset();
  Radio& radio = radios_[release.station];
  for (std::uint64_t i = 0; i < release.count; ++i) {
    const AirFrame frame = std::move(radio.queue.front());
    radio.queue.pop_front();
    finish_frame(radio, frame, std::ranges::count(release.given_up, release.first + i) > 0);
  }
}

void Medium::finish_frame(Radio& radio, const AirFrame& frame, bool is_given_up) {
  const bool is_unicast_data = frame.is_unicast() && frame.is_data();
  bool is_lost = is_given_up && is_unicast_data;
  if (is_unicast_data && options_.loss_permille > 0) {
    const auto loss = static_cast<std::uint64_t>(options_.loss_permille);
    is_lost = is_lost || ++unicast_data_total_ * loss % permille < loss;
  }
  const bool is_taken = !is_lost && hand_over(frame);
  report_status(frame, is_taken && frame.is_unicast());
  if (!is_unicast_data) return;
  Carried& carried = radio.carried;
  const auto bytes = static_cast<std::size_t>(ethernet_bytes(frame).count);
  carried.data_frames_total += 1;
  carried.data_bytes_total += bytes;
  carried.lost_total += is_taken ? 0 : 1;
  carried.largest_bytes = std::max(carried.largest_bytes, bytes);
  if (bytes < bulk_bytes_min) return;
  const Instant now = monotonic_now();
  const bool had_probes = carried.bulk_frames_total <= probe_frames_max;
  if (had_probes && frame.at - carried.bulk_end > probe_pause_min) carried.begin_bulk(frame.at);
  ++carried.bulk_frames_total;
  carried.bulk_end = now;
  carried.bulk_delays_us.push_back(static_cast<std::uint32_t>((now - frame.at) / 1us));
}

// hand_over gives a frame to those who hear it. A unicast frame whose receiver is not known yet
// goes to all.
bool Medium::hand_over(const AirFrame& frame) {
  const auto owner = owner_of_.find(frame.receiver());
  if (frame.is_unicast() && owner != owner_of_.end())
    return socket_.deliver(frame, radios_[owner->second].address);
  bool is_taken = false;
  for (const Radio& radio : radios_)
    if (radio.address != frame.radio) is_taken = socket_.deliver(frame, radio.address) || is_taken;
  return is_taken;
}

Instant Medium::next_wakeup(Instant now) const noexcept {
  if (exchange_) return exchange_->end;
  const std::optional<Instant> start = channel_.next_start();
  if (!start) return now + wait_max;
  if (step_at(now).mcs) return *start;
  // It stands still until the next step of the trace.
  const Nanos into = (now - begun_at_) % options_.period;
  const auto next = std::ranges::upper_bound(options_.trace, into, {}, &TraceStep::at);
  return now + (next == options_.trace.end() ? options_.period : next->at) - into;
}

// frames_carried_at_most is what the model carries, of the largest frame seen, from the first large
// frame to the last, if its queue is never empty and nobody else sends.
double Medium::frames_carried_at_most(const Carried& carried) const {
  const Bytes frame{static_cast<std::int64_t>(carried.largest_bytes)};
  double frames = 0;
  std::map<int, double> rate_of;  // frames per second, by MCS
  for (Instant at = carried.bulk_begin; at < carried.bulk_end;) {
    const TraceStep& step = step_at(at);
    const TraceStep* next = &step + 1;
    const bool is_last = &step == &options_.trace.back();
    const Nanos into = (at - begun_at_) % options_.period;
    const Instant until =
        std::min(at + (is_last ? options_.period : next->at) - into, carried.bulk_end);
    if (step.mcs) {
      auto [rate, is_new] = rate_of.try_emplace(*step.mcs, 0);
      if (is_new) {
        air::ChannelOptions channel = options_.channel;
        channel.mode.mcs = *step.mcs;
        channel.stations = 2;
        const auto saturated = air::saturate(channel, frame, frame, saturated_span);
        rate->second =
            static_cast<double>(saturated.goodput.count) / static_cast<double>(frame.count);
      }
      frames += rate->second * seconds(until - at);
    }
    at = until;
  }
  return frames;
}

std::string Medium::report() const {
  std::string radios;
  for (const Radio& radio : radios_) {
    const Carried& carried = radio.carried;
    std::vector<std::uint32_t> delays = carried.bulk_delays_us;
    std::ranges::sort(delays);
    radios +=
        fmt::format(R"({}{{"address":"{}","data_frames":{},"data_bytes":{},"lost":{},"dropped":{},)"
                    R"("bulk_frames":{},"bulk_seconds":{:.3f},"bulk_frames_at_most":{:.0f},)"
                    R"("largest_bytes":{},"delay_p50_ms":{:.2f},"delay_p95_ms":{:.2f},)"
                    R"("delay_max_ms":{:.2f}}})",
                    radios.empty() ? "" : ",", text_of(radio.address), carried.data_frames_total,
                    carried.data_bytes_total, carried.lost_total, carried.dropped_total,
                    carried.bulk_frames_total, seconds(carried.bulk_end - carried.bulk_begin),
                    carried.bulk_frames_total > 1 ? frames_carried_at_most(carried) : 0.0,
                    carried.largest_bytes, milliseconds(percentile(delays, 500)),
                    milliseconds(percentile(delays, 950)), milliseconds(percentile(delays, 1000)));
  }
  return fmt::format(
      R"({{"seconds":{:.3f},"busy_seconds":{:.3f},"late_p95_ms":{:.2f},"late_max_ms":{:.2f},)"
      R"("reported_again":{},"radios":[{}]}})",
      seconds(ended_at_ - begun_at_), seconds(channel_.busy_total()),
      milliseconds(late_us_.percentile(950)), milliseconds(late_us_.max()), reported_again_total_,
      radios);
}

}  // namespace onehop::vm
