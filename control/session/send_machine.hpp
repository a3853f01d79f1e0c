// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SendMachine: what the sending end of a session says and hears, without I/O (session_machine.hpp).
//
//   Hello ─▶ [Busy: wait] ─▶ Welcome ─▶ Offer, ManifestPart.., OfferEnd ─▶ Accept, ClaimPart..
//     ─▶ DataReady, PathReady ─▶ digests and roots as blocks are sent, FileDones ─▶ Complete ─▶ Bye
#pragma once

#include <set>

#include "control/session/poll_pause.hpp"
#include "control/session/session_machine.hpp"

namespace onehop::session {

class SendMachine final : public SessionMachine {
 public:
  struct Connection {
    Endpoint peer;
    std::string alpn;
    Instant busy_until;  ///< how long a busy receiver is waited for
  };
  /// `manifest` is the host's, which renews it when it is asked to offer again.
  SendMachine(const SendOptions& options, const file::Manifest& manifest, Connection connection);

  void start(Instant now) override;
  /// on_offered_again answers OfferAgain: the manifest now has the files that are left.
  void on_offered_again(Instant now, const Result<void>& renewed);
  [[nodiscard]] bool wants_keepalive() const noexcept override {
    return state_ == State::completing ||
           (state_ == State::transferring && bytes_done_ >= bytes_total_);
  }

 private:
  Result<void> take_message(Instant now, Message& message) override;
  Result<void> take_event(Instant now, const Event& event) override;
  void advance(Instant now) override;
  void on_opened(Instant now, const SessionId& fresh_id) override;
  void on_started(Instant now) override;
  void on_proven(Instant now) override;
  [[nodiscard]] Error deadline_error() const override;
  [[nodiscard]] bool is_outcome_certain() const noexcept override {
    return state_ == State::completing;
  }
  [[nodiscard]] const file::Manifest& manifest() const noexcept override { return manifest_; }
  void flush_digests() override;

  [[nodiscard]] Result<void> take_greeting(Instant now, const Message& message);
  void begin_offer();
  void send_part(Instant now);
  void await_accept(Instant now);
  [[nodiscard]] Result<void> take_accept(Instant now, Accept&& accept);
  [[nodiscard]] Result<void> take_claims(Instant now, const ClaimPart& part);
  void end_accept(Instant now);
  [[nodiscard]] Result<void> take_done(Instant now, const FileDone& done);
  [[nodiscard]] Result<void> take_pack_done(Instant now, const PackDone& done);
  [[nodiscard]] bool can_come_to(const FileDone& done) const;
  [[nodiscard]] bool may_restart(const Event& event) const;
  void announce(const Event& event, bool is_skipped);
  void begin_restart(Instant now, std::uint32_t changed_file);
  void end_restart();
  void complete(Instant now);
  [[nodiscard]] Error busy_error() const;

  const SendOptions options_;
  const file::Manifest& manifest_;
  const Connection connection_;
  std::size_t next_entry_ = 0;  // of the manifest, to be offered
  Accept accept_;
  Accepted accepted_;
  std::vector<std::optional<Digest>> roots_;
  std::vector<bool> is_done_;
  BlockDigests batch_;                     // of this turn
  std::set<std::string> restarted_names_;  // each of them at most once
  bool is_restart_answered_ = false;
  std::size_t files_left_ = 0;
  std::uint64_t bytes_total_ = 0, bytes_done_ = 0;  // to announce in all; announced
  std::optional<PollPause> pause_;
};

}  // namespace onehop::session
