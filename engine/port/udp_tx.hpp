// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// UdpTx: frames out. Frames of equal size lie side by side in an arena; a batch leaves by one call.
//
//   arena  [ batch: f f f f f ][ batch: f f f' ][ lent slot ..................... ]
//            ^ head: next to send   ^ a smaller frame ends its batch     ^ tail
//
// sendmsg with UDP_SEGMENT where the kernel has it, else sendmmsg. A batch that the socket has no
// room for stays and is tried again at the next flush, one that the path does not take (port.hpp,
// is_path_error) some time later; a batch refused otherwise is gone and counted.
//
// Owned and called by the engine core. It allocates at start only, and never blocks.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/base/units.hpp"
#include "engine/port/outstanding_ledger.hpp"
#include "engine/port/udp_socket.hpp"

namespace onehop {

class UdpTx {
 public:
  struct Options {
    std::size_t frame_bytes_max = 0;
    Bytes wire_overhead{};
    bool is_gso_on = false;
    bool is_charge_read = false;  ///< the socket's charge says what is still queued below
  };

  /// Specification constants of the kernel: 64 segments per call (before 6.9), IP packets of 65535.
  static constexpr std::size_t segments_max = 64;
  static constexpr std::size_t batch_bytes_max = 65'000;
  /// Implementation constants. 44 frames of 1472 bytes fill a batch, and four batches a turn.
  /// Fewer: more system calls per turn. More: the arena leaves the cache.
  static constexpr std::size_t arena_bytes = 4 * 65'536;
  static constexpr std::size_t batches_max = 64;
  /// Between two attempts while the path takes nothing. Shorter: system calls for nothing. Longer:
  /// a link that came back, or a rule that went, is found late (the session's word of it ends it).
  static constexpr Nanos blocked_retry_interval{5'000'000};
  /// Before it sends after a pause the port asks whether the link has its carrier: a frame sent
  /// after a link's fall makes the kernel ask for the neighbour in vain, and the next question
  /// comes up to a second after its return. Shorter: system calls. Longer: frames leave.
  static constexpr Nanos link_check_interval{1'000'000};
  /// So long the flag alone holds frames. Longer: a driver that never sets it stops a good link.
  static constexpr Nanos link_distrust_span{100'000'000};
  /// A rule may drop some frames only: that is loss. So many batches in a row: it drops all.
  static constexpr std::uint32_t policy_refusals_max = 3;

  explicit UdpTx(const Options& options);

  void set_charge_read(bool is_on) noexcept { options_.is_charge_read = is_on; }
  void set_gso(bool is_on) noexcept { options_.is_gso_on = is_on; }

  [[nodiscard]] std::span<std::byte> lend(std::size_t n) noexcept;
  void commit(std::size_t n) noexcept;
  /// Returns the frames that still wait. Syscalls: sendmsg or sendmmsg, getsockopt; recvmsg.
  [[nodiscard]] std::size_t flush(const UdpSocket& socket, Instant now) noexcept;
  /// occupancy is the wire bytes held here and charged below. Syscalls: getsockopt, once per `now`:
  /// what was read in the same turn, the last time after the last batch, holds for all of it.
  [[nodiscard]] Bytes occupancy(const UdpSocket& socket, Instant now) noexcept;
  /// read_at is when the last occupancy was true, which may be long after the turn began.
  [[nodiscard]] Instant read_at() const noexcept { return read_at_; }

  /// is_room_wanted: batches wait for room in the socket, and for nothing else.
  [[nodiscard]] bool is_room_wanted() const noexcept {
    return head_ != tail_ && blocked_until_ == Instant{};
  }
  [[nodiscard]] bool is_gso_on() const noexcept { return options_.is_gso_on; }
  [[nodiscard]] Bytes accepted_total() const noexcept { return accepted_total_; }
  [[nodiscard]] std::uint64_t refused_total() const noexcept { return refused_total_; }
  [[nodiscard]] std::uint64_t syscalls_total() const noexcept { return syscalls_total_; }
  [[nodiscard]] int last_error() const noexcept { return last_error_; }
  /// forget_error: the path has changed, so an earlier refusal may be over.
  void forget_error() noexcept {
    last_error_ = 0;
    blocked_until_ = gone_since_ = {};
  }
  [[nodiscard]] std::int64_t truesize_permille() const noexcept {
    return ledger_.truesize_permille();
  }
  [[nodiscard]] static constexpr Bytes memory() noexcept {
    return {static_cast<std::int64_t>(arena_bytes)};
  }

 private:
  struct Batch {
    std::size_t offset_bytes = 0;
    std::size_t bytes = 0;
    std::size_t segment_bytes = 0;
    std::size_t frames = 0;
    bool is_closed = false;
  };
  enum class Verdict { sent, again, blocked, refused };

  [[nodiscard]] bool is_open_for(std::size_t n) const noexcept;
  [[nodiscard]] Bytes wire_of(std::size_t bytes, std::size_t frames) const noexcept;
  [[nodiscard]] Verdict send(const UdpSocket& socket, Batch& batch) noexcept;
  /// has_lost_link: the carrier is gone, and the session has not said so yet. Syscalls: ioctl.
  [[nodiscard]] bool has_lost_link(const UdpSocket& socket, Instant now) noexcept;
  [[nodiscard]] Verdict fail(const UdpSocket& socket, int error) noexcept;
  [[nodiscard]] int send_segmented(const UdpSocket& socket, const Batch& batch) noexcept;
  [[nodiscard]] int send_each(const UdpSocket& socket, Batch& batch) noexcept;
  void take_front(Batch& batch, std::size_t frames) noexcept;
  void learn(const UdpSocket& socket, Bytes wire, std::size_t frames) noexcept;
  void read_charge(const UdpSocket& socket, Instant now) noexcept;
  void measure_charge(const UdpSocket& socket) noexcept;

  Options options_;
  std::unique_ptr<std::byte[]> arena_;
  std::size_t arena_used_bytes_ = 0;
  std::array<Batch, batches_max> batches_{};
  std::size_t head_ = 0;
  std::size_t tail_ = 0;  // batches_[head_..tail_) wait; both return to 0 when all have left
  std::size_t lent_bytes_ = 0;

  OutstandingLedger ledger_;
  std::int64_t charged_bytes_ = 0;
  Instant charged_at_{};  // the turn of the last reading
  Instant read_at_{};     // when it was made
  std::size_t pending_frames_ = 0;
  Bytes pending_wire_{};
  Bytes accepted_total_{};
  std::uint64_t refused_total_ = 0;
  std::uint64_t syscalls_total_ = 0;
  int last_error_ = 0;
  std::uint32_t policy_refusals_ = 0;  // batches in a row
  Instant link_checked_at_{};
  Instant gone_since_{};     // the carrier; Instant{}: it is there
  Instant blocked_until_{};  // the path takes nothing; Instant{}: it does
};

}  // namespace onehop
