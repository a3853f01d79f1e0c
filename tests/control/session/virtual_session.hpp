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
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "control/session/recv_machine.hpp"
#include "control/session/send_machine.hpp"

namespace onehop::session::test {

/// each_of gives the entries of a list.
[[nodiscard]] std::function<std::optional<list::ManifestEntry>()> each_of(list::Manifest manifest);

/// some_root: of a file of that name and size.
[[nodiscard]] Digest some_root(const list::ManifestEntry& entry);

class VirtualEnd {
 public:
  /// NextEntry gives the entries of a tree one by one; nothing: it was the last.
  using NextEntry = std::function<std::optional<list::ManifestEntry>()>;
  /// It sends what `next` gives, in volumes of `volume_entries`.
  VirtualEnd(const SendOptions& options, NextEntry next, std::uint64_t seed,
             std::size_t volume_entries);
  VirtualEnd(const RecvOptions& options, std::uint64_t seed);

  [[nodiscard]] SessionMachine& machine() noexcept { return *machine_; }
  [[nodiscard]] const SessionMachine& machine() const noexcept { return *machine_; }
  void start(Instant now);
  /// take_event gives the machine an event, if there is an engine.
  void take_event(Instant now, const Event& event);
  void take_event(Instant now, const FileEvent& event) {
    if (!has_engine_ || !machine_->can_take_file_event()) return;
    machine_->on_file_event(now, event);
    perform_all(now);
  }
  void decide(Instant now);
  /// perform_all performs what the machine asks for. Call it after every input.
  void perform_all(Instant now);
  /// run_engine gives the machine what its engine has said by `now`.
  void run_engine(Instant now);
  [[nodiscard]] Instant next_event_at() const noexcept;
  [[nodiscard]] bool has_engine() const noexcept { return has_engine_; }
  /// entry_of gives an entry of a volume that is under way; null: there is none.
  [[nodiscard]] const list::ManifestEntry* entry_of(std::uint32_t file) const noexcept;

  std::deque<Message> said;                  ///< the link takes them
  std::map<std::string, FileDone> outcomes;  ///< by name
  std::map<std::string, Digest> announced;   ///< sending: roots by name; zero of what nobody reads
  /// The entries as a receipt has them: those of a volume when it is over, in their order.
  std::vector<std::string> listed;
  void list(std::size_t entries);
  std::vector<std::string> faults;
  std::set<Phase> phases;
  std::shared_ptr<const OfferedVolume> considered;  ///< a decision is due
  Instant decision_at{};
  bool is_held = false;
  // What its world does to it.
  Nanos engine_time_max = 20ms;
  std::uint32_t changes_left = 0;  ///< files that change while they are sent
  bool fails = false;              ///< receiving: the disk refuses a file
  bool is_mute = false;            ///< its engine says nothing by itself
  bool is_peer_hostile = false;    ///< it may offer a name twice
  bool sends_all = false;          ///< receiving: whatever is offered is wanted
  bool has_gaps = false;           ///< sending: volumes may be empty, and what changes may vanish
  bool is_forgetful = false;       ///< does not keep the outcomes, for a tree that is large
  int opened = 0, stopped = 0;
  std::size_t volumes_over = 0;
  std::uint64_t reported = 0;

 private:
  /// Held: a volume that was answered, as its engine and file side know it.
  struct Held {
    std::uint32_t first_file = 0;
    std::shared_ptr<const list::Manifest> manifest;
    std::vector<FileAction> actions;
    list::Held blocks;
    bool is_last = false;
    list::Pack pack{};
    std::set<std::uint32_t> untold{};                          ///< sending: entries
    std::set<std::pair<std::uint32_t, std::uint64_t>> told{};  ///< sending: entry, block
    [[nodiscard]] std::uint32_t pack_file() const noexcept {
      return first_file + static_cast<std::uint32_t>(manifest->files.size());
    }
  };
  void perform(Instant now, Action& action);
  void learn(const SessionFact& fact);
  void take_report(const Report& report);
  void list_settled();
  void obey(Instant now, const Command& command);
  [[nodiscard]] Held* find(std::uint32_t file) noexcept;
  void hold(Held held);
  void hold_decided();
  void tell_held(Instant now, const Held& held);
  void take_held(Instant now, const HeldBlock& told);
  void take_held(Instant now, const HeldEnd& end);
  void give_volume(Instant now);
  void send_volume(Instant now, const Held& held);
  void send_entry(const Held& held, std::uint32_t entry);
  void send_pack(const Held& held);
  void take_pack(Instant now, const Held& held);
  void take_file_command(Instant now, const FileCommand& command);
  void take_skipped(const BlockRef& block);
  void take_digests(std::uint32_t file, std::uint64_t offset, std::uint64_t blocks);
  void take_root(Instant now, const AnnouncedRoot& said_root);
  void say(Instant at, const Event& event) { events_.emplace(at, event); }
  void say(Instant at, EventKind kind) { say(at, Event{.kind = kind}); }
  void say(Instant at, const FileEvent& event) { events_.emplace(at, event); }
  [[nodiscard]] Instant later(Instant now);
  [[nodiscard]] std::uint64_t draw(std::uint64_t bound) { return random_() % bound; }
  void fault(std::string what) { faults.push_back(std::move(what)); }

  std::mt19937_64 random_;
  NextEntry next_;  // a sender's
  std::optional<list::ManifestEntry> upcoming_;
  std::size_t volume_entries_ = 0;
  Instant volume_at_ = Instant::max();  // when the sender's next volume is there
  SendMachine* sender_ = nullptr;
  RecvMachine* receiver_ = nullptr;
  std::unique_ptr<SessionMachine> machine_;
  std::multimap<Instant, std::variant<Event, FileEvent>> events_;
  Instant sent_at_{};                           // of the newest block
  std::shared_ptr<const OfferedVolume> offer_;  // the newest that was decided on
  list::Answer decided_;
  std::deque<Held> held_;
  std::map<std::uint32_t, list::ManifestEntry> unlisted_;  // reported, by index
  std::map<std::uint32_t, std::uint64_t> digests_;         // receiving: how many of a file came
  bool has_given_ = false;                                 // sending: a volume
  bool has_failed_ = false;  // sending: a source changed, and nothing is sent any more
  bool has_engine_ = false, is_finished_ = false, is_proven_ = false, is_started_ = false;
  std::uint8_t next_id_ = 0;
};

}  // namespace onehop::session::test
