// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RecvSession: one transfer to this end, from an authenticated channel to the last file renamed. Internal to
// control/plane: RecvServer (listener.hpp) makes one when a sender has authenticated and nothing else is under way.
//
//   Welcome ─▶ offer, validated ─▶ host.consider ─▶ open_data ─▶ Accept ─▶ prove the path ─▶ digests in, FileDone out
#pragma once

#include <memory>
#include <vector>

#include "control/plane/session_base.hpp"

namespace onehop::plane {

class RecvSession final : public SessionBase, public std::enable_shared_from_this<RecvSession> {
 public:
  RecvSession(asio::io_context& io, const RecvOptions& options, RecvHost& host, std::shared_ptr<Channel> channel, const SenderToken& sender);

  /// has_offer: the sender got as far as a whole, valid offer.
  [[nodiscard]] bool has_offer() const noexcept { return has_offer_; }
  /// is_of: its sender proved to be this one.
  [[nodiscard]] bool is_of(const SenderToken& sender) const noexcept { return sender == sender_ && sender != SenderToken{}; }
  /// is_alive asks the sender whether it is still there.
  [[nodiscard]] Task<bool> is_alive() { return channel_->answers(limits_.answer); }
  /// replace ends a session whose sender is gone and came back: what arrived is kept, and nobody is left to be told.
  void replace();
  [[nodiscard]] bool is_replaced() const noexcept { return is_replaced_; }
  /// is_deciding: the host looks at the offer, and the sender waits for it.
  [[nodiscard]] bool is_deciding() const noexcept { return is_deciding_; }
  /// bytes_confirmed: of blocks that we had and the sender found to be right.
  [[nodiscard]] std::uint64_t bytes_confirmed() const noexcept { return bytes_confirmed_; }

 private:
  [[nodiscard]] Task<Result<void>> converse() override;
  [[nodiscard]] Task<Result<void>> receive_offered();
  [[nodiscard]] Task<Result<void>> restart();
  [[nodiscard]] Result<void> check_offer_again();
  [[nodiscard]] Task<Result<void>> take_offer();
  [[nodiscard]] Result<void> take_entries(ManifestPart& part);
  [[nodiscard]] Error refuse(Error why);
  [[nodiscard]] Task<Result<void>> consider();
  [[nodiscard]] Result<void> check_decision() const;
  [[nodiscard]] bool is_repair_lazy() const noexcept { return offer_.is_repair_lazy && options_.is_lazy_allowed; }
  [[nodiscard]] Task<void> send_accept();
  void send_claims(std::uint32_t file, const std::vector<file::Claim>& claims);
  [[nodiscard]] Task<Result<void>> transfer();
  [[nodiscard]] Result<void> take_events();
  [[nodiscard]] Result<void> take_event(const Event& event);
  [[nodiscard]] Result<void> take_message(const Message& message);
  [[nodiscard]] Result<void> take_digests(const BlockDigests& message);
  [[nodiscard]] Result<void> take_root(const FileRoot& message);
  [[nodiscard]] bool is_file_expected(std::uint32_t file) const noexcept;

  RecvHost& recv_host_;
  const RecvOptions options_;
  const SenderToken sender_;
  Offer offer_;
  std::shared_ptr<OfferInfo> info_;
  std::size_t name_bytes_ = 0;                // of the offer, as far as it has come
  std::shared_ptr<std::optional<Result<Decision>>> answer_;  // outlives the session while the host still thinks
  Decision decision_;
  crypto::ExporterContext context_;
  std::vector<bool> has_root_, is_done_;
  std::size_t files_left_ = 0, roots_left_ = 0;
  // A sender whose file changed offers again what is not done: names of the offer before, and other keys each time.
  std::shared_ptr<const OfferInfo> offered_before_;
  std::vector<bool> was_settled_;             // by file of offered_before_
  std::vector<std::array<std::byte, crypto::session_id_bytes>> session_ids_;
  std::size_t restarts_left_ = 0;             // as many as files were offered first: each may change once
  std::uint64_t bytes_claimed_ = 0, bytes_confirmed_ = 0;
  bool has_offer_ = false, is_complete_ = false, is_restarting_ = false, is_deciding_ = false, is_replaced_ = false;
};

}  // namespace onehop::plane
