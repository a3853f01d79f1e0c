// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Admission: which connections may be half open (accepted, not yet authenticated), and when an
// address may try a code again.
//
//   accept ─▶ enter() ─▶ [ strangers: 4 of an address, 16 in all; the oldest is closed first ]
//                rise() ─▶ [ engaged: as many, of their own ]
//                rise() ─▶ [ proven: as many, of their own  ] ─▶ leave(), with its Hello
//            begin_attempt(): at once, or a pause after that address's last wrong code
//
// A connection displaces only others of its own standing, so those that have not proven the code
// cannot displace one that has.
//
// It counts by the address that accept() returned and by tickets, and asks no socket: a socket that
// was reset does not know its peer any more. Pure: the caller gives the time. Its memory is bounded
// whatever strangers do. Session thread.
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
  stranger,  ///< it has proven nothing
  engaged,   ///< it took part in an exchange of the code; if it leaves unproven, its address pauses
  proven,    ///< it has shown a binder of the code
};

class Admission {
 public:
  using Ticket = std::uint64_t;

  /// guess_pause: the pause after a wrong code, before the next attempt of that address.
  explicit Admission(Nanos guess_pause) : guess_pause_{guess_pause} {}

  /// enter admits a connection. Without room the oldest of its own address gives way, or the oldest
  /// of the address that holds the most: an address with one connection keeps it until as many
  /// addresses connect as there are places. `give_way` is called when this connection must give
  /// way.
  [[nodiscard]] Ticket enter(const IpAddress& address, std::function<void()> give_way);
  /// rise moves it to a higher standing, where another one may have to give way. It does nothing if
  /// the connection gave way already.
  void rise(Ticket ticket, Standing standing);
  /// leave frees its place. It does nothing if the connection gave way already.
  void leave(Ticket ticket);
  /// clear makes all of them give way.
  void clear();
  [[nodiscard]] std::size_t half_open() const noexcept { return half_open_.size(); }

  /// begin_attempt lets `address` try a code now, or returns when to ask again. A connection that
  /// gives way before its attempt has used up nothing.
  [[nodiscard]] std::optional<Instant> begin_attempt(const IpAddress& address, Instant now);
  void note_wrong_code(const IpAddress& address, Instant now);
  /// note_refused: its offer was refused without a reason, or it left before it had proven
  /// anything. The address's next attempt waits for guess_pause.
  void note_refused(const IpAddress& address, Instant now) { note_wrong_code(address, now); }
  /// note_right_code: the address knows the code now, so it need not wait any more.
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
