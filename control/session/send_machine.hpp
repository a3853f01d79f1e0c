// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SendMachine: the sending end's half of the session protocol, without I/O (session_machine.hpp).
//
//   Hello ─▶ [Busy: wait] ─▶ [RequireSha256], Welcome ─▶ Offer, first volume
//     ─▶ Accept, VolumeAnswer, HeldPart.. ─▶ DataReady, PathReady
//     ─▶ digests and roots as blocks are sent, FileDones; later volumes as the host delivers them
//        and earlier ones end
//     ─▶ Complete ─▶ Bye
#pragma once

#include <set>
#include <unordered_map>

#include "control/session/poll_pause.hpp"
#include "control/session/session_machine.hpp"

namespace onehop::session {

class SendMachine final : public SessionMachine {
 public:
  struct Connection {
    Endpoint peer;
    std::string alpn;
    Instant busy_until;  ///< how long to wait for a busy receiver
  };
  SendMachine(const SendOptions& options, Connection connection);

  void start(Instant now) override;
  /// on_volume answers WantVolume. `known` holds the totals that the host knows now.
  void on_volume(Instant now, Result<list::Volume> volume, const KnownTree& known);
  /// on_offered_again answers OfferAgain with the entries that are left, in their present state.
  void on_offered_again(Instant now, Result<std::shared_ptr<const list::Manifest>> renewed);
  /// While the first volume is being sent no answer is due, so messages (a refusal) stay in the
  /// inbox.
  [[nodiscard]] bool can_take_message() const noexcept override {
    return state_ != State::offering && SessionMachine::can_take_message();
  }
  [[nodiscard]] bool has_more_to_send() const noexcept override {
    return is_offering_ && (state_ == State::offering || state_ == State::transferring);
  }
  [[nodiscard]] bool wants_keepalive() const noexcept override {
    return state_ == State::completing ||
           (state_ == State::transferring && volumes_.has_last() && bytes_done_ >= bytes_total_);
  }

 private:
  Result<void> take_message(Instant now, Message& message) override;
  Result<void> take_event(Instant now, const Event& event) override;
  Result<void> take_file_event(Instant now, const FileEvent& event) override;
  void advance(Instant now) override;
  void on_opened(Instant now, const SessionId& fresh_id) override;
  void on_started(Instant now) override;
  void on_proven(Instant now) override;
  [[nodiscard]] Error deadline_error() const override;
  [[nodiscard]] bool is_outcome_certain() const noexcept override {
    return state_ == State::completing;
  }
  void flush() override;

  [[nodiscard]] Result<void> take_greeting(Instant now, const Message& message);
  void begin_offer();
  void want_volume();
  void begin_volume(Instant now);
  void send_part(Instant now);
  void await_accept(Instant now);
  [[nodiscard]] Result<void> take_accept(Accept&& accept);
  [[nodiscard]] Result<void> take_answer(Instant now, VolumeAnswer&& answer);
  [[nodiscard]] Result<void> take_held(Instant now, const HeldPart& part);
  [[nodiscard]] Result<void> take_claims(Instant now, const ClaimPart& part);
  [[nodiscard]] static Result<void> check(const list::Manifest& manifest);
  void end_answer(Instant now);
  void set_answer_deadline(Instant now);
  void complete_if_over(Instant now);
  [[nodiscard]] Result<void> take_done(Instant now, const FileDone& done);
  [[nodiscard]] Result<void> take_pack_done(Instant now, const PackDone& done);
  [[nodiscard]] bool may_restart(const FileFailed& failed);
  void announce_root(Instant now, const RootRead& read);
  void announce(const BlockRef& block);
  void announce_hole(const BlockRef& run);
  void begin_restart(Instant now, const FileFailed& failed);
  void end_restart();
  void complete(Instant now);
  [[nodiscard]] Error busy_error() const;

  const SendOptions options_;
  const Connection connection_;
  crypto::DigestKind digest_;       // ours, or what the receiver requires
  std::deque<list::Volume> ready_;  // to be offered
  bool is_volume_wanted_ = false;   // the host was asked for one
  bool has_asked_all_ = false;      // and it gave the last one
  // The newest volume is being offered, its entry at next_entry_ next.
  bool is_offering_ = false;
  std::size_t next_entry_ = 0;
  KnownTree known_;
  std::optional<Accept> accept_;
  struct {
    VolumeAnswer answer;
    Held held;
    bool is_taking_held = false;
  } reading_;  // the answer that is being read
  // Files whose HeldBlocks are not all told, and from which block on they may come.
  std::unordered_map<std::uint32_t, std::uint64_t> untold_;
  BlockDigests batch_;                     // of this turn
  Holes holes_;                            // of this turn
  std::set<std::string> restarted_names_;  // each of them restarts at most once
  std::optional<FileFailed> unsent_;       // the failure of a file that is not offered again
  bool is_restart_answered_ = false;
  bool is_last_again_ = false;                      // what is offered again is all that is left
  std::uint64_t bytes_total_ = 0, bytes_done_ = 0;  // to announce in all; announced
  std::optional<PollPause> pause_;
};

}  // namespace onehop::session
