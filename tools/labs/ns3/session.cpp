// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/session.hpp"

#include <algorithm>

#include "control/law/make_law.hpp"
#include "engine/base/check.hpp"
#include "engine/crypto/digest.hpp"
#include "engine/crypto/key_schedule.hpp"

namespace onehop::sim {

namespace {

constexpr std::uint64_t endless_bytes = std::uint64_t{1}
                                        << 36;  // a flow without end: more than any run sends
// A load below the link's rate is a file that grows at that rate. Sent a little faster than it
// grows, so that what control frames take of the pacer does not add up to a backlog.
constexpr double load_headroom = 1.02;

run::SessionKeys keys_for(bool is_sender) {
  crypto::ExporterSecret exporter;  // any secret serves, both ends derive from the same one
  const auto from_sender = crypto::direction_secret(exporter, crypto::Direction::from_sender, 0);
  const auto from_receiver =
      crypto::direction_secret(exporter, crypto::Direction::from_receiver, 0);
  return {.send = is_sender ? from_sender : from_receiver,
          .receive = is_sender ? from_receiver : from_sender};
}

run::SenderLoopConfig sender_config(std::uint32_t frame_bytes, std::size_t slots,
                                    std::uint64_t seed) {
  run::SenderLoopConfig loop;
  loop.frame_bytes = frame_bytes;
  loop.sender.body_bytes_max = frame_bytes - wire::overhead_bytes;
  loop.sender.block_slots = slots;
  loop.sender.skip_seed = seed;
  return loop;
}

run::ReceiverLoopConfig receiver_config(std::uint32_t frame_bytes, std::size_t slots,
                                        std::span<const std::uint64_t> sizes) {
  run::ReceiverLoopConfig loop;
  loop.frame_bytes = frame_bytes;
  loop.receiver.block_slots = slots;
  loop.receiver.body_bytes_max = frame_bytes - wire::overhead_bytes;
  loop.receiver.file_sizes = sizes;
  return loop;
}

law::LawOptions law_options(const FlowSpec& flow) {
  return {.spec = flow.law, .target = flow.target, .has_qcut = flow.has_qcut};
}

const char* failure_text(EventKind kind) {
  switch (kind) {
    case EventKind::path_dead: return "the path was not proven";
    case EventKind::feedback_silent: return "the peer fell silent";
    case EventKind::stalled: return "no file data came through";
    case EventKind::protocol_error: return "protocol error";
    case EventKind::port_failed: return "the port failed";
    default: return "";
  }
}

}  // namespace

bool is_law(const FlowSpec& flow, std::string& why) {
  const auto law = law::make_law(law_options(flow));
  if (!law) why = law.error().message();
  return law.has_value();
}

std::unique_ptr<Transfer> make_transfer(const FlowSpec& flow, std::uint32_t frame_bytes,
                                        std::uint64_t seed, Air& sender, Air& receiver) {
  return std::make_unique<Session>(flow, frame_bytes, seed, sender, receiver);
}

Session::Session(const FlowSpec& flow, std::uint32_t frame_bytes, std::uint64_t seed, Air& sender,
                 Air& receiver)
    : flow_{flow},
      file_sizes_{flow.bytes == 0 ? endless_bytes : flow.bytes},
      sender_port_{sender, Bytes{static_cast<std::int64_t>(sender.read_link().capacity_bytes)},
                   flow.port == "blind"},
      receiver_port_{receiver,
                     Bytes{static_cast<std::int64_t>(receiver.read_link().capacity_bytes)}, false},
      facts_{sender, sender_port_, flow_, seed},
      from_disk_{seed, sender_slots},
      to_disk_{seed, receiver_slots},
      sender_loop_{sender_port_, keys_for(true), sender_config(frame_bytes, sender_slots, seed),
                   sender_side_.links()},
      receiver_loop_{receiver_port_, keys_for(false),
                     receiver_config(frame_bytes, receiver_slots, file_sizes_),
                     receiver_side_.links()} {
  auto law = law::make_law(law_options(flow_));
  ONEHOP_CHECK(law.has_value());
  law_ = std::move(law).value();
  rate_ = std::make_unique<rate::RateLoop>(
      *law_, rate::RateCells{sender_side_.report, limits_, sender_side_.grant, state_}, nullptr);
  rate_->set_source(&facts_);
  if (flow_.rate_mbps > 0) {
    const double wire_share =
        (frame_bytes + 42.0) / (frame_bytes - static_cast<double>(wire::overhead_bytes));
    limits_.store({.rate_max = {static_cast<std::int64_t>(flow_.rate_mbps * 125'000 * wire_share *
                                                          load_headroom)}});
  }
  for (std::uint32_t slot = 0; slot < from_disk_.slots(); ++slot) free_slots_.push_back(slot);
  for (std::uint32_t slot = 0; slot < to_disk_.slots(); ++slot)
    ONEHOP_CHECK(receiver_side_.file_to_engine.push(to_disk_.lend(slot)));
  ONEHOP_CHECK(sender_side_.commands.push({.kind = CommandKind::prove_path}));
  ONEHOP_CHECK(receiver_side_.commands.push({.kind = CommandKind::prove_path}));
}

std::int64_t Session::turn_sender(std::int64_t now_ns) {
  const Instant now{Nanos{now_ns}};
  if (!has_begun_) began_at_ = now, has_begun_ = true;
  const bool has_frames = sender_port_.is_rx_wanted() && sender_port_.has_arrived();
  const bool is_tick_only = now < sender_at_ && !has_frames && !sender_port_.has_drained();
  if (now >= tick_at_) {
    rate_->tick(now);
    if (flow_.feedback_ms > 0) {
      RateGrant grant = sender_side_.grant.load();
      grant.feedback_interval = Nanos{static_cast<Nanos::rep>(flow_.feedback_ms * 1e6)};
      sender_side_.grant.store(grant);
    }
    const Nanos wish = rate_->next_tick_in();
    tick_at_ =
        now + (flow_.tick_ms > 0 ? Nanos{static_cast<Nanos::rep>(flow_.tick_ms * 1e6)} : wish);
  }
  if (!is_tick_only) {
    feed_sender(now);
    const run::NextWakeup next = sender_loop_.turn(now);
    sender_at_ = std::max(next.deadline, now + 1us);
    (void)sender_port_.wait(sender_at_, next.is_rx_wanted);
    take_events(now);
  }
  return std::min(sender_at_, tick_at_).time_since_epoch().count();
}

std::int64_t Session::turn_receiver(std::int64_t now_ns) {
  const Instant now{Nanos{now_ns}};
  const run::NextWakeup wakeup = receiver_loop_.turn(now);
  const Instant next = std::max(wakeup.deadline, now + 1us);
  (void)receiver_port_.wait(next, wakeup.is_rx_wanted);
  drain_receiver();
  take_events(now);
  return next.time_since_epoch().count();
}

bool Session::next_block(Instant now, BlockRef& block) {
  const std::uint64_t size = file_sizes_.front();
  if (next_offset_ >= size) return false;
  if (flow_.rate_mbps > 0) {
    const double grown =
        flow_.rate_mbps * 125'000 * static_cast<double>((now - began_at_).count()) * 1e-9;
    if (static_cast<double>(next_offset_) > grown) return false;
  }
  block.file = 0;
  block.offset = next_offset_;
  block.length =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(block_bytes, size - next_offset_));
  next_offset_ += block_bytes;
  return true;
}

