// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Admission: which connections may be half open (accepted, not yet authenticated), and when an
// address may try a code again.
//
//   accept ─▶ enter() ─▶ [ strangers: 4 of an address, 16 in all; the oldest gives way ]
//                rise() ─▶ [ engaged: as many, of their own ]
//                rise() ─▶ [ proven: as many, of their own  ] ─▶ leave(), with its Hello
//            begin_attempt(): at once, or a pause after that address's last wrong code
//
// Only those of one standing give way to each other, so who has proven the code is out of reach of
// all who have not.
//
// It counts by the address that accept() named and by tickets, and asks no socket: one that was
// reset does not know its peer any more. Pure but for the time that it is given; its memory is
// bounded whatever strangers do. Session thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "engine/base/system/address.hpp"
#include "engine/base/units.hpp"

namespace onehop::session {

inline constexpr std::size_t half_open_max = 16;  ///< of a standing; each holds about 70 KiB
inline constexpr std::size_t half_open_per_address_max = 4;

/// Standing: how far a half-open connection has got.
enum class Standing : std::uint8_t {
  stranger,  ///< nothing of it is known
  engaged,   ///< it took part in an exchange of the code; to leave unproven costs it a pause
  proven,    ///< it has shown a binder of the code
};

class Admission {
 public:
  using Ticket = std::uint64_t;

  /// guess_pause: between the attempts of an address that had a wrong code.
  explicit Admission(Nanos guess_pause) : guess_pause_{guess_pause} {}

  /// enter lets a connection in. Where there is no room the oldest of its own address gives way, or
  /// the oldest of the address that holds the most: who has one connection keeps it until as many
  /// addresses come as there are places. `give_way` is called when this one has to.
  [[nodiscard]] Ticket enter(const IpAddress& address, std::function<void()> give_way);
  /// rise gives it a place among those of a higher standing, where another one may have to give way
  /// in its turn; nothing where it had given way.
  void rise(Ticket ticket, Standing standing);
  /// leave frees its place; nothing where it had given way.
  void leave(Ticket ticket);
  /// clear has all of them give way.
  void clear();
  [[nodiscard]] std::size_t half_open() const noexcept { return half_open_.size(); }

  /// begin_attempt lets `address` try a code now, or tells when to ask again. What gives way
  /// meanwhile has used up nothing.
  [[nodiscard]] std::optional<Instant> begin_attempt(const IpAddress& address, Instant now);
  void note_wrong_code(const IpAddress& address, Instant now);
  /// note_refused: its offer was refused without a reason, or it left before it had proven
  /// anything; the next attempt comes a pause later.
  void note_refused(const IpAddress& address, Instant now) { note_wrong_code(address, now); }
  /// note_right_code: who mistyped the code knows it now.
  void note_right_code(const IpAddress& address) { next_attempts_.erase(address); }

 private:
  struct HalfOpen {
    Ticket ticket;
    IpAddress address;
    std::function<void()> give_way;
    Standing standing = Standing::stranger;
  };
  [[nodiscard]] std::size_t count_of(const IpAddress& address, Standing standing) const;
  void make_room(const IpAddress& address, Standing standing);

  const Nanos guess_pause_;
  std::vector<HalfOpen> half_open_;             // of each standing, oldest first
  std::map<IpAddress, Instant> next_attempts_;  // of addresses that had a wrong code
  Ticket last_ticket_ = 0;
};

}  // namespace onehop::session
