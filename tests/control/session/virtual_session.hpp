// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Both machines of a session in virtual time: no socket, no thread, no clock. What happens follows
// from a seed alone.
//
//   VirtualEnd a ─▶ [delay, stall, outage, cut] ─▶ VirtualEnd b
//              ◀─ [same, its own delays] ◀─
//
// A VirtualEnd is shell, host and engine of one machine. Its engine answers commands after random
// times, its host decides at random. It notes what must not happen as `faults`.
#pragma once

#include <deque>
#include <map>
#include <random>
#include <set>

#include "control/session/recv_machine.hpp"
#include "control/session/send_machine.hpp"

namespace onehop::session::test {

/// some_root: of a file of that name and size.
[[nodiscard]] Digest some_root(const file::ManifestEntry& entry);

class VirtualEnd {
 public:
  VirtualEnd(const SendOptions& options, file::Manifest files, std::uint64_t seed);
  VirtualEnd(const RecvOptions& options, std::uint64_t seed);

  [[nodiscard]] SessionMachine& machine() noexcept { return *machine_; }
  [[nodiscard]] const SessionMachine& machine() const noexcept { return *machine_; }
  void start(Instant now);
  /// take_event gives the machine the engine's event, if there is an engine.
  void take_event(Instant now, const Event& event);
  void decide(Instant now);
  /// perform_all performs what the machine asks for. Call it after every input.
  void perform_all(Instant now);
  /// run_engine gives the machine what its engine has said by `now`.
  void run_engine(Instant now);
  [[nodiscard]] Instant next_event_at() const noexcept;
  [[nodiscard]] bool has_engine() const noexcept { return has_engine_; }
  [[nodiscard]] const file::Manifest& manifest() const noexcept { return *files_now_; }

  std::deque<Message> said;                  ///< the link takes them
  std::map<std::string, FileDone> outcomes;  ///< by name
  std::vector<std::string> faults;
  std::set<Phase> phases;
  std::shared_ptr<const OfferInfo> considered;  ///< a decision is due
  Instant decision_at{};
  bool is_held = false;
  // What its world does to it.
  Nanos engine_time_max = 20ms;
  std::uint32_t changes_left = 0;  ///< files that change while they are sent
  bool fails = false;              ///< receiving: the disk refuses a file
  bool is_mute = false;            ///< its engine says nothing by itself
  int opened = 0, stopped = 0;

 private:
  void perform(Instant now, Action& action);
  void obey(Instant now, const Command& command);
  void make_pack();
  void send_files(Instant now);
  void send_pack(Instant& now);
  void take_pack(Instant now);
  void take_file_message(Instant now, const BlockRef& block);
  void say(Instant at, const Event& event) { events_.emplace(at, event); }
  void say(Instant at, EventKind kind) { say(at, Event{.kind = kind}); }
  void say(Instant at, FileMessageKind kind, const BlockRef& block);
  [[nodiscard]] Instant later(Instant now);
  [[nodiscard]] std::uint64_t draw(std::uint64_t bound) { return random_() % bound; }
  void fault(std::string what) { faults.push_back(std::move(what)); }

  std::mt19937_64 random_;
  file::Manifest files_;  // a sender's
  const file::Manifest* files_now_ = &files_;
  SendMachine* sender_ = nullptr;
  RecvMachine* receiver_ = nullptr;
  std::unique_ptr<SessionMachine> machine_;
  std::multimap<Instant, Event> events_;
  std::shared_ptr<const OfferInfo> offer_;
  std::vector<FileAction> actions_;
  file::Pack pack_;
  Claims claims_;
  std::map<std::uint32_t, std::uint64_t> digests_;  // receiving: how many of a file came
  bool has_engine_ = false, is_finished_ = false, is_proven_ = false, is_started_ = false;
  std::uint8_t next_id_ = 0;
};

}  // namespace onehop::session::test
