// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Taps: gate.bpf.c on the lab's link, and the memory that it shares with the control process.
//
//   host a: va egress   ── arrivals   ──▶ ring ──▶ next_arrival()
//   middle: ma ingress  ── departures ──▶ departed_total()
//   middle: ma egress   ── arrivals   ──▶ ring ──▶ next_arrival()
//   host a: va ingress  ── departures ──▶ departed_total()
//
// One thread. No system call but in wait() and at the start.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"
#include "tools/labs/lab/air/gate_map.h"

struct bpf_object;
struct ring_buffer;

namespace onehop::lab::air {

/// Place: a device in a network namespace.
struct Place {
  std::string host;
  const char* device = nullptr;
};

struct TapOptions {
  Place sender;    ///< the gate stands on its egress
  Place receiver;  ///< peer of that device
};

class Taps {
 public:
  /// open loads and attaches; all directions are shut. Syscalls: bpf, mmap, setns, and netlink by
  /// libbpf.
  [[nodiscard]] static Result<Taps> open(
      std::span<const TapOptions, ONEHOP_GATE_DIRECTIONS> directions);
  Taps(Taps&&) = default;

  /// open_gate lets packets into a direction's queue of `frames`.
  void open_gate(std::size_t direction, std::uint64_t frames) noexcept;
  /// next_arrival copies the next packet out; false while there is none.
  [[nodiscard]] bool next_arrival(std::size_t direction, onehop_gate_arrival& out) noexcept;
  [[nodiscard]] std::uint64_t departed_total(std::size_t direction) const noexcept;
  [[nodiscard]] std::uint64_t refused_total(std::size_t direction) const noexcept;
  /// give_up has a frame dropped when it departs. Call it before the frame can.
  void give_up(std::size_t direction, std::uint64_t frame) noexcept;
  /// wait_for_arrival blocks until a packet comes, a signal, or the timeout. Syscalls: epoll_wait.
  void wait_for_arrival(Nanos timeout) noexcept;

 private:
  struct ObjectCloser {
    void operator()(bpf_object* object) const noexcept;
  };
  struct BellCloser {
    void operator()(ring_buffer* bell) const noexcept;
  };
  Taps() = default;
  [[nodiscard]] Result<void> map_memory();
  [[nodiscard]] Result<void> attach(const char* program, const Place& place, bool is_egress);

  std::unique_ptr<bpf_object, ObjectCloser> object_;
  std::unique_ptr<ring_buffer, BellCloser> bell_;
  onehop_gate_direction* directions_ = nullptr;
  onehop_gate_arrival* arrivals_ = nullptr;
  std::uint8_t* verdicts_ = nullptr;
  std::array<std::uint64_t, ONEHOP_GATE_DIRECTIONS> read_total_{};
};

}  // namespace onehop::lab::air
