// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Ends: both ends of a transfer in virtual time. The loops, their links, the AEAD, the law and the
// rate loop are those of the program; who owns an Ends moves time, and plays the disk.
//
//   owner's disk ─▶ feed() ─▶ SenderLoop ─▶ port ... port ─▶ ReceiverLoop ─▶ owner's disk
//                             ▲ RateLoop + law
//
// What one end's session would say to the other's is known there at once. One thread.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "control/law/make_law.hpp"
#include "control/rate/rate_loop.hpp"
#include "control/transfer/engine.hpp"
#include "engine/run/receiver_loop.hpp"
#include "engine/run/sender_loop.hpp"

namespace onehop::sim {

/// EndPoint: a loop over its port, with its links to the other threads.
template <class Loop, Port PortType>
class EndPoint {
 public:
  EndPoint(PortType& port, const run::SessionKeys& keys, const auto& config,
           const transfer::RingSizes& sizes)
      : links{sizes}, loop{port, keys, config, links.for_engine()}, port_{port} {}

  /// command waits while the ring is full, as in the session.
  void command(const Command& command) {
    waiting_.push_back(command);
    pass_commands();
  }
  void pass_commands() {
    while (!waiting_.empty() && links.commands.push(waiting_.front()))
      waiting_.erase(waiting_.begin());
  }
  void turn(Instant now) {
    const run::NextWakeup next = loop.turn(now);
    next_at = std::max(next.deadline, now + 1us);
    (void)port_.wait(next_at, next.is_rx_wanted);
  }
  /// due is when turn() is wanted, as far as is known now.
  [[nodiscard]] Instant due() const { return std::min(next_at, port_.ready_at()); }

  transfer::SessionLinks links;
  Loop loop;
  Instant next_at{};

 private:
  PortType& port_;
  std::vector<Command> waiting_;
};

/// failure_text names an event that ends a session; null: it does not.
[[nodiscard]] inline const char* failure_text(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::path_dead: return "the path was not proven";
    case EventKind::feedback_silent: return "the peer fell silent";
    case EventKind::stalled: return "no file data came through";
    case EventKind::protocol_error: return "protocol error";
    case EventKind::port_failed: return "the port failed";
    default: return nullptr;
  }
}

template <Port PortType>
class Ends {
 public:
  Ends(PortType& sending, PortType& receiving, const run::SenderLoopConfig& to_send,
       const run::ReceiverLoopConfig& to_receive, const transfer::RingSizes& sizes = {},
       std::uint64_t key_interval_packets = run::SessionKeys{}.key_interval_packets)
      : sender{sending, keys(true, key_interval_packets), to_send, sizes},
        receiver{receiving, keys(false, key_interval_packets), to_receive, sizes} {
    for (std::uint32_t slot = 0; slot < to_send.sender.block_slots; ++slot)
      free_slots_.push_back(slot);
  }

  /// set_law makes the rate loop. `options` are known to be right.
  void set_law(const law::LawOptions& options) {
    auto made = law::make_law(options);
    ONEHOP_CHECK(made.has_value());
    law = std::move(made).value();
    rate.emplace(*law, sender.links.for_rate(), nullptr);
  }
  /// command is for both ends.
  void command(const Command& command) {
    sender.command(command);
    receiver.command(command);
  }
  /// feed lends blocks to the sender. `next` makes one in the buffer of its slot, or has none now.
  void feed(auto&& next) {
    for (BlockRef back; sender.links.file.from_engine.pop(back);) free_slots_.push_back(back.slot);
    SpscRing<BlockRef>& ring = sender.links.file.to_engine;
    while (!free_slots_.empty() && ring.has_room()) {
      BlockRef block{.slot = free_slots_.back()};
      if (!next(block)) break;
      free_slots_.pop_back();
      ONEHOP_CHECK(ring.push(block));
    }
  }
  /// end_files: no block follows.
  void end_files() {
    if (!has_ended_)
      has_ended_ = sender.links.file.to_engine.push({.kind = BlockKind::end_of_files});
  }
  /// take_events lets data flow once both ends have proven the path; `see` has each event.
  void take_events(auto&& see) {
    const auto take = [&](auto& end) {
      for (Event event; end.links.events.pop(event);) {
        if (event.kind == EventKind::path_proven && ++proofs_ == 2)
          command({.kind = CommandKind::start});
        see(event);
      }
    };
    take(sender);
    take(receiver);
  }

  EndPoint<run::SenderLoop<PortType>, PortType> sender;
  EndPoint<run::ReceiverLoop<PortType>, PortType> receiver;
  std::unique_ptr<law::Controller> law;
  std::optional<rate::RateLoop> rate;

 private:
  /// Any secret serves: both ends derive their keys from the same one.
  [[nodiscard]] static run::SessionKeys keys(bool is_sender, std::uint64_t interval_packets) {
    run::SessionKeys keys = run::session_keys(crypto::ExporterSecret{}, is_sender);
    keys.key_interval_packets = interval_packets;
    return keys;
  }

  std::vector<std::uint32_t> free_slots_;
  bool has_ended_ = false;
  int proofs_ = 0;
};

}  // namespace onehop::sim
