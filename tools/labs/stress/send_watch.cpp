// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/send_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/protocol/credit.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::stress {

namespace {
// The bucket's account is kept in doubles here and in whole bytes there.
constexpr double token_slack = 2;
// Specification of credit: what may be under way to the receive ring.
constexpr std::int64_t ring_share_num = 3, ring_share_den = 4, ring_frames_least = 64;
}  // namespace

SendWatch::SendWatch(scenario::World& world, const scenario::WorldConfig& config, Broken& broken)
    : world_{world},
      config_{config},
      broken_{broken},
      wire_overhead_{world.port(0).info().wire_overhead},
      wire_frame_{Bytes{static_cast<std::int64_t>(config.frame_bytes)} + wire_overhead_} {
  // Before any fault: a lowered MTU makes the ring, which holds frames, look smaller, and what was
  // told stays told.
  const std::int64_t frames = world.port(1).rx_ring(world.now()).capacity.count / wire_frame_.count;
  const auto body = static_cast<std::int64_t>(config.frame_bytes - wire::overhead_bytes);
  ring_room_ = static_cast<std::uint64_t>(
      std::max(frames * body * ring_share_num / ring_share_den, ring_frames_least * body));
}

void SendWatch::before_turn(Instant now) {
  now_ = now;
  grant_ = world_.grant();
  occupancy_before_ = world_.port(0).tx_queue(now).occupancy;
  data_sent_ = ping_sent_ = {};
  credit_told_ = std::max(credit_told_, world_.sender().newest_feedback().credit_bytes_total);
}

void SendWatch::on_commit(std::span<const std::byte> frame) {
  const Bytes wire = Bytes{static_cast<std::int64_t>(frame.size())} + wire_overhead_;
  accepted_ += wire;
  const auto header = wire::decode_header(frame);
  if (!header) return broken_.say(now_, "the sender handed over a frame that cannot be read");
  if (header->type == wire::FrameType::ping) ping_sent_ += wire;
  if (header->type != wire::FrameType::data) return;
  data_sent_ += wire;
  on_data(*header, static_cast<std::uint32_t>(frame.size() - wire::overhead_bytes));
}

void SendWatch::on_data(const wire::FrameHeader& header, std::uint32_t length) {
  if (header.file >= config_.file_sizes.size() ||
      config_.file_sizes[header.file] == file_without_blocks)
    return broken_.say(now_, fmt::format("a frame of file {}, which is none", header.file));
  const std::uint64_t size = config_.file_sizes[header.file];
  if (header.offset + length > size)
    return broken_.say(now_, fmt::format("a frame beyond the end of file {}", header.file));
  while (file_ < config_.file_sizes.size() && config_.file_sizes[file_] == file_without_blocks)
    ++file_;
  const bool is_first_copy = header.file == file_ && header.offset == offset_;
  if (!is_first_copy) {
    const bool is_repeat =
        header.file < file_ || (header.file == file_ && header.offset + length <= offset_);
    if (!is_repeat)
      broken_.say(
          now_,
          fmt::format("file {} at {}: neither the next first copy (file {} at {}) nor a repeat",
                      header.file, header.offset, file_, offset_));
    return;
  }
  const std::uint64_t credit =
      std::max(credit_told_, world_.sender().newest_feedback().credit_bytes_total);
  if (cost_started_ >= credit)
    broken_.say(now_,
                fmt::format("new data begins at {} with a credit of {}", cost_started_, credit));
  const std::uint64_t block_offset = header.offset / block_bytes * block_bytes;
  const std::uint32_t block_length = block_length_at(size, block_offset);
  // As the protocol has it, reckoned here once more: a block costs a whole buffer, its last frame
  // what it lacks to one.
  const bool is_last = header.offset - block_offset + length == block_length;
  const std::uint64_t padding = is_last ? block_bytes - block_length : 0;
  cost_started_ += length + padding;
  padding_started_ += padding;
  offset_ += length;
  if (offset_ < size) return;
  ++file_;
  offset_ = 0;
}

void SendWatch::after_turn(Instant now) {
  check_telemetry(now);
  check_grant(now);
  check_credit_told(now);
}

//= engine/base/telemetry.hpp: accepted = drained_total + occupancy
void SendWatch::check_telemetry(Instant now) {
  const QueueTelemetry queue = world_.port(0).tx_queue(now);
  if (accepted_ != queue.drained_total + queue.occupancy)
    broken_.say(
        now, fmt::format("tx queue: accepted {} is not drained {} + occupancy {}", accepted_.count,
                         queue.drained_total.count, queue.occupancy.count));
  if (queue.occupancy < Bytes{0} || queue.drained_total < queue_.drained_total ||
      queue.refused_total < queue_.refused_total || queue.at < queue_.at)
    broken_.say(
        now, fmt::format("tx queue: a total went back: drained {} after {}, refused {} after {}",
                         queue.drained_total.count, queue_.drained_total.count, queue.refused_total,
                         queue_.refused_total));
  queue_ = queue;
}

void SendWatch::check_grant(Instant now) {
  // The pacer's account: what has gathered at the old rate is kept, up to the new depth.
  const double depth = static_cast<double>(std::max(grant_.backlog_max, wire_frame_ * 2).count);
  if (!has_turned_) {
    tokens_ = depth_ = depth;
  } else if (const double gained = rate_ * static_cast<double>((now - filled_at_).count()) / 1e9;
             tokens_ + gained >= depth_) {
    tokens_ = std::max(tokens_, depth_);
  } else {
    tokens_ += gained;
  }
  has_turned_ = true;
  filled_at_ = now;
  rate_ = static_cast<double>(grant_.rate.count);
  depth_ = depth;
  tokens_ = std::min(tokens_, depth_);
  const double below = static_cast<double>((grant_.backlog_max - occupancy_before_).count);
  const double room = std::min(tokens_ + token_slack, below);
  const double data = static_cast<double>(data_sent_.count);
  if (data > 0 && (room <= 0 || data > room + static_cast<double>(wire_frame_.count)))
    broken_.say(now, fmt::format("{:.0f} bytes sent with room for {:.0f}: bucket {:.0f}, backlog "
                                 "limit {} with {} standing",
                                 data, std::max(room, 0.0), tokens_, grant_.backlog_max.count,
                                 occupancy_before_.count));
  tokens_ -= data + static_cast<double>(ping_sent_.count);
}

/// What was told is never more than there are buffers for, nor (but under lazy repair, where what
/// is missing has a place of its own) more than came and the ring takes.
void SendWatch::check_credit_told(Instant now) {
  const wire::Feedback& feedback = world_.sender().newest_feedback();
  const std::uint64_t credit = feedback.credit_bytes_total;
  credit_told_ = std::max(credit_told_, credit);
  const std::uint64_t buffers = (world_.blocks_given_back() + config_.receiver_slots) * block_bytes;
  if (credit > buffers)
    broken_.say(now, fmt::format("a credit of {} was told, with buffers for {}", credit, buffers));
  if (config_.is_repair_lazy) return;
  const std::uint64_t came = world_.receiver().totals().bytes_accepted + padding_started_;
  if (credit > came + ring_room_)
    broken_.say(now,
                fmt::format("a credit of {} was told, with {} come and room for {} in the ring",
                            credit, came, ring_room_));
}

}  // namespace onehop::stress
