// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/fault_player.hpp"

#include <algorithm>

namespace onehop::stress {

namespace {
constexpr std::uint64_t own_sequence = 0x5EED;  // apart from the one that drew the schedule
constexpr Gain up{4000}, down{250};
constexpr std::uint64_t jitter_us_max = 400;
constexpr std::uint16_t mtu_usual = 1500, mtu_low = 1280;
constexpr std::uint32_t all = 1'000'000, loss_ppm = 300'000;
}  // namespace

FaultPlayer::FaultPlayer(scenario::World& world, const Schedule& schedule)
    : world_{world},
      schedule_{schedule},
      random_{schedule.seed ^ own_sequence, schedule.index},
      facts_{world.link(), schedule.has_facts} {
  world.set_source(&facts_);
}

void FaultPlayer::begin(const FaultEvent& event) {
  const Instant until = world_.now() + std::max<Nanos>(event.span, 1us);
  if (event.fault == Fault::rebind) return rebind();
  Instant& mine = until_[static_cast<std::size_t>(event.fault)];
  mine = std::max(mine, until);
  set(event.fault, true, mine);
  find_next_end();
}

void FaultPlayer::end_due(Instant now) {
  for (std::size_t i = 0; i < faults; ++i) {
    if (until_[i] == Instant{} || until_[i] > now) continue;
    until_[i] = {};
    set(static_cast<Fault>(i), false, world_.now());
  }
  find_next_end();
}

void FaultPlayer::end_all() { end_due(Instant::max()); }

void FaultPlayer::find_next_end() noexcept {
  next_end_ = Instant::max();
  for (const Instant until : until_)
    if (until != Instant{}) next_end_ = std::min(next_end_, until);
}

Nanos FaultPlayer::delay() noexcept {
  return is_on(Fault::jitter) ? Nanos{static_cast<Nanos::rep>(random_.below(jitter_us_max) * 1000)}
                              : Nanos{0};
}

void FaultPlayer::set(Fault fault, bool is_on, Instant until) {
  using scenario::Actor;
  VirtualLink& link = world_.link();
  switch (fault) {
    case Fault::sender_stall: world_.hold_until(Actor::sender, until); break;
    case Fault::receiver_stall: world_.hold_until(Actor::receiver, until); break;
    case Fault::control_stall: world_.hold_until(Actor::control, until); break;
    case Fault::drain_up:
    case Fault::drain_down: set_rate(); break;
    case Fault::disk_stall:
      if (is_on) world_.stall_disk_until(until);
      break;
    case Fault::disk_slow:
      world_.set_disk_rate(is_on ? schedule_.world.forward.rate * down : schedule_.world.disk_rate);
      break;
    case Fault::completions_withheld:
      if (scenario::RingPort* const rings = world_.port(0).rings())
        rings->faults().are_completions_withheld = is_on;
      break;
    case Fault::fill_starved:
      if (scenario::RingPort* const rings = world_.port(1).rings())
        rings->faults().is_fill_starved = is_on;
      break;
    case Fault::link_down:
      link.set_up(!is_on);
      world_.follow_path(0, !is_on);
      break;
    case Fault::mtu: set_mtu(is_on); break;
    case Fault::feedback_lost:
      link.config(1).loss_ppm = is_on ? all : schedule_.world.backward.loss_ppm;
      break;
    case Fault::loss:
      link.config(0).loss_ppm = is_on ? loss_ppm : schedule_.world.forward.loss_ppm;
      break;
    case Fault::disorder: set_disorder(is_on); break;
    case Fault::facts:
      if (is_on)
        facts_.set(static_cast<StressFacts::Mood>(random_.below(5)));
      else
        facts_.reset();
      break;
    case Fault::jitter:
    case Fault::rebind:
    case Fault::tiny_rings:
    case Fault::umem_edge: break;
  }
}

/// Both at a time cancel out.
void FaultPlayer::set_rate() {
  BytesPerSecond rate = schedule_.world.forward.rate;
  if (is_on(Fault::drain_up)) rate = rate * up;
  if (is_on(Fault::drain_down)) rate = rate * down;
  world_.link().set_rate(0, rate);
}

/// The link refuses larger frames at once; both ends hear of it with their next turn.
void FaultPlayer::set_mtu(bool is_low) {
  const std::uint16_t mtu = is_low ? mtu_low : mtu_usual;
  for (std::size_t direction = 0; direction < 2; ++direction) world_.link().set_mtu(direction, mtu);
  world_.follow_path(mtu, true);
}

void FaultPlayer::set_disorder(bool is_on) {
  for (std::size_t direction = 0; direction < 2; ++direction) {
    VirtualLinkConfig& way = world_.link().config(direction);
    way.reorder_ppm = is_on ? 100'000 : 0;
    way.reorder_delay = Nanos{static_cast<Nanos::rep>(100'000 + random_.below(2'000'000))};
    way.duplicate_ppm = is_on ? 50'000 : 0;
    way.corrupt_ppm = is_on ? 20'000 : 0;
    way.truncate_ppm = is_on ? 10'000 : 0;
    way.ce_threshold = is_on ? Bytes{8 * 1514} : Bytes{};
  }
}

/// What is on its way out leaves into nothing: the queue counts it as drained, and nobody gets it.
void FaultPlayer::rebind() {
  const bool is_up = !is_on(Fault::link_down);
  world_.link().set_up(false);
  const std::size_t end = random_.below(2);
  if (scenario::RingPort* const rings = world_.port(end).rings())
    rings->rebind();
  else
    world_.link().take_opportunity(end, world_.link().waiting(end));
  world_.link().set_up(is_up);
}

std::string FaultPlayer::active_names() const {
  std::string names;
  for (std::size_t i = 0; i < faults; ++i) {
    if (until_[i] == Instant{}) continue;
    if (!names.empty()) names += '+';
    names += to_string(static_cast<Fault>(i));
  }
  return names;
}

}  // namespace onehop::stress
