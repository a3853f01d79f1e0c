// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/air/channel.hpp"

#include <algorithm>

#include "engine/base/check.hpp"

namespace onehop::lab::air {

namespace {
constexpr std::uint64_t million = 1'000'000;
// 20 us: until a preamble would have been recognized
constexpr Nanos answer_timeout = sifs + slot_time + 20us;
}  // namespace

Channel::Channel(const ChannelOptions& options, Instant now)
    : options_{options}, random_{options.seed}, stations_(options.stations), idle_since_{now} {
  for (Station& station : stations_) draw_backoff(station);
}

void Channel::arrive(std::size_t station, Instant at, Bytes frame) {
  Station& to = stations_[station];
  to.queue.push_back({.at = at, .frame_bytes = static_cast<std::int32_t>(frame.count)});
  to.queued += frame;
}

void Channel::draw_backoff(Station& station) {
  station.backoff_slots = static_cast<int>(random_() % static_cast<std::uint64_t>(station.cw + 1));
}

Instant Channel::start_of(const Station& station) const noexcept {
  return std::max(idle_since_ + aifs + station.backoff_slots * slot_time, station.queue.front().at);
}

// The slot in which a transmission starts, counted from the end of AIFS.
std::int64_t Channel::slot_of(Instant start) const noexcept {
  return std::max(start - idle_since_ - aifs, Nanos{0}) / slot_time;
}

std::optional<Instant> Channel::next_start() const noexcept {
  std::optional<Instant> first;
  for (const Station& station : stations_)
    if (!station.queue.empty() && (!first || start_of(station) < *first)) first = start_of(station);
  return first;
}

// compose fills the aggregate with what had arrived by its start, and returns how long it lasts.
Nanos Channel::compose(Station& station, Instant start) {
  const Bytes limit = std::min(options_.aggregate_max, psdu_max(options_.mode));
  const std::size_t window =
      std::min(station.queue.size(), static_cast<std::size_t>(options_.window_mpdus));
  Bytes psdu{};
  station.aggregate.clear();
  for (std::size_t i = 0; i < window && station.queue[i].at <= start; ++i) {
    if (station.queue[i].is_done) continue;
    const Bytes bytes = mpdu_bytes(Bytes{station.queue[i].frame_bytes});
    if (!station.aggregate.empty() && psdu + bytes > limit) break;
    psdu += bytes;
    station.aggregate.push_back(i);
  }
  return ppdu_time(options_.mode, psdu);
}

// draw_losses returns whether anything arrived, so that the other end answers.
bool Channel::draw_losses(Station& station) {
  bool is_answered = false;
  station.is_lost.clear();
  for (std::size_t i = 0; i < station.aggregate.size(); ++i) {
    const bool is_lost = options_.loss_ppm != 0 && random_() % million < options_.loss_ppm;
    station.is_lost.push_back(is_lost);
    is_answered = is_answered || !is_lost;
  }
  return is_answered;
}

Exchange Channel::begin() {
  ONEHOP_CHECK(!exchange_.has_value());
  const std::optional<Instant> start = next_start();
  ONEHOP_CHECK(start.has_value());
  Exchange exchange{.start = *start};
  Nanos longest{};
  int transmitting = 0;
  for (std::size_t i = 0; i < stations_.size(); ++i) {
    Station& station = stations_[i];
    station.is_transmitting =
        !station.queue.empty() && slot_of(start_of(station)) == slot_of(*start);
    if (!station.is_transmitting) continue;
    if (transmitting++ == 0) exchange.station = i;
    longest = std::max(longest, compose(station, start_of(station)));
  }
  exchange.is_collision = transmitting > 1;
  Station& first = stations_[exchange.station];
  exchange.mpdus = static_cast<int>(first.aggregate.size());
  const bool is_answered = !exchange.is_collision && draw_losses(first);
  if (!is_answered) first.is_lost.assign(first.aggregate.size(), true);
  const Nanos answer = exchange.mpdus == 1 ? ack_time() : block_ack_time(options_.window_mpdus);
  exchange.end = exchange.start + longest + (is_answered ? sifs + answer : answer_timeout);
  exchange_ = exchange;
  return exchange;
}

void Channel::settle_winner(Station& station, bool is_answered) {
  station.counters.exchanges_total += 1;
  for (std::size_t i = 0; i < station.aggregate.size(); ++i) {
    Mpdu& mpdu = station.queue[station.aggregate[i]];
    station.counters.sent_mpdus_total += 1;
    station.counters.retried_mpdus_total += mpdu.tries > 0 ? 1 : 0;
    mpdu.tries = static_cast<std::int16_t>(mpdu.tries + 1);
    const bool is_lost = !is_answered || station.is_lost[i];
    mpdu.is_given_up = is_lost && mpdu.tries > options_.retries_max;
    mpdu.is_done = !is_lost || mpdu.is_given_up;
  }
  station.cw = is_answered ? cw_min : std::min(2 * station.cw + 1, cw_max);
  draw_backoff(station);
}

void Channel::settle_loser(Station& station, std::int64_t elapsed_slots) {
  if (elapsed_slots < station.backoff_slots)
    station.backoff_slots -= static_cast<int>(elapsed_slots);
  else
    draw_backoff(station);
}

void Channel::release_prefix(Station& station, Release& release) {
  release.first = station.counters.released_mpdus_total;
  while (!station.queue.empty() && station.queue.front().is_done) {
    const Mpdu& mpdu = station.queue.front();
    if (mpdu.is_given_up) {
      release.given_up.push_back(station.counters.released_mpdus_total);
      station.counters.failed_mpdus_total += 1;
    }
    station.counters.released_mpdus_total += 1;
    station.counters.released_total += Bytes{mpdu.frame_bytes};
    station.queued -= Bytes{mpdu.frame_bytes};
    station.queue.pop_front();
    release.count += 1;
  }
}

Release Channel::finish() {
  ONEHOP_CHECK(exchange_.has_value());
  const Exchange exchange = *exchange_;
  const std::int64_t elapsed_slots = slot_of(exchange.start);
  Release release{.station = exchange.station};
  for (std::size_t i = 0; i < stations_.size(); ++i) {
    Station& station = stations_[i];
    if (!station.is_transmitting) {
      settle_loser(station, elapsed_slots);
      continue;
    }
    station.counters.air_total += exchange.end - exchange.start;
    station.counters.collisions_total += exchange.is_collision ? 1 : 0;
    const bool is_answered = !exchange.is_collision &&
                             !std::ranges::all_of(station.is_lost, [](bool lost) { return lost; });
    settle_winner(station, is_answered);
    // In a collision nothing arrives; MPDUs that were given up in it leave with the station's next
    // answer.
    if (!exchange.is_collision) release_prefix(station, release);
  }
  busy_total_ += exchange.end - exchange.start;
  idle_since_ = exchange.end;
  exchange_.reset();
  return release;
}

}  // namespace onehop::lab::air
