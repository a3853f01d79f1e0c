// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FwpSession: an endless transfer of ours over the Air, its data without MAC acknowledgements. The
// engine's own loops run over VirtualPorts; each end is a station, and an aggregate on the air is
// what drains its queue.
//
//   SenderLoop ─▶ VirtualPort ═ queue ─(aggregate, random loss)─▶ VirtualPort ─▶ ReceiverLoop
//              ◀─(aggregate, acknowledged; a lost one takes another turn)─ queue ═ VirtualPort ◀─
//
// --mac-noack is for the data's traffic class at the sender alone: reports are acknowledged as all
// other traffic is.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "tools/labs/ns3/fwp/air.hpp"
#include "tools/labs/world/ends.hpp"
#include "tools/labs/world/virtual_port.hpp"

namespace onehop::fwp {

struct SessionConfig {
  std::uint64_t seed = 1;
  double frame_error_rate = 0;
  bool is_repair_lazy = true;
};

class FwpSession {
 public:
  explicit FwpSession(const SessionConfig& config);
  [[nodiscard]] Station& sender_station() { return stations_[0]; }
  [[nodiscard]] Station& receiver_station() { return stations_[1]; }
  [[nodiscard]] std::uint64_t bytes_arrived() const {
    return ends_.receiver.loop.receiver().totals().bytes_accepted;
  }
  /// report_turns: on the air, of what the receiver sends; one that was lost counts.
  [[nodiscard]] std::uint64_t report_turns() const { return stations_[1].turns(); }
  [[nodiscard]] std::size_t frame_payload_bytes() const {
    return ends_.sender.loop.sender().frame_payload_bytes();
  }

 private:
  class End final : public Station {
   public:
    End(FwpSession& session, std::size_t direction, double retry_rate, std::uint64_t seed)
        : session_{session}, direction_{direction}, random_{seed}, is_lost_{retry_rate} {}
    std::size_t ready_frames() override {
      return std::min(session_.link_.waiting(direction_), aggregate_frames_max);
    }
    void serve(Instant) override {
      ++turns_;
      if (has_block_ack() && is_lost_(random_)) return;  // it stays, and contends again
      session_.link_.take_opportunity(direction_, aggregate_frames_max);
    }
    bool has_block_ack() const override { return direction_ == 1; }
    void play(Instant until) override { session_.play(until); }
    [[nodiscard]] std::uint64_t turns() const noexcept { return turns_; }

   private:
    FwpSession& session_;
    const std::size_t direction_;
    std::mt19937_64 random_;
    std::bernoulli_distribution is_lost_;
    std::uint64_t turns_ = 0;
  };
  void play(Instant until);
  void feed();
  void write();
  void lend(std::uint32_t slot);

  const std::vector<std::uint64_t> file_sizes_;
  VirtualLink link_;
  VirtualPort sender_port_, receiver_port_;
  std::vector<std::byte> source_;  // one block: what is in it does not matter here
  std::unique_ptr<std::byte[]> sink_;
  sim::Ends<VirtualPort> ends_;
  End stations_[2];
  std::uint64_t next_offset_ = 0;
};

}  // namespace onehop::fwp
