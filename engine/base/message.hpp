// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Command and Event: what passes between the session and the engine core, over
// SpscRing<Command> and SpscRing<Event>. Plain data; the session polls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/base/block.hpp"
#include "engine/base/units.hpp"

namespace onehop::protocol {
class FileVolume;  // engine/protocol/file_volume.hpp
}
namespace onehop {

/// PathUpdate: where frames go, found and followed by the session. Ports speak no netlink.
struct PathUpdate {
  static constexpr std::size_t template_bytes_max = 14 + 40 + 8;
  /// Of raw ports: Ethernet, IP, UDP with lengths and checksums zero.
  std::array<std::byte, template_bytes_max> header{};
  std::uint16_t header_bytes = 0;  ///< 42 or 62; 0: the port needs none
  std::uint16_t mtu_bytes = 0;     ///< of the egress interface
  int ifindex = 0;
  bool is_link_up = true;
  bool has_neighbour = false;  ///< the template's destination address is valid

  bool operator==(const PathUpdate&) const = default;
};

enum class CommandKind : std::uint8_t {
  prove_path,  ///< send full-size PINGs until one is answered or the proof has failed
               ///< (engine/run/loop_base.hpp)
  start,       ///< the path is proven at both ends: data may flow
  path_update,
  skip_block,  ///< receiving: `block` is skipped or a hole: it counts as arrived, and goes on to
               ///< the file thread, in order
  add_files,   ///< receiving: the next volume of files, `volume`; before data of it may be sent
  checkpoint,  ///< sending: stop new data; receiving: have the file thread make durable what
               ///< arrived, of which it tells the session itself
  finish,      ///< the session is over: drain and leave the loop
};

struct Command {
  CommandKind kind = CommandKind::finish;
  PathUpdate path;
  BlockRef block;                          ///< of skip_block
  protocol::FileVolume* volume = nullptr;  ///< of add_files; the engine's until is_released()
};

enum class EventKind : std::uint8_t {
  path_proven,      ///< a full-size PING was answered; `value`: its frame, bytes of UDP payload
  path_dead,        ///< none was answered within the deadline
  heard_elsewhere,  ///< receiving: an authentic frame came from elsewhere than the peer; `value`:
                    ///< the port there
  peer_moved,       ///< receiving: the peer answers at another address; `value`: its port there
  first_data,       ///< sending: the first data frame was given to the port
  block_sent,       ///< sending: the last byte of `block` was sent once; its digest is due
  block_skipped,    ///< sending: a skipped block or a hole has its turn; it is to be announced
  all_arrived,      ///< sending: the peer has acknowledged every byte
  feedback_silent,  ///< nothing from the peer for the session's limit (30 s)
  stalled,          ///< the peer is heard, but no file data has come through for the limit
  protocol_error,   ///< the peer broke the protocol; `value` is a wire::Violation
  port_failed,      ///< the port is gone; `value` is errno
  port_refused,     ///< a rule of this host refuses our frames, told once; `value` is errno
  peer_heard,       ///< an authentic frame of the peer came; once a second at most
  closed,           ///< the loop has ended; no event follows
};

struct Event {
  EventKind kind = EventKind::closed;
  Instant at{};
  std::uint64_t value = 0;
  BlockRef block;
};

}  // namespace onehop
