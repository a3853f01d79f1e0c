// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/ends/flood.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "control/session/channel/path_follower.hpp"
#include "control/transfer/port/ports.hpp"
#include "engine/base/block.hpp"
#include "engine/base/system/cpu.hpp"
#include "engine/base/time.hpp"
#include "engine/source/read_ahead.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::bench {

namespace {

constexpr Nanos nap = 200us;  // as the engine's shortest: below, wake-ups cost more than they save
constexpr Nanos neighbour_patience = 3s;
constexpr Nanos neighbour_poll = 20ms;
constexpr Nanos lost_patience = 20ms;   // nothing arrives for so long: what is on its way is lost
constexpr Nanos paced_quantum = 500us;  // a paced sender wakes no more often
// Payload comes from and goes to as much memory as the engine's blocks take: it neither lives in
// the first-level cache nor leaves the last one.
constexpr std::size_t memory_bytes = source::ReadAhead::blocks_min * std::size_t{block_bytes};

/// A ring of bytes that frames are copied from or to.
class Memory {
 public:
  [[nodiscard]] std::byte* next(std::size_t bytes) {
    if (at_ + bytes > bytes_.size()) at_ = 0;
    return bytes_.data() + std::exchange(at_, at_ + bytes);
  }

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(memory_bytes, std::byte{0x5a});
  std::size_t at_ = 0;
};

struct Way {
  session::RouteInfo route;
  Endpoint local, peer;
  std::size_t frame_bytes = 0;
};

Result<Way> find_way(const FloodSpec& spec, const std::string& peer) {
  const auto address = IpAddress::parse(peer);
  if (!address) return Error{ExitCode::usage, "flood " + peer, "it is not a numeric address"};
  ONEHOP_TRY(route, session::find_route(*address, spec.common.interface));
  return Way{.route = route, .local = {route.source, spec.port}, .peer = {*address, spec.port}};
}

Result<transfer::OpenPort> open_port(const FloodSpec& spec, Way& way, api::Role role,
                                     transfer::DpdkHost* dpdk, Board& board) {
  for (const std::string& warning : transfer::opening_warnings(spec.common, way.route.link.name))
    std::fprintf(stderr, "onehop bench: %s\n", warning.c_str());
  ONEHOP_TRY(port, transfer::OpenPort::open({.settings = spec.common,
                                             .interface = way.route.link.name,
                                             .local = way.local,
                                             .role = role,
                                             .dpdk = dpdk}));
  ONEHOP_TRYV(port.connect(way.peer));
  const PortInfo info = port.info();
  const auto headers = static_cast<std::size_t>(info.wire_overhead.count) - 14;
  const std::size_t largest =
      std::min<std::size_t>(way.route.link.mtu_bytes - headers, info.frame_bytes_max);
  way.frame_bytes = spec.common.frame_bytes == 0 ? largest : spec.common.frame_bytes;
  if (way.frame_bytes > largest || way.frame_bytes <= wire::overhead_bytes)
    return Error{ExitCode::usage,
                 "use frames of " + std::to_string(way.frame_bytes) + " bytes (--frame-size)",
                 way.route.link.name + " carries at most " + std::to_string(largest) + " over " +
                     std::string{info.io},
                 "Take smaller ones, or a larger --mtu"};
  write_text(board.io_used, info.io);
  write_text(board.io_mode, info.mode);
  board.frame_bytes = static_cast<std::uint32_t>(way.frame_bytes);
  return std::move(port);
}

/// The header template of a raw port needs the peer's link address: a datagram to its discard port
/// makes the kernel ask.
Result<PathUpdate> find_path(const FloodSpec& spec, const Way& way) {
  const SocketAddress discard = Endpoint{way.peer.address, 9}.to_sockaddr();
  const Fd socket{::socket(way.peer.address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ONEHOP_TRY(follower,
             session::PathFollower::open(
                 {.local = way.local, .peer = way.peer, .interface = spec.common.interface}));
  for (Nanos waited{0}; waited < neighbour_patience; waited += neighbour_poll) {
    if (follower.update().has_neighbour || !way.route.link.has_neighbours) return follower.update();
    (void)::sendto(socket.get(), "", 1, MSG_DONTWAIT, discard.get(), discard.size_bytes);
    std::this_thread::sleep_for(neighbour_poll);
    ONEHOP_TRY(again,
               session::PathFollower::open(
                   {.local = way.local, .peer = way.peer, .interface = spec.common.interface}));
    follower = std::move(again);
  }
  return Error{ExitCode::peer_unreachable, "find the link address of " + way.peer.address.text(),
               "nobody answers"};
}

/// Answers the measuring process. Called between bursts.
class Answer {
 public:
  explicit Answer(Board& board) : board_{board} {}
  template <class Fill>
  void look(Fill fill) {
    const std::uint32_t asked = board_.asked.load(std::memory_order_acquire);
    if (asked == board_.answered.load(std::memory_order_relaxed)) return;
    fill(board_.moved);
    post_usage(board_.moved);
    board_.answered.store(asked, std::memory_order_release);
  }

 private:
  Board& board_;
};

template <class P>
class FloodSender {
 public:
  FloodSender(P& port, const FloodSpec& spec, std::size_t frame_bytes, Board& own, const Board& far)
      : port_{port},
        spec_{spec},
        frame_bytes_{frame_bytes},
        body_bytes_{frame_bytes - wire::overhead_bytes},
        own_{own},
        far_{far} {}

  void run() {
    Answer answer{own_};
    started_ = arrived_at_ = monotonic_now();
    own_.first_data_ns = started_.time_since_epoch().count();
    own_.state.store(EndState::flowing, std::memory_order_release);
    while (!own_.is_stopping.load(std::memory_order_relaxed)) {
      answer.look([&](Moved& moved) { fill(moved); });
      const Instant now = monotonic_now();
      if (burst(now) > 0 || spec_.common.poll == "busy") continue;
      (void)port_.wait(wake_at(now), false);
      ++wakeups_;
    }
  }

 private:
  /// burst sends what window, rate and port allow, one burst at most.
  std::size_t burst(Instant now) {
    std::size_t sent = 0;
    const std::size_t allowed = allowance(now);
    for (; sent < allowed; ++sent) {
      const std::span<std::byte> slot = port_.lend(frame_bytes_);
      if (slot.empty()) break;
      std::memcpy(slot.data(), memory_.next(frame_bytes_), frame_bytes_);
      wire::encode_header({},
                          slot.template first<wire::header_bytes>());  // else the peer's port drops
                                                                       // it as nobody's frame
      port_.commit(frame_bytes_);
    }
    const std::size_t held = port_.flush(now);
    sent_ += sent;
    own_.frames_sent.store(sent_, std::memory_order_relaxed);
    if (sent == 0) look(now);
    return held > 0 && sent == 0 ? 0 : sent;
  }

  /// look takes back what has left and hears what came: on a link without a kernel, the peer's link
  /// address.
  void look(Instant now) {
    (void)port_.tx_queue(now);
    std::array<RxFrame, rx_batch_max> views;
    if (port_.receive(views) > 0) port_.release();
  }

  std::size_t allowance(Instant now) {
    std::uint64_t most = spec_.burst_frames;
    if (spec_.rate.count > 0) {
      const auto due =
          static_cast<std::uint64_t>((spec_.rate * (now - started_)).count) / body_bytes_;
      most = std::min<std::uint64_t>(most, due > sent_ ? due - sent_ : 0);
    }
    if (spec_.window_frames == 0) return most;
    const std::uint64_t received = far_.frames_received.load(std::memory_order_relaxed);
    if (received != received_) arrived_at_ = now;
    received_ = received;
    const std::uint64_t on_the_way = sent_ - lost_ - std::min(received, sent_ - lost_);
    if (on_the_way >= spec_.window_frames && now - arrived_at_ > lost_patience) lost_ += on_the_way;
    return std::min<std::uint64_t>(
        most, spec_.window_frames - std::min<std::uint64_t>(on_the_way, spec_.window_frames));
  }
  [[nodiscard]] Instant wake_at(Instant now) const {
    return now + (spec_.rate.count > 0 ? paced_quantum : nap);
  }

  void fill(Moved& moved) const {
    moved.bytes = sent_ * body_bytes_;
    moved.frames = sent_;
    moved.frames_lost = lost_;
    moved.wakeups = wakeups_;
    moved.engine_syscalls = port_.syscalls_total();
  }

  P& port_;
  const FloodSpec& spec_;
  const std::size_t frame_bytes_, body_bytes_;
  Board& own_;
  const Board& far_;
  Memory memory_;
  Instant started_{}, arrived_at_{};
  std::uint64_t sent_ = 0, lost_ = 0, received_ = 0, wakeups_ = 0;
};

template <class P>
void receive_flood(P& port, const FloodSpec& spec, Board& own) {
  Answer answer{own};
  Memory memory;
  std::array<RxFrame, rx_batch_max> views;
  std::uint64_t frames = 0, bytes = 0, wakeups = 0;
  while (!own.is_stopping.load(std::memory_order_relaxed)) {
    answer.look([&](Moved& moved) {
      moved.bytes = bytes;
      moved.frames = frames;
      moved.wakeups = wakeups;
      moved.engine_syscalls = port.syscalls_total();
    });
    const std::size_t count = port.receive(views);
    for (std::size_t i = 0; i < count; ++i) {
      const Pieces frame = views[i].bytes();
      const std::size_t length = frame.size();
      frame.copy_to(memory.next(length), 0, length);
      bytes += length - std::min<std::size_t>(length, wire::overhead_bytes);
    }
    if (count > 0) {
      port.release();
      frames += count;
      own.frames_received.store(frames, std::memory_order_relaxed);
      if (own.state.load(std::memory_order_relaxed) == EndState::ready)
        own.state.store(EndState::flowing, std::memory_order_release);
      continue;
    }
    if (spec.common.poll == "busy") continue;
    (void)port.wait(monotonic_now() + nap,
                    false);  // a nap: waking for each burst costs more than the burst
    ++wakeups;
  }
}

void wait_start(const Board& board) {
  while (!board.is_started.load(std::memory_order_acquire)) std::this_thread::sleep_for(1ms);
}

Result<void> flood(const FloodSpec& spec, Board& own, const Board* far) {
  name_this_thread("onehop-flood");
  use_exact_timers();
  ONEHOP_TRY(way, find_way(spec, spec.peer));
  std::unique_ptr<transfer::DpdkHost> dpdk;  // before the port, which goes first
  if (spec.common.io == "dpdk") {
    ONEHOP_TRY(opened, transfer::DpdkHost::open(spec.common, way.local));
    dpdk = std::move(opened);
  }
  ONEHOP_TRY(port, open_port(spec, way, far == nullptr ? api::Role::receiving : api::Role::sending,
                             dpdk.get(), own));
  PathUpdate path;
  if (far != nullptr) {
    ONEHOP_TRY(found, find_path(spec, way));
    path = found;
  }
  own.state.store(EndState::ready, std::memory_order_release);
  wait_start(own);
  port.visit([&](auto& opened) {
    if (far == nullptr) return receive_flood(opened, spec, own);
    opened.update_path(path);
    FloodSender<std::remove_reference_t<decltype(opened)>>{opened, spec, way.frame_bytes, own, *far}
        .run();
  });
  return success();
}

int end_with(const Result<void>& result, Board& board) {
  if (result.has_value()) return 0;
  post_error(board, result.error());
  return static_cast<int>(result.error().code);
}

}  // namespace

int run_flood_sender(const FloodSpec& spec, Board& own, const Board& far) {
  return end_with(flood(spec, own, &far), own);
}
int run_flood_receiver(const FloodSpec& spec, Board& own) {
  return end_with(flood(spec, own, nullptr), own);
}

}  // namespace onehop::bench
