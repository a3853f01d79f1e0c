// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RecvMachine: the receiving end's half of the session protocol, without I/O (session_machine.hpp).
// The listener has taken the Hello.
//
//   Welcome ─▶ Offer, first volume: validated ─▶ Consider ─▶ OpenData, StartData
//     ─▶ Accept, VolumeAnswer, HeldPart.. ─▶ DataReady, PathReady
//     ─▶ digests and roots in, ClaimParts and FileDones out
//     ─▶ later volumes: Consider, TakeOffered, VolumeAnswer
//     ─▶ Complete ─▶ Bye
#pragma once

#include <string>
#include <unordered_map>

#include "control/session/session_machine.hpp"

namespace onehop::session {

class RecvMachine final : public SessionMachine {
 public:
  RecvMachine(const RecvOptions& options, const Endpoint& peer);

  void start(Instant now) override;
  /// on_decision answers Consider. A late answer is ignored.
  void on_decision(Instant now, Result<list::Answer> decision);
  [[nodiscard]] bool can_take_message() const noexcept override {
    return state_ != State::restarting && SessionMachine::can_take_message();
  }
  [[nodiscard]] bool wants_keepalive() const noexcept override { return is_outcome_certain(); }

  /// has_offer: the sender has sent a whole, valid first volume.
  [[nodiscard]] bool has_offer() const noexcept { return has_offer_; }
  /// has_refused_unsaid: it refused for a local reason that the peer does not learn.
  [[nodiscard]] bool has_refused_unsaid() const noexcept { return has_refused_unsaid_; }
  /// is_deciding: the host considers a volume, and the sender waits for the answer.
  [[nodiscard]] bool is_deciding() const noexcept { return is_deciding_; }
  /// bytes_confirmed: bytes of blocks that this end had and the sender confirmed.
  [[nodiscard]] std::uint64_t bytes_confirmed() const noexcept { return bytes_confirmed_; }

 private:
  Result<void> take_message(Instant now, Message& message) override;
  Result<void> take_event(Instant now, const Event& event) override;
  Result<void> take_file_event(Instant now, const FileEvent& event) override;
  void advance(Instant now) override;
  void on_opened(Instant now, const SessionId& fresh_id) override;
  void on_started(Instant now) override;
  void on_proven(Instant now) override;
  [[nodiscard]] Error deadline_error() const override;
  void flush() override;
  [[nodiscard]] bool is_outcome_certain() const noexcept override {
    return state_ == State::transferring && volumes_.is_over();
  }

  void await_offer(Instant now);
  [[nodiscard]] Result<void> take_offer(Instant now, Offer&& offer);
  [[nodiscard]] Result<void> take_entries(Instant now, ManifestPart& part);
  [[nodiscard]] Result<void> take_volume_end(Instant now, const VolumeEnd& end);
  [[nodiscard]] Result<void> note_changes(OfferedVolume& info);
  void consider_next();
  [[nodiscard]] Error refuse(Error why);
  [[nodiscard]] Error refuse_unsaid(Error why);
  [[nodiscard]] Result<void> check_decision(const VolumeState& volume,
                                            const list::Answer& answer) const;
  [[nodiscard]] bool is_repair_lazy() const noexcept {
    return offer_.is_repair_lazy && options_.is_lazy_allowed;
  }
  void send_accept(Instant now);
  void send_answer(Instant now);
  void send_held(const list::Held& held, std::uint32_t first_file);
  void end_answer(Instant now);
  void take_held(const HeldBlock& held);
  void take_held(const HeldEnd& end);
  void take_finished(const FileFinished& finished);
  [[nodiscard]] Result<void> take_finished(const RecordsFinished& finished);
  void skip(const BlockRef& block) {
    act(Command{.kind = CommandKind::skip_block, .block = block});
  }
  [[nodiscard]] Result<void> take_in_transfer(Instant now, Message& message);
  [[nodiscard]] Result<void> take_digests(const BlockDigests& message);
  [[nodiscard]] Result<void> take_holes(const Holes& message);
  [[nodiscard]] Result<void> take_root(const FileRoot& message);
  void begin_restart(Instant now);
  void end_restart(Instant now);

  /// KnownEntries: entries that may be offered again after a restart.
  using KnownEntries = std::unordered_map<std::string, list::ManifestEntry>;

  [[nodiscard]] std::string again_hint() const override {
    return options_.is_once ? "Run the same commands again, this one first, to go on"
                            : "Still listening: it goes on when the same is sent again";
  }

  const RecvOptions options_;
  const Endpoint peer_;
  Instant offer_deadline_{};
  Offer offer_;
  std::shared_ptr<list::Manifest> reading_;  // of the volume that is being read
  std::size_t name_bytes_ = 0;               // of that volume
  std::uint64_t bytes_offered_ = 0;
  // Volumes that were read, in order; the host considers the first.
  std::deque<std::shared_ptr<const OfferedVolume>> offered_;
  std::deque<ClaimPart> claims_;  // that are not sent
  PackDone done_;                 // of this turn
  std::optional<KnownEntries> offered_before_;
  std::vector<SessionId> session_ids_;
  std::uint64_t restarts_left_ = 0;  // each entry may change once, and then be left out
  std::uint64_t bytes_claimed_ = 0, bytes_confirmed_ = 0;
  bool has_offer_ = false, is_deciding_ = false, has_refused_unsaid_ = false;
};

}  // namespace onehop::session
