// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/admission.hpp"

#include <algorithm>

namespace onehop::session {

namespace {
// Addresses whose wrong codes are remembered. Fewer: somebody with so many addresses guesses
// without a pause; more: memory (about 100 bytes each). The one whose next attempt is due first is
// forgotten first.
constexpr std::size_t guessers_max = 1024;
}  // namespace

Admission::Ticket Admission::enter(const IpAddress& address, std::function<void()> give_way) {
  make_room(address);
  half_open_.push_back({++last_ticket_, address, std::move(give_way)});
  return last_ticket_;
}

void Admission::make_room(const IpAddress& address) {
  auto oldest = half_open_.end();
  if (count_of(address) >= half_open_per_address_max) {
    oldest = std::ranges::find(half_open_, address, &HalfOpen::address);
  } else if (half_open_.size() >= half_open_max) {
    // max_element takes the first of equals, which is the oldest.
    oldest = std::ranges::max_element(
        half_open_, {}, [this](const HalfOpen& held) { return count_of(held.address); });
  }
  if (oldest == half_open_.end()) return;
  oldest->give_way();
  half_open_.erase(oldest);
}

std::size_t Admission::count_of(const IpAddress& address) const {
  return static_cast<std::size_t>(std::ranges::count(half_open_, address, &HalfOpen::address));
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
