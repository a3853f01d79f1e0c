// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/channel/admission.hpp"

#include <algorithm>

namespace onehop::session {

namespace {
// Addresses whose wrong codes are remembered. Fewer: somebody with so many addresses guesses
// without a pause; more: memory (about 100 bytes each). The one whose next attempt is due first is
// forgotten first.
constexpr std::size_t guessers_max = 1024;
}  // namespace

Admission::Ticket Admission::enter(const IpAddress& address, std::function<void()> give_way) {
  make_room(address, Standing::stranger);
  half_open_.push_back({++last_ticket_, address, std::move(give_way)});
  return last_ticket_;
}

void Admission::rise(Ticket ticket, Standing standing) {
  const auto at = std::ranges::find(half_open_, ticket, &HalfOpen::ticket);
  if (at == half_open_.end()) return;
  HalfOpen held = std::move(*at);
  half_open_.erase(at);
  held.standing = standing;
  make_room(held.address, standing);
  half_open_.push_back(std::move(held));
}

void Admission::make_room(const IpAddress& address, Standing standing) {
  const auto is_of = [standing](const HalfOpen& held) { return held.standing == standing; };
  const std::size_t count = static_cast<std::size_t>(std::ranges::count_if(half_open_, is_of));
  auto oldest = half_open_.end();
  if (count_of(address, standing) >= half_open_per_address_max) {
    oldest = std::ranges::find_if(
        half_open_, [&](const HalfOpen& held) { return is_of(held) && held.address == address; });
  } else if (count >= half_open_max) {
    // max_element takes the first of equals, which is the oldest.
    oldest = std::ranges::max_element(half_open_, {}, [&](const HalfOpen& held) {
      return is_of(held) ? count_of(held.address, standing) : 0;
    });
  }
  if (oldest == half_open_.end()) return;
  const auto give_way = std::move(oldest->give_way);
  half_open_.erase(oldest);
  give_way();
}

std::size_t Admission::count_of(const IpAddress& address, Standing standing) const {
  return static_cast<std::size_t>(std::ranges::count_if(half_open_, [&](const HalfOpen& held) {
    return held.standing == standing && held.address == address;
  }));
}

void Admission::clear() {
  for (const HalfOpen& held : half_open_) held.give_way();
  half_open_.clear();
}

void Admission::leave(Ticket ticket) {
  std::erase_if(half_open_, [ticket](const HalfOpen& held) { return held.ticket == ticket; });
}

std::optional<Instant> Admission::begin_attempt(const IpAddress& address, Instant now) {
  const auto next = next_attempts_.find(address);
  if (next == next_attempts_.end()) return std::nullopt;
  if (now < next->second) return next->second;
  next->second = now + guess_pause_;
  return std::nullopt;
}

void Admission::note_wrong_code(const IpAddress& address, Instant now) {
  if (next_attempts_.size() >= guessers_max && !next_attempts_.contains(address))
    next_attempts_.erase(std::ranges::min_element(
        next_attempts_, {}, [](const auto& guesser) { return guesser.second; }));
  auto& next = next_attempts_[address];
  next = std::max(next, now + guess_pause_);
}

}  // namespace onehop::session
