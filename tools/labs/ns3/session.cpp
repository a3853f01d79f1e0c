// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/session.hpp"

#include <algorithm>

#include "engine/base/check.hpp"
#include "engine/crypto/digest.hpp"

namespace onehop::sim {

namespace {

constexpr std::uint64_t endless_bytes = std::uint64_t{1}
                                        << 36;  // a flow without end: more than any run sends
// A load below the link's rate is a file that grows at that rate. Sent a little faster than it
// grows, so that what control frames take of the pacer does not add up to a backlog.
constexpr double load_headroom = 1.02;

law::LawOptions law_options(const FlowSpec& flow) {
  return {.spec = flow.law, .target = flow.target, .has_qcut = flow.has_qcut};
}

Ns3Port::Config port_config(const FlowSpec& flow, const Air& air, bool is_blind) {
  Ns3Port::Config config{.capacity = {static_cast<std::int64_t>(air.read_link().capacity_bytes)},
                         .is_blind = is_blind};
  if (flow.fragments == "none") return config;
  config.frame_bytes_max = wire::datagram_bytes_max;
  if (flow.fragments == "switched") config.large_frame_bytes = wire::datagram_bytes_max;
  return config;
}
/// A loop ends the large frames of its port where they are lost, and never those that both ends
/// agreed on as single ones.
std::size_t agreed_bytes(const FlowSpec& flow, std::size_t frame_bytes) {
  return flow.fragments == "kept" ? wire::datagram_bytes_max : frame_bytes;
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
      sender_port_{sender, port_config(flow, sender, flow.port == "blind")},
      receiver_port_{receiver, port_config(flow, receiver, false)},
      facts_{sender, sender_port_, flow_, seed},
      from_disk_{seed, sender_slots},
      to_disk_{seed, receiver_slots},
      ends_{
          sender_port_,
          receiver_port_,
          {.sender = {.block_slots = sender_slots, .skip_seed = seed},
           .frame_bytes = agreed_bytes(flow, frame_bytes)},
          {.receiver = {.block_slots = receiver_slots, .file_sizes = file_sizes_},
           .frame_bytes = agreed_bytes(flow, frame_bytes)}} {
  ends_.set_law(law_options(flow_));
  ends_.rate->set_source(&facts_);
  if (flow_.rate_mbps > 0) {
    const double wire_share =
        (frame_bytes + 42.0) / (frame_bytes - static_cast<double>(wire::overhead_bytes));
    ends_.sender.links.limits.store({.rate_max = {static_cast<std::int64_t>(
                                         flow_.rate_mbps * 125'000 * wire_share * load_headroom)}});
  }
  for (std::uint32_t slot = 0; slot < to_disk_.slots(); ++slot)
    ONEHOP_CHECK(ends_.receiver.links.file.to_engine.push(to_disk_.lend(slot)));
  ends_.command({.kind = CommandKind::prove_path});
}

std::int64_t Session::turn_sender(std::int64_t now_ns) {
  const Instant now{Nanos{now_ns}};
  if (!has_begun_) began_at_ = now, has_begun_ = true;
  const bool has_frames = sender_port_.is_rx_wanted() && sender_port_.has_arrived();
  const bool is_tick_only =
      now < ends_.sender.next_at && !has_frames && !sender_port_.has_drained();
  if (now >= tick_at_) {
    ends_.rate->tick(now);
    if (flow_.feedback_ms > 0) {
      RateGrant grant = ends_.sender.links.grant.load();
      grant.feedback_interval = Nanos{static_cast<Nanos::rep>(flow_.feedback_ms * 1e6)};
      ends_.sender.links.grant.store(grant);
    }
    const Nanos wish = ends_.rate->next_tick_in();
    tick_at_ =
        now + (flow_.tick_ms > 0 ? Nanos{static_cast<Nanos::rep>(flow_.tick_ms * 1e6)} : wish);
  }
  if (!is_tick_only) {
    feed_sender(now);
    ends_.sender.turn(now);
    take_events(now);
  }
  return std::min(ends_.sender.next_at, tick_at_).time_since_epoch().count();
}

std::int64_t Session::turn_receiver(std::int64_t now_ns) {
  const Instant now{Nanos{now_ns}};
  ends_.receiver.turn(now);
  drain_receiver();
  take_events(now);
  return ends_.receiver.next_at.time_since_epoch().count();
}

bool Session::next_block(Instant now, BlockRef& block) {
  const std::uint64_t size = file_sizes_.front();
  if (next_offset_ >= size) return false;
  if (flow_.rate_mbps > 0) {
    const double grown =
        flow_.rate_mbps * 125'000 * static_cast<double>((now - began_at_).count()) * 1e-9;
    if (static_cast<double>(next_offset_) > grown) return false;
  }
  block = from_disk_.lend(block.slot);
  block.offset = next_offset_;
  block.length =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(block_bytes, size - next_offset_));
  next_offset_ += block_bytes;
  from_disk_.fill(block);
  if (flow_.has_digests)
    digests_.push_back(crypto::block_digest(crypto::DigestKind::xxh3, {block.data, block.length}));
  return true;
}

void Session::feed_sender(Instant now) {
  ends_.feed([&](BlockRef& block) { return next_block(now, block); });
  if (next_offset_ >= file_sizes_.front()) ends_.end_files();
}

void Session::drain_receiver() {
  FileRings& rings = ends_.receiver.links.file;
  for (BlockRef block; rings.from_engine.pop(block);) {
    if (block.kind != BlockKind::block) continue;
    totals_.bytes_wrong += to_disk_.wrong_bytes(block);
    totals_.bytes_checked += block.length;
    if (flow_.has_digests) {
      const Digest got = crypto::block_digest(crypto::DigestKind::xxh3, {block.data, block.length});
      if (got != digests_[block.offset / block_bytes]) totals_.bytes_wrong += block.length;
    }
    ONEHOP_CHECK(rings.to_engine.push(to_disk_.lend(block.slot)));
  }
}

void Session::take_events(Instant now) {
  ends_.take_events([this](const Event& event) {
    if (const char* const text = failure_text(event.kind);
        text != nullptr && totals_.failure.empty())
      totals_.failure = text;
  });
  if (!totals_.is_complete && ends_.sender.loop.sender().is_all_arrived() &&
      totals_.bytes_checked == file_sizes_.front()) {
    totals_.is_complete = true;
    totals_.complete_ns = now.time_since_epoch().count();
  }
}

TransferState Session::state() const {
  TransferState state = totals_;
  const protocol::SenderTotals& sent = ends_.sender.loop.sender().totals();
  const transfer::SessionLinks& links = ends_.sender.links;
  state.bytes_accepted = ends_.receiver.loop.receiver().totals().bytes_accepted;
  state.bytes_started = sent.new_bytes_started;
  state.bytes_retransmitted = sent.retransmitted_bytes;
  state.packets_sent = sent.packets_sent;
  state.packets_lost = sent.packets_lost;
  state.feedback_frames = sent.feedback_frames;
  state.grant_bytes_per_s = static_cast<std::uint64_t>(links.grant.load().rate.count);
  state.backlog_bytes = static_cast<std::uint64_t>(links.report.load().tx_queue.occupancy.count);
  state.target_bytes = static_cast<std::uint64_t>(links.state.load().tx_queue_target.count);
  return state;
}

}  // namespace onehop::sim
