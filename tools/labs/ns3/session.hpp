// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Session: a whole transfer between two ns-3 nodes: the real loops, the real transfer core, the
// real AEAD, the real law and rate loop, over Ns3Ports. What is a model: the disk (it takes no time
// and checks every byte), and the control connection (what one end's session would tell the other's
// is known there at once).
//
//   PatternDisk ─▶ SenderLoop ─▶ Ns3Port ─▶ Air ))) Air ─▶ Ns3Port ─▶ ReceiverLoop ─▶ PatternDisk
//                                                                                     (checks)
//                      ▲ RateLoop + law                ns-3
//
// One thread, virtual time.
#pragma once

#include <memory>
#include <vector>

#include "tools/labs/ns3/ns3_fact_source.hpp"
#include "tools/labs/ns3/ns3_port.hpp"
#include "tools/labs/ns3/seam.hpp"
#include "tools/labs/world/ends.hpp"
#include "tools/labs/world/pattern_disk.hpp"

namespace onehop::sim {

class Session final : public Transfer {
 public:
  Session(const FlowSpec& flow, std::uint32_t frame_bytes, std::uint64_t seed, Air& sender,
          Air& receiver);
  [[nodiscard]] End& sender() override { return sender_end_; }
  [[nodiscard]] End& receiver() override { return receiver_end_; }
  [[nodiscard]] TransferState state() const override;

 private:
  static constexpr std::size_t sender_slots = 160,
                               receiver_slots = 256;  // 40 and 64 MiB: 0.2 s at 200 MB/s, and more
  struct SenderEnd final : End {
    explicit SenderEnd(Session& session) : s{session} {}
    std::int64_t turn(std::int64_t now_ns) override { return s.turn_sender(now_ns); }
    void deliver(const std::byte* frame, std::uint32_t length_bytes) override {
      s.sender_port_.arrive(frame, length_bytes);
    }
    bool wants_frames() const override { return s.sender_port_.is_rx_wanted(); }
    Session& s;
  };
  struct ReceiverEnd final : End {
    explicit ReceiverEnd(Session& session) : s{session} {}
    std::int64_t turn(std::int64_t now_ns) override { return s.turn_receiver(now_ns); }
    void deliver(const std::byte* frame, std::uint32_t length_bytes) override {
      s.receiver_port_.arrive(frame, length_bytes);
    }
    bool wants_frames() const override { return s.receiver_port_.is_rx_wanted(); }
    Session& s;
  };

  [[nodiscard]] std::int64_t turn_sender(std::int64_t now_ns);
  [[nodiscard]] std::int64_t turn_receiver(std::int64_t now_ns);
  void feed_sender(Instant now);
  void drain_receiver();
  [[nodiscard]] bool next_block(Instant now, BlockRef& block);
  void take_events(Instant now);

  const FlowSpec flow_;
  const std::vector<std::uint64_t> file_sizes_;
  Ns3Port sender_port_, receiver_port_;
  Ns3FactSource facts_;
  PatternDisk from_disk_, to_disk_;
  Ends<Ns3Port> ends_;
  SenderEnd sender_end_{*this};
  ReceiverEnd receiver_end_{*this};
  std::vector<Digest> digests_;  // of the blocks read, by number
  std::uint64_t next_offset_ = 0;
  bool has_begun_ = false;
  Instant began_at_{}, tick_at_{};
  TransferState totals_;
};

}  // namespace onehop::sim
