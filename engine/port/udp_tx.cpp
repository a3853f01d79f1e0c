// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/udp_tx.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/check.hpp"
#include "engine/base/time.hpp"
#include "engine/port/port.hpp"

namespace onehop {
namespace {

// An ICMP error that arrived earlier fails the next call without sending it. It is unauthenticated:
// drain and go on. Implementation constant; more in a row are taken for a refusal.
constexpr int icmp_retries_max = 3;

bool is_icmp_error(int error) noexcept {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == EPROTO || error == EOPNOTSUPP ||
         error == EACCES || error == EHOSTDOWN || error == ENOPROTOOPT;
}
static_assert(is_path_error(EHOSTUNREACH) && is_path_error(EACCES),
              "what is no ICMP error after all may pass, too");

}  // namespace

UdpTx::UdpTx(const Options& options)
    : options_{options}, arena_{std::make_unique_for_overwrite<std::byte[]>(arena_bytes)} {
  ONEHOP_CHECK(options.frame_bytes_max > 0);
  ONEHOP_CHECK(options.frame_bytes_max <= arena_bytes);
}

bool UdpTx::is_open_for(std::size_t n) const noexcept {
  if (head_ == tail_) return false;
  const Batch& last = batches_[tail_ - 1];
  return !last.is_closed && n <= last.segment_bytes && last.frames < segments_max &&
         last.bytes + n <= batch_bytes_max;
}

Bytes UdpTx::wire_of(std::size_t bytes, std::size_t frames) const noexcept {
  return Bytes{static_cast<std::int64_t>(bytes)} +
         options_.wire_overhead * static_cast<std::int64_t>(frames);
}

std::span<std::byte> UdpTx::lend(std::size_t n) noexcept {
  ONEHOP_CHECK(n > 0);
  if (n > options_.frame_bytes_max) return {};
  if (arena_used_bytes_ + n > arena_bytes) return {};
  if (tail_ == batches_max) return {};  // the frame may turn out to need a batch of its own
  lent_bytes_ = n;
  return {arena_.get() + arena_used_bytes_, n};
}

void UdpTx::commit(std::size_t n) noexcept {
  ONEHOP_CHECK(n > 0);
  ONEHOP_CHECK(n <= lent_bytes_);
  // Its length is known only now: a frame shorter than lent may still continue the last batch.
  if (!is_open_for(n)) {
    batches_[tail_] = {.offset_bytes = arena_used_bytes_, .segment_bytes = n};
    tail_ += 1;
  }
  Batch& batch = batches_[tail_ - 1];
  ONEHOP_CHECK(batch.offset_bytes + batch.bytes == arena_used_bytes_);
  batch.bytes += n;
  batch.frames += 1;
  // The kernel cuts a batch at multiples of the first frame's size: only the last may be shorter.
  if (n < batch.segment_bytes) batch.is_closed = true;
  arena_used_bytes_ += n;
  lent_bytes_ = 0;
  pending_frames_ += 1;
  pending_wire_ += wire_of(n, 1);
  accepted_total_ += wire_of(n, 1);
}

void UdpTx::read_charge(const UdpSocket& socket, Instant now) noexcept {
  if (now == charged_at_) return;
  charged_at_ = now;
  measure_charge(socket);
}

void UdpTx::measure_charge(const UdpSocket& socket) noexcept {
  charged_bytes_ = socket.mem_info().wmem_bytes;
  syscalls_total_ += 1;
  read_at_ = monotonic_now();
}

bool UdpTx::has_lost_link(const UdpSocket& socket, Instant now) noexcept {
  if (!socket.follows_link() || now - link_checked_at_ < link_check_interval) return false;
  link_checked_at_ = now;
  syscalls_total_ += 1;
  if (socket.is_link_running())
    gone_since_ = {};
  else if (gone_since_ == Instant{})
    gone_since_ = now;
  return gone_since_ != Instant{} && now - gone_since_ < link_distrust_span;
}

std::size_t UdpTx::flush(const UdpSocket& socket, Instant now) noexcept {
  if (head_ == tail_) return 0;
  if (now < blocked_until_) return pending_frames_;
  if (has_lost_link(socket, now)) {
    blocked_until_ = now + blocked_retry_interval;
    batches_[tail_ - 1].is_closed = true;
    return pending_frames_;
  }
  if (options_.is_charge_read) {
    read_charge(socket, now);
    (void)ledger_.outstanding(charged_bytes_);
  }
  while (head_ != tail_) {
    Batch& batch = batches_[head_];
    const Verdict verdict = send(socket, batch);
    blocked_until_ = verdict == Verdict::blocked ? now + blocked_retry_interval : Instant{};
    if (verdict == Verdict::again || verdict == Verdict::blocked) {
      batches_[tail_ - 1].is_closed = true;
      return pending_frames_;
    }
    if (verdict == Verdict::refused) refused_total_ += batch.frames;
    take_front(batch, batch.frames);
    head_ += 1;
  }
  head_ = tail_ = 0;
  arena_used_bytes_ = 0;
  return 0;
}

// take_front removes frames that have left, or were refused, from the front of a batch.
void UdpTx::take_front(Batch& batch, std::size_t frames) noexcept {
  const std::size_t bytes = std::min(batch.bytes, frames * batch.segment_bytes);
  batch.offset_bytes += bytes;
  batch.bytes -= bytes;
  batch.frames -= frames;
  pending_frames_ -= frames;
  pending_wire_ -= wire_of(bytes, frames);
}

void UdpTx::learn(const UdpSocket& socket, Bytes wire, std::size_t frames) noexcept {
  if (!options_.is_charge_read) return;
  const std::int64_t before_bytes = charged_bytes_;
  measure_charge(socket);
  ledger_.push(wire, static_cast<std::uint32_t>(frames), charged_bytes_ - before_bytes);
}

UdpTx::Verdict UdpTx::send(const UdpSocket& socket, Batch& batch) noexcept {
  for (int retry = 0;; ++retry) {
    const bool is_segmented = options_.is_gso_on && batch.frames > 1;
    const std::size_t frames = batch.frames;
    const Bytes wire = wire_of(batch.bytes, frames);
    const int error = is_segmented ? send_segmented(socket, batch) : send_each(socket, batch);
    if (error == 0) {
      last_error_ = 0;
      policy_refusals_ = 0;
      if (is_segmented) learn(socket, wire, frames);
      return Verdict::sent;
    }
    if (error == EAGAIN || error == EINTR) return Verdict::again;
    if (is_segmented && (error == EIO || error == EINVAL)) {
      // EIO: the device cannot checksum segments. EINVAL: kernels before 6.13 say so for a segment
      // above the MTU, and some for UDP_SEGMENT at all. One by one tells which; what fits leaves.
      const int error_each = send_each(socket, batch);
      if (error_each == 0) {
        options_.is_gso_on = false;
        return Verdict::sent;
      }
      if (error_each == EAGAIN) return Verdict::again;
      return fail(socket, error_each);
    }
    if (is_icmp_error(error) && retry < icmp_retries_max) {
      syscalls_total_ += socket.drain_errors();
      continue;
    }
    return fail(socket, error);
  }
}

// fail says what becomes of a batch that cannot leave now.
UdpTx::Verdict UdpTx::fail(const UdpSocket& socket, int error) noexcept {
  // ENOBUFS: the local qdisc dropped it, a loss and no fault. So is ICMP that goes on.
  if (error != ENOBUFS && (is_path_error(error) || !is_icmp_error(error))) last_error_ = error;
  if (error == EMSGSIZE) syscalls_total_ += socket.drain_errors();
  if (is_policy_error(error))
    return ++policy_refusals_ < policy_refusals_max ? Verdict::refused : Verdict::blocked;
  return is_path_error(error) ? Verdict::blocked : Verdict::refused;
}

int UdpTx::send_segmented(const UdpSocket& socket, const Batch& batch) noexcept {
  iovec piece{.iov_base = arena_.get() + batch.offset_bytes, .iov_len = batch.bytes};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = IPPROTO_UDP;
  header->cmsg_type = UDP_SEGMENT;
  header->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  const auto segment_bytes = static_cast<std::uint16_t>(batch.segment_bytes);
  std::memcpy(CMSG_DATA(header), &segment_bytes, sizeof segment_bytes);
  syscalls_total_ += 1;
  return ::sendmsg(socket.fd(), &message, MSG_DONTWAIT) >= 0 ? 0 : errno;
}

// send_each hands frames over one datagram each; what left is taken off the batch.
int UdpTx::send_each(const UdpSocket& socket, Batch& batch) noexcept {
  std::array<iovec, segments_max> pieces;
  std::array<mmsghdr, segments_max> messages;
  while (batch.frames > 0) {
    const std::size_t frames = batch.frames;
    for (std::size_t i = 0; i < frames; ++i) {
      const std::size_t at = i * batch.segment_bytes;
      pieces[i] = {.iov_base = arena_.get() + batch.offset_bytes + at,
                   .iov_len = std::min(batch.segment_bytes, batch.bytes - at)};
      messages[i] = {};
      messages[i].msg_hdr.msg_iov = &pieces[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    syscalls_total_ += 1;
    const int sent =
        ::sendmmsg(socket.fd(), messages.data(), static_cast<unsigned>(frames), MSG_DONTWAIT);
    if (sent < 0) return errno;
    const auto sent_frames = static_cast<std::size_t>(sent);
    const std::size_t bytes = std::min(batch.bytes, sent_frames * batch.segment_bytes);
    learn(socket, wire_of(bytes, sent_frames), sent_frames);
    socket.link_status().on_sent(socket.fd(), static_cast<std::uint32_t>(sent_frames));
    take_front(batch, sent_frames);
    if (sent_frames == 0) return EAGAIN;
  }
  return 0;
}

Bytes UdpTx::occupancy(const UdpSocket& socket, Instant now) noexcept {
  if (!options_.is_charge_read) {
    read_at_ = monotonic_now();
    return pending_wire_;
  }
  read_charge(socket, now);
  return pending_wire_ + ledger_.outstanding(charged_bytes_);
}

}  // namespace onehop
