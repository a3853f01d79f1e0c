// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/world/ring_port.hpp"

#include <cerrno>
#include <cstring>

#include "engine/base/check.hpp"
#include "xdp/afxdp_layout.hpp"

namespace onehop::scenario {

namespace {
constexpr std::size_t header_bytes = wire::ethernet_ipv4_udp_bytes;

wire::HeaderTemplate any_headers() {
  std::array<std::byte, wire::l2_l4_bytes_max> headers{};
  const std::size_t length = wire::build_headers({}, headers);
  return wire::HeaderTemplate{std::span{headers}.first(length)};
}
}  // namespace

RingPort::RingPort(VirtualLink& link, std::size_t end, const RingShape& shape)
    : link_{&link},
      end_{end},
      shape_{shape},
      umem_{std::make_unique_for_overwrite<std::byte[]>(umem_bytes())},
      tx_{shape.tx_frames, shape.index_start},
      rx_{shape.rx_frames, shape.index_start},
      completion_{shape.tx_frames, shape.index_start},
      fill_{xdp::fill_entries(shape.rx_frames), shape.index_start},
      is_kernels_(shape.rx_frames + shape.tx_frames),
      fill_taken_{shape.index_start},
      unread_(shape.rx_frames, shape.index_start - 1),
      gone_(shape.tx_frames),
      template_{any_headers()} {
  const std::size_t slot_bytes = xdp::tx_payload_offset_bytes + link.frame_bytes_max();
  frame_.resize(header_bytes + link.frame_bytes_max());
  ONEHOP_CHECK(pieces_of(link.frame_bytes_max()) <=
               std::min(xdp::frame_pieces_max, shape.rx_frames));
  tx_chunks_.set_up(
      shape.rx_frames, shape.tx_frames, shape.chunk_bytes,
      static_cast<std::uint32_t>((slot_bytes + shape.chunk_bytes - 1) / shape.chunk_bytes));
  attach();
  std::uint32_t index = 0;
  ONEHOP_CHECK(xsk_ring_prod__reserve(&empty_, shape.rx_frames, &index) == shape.rx_frames);
  for (std::uint32_t chunk = 0; chunk < shape.rx_frames; ++chunk)
    *xsk_ring_prod__fill_addr(&empty_, index + chunk) = std::uint64_t{chunk} * shape.chunk_bytes;
  xsk_ring_prod__submit(&empty_, shape.rx_frames);
}

void RingPort::attach() noexcept {
  to_send_ = tx_.attach<xsk_ring_prod>();
  done_ = completion_.attach<xsk_ring_cons>();
  arrived_ = rx_.attach<xsk_ring_cons>();
  empty_ = fill_.attach<xsk_ring_prod>();
}

// --- the program's side: what AfXdpPort does between its system calls
std::span<std::byte> RingPort::lend(std::size_t n) noexcept {
  ONEHOP_CHECK(n > 0);
  std::uint64_t offset_bytes = 0;
  if (n > link_->frame_bytes_max() || !tx_chunks_.lend(done_, offset_bytes)) return {};
  lent_slot_ = offset_bytes + xdp::tx_payload_offset_bytes;
  lent_bytes_ = n;
  return {umem_.get() + lent_slot_, n};
}

void RingPort::commit(std::size_t n) noexcept {
  ONEHOP_CHECK(n > 0 && n <= lent_bytes_);
  const std::uint64_t start = lent_slot_ - template_.size();
  template_.write(umem_.get() + start, {umem_.get() + lent_slot_, n});
  tx_chunks_.commit(to_send_, start, static_cast<std::uint32_t>(template_.size() + n));
}

std::size_t RingPort::flush(Instant now) noexcept {
  link_->run_until(now);
  tx_chunks_.publish(to_send_);
  play();
  return xdp::unconsumed(to_send_);
}

std::size_t RingPort::receive(std::span<RxFrame> views) noexcept {
  ONEHOP_CHECK(!is_holding_);  // views of the last batch are given back first
  play();
  const std::span<std::byte> memory{umem_.get(), umem_bytes()};
  const auto taken =
      rx_chunks_.take(arrived_, memory, views.first(std::min(views.size(), rx_batch_max)));
  received_total_ += taken.bytes;
  is_holding_ = true;
  if (taken.views == 0) release();
  return taken.views;
}

void RingPort::release() noexcept {
  if (rx_chunks_.has_held()) rx_chunks_.give_back(empty_, shape_.chunk_bytes);
  is_holding_ = false;
}

QueueTelemetry RingPort::tx_queue(Instant now) noexcept {
  link_->run_until(now);
  play();
  tx_chunks_.reclaim(done_);
  return {.at = now,
          .occupancy = tx_chunks_.occupancy(),
          .drained_total = tx_chunks_.drained_total(),
          .capacity = link_->wire_of(end_, link_->frame_bytes_max()) *
                      static_cast<std::int64_t>(tx_chunks_.slots()),
          .refused_total = tx_refused_total_,
          .scope = QueueScope::lower_queue,
          .is_backlogged = tx_chunks_.take_backlogged()};
}

QueueTelemetry RingPort::rx_ring(Instant now) noexcept {
  link_->run_until(now);
  play();
  const std::int64_t waiting_chunks = xdp::waiting(arrived_),
                     frame_chunks = pieces_of(link_->frame_bytes_max());
  const Bytes frame = link_->wire_of(end_, link_->frame_bytes_max());
  return {.at = now,
          .occupancy = Bytes{frame.count * waiting_chunks / frame_chunks},
          .drained_total = received_total_,
          .capacity = frame * (static_cast<std::int64_t>(arrived_.size) / frame_chunks),
          .refused_total = rx_refused_total_,
          .scope = QueueScope::own_ring,
          .is_backlogged = waiting_chunks > 0};
}

std::uint32_t RingPort::wait(Instant deadline, bool is_rx_wanted) noexcept {
  deadline_ = is_woken_ ? link_->now() : deadline;
  is_rx_wanted_ = is_rx_wanted;
  is_woken_ = false;
  return 0;
}

Instant RingPort::ready_at() const noexcept {
  const bool has_arrived = rx_.filled() > 0 || link_->has_arrived(end_);
  return is_woken_ || (is_rx_wanted_ && has_arrived) ? link_->now() : deadline_;
}

void RingPort::update_path(const PathUpdate& update) noexcept {
  if (update.is_link_up) last_error_ = 0;
}

PortInfo RingPort::info() const noexcept {
  return {.io = "rings",
          .mode = "rings",
          .frame_bytes_max = link_->frame_bytes_max(),
          .memory = {static_cast<std::int64_t>(umem_bytes())},
          .wire_overhead = Bytes{header_bytes},
          .has_back_pressure = true};
}

// --- the kernel's side
void RingPort::play() noexcept {
  take_sent();
  complete();
  deliver();
}

/// own moves a chunk between the two owners; false where it was not the giver's.
bool RingPort::own(std::uint64_t offset_bytes, bool to_kernel,
                   std::string_view complaint) noexcept {
  const std::size_t chunk = offset_bytes / shape_.chunk_bytes;
  if (chunk < is_kernels_.size() && is_kernels_[chunk] != to_kernel) {
    is_kernels_[chunk] = to_kernel;
    return true;
  }
  complain(complaint);
  return false;
}

/// is_unread: the chunk's last frame still waits in the rx ring.
bool RingPort::is_unread(std::uint64_t chunk_offset) const noexcept {
  const std::uint32_t index = unread_[chunk_offset / shape_.chunk_bytes];
  return index - rx_.consumer < rx_.filled() &&
         rx_.at(index).addr / shape_.chunk_bytes == chunk_offset / shape_.chunk_bytes;
}

void RingPort::audit() noexcept {
  if (!rx_chunks_.has_held() && chunks_to_fill() + rx_.filled() != shape_.rx_frames)
    complain("chunks for receiving that are in no ring, or in two");
  const std::size_t out = tx_.filled() + (gone_tail_ - gone_head_) + completion_.filled();
  if (tx_chunks_.in_flight() != out)
    complain("chunks for sending that the program has lost, or has twice");
}

/// sent_descriptors counts those of the next frame, and copies it to frame_; 0 where one of them is
/// not right, or the last one is missing.
std::uint32_t RingPort::sent_descriptors() noexcept {
  std::size_t frame_bytes = 0;
  for (std::uint32_t i = 0; i < tx_.filled() && i < tx_.entries.size(); ++i) {
    const xdp_desc& descriptor = tx_.at(tx_.consumer + i);
    const std::uint64_t last = descriptor.addr + descriptor.len - 1;
    const bool is_one_chunk =
        descriptor.len > 0 && last / shape_.chunk_bytes == descriptor.addr / shape_.chunk_bytes;
    const bool is_tx_area =
        descriptor.addr / shape_.chunk_bytes >= shape_.rx_frames && last < umem_bytes();
    if (!is_one_chunk || !is_tx_area || descriptor.len > frame_.size() - frame_bytes) return 0;
    std::memcpy(frame_.data() + frame_bytes, umem_.get() + descriptor.addr, descriptor.len);
    frame_bytes += descriptor.len;
    if ((descriptor.options & XDP_PKT_CONTD) != 0) continue;
    sent_bytes_ = frame_bytes;
    return frame_bytes > header_bytes ? i + 1 : 0;
  }
  return 0;
}

void RingPort::take_sent() noexcept {
  while (tx_.filled() > 0) {
    const std::uint32_t descriptors = tx_.filled() > tx_.entries.size() ? 0 : sent_descriptors();
    if (descriptors == 0) {
      complain("a tx descriptor outside the chunks for sending, or a frame without an end");
      return;
    }
    const VirtualLink::FrameIndex frame = link_->take_free();
    if (frame == VirtualLink::no_frame) return;
    const std::size_t length = sent_bytes_ - header_bytes;
    std::memcpy(link_->slot(frame).data(), frame_.data() + header_bytes, length);
    link_->set_length(frame, length);
    const int error = link_->accept(end_, frame);
    if (error == EAGAIN) return link_->put_free(frame);
    if (error == 0) {
      handed_ += link_->wire_of(end_, length);
      last_error_ = 0;
    } else {
      if (error != ENOBUFS) last_error_ = error;
      ++tx_refused_total_;
      link_->put_free(frame);
    }
    for (std::uint32_t i = 0; i < descriptors; ++i) {
      const std::uint64_t offset_bytes = tx_.at(tx_.consumer++).addr;
      if (!own(offset_bytes, true, "a tx descriptor whose chunk the kernel has already")) return;
      gone_[gone_tail_++ % gone_.size()] = {offset_bytes, handed_, error != 0};
    }
  }
}

void RingPort::complete() noexcept {
  if (faults_.are_completions_withheld) return;
  const Bytes drained = link_->lower_queue(end_).drained_total;
  while (gone_head_ != gone_tail_) {
    const Gone& gone = gone_[gone_head_ % gone_.size()];
    if (!gone.is_refused && gone.drained_at > drained) return;
    if (completion_.filled() >= completion_.entries.size()) return;
    completion_.at(completion_.producer) = gone.offset_bytes;
    if (!own(gone.offset_bytes, false, "a completion of a chunk that is not the kernel's")) return;
    ++completion_.producer;
    ++gone_head_;
  }
}

/// deliver shows frames first and what it took from the fill ring after them, as the kernel does.
/// Here as late as can be: when the next frames come, by when the program may have given all of it
/// back.
void RingPort::deliver() noexcept {
  if (!link_->has_arrived(end_)) return;
  fill_.consumer = fill_taken_;
  while (link_->has_arrived(end_)) {
    const VirtualLink::FrameIndex frame = link_->pop(end_);
    const std::uint32_t pieces = pieces_of(link_->length(frame));
    const bool has_chunks = !faults_.is_fill_starved && chunks_to_fill() >= pieces;
    if (!has_chunks || rx_.filled() + pieces > rx_.entries.size())
      ++rx_refused_total_;
    else
      put_frame(frame);
    link_->put_free(frame);
  }
}

std::uint32_t RingPort::pieces_of(std::size_t length) const noexcept {
  return xdp::chunks_of(static_cast<std::uint32_t>(header_bytes + length),
                        xdp::rx_frame_bytes_max(shape_.chunk_bytes));
}

void RingPort::put_frame(VirtualLink::FrameIndex frame) noexcept {
  const std::size_t length = link_->length(frame);
  std::memcpy(frame_.data() + header_bytes, link_->slot(frame).data(), length);
  template_.write(frame_.data(), {frame_.data() + header_bytes, length});
  if (link_->is_ce(frame))
    frame_[15] |= std::byte{3};  // IPv4's ECN field; nobody looks at its checksum
  const std::span<const std::byte> whole{frame_.data(), header_bytes + length};
  const std::size_t room = xdp::rx_frame_bytes_max(shape_.chunk_bytes);
  for (std::size_t at = 0; at < whole.size(); at += room)
    put_piece(whole.subspan(at, std::min(room, whole.size() - at)), at + room < whole.size());
}

void RingPort::put_piece(std::span<const std::byte> piece, bool goes_on) noexcept {
  const std::uint64_t chunk = fill_.at(fill_taken_++);
  const bool is_rx_chunk =
      chunk % shape_.chunk_bytes == 0 && chunk / shape_.chunk_bytes < shape_.rx_frames;
  if (!is_rx_chunk) return complain("a fill entry outside the chunks for receiving");
  if (is_unread(chunk))
    return complain("a fill entry whose chunk holds a frame that nobody has read");
  std::uint64_t at = chunk + xdp::packet_headroom_bytes;
  if (shape_.is_at_edge) at = chunk + shape_.chunk_bytes - piece.size();
  std::memcpy(umem_.get() + at, piece.data(), piece.size());
  unread_[chunk / shape_.chunk_bytes] = rx_.producer;
  rx_.at(rx_.producer++) = {.addr = at,
                            .len = static_cast<std::uint32_t>(piece.size()),
                            .options = goes_on ? std::uint32_t{XDP_PKT_CONTD} : 0U};
}

void RingPort::rebind() noexcept {
  play();
  link_->take_opportunity(end_, link_->waiting(end_));
  // The driver throws away what nobody has read, and has its chunks again.
  while (rx_.filled() > 0) {
    const std::uint64_t chunk =
        rx_.at(rx_.consumer++).addr / shape_.chunk_bytes * shape_.chunk_bytes;
    fill_.at(fill_.producer++) = chunk;
    ++rx_refused_total_;
  }
  attach();
  play();
}

}  // namespace onehop::scenario
