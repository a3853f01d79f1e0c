// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/rate/link_shares.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace onehop::rate {

namespace {
// Ours. Low: rounding and losses hold the sum below the link's rate. High: what the first ones take
// beyond their shares is what the last one lacks.
constexpr Gain head_room{1015};
// Ours: a pause of a sender is no end of its session. Low: its share is given away and taken back.
// High: a session that stands still holds its share for longer.
constexpr Nanos moved_within{1s};
// Ours. Low: more often than S can tell. High: what nobody uses is lost for longer.
constexpr std::size_t steps_between_min = 40, steps_between_max = 320;
// Ours, of C. Low: what nobody uses is lost. High: a burst more or less begins a trial.
constexpr Gain full{900};
// Ours, of L; a full link has it at 1 / head_room. Low: noise is room. High: room is not seen.
constexpr Gain at_level{995};
// Ours, of S. Low: noise is growth. High: growth is not seen.
constexpr Gain risen{1020}, kept{970};
// Ours. Low: many trials. High: each that was wrong costs more.
constexpr Gain trial_up{1150}, trial_up_again{2000}, trial_down{900};
}  // namespace

Bytes LinkShares::Meter::read(Instant now, Bytes total) noexcept {
  const Bytes grown = count == 0 ? Bytes{} : total - readings[(count - 1) % rate_steps].total;
  if (count == 0 || grown > Bytes{}) moved_at = now;
  readings[count++ % rate_steps] = {now, total};
  return grown;
}

BytesPerSecond LinkShares::Meter::rate() const noexcept {
  const Reading& newest = readings[(count - 1) % rate_steps];
  const Reading& oldest = readings[count < rate_steps ? 0 : count % rate_steps];
  if (newest.at <= oldest.at || newest.total <= oldest.total) return {};
  return (newest.total - oldest.total) / (newest.at - oldest.at);
}

BytesPerSecond LinkShares::step(Instant now, std::span<const Arrived> arrived) {
  read(now, arrived);
  const BytesPerSecond sum = sum_.rate();
  sums_[steps_++ % sum_steps] = sum;
  std::size_t count = 0;
  BytesPerSecond least{std::numeric_limits<std::int64_t>::max()}, most;
  for (const Session& session : sessions_) {
    if (now - session.meter.moved_at > moved_within) continue;
    least = std::min(least, session.meter.rate());
    most = std::max(most, session.meter.rate());
    ++count;
  }
  const bool has_changed = std::exchange(count_, count) != count;
  if (is_growing() || count < 2) return level_ = {};
  const BytesPerSecond capacity = *std::ranges::max_element(sums_);
  const BytesPerSecond even{
      std::max<std::int64_t>((capacity * head_room).count / static_cast<std::int64_t>(count), 1)};
  if (has_changed || level_ == BytesPerSecond{}) {
    level_ = even;
    trial_.reset();
    steps_still_ = 0;
    steps_between_ = steps_between_min;
    levels_.fill(level_);
  } else {
    const BytesPerSecond bound = *std::ranges::min_element(levels_) * at_level;
    const bool is_bound = most >= bound;
    steps_unbound_ = is_bound ? 0 : steps_unbound_ + 1;
    most_unbound_ = steps_unbound_ <= 1 ? most : std::max(most_unbound_, most);
    if (steps_unbound_ >= steps_between_min) {
      level_ = std::min(level_, most_unbound_ * head_room);
      steps_between_ = trial_steps;
    }
    judge(sum, even, is_bound, least >= bound || sum < capacity * full);
  }
  level_ = std::max(level_, even);
  if (!trial_) level_ = std::min(level_, capacity * trial_up);
  return levels_[steps_ % rate_steps] = level_;
}

// is_growing is whether S still grows after the start.
bool LinkShares::is_growing() noexcept {
  if (!is_starting_ || steps_ <= rate_steps) return is_starting_;
  const BytesPerSecond now = sums_[(steps_ - 1) % sum_steps];
  return is_starting_ = now > sums_[(steps_ - 1 - rate_steps / 2) % sum_steps] * risen;
}

void LinkShares::read(Instant now, std::span<const Arrived> arrived) {
  std::erase_if(sessions_, [&](const Session& session) {
    return std::ranges::find(arrived, session.id, &Arrived::session) == arrived.end();
  });
  for (const Arrived& each : arrived) {
    auto found = std::ranges::find(sessions_, each.session, &Session::id);
    if (found == sessions_.end()) found = sessions_.insert(found, {.id = each.session});
    total_ = total_ + found->meter.read(now, each.total);
  }
  sum_.read(now, total_);
}

void LinkShares::judge(BytesPerSecond sum, BytesPerSecond even, bool is_bound,
                       bool has_room) noexcept {
  if (!trial_) {
    if (++steps_still_ < (has_room ? trial_steps : steps_between_)) return;
    // Where none is at the level, a higher one changes nothing, and none is below the even one.
    if (!is_bound && level_ <= even) return;
    const bool is_up = is_bound && (has_room || level_ <= even || !was_up_);
    return begin_trial(is_up, sum, is_up ? trial_up : trial_down);
  }
  if (++trial_->steps < trial_steps) return;
  const Trial trial = *trial_;
  trial_.reset();
  steps_still_ = 0;
  if (sum <= trial.sum * (trial.is_up ? risen : kept)) {
    level_ = trial.level;
    steps_between_ = std::min(steps_between_ * 2, steps_between_max);
    return;
  }
  steps_between_ = steps_between_min;
  if (trial.is_up || level_ > even)
    begin_trial(trial.is_up, sum, trial.is_up ? trial_up_again : trial_down);
}

void LinkShares::begin_trial(bool is_up, BytesPerSecond sum, Gain part) noexcept {
  was_up_ = is_up;
  trial_ = {.is_up = is_up, .level = level_, .sum = sum};
  level_ = level_ * part;
}

}  // namespace onehop::rate