void Session::feed_sender(Instant now) {
  BlockRef back;
  while (sender_side_.engine_to_file.pop(back)) free_slots_.push_back(back.slot);
  while (!free_slots_.empty()) {
    BlockRef block = from_disk_.lend(free_slots_.back());
    if (!next_block(now, block)) break;
    free_slots_.pop_back();
    from_disk_.fill(block);
    if (flow_.has_digests)
      digests_.push_back(
          crypto::block_digest(crypto::DigestKind::xxh3, {block.data, block.length}));
    ONEHOP_CHECK(sender_side_.file_to_engine.push(block));
  }
  if (next_offset_ >= file_sizes_.front() && !has_ended_) {
    has_ended_ = true;
    ONEHOP_CHECK(sender_side_.file_to_engine.push({.kind = BlockKind::end_of_files}));
  }
}

void Session::drain_receiver() {
  BlockRef block;
  while (receiver_side_.engine_to_file.pop(block)) {
    if (block.kind != BlockKind::block) continue;
    totals_.bytes_wrong += to_disk_.wrong_bytes(block);
    totals_.bytes_checked += block.length;
    if (flow_.has_digests) {
      const Digest got = crypto::block_digest(crypto::DigestKind::xxh3, {block.data, block.length});
      if (got != digests_[block.offset / block_bytes]) totals_.bytes_wrong += block.length;
    }
    ONEHOP_CHECK(receiver_side_.file_to_engine.push(to_disk_.lend(block.slot)));
  }
}

void Session::take_events(Instant now) {
  Event event;
  for (Side* side : {&sender_side_, &receiver_side_}) {
    while (side->events.pop(event)) {
      if (event.kind == EventKind::path_proven && ++proofs_ == 2) {
        ONEHOP_CHECK(sender_side_.commands.push({.kind = CommandKind::start}));
        ONEHOP_CHECK(receiver_side_.commands.push({.kind = CommandKind::start}));
      }
      if (const char* const text = failure_text(event.kind);
          *text != '\0' && totals_.failure.empty())
        totals_.failure = text;
    }
  }
  if (!totals_.is_complete && sender_loop_.sender().is_all_arrived() &&
      totals_.bytes_checked == file_sizes_.front()) {
    totals_.is_complete = true;
    totals_.complete_ns = now.time_since_epoch().count();
  }
}

TransferState Session::state() const {
  TransferState state = totals_;
  const protocol::SenderTotals& sent = sender_loop_.sender().totals();
  const rate::RateState rate = state_.load();
  state.bytes_accepted = receiver_loop_.receiver().totals().bytes_accepted;
  state.bytes_started = sent.new_bytes_started;
  state.bytes_retransmitted = sent.retransmitted_bytes;
  state.packets_sent = sent.packets_sent;
  state.packets_lost = sent.packets_lost;
  state.feedback_frames = sent.feedback_frames;
  state.grant_bytes_per_s = static_cast<std::uint64_t>(sender_side_.grant.load().rate.count);
  state.backlog_bytes =
      static_cast<std::uint64_t>(sender_side_.report.load().tx_queue.occupancy.count);
  state.target_bytes = static_cast<std::uint64_t>(rate.tx_queue_target.count);
  return state;
}

}  // namespace onehop::sim
