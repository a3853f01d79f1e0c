// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Fault: what can go wrong in one hostile transfer, by name. Values only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onehop::stress {

/// Fault: the first two are properties of the world, the others begin at a moment and last for a
/// span.
enum class Fault : std::uint8_t {
  tiny_rings,    ///< of blocks, commands and events: 1 to 4 entries
  umem_edge,     ///< frames end at the edge of their chunk, ring indices wrap at 2^32
  sender_stall,  ///< the sending core is not scheduled
  receiver_stall,
  control_stall,  ///< the rate loop is not scheduled
  jitter,         ///< all three come late by a random time, turn for turn
  drain_up,       ///< the link's rate times 4
  drain_down,     ///< the link's rate by 4
  disk_stall,
  disk_slow,             ///< the disk takes a quarter of the link's rate
  completions_withheld,  ///< what has left is not told
  fill_starved,          ///< the driver finds no chunk to receive into
  link_down,             ///< the interface is down
  mtu,                   ///< the MTU falls to 1280, and frames follow a moment later
  rebind,                ///< the queue is taken away and given back; what stands in it is lost
  feedback_lost,         ///< nothing comes back
  loss,                  ///< three frames in ten are lost
  disorder,              ///< frames are late, doubled, damaged, cut short
  facts,                 ///< sensors of the link speak, lie or fall silent
};
inline constexpr std::size_t faults = static_cast<std::size_t>(Fault::facts) + 1;
inline constexpr std::size_t faults_of_the_world = 2;

[[nodiscard]] std::string_view to_string(Fault fault) noexcept;
[[nodiscard]] std::optional<Fault> fault_of(std::string_view name) noexcept;
/// needs_rings: it can only be had with AF_XDP's rings.
[[nodiscard]] bool needs_rings(Fault fault) noexcept;

/// FaultSet: one bit per fault.
using FaultSet = std::uint32_t;
static_assert(faults <= 32);
[[nodiscard]] constexpr FaultSet bit_of(Fault fault) noexcept {
  return FaultSet{1} << static_cast<unsigned>(fault);
}
inline constexpr FaultSet every_fault = (FaultSet{1} << faults) - 1;
/// fault_names lists some for texts.
[[nodiscard]] std::string fault_names(FaultSet kinds);

}  // namespace onehop::stress
