// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RecvMachine: what the receiving end of a session says and hears, without I/O
// (session_machine.hpp). The listener has taken the Hello.
//
//   Welcome ─▶ Offer, ManifestPart.., OfferEnd: validated ─▶ Consider ─▶ OpenData, StartData
//     ─▶ Accept, ClaimPart.. ─▶ DataReady, PathReady ─▶ digests and roots in, FileDones out
//     ─▶ Complete ─▶ Bye
#pragma once

#include "control/session/session_machine.hpp"

namespace onehop::session {

class RecvMachine final : public SessionMachine {
 public:
  RecvMachine(const RecvOptions& options, const Endpoint& peer);

  void start(Instant now) override;
  /// on_decision answers Consider. One that comes too late is ignored.
  void on_decision(Instant now, Result<Decision> decision);
  [[nodiscard]] bool can_take_message() const noexcept override {
    return state_ != State::restarting && SessionMachine::can_take_message();
  }
  [[nodiscard]] bool wants_keepalive() const noexcept override { return is_outcome_certain(); }

  /// has_offer: the sender got as far as a whole, valid offer.
  [[nodiscard]] bool has_offer() const noexcept { return has_offer_; }
  /// is_deciding: the host looks at the offer, and the sender waits for it.
  [[nodiscard]] bool is_deciding() const noexcept { return is_deciding_; }
  /// bytes_confirmed: of blocks that we had and the sender found to be right.
  [[nodiscard]] std::uint64_t bytes_confirmed() const noexcept { return bytes_confirmed_; }

 private:
  Result<void> take_message(Instant now, Message& message) override;
  Result<void> take_event(Instant now, const Event& event) override;
  void advance(Instant now) override;
  void on_opened(Instant now, const SessionId& fresh_id) override;
  void on_started(Instant now) override;
  void on_proven(Instant now) override;
  [[nodiscard]] Error deadline_error() const override;
  [[nodiscard]] bool is_outcome_certain() const noexcept override {
    return state_ == State::transferring && files_left_ == 0;
  }
  [[nodiscard]] const file::Manifest& manifest() const noexcept override { return info_->manifest; }

  void await_offer(Instant now);
  [[nodiscard]] Result<void> take_offer(Instant now, Offer&& offer);
  [[nodiscard]] Result<void> take_entries(Instant now, ManifestPart& part);
  [[nodiscard]] Result<void> take_offer_end(Instant now, const OfferEnd& end);
  [[nodiscard]] Result<void> check_offer_again();
  [[nodiscard]] Error refuse(Error why);
  [[nodiscard]] Result<void> check_decision() const;
  [[nodiscard]] bool is_repair_lazy() const noexcept {
    return offer_.is_repair_lazy && options_.is_lazy_allowed;
  }
  void send_accept(Instant now);
  void send_claims(std::uint32_t file);
  void end_accept(Instant now);
  [[nodiscard]] Result<void> take_in_transfer(Instant now, const Message& message);
  [[nodiscard]] Result<void> take_digests(const BlockDigests& message);
  [[nodiscard]] Result<void> take_root(const FileRoot& message);
  void begin_restart(Instant now);
  void end_restart(Instant now);
  [[nodiscard]] bool is_file_expected(std::uint32_t file) const noexcept;

  const RecvOptions options_;
  const Endpoint peer_;
  Instant offer_deadline_{};
  Offer offer_;
  std::shared_ptr<OfferInfo> info_;
  std::size_t name_bytes_ = 0;  // of the offer, as far as it has come
  Decision decision_;
  std::uint32_t next_claims_ = 0;  // file whose claims are sent next
  std::vector<bool> has_root_, is_done_;
  std::size_t files_left_ = 0, roots_left_ = 0;
  // A sender whose file changed offers again what is not done: names of the offer before, and other
  // keys each time.
  std::shared_ptr<const OfferInfo> offered_before_;
  std::vector<bool> was_settled_;  // by file of offered_before_
  std::vector<SessionId> session_ids_;
  std::size_t restarts_left_ = 0;  // as many as files were offered first: each may change once
  std::uint64_t bytes_claimed_ = 0, bytes_confirmed_ = 0;
  bool has_offer_ = false, is_deciding_ = false, has_pack_root_ = false;
};

}  // namespace onehop::session
