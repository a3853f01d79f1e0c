// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/udp_rx.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/check.hpp"

namespace onehop {
namespace {

// Slots start on different cache sets: a power-of-two stride would put all heads into the same few.
constexpr std::size_t slot_stagger_bytes = 64;
constexpr std::size_t gro_slots_min = 8;

std::size_t plain_slot_bytes(std::size_t frame_bytes_max) noexcept {
  return (frame_bytes_max + 63) / 64 * 64 + slot_stagger_bytes;
}

}  // namespace

UdpRx::UdpRx(std::size_t frame_bytes_max, Bytes wire_overhead, bool is_gro_on)
    : frame_bytes_max_{frame_bytes_max},
      wire_overhead_{wire_overhead},
      arena_bytes_{std::max(plain_slot_bytes(frame_bytes_max) * rx_batch_max,
                            is_gro_on ? super_packet_bytes_max * gro_slots_min : 0)},
      arena_{std::make_unique_for_overwrite<std::byte[]>(arena_bytes_)},
      is_gro_on_{is_gro_on} {
  lay_out();
}

void UdpRx::lay_out() noexcept {
  slot_bytes_ = is_gro_on_ ? super_packet_bytes_max : plain_slot_bytes(frame_bytes_max_);
  slots_ = std::min(rx_batch_max, arena_bytes_ / slot_bytes_);
  for (std::size_t i = 0; i < slots_; ++i) {
    pieces_[i] = {.iov_base = arena_.get() + i * slot_bytes_, .iov_len = slot_bytes_};
    messages_[i] = {};
    messages_[i].msg_hdr.msg_iov = &pieces_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
    messages_[i].msg_hdr.msg_control = controls_[i].data();
    messages_[i].msg_hdr.msg_controllen = control_bytes;
  }
}

void UdpRx::refill(const UdpSocket& socket) noexcept {
  for (std::size_t i = 0; i < filled_; ++i) {
    messages_[i].msg_hdr.msg_controllen = control_bytes;
    messages_[i].msg_hdr.msg_flags = 0;
  }
  filled_ = next_ = offset_bytes_ = 0;
  syscalls_total_ += 1;
  const auto ask = static_cast<unsigned>(slots_);
  int got = ::recvmmsg(socket.fd(), messages_.data(), ask, MSG_DONTWAIT, nullptr);
  if (got < 0 && errno != EAGAIN) {
    // An ICMP error of an earlier frame; what waits behind it is data.
    syscalls_total_ += socket.drain_errors() + 1;
    got = ::recvmmsg(socket.fd(), messages_.data(), ask, MSG_DONTWAIT, nullptr);
  }
  is_drained_ = got < static_cast<int>(slots_);
  if (got <= 0) return;
  filled_ = static_cast<std::size_t>(got);
  for (std::size_t i = 0; i < filled_; ++i) take(i);
  if (is_gro_on_ && !is_gro_decided_) try_gro(socket, filled_);
}

// take reads one message's length and control data, and drops what cannot be a frame.
void UdpRx::take(std::size_t index) noexcept {
  msghdr& message = messages_[index].msg_hdr;
  Slot& slot = filled_slots_[index];
  slot = {.bytes = messages_[index].msg_len, .segment_bytes = messages_[index].msg_len};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level == IPPROTO_UDP && header->cmsg_type == UDP_GRO) {
      int segment_bytes = 0;
      std::memcpy(&segment_bytes, CMSG_DATA(header), sizeof segment_bytes);
      if (segment_bytes > 0) slot.segment_bytes = static_cast<std::size_t>(segment_bytes);
    } else if ((header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_TOS) ||
               (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_TCLASS)) {
      // IPv4 hands over one byte, IPv6 an int; the low byte comes first where we build.
      std::uint8_t tos = 0;
      std::memcpy(&tos, CMSG_DATA(header), sizeof tos);
      slot.is_ce = static_cast<wire::Ecn>(tos & 3) == wire::Ecn::ce;
    }
  }
  const std::size_t frames =
      slot.bytes == 0 ? 0 : (slot.bytes + slot.segment_bytes - 1) / slot.segment_bytes;
  if ((message.msg_flags & MSG_TRUNC) != 0 ||
      std::min(slot.segment_bytes, slot.bytes) > frame_bytes_max_) {
    malformed_total_ += frames;
    slot.bytes = 0;
  }
  if (slot.bytes == 0) return;  // an empty datagram is no frame
  backlog_ += Bytes{static_cast<std::int64_t>(slot.bytes)} +
              wire_overhead_ * static_cast<std::int64_t>(frames);
}

// try_gro looks at calls that brought more than one message: a lone frame tells nothing.
void UdpRx::try_gro(const UdpSocket& socket, std::size_t messages) noexcept {
  for (std::size_t i = 0; i < messages; ++i) {
    if (filled_slots_[i].bytes > filled_slots_[i].segment_bytes) {
      is_gro_decided_ = true;
      return;
    }
  }
  if (messages > 1) trial_frames_ += static_cast<std::uint32_t>(messages);
  if (trial_frames_ < gro_trial_frames) return;
  is_gro_decided_ = true;
  syscalls_total_ += 1;
  if (socket.set_gro(false))
    is_gro_on_ = false;  // refill() lays the slots out anew when these are handed out
}

std::size_t UdpRx::receive(const UdpSocket& socket, std::span<RxFrame> views) noexcept {
  ONEHOP_CHECK(!is_lent_);  // the views of the last receive() were not released
  if (views.empty()) return 0;
  if (next_ == filled_) {
    if (!is_gro_on_ && slot_bytes_ == super_packet_bytes_max) lay_out();
    refill(socket);
  }
  const std::size_t views_max = std::min(views.size(), rx_batch_max);
  std::size_t count = 0;
  while (count < views_max && next_ != filled_) {
    const Slot& slot = filled_slots_[next_];
    if (offset_bytes_ >= slot.bytes) {
      next_ += 1;
      offset_bytes_ = 0;
      continue;
    }
    const std::size_t length = std::min(slot.segment_bytes, slot.bytes - offset_bytes_);
    views[count] = {.data = arena_.get() + next_ * slot_bytes_ + offset_bytes_,
                    .length = static_cast<std::uint32_t>(length),
                    .is_ce = slot.is_ce};
    count += 1;
    offset_bytes_ += length;
    const Bytes wire = Bytes{static_cast<std::int64_t>(length)} + wire_overhead_;
    handed_total_ += wire;
    backlog_ -= wire;
    if (offset_bytes_ >= slot.bytes) {
      next_ += 1;
      offset_bytes_ = 0;
    }
  }
  is_lent_ = count > 0;
  return count;
}

}  // namespace onehop
