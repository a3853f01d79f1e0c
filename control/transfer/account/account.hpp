// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Account: what is known of the running session, and its sum at the end. Its observers write facts
// into `facts`. The thread in run() alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "control/rate/trace.hpp"
#include "control/session/session.hpp"
#include "control/transfer/account/rate_memory.hpp"
#include "control/transfer/account/receipt.hpp"
#include "control/transfer/account/recent_rate.hpp"
#include "control/transfer/account/usage.hpp"
#include "control/transfer/events.hpp"
#include "engine/list/manifest.hpp"

namespace onehop::transfer {

/// name_of is the word of a scope in events.
[[nodiscard]] const char* name_of(QueueScope scope);

/// phase_of is the phase as events name it.
[[nodiscard]] constexpr api::Phase phase_of(session::Phase phase) noexcept {
  static_assert(static_cast<int>(session::Phase::done) ==
                static_cast<int>(api::Phase::done));  // in the same order
  return static_cast<api::Phase>(phase);
}

class Account {
 public:
  Account(const Events& events, const Settings& settings, api::Role role);

  api::End facts;
  session::Phase phase = session::Phase::connecting;
  std::uint64_t bytes_expected = 0;  ///< in all, as far as it is known
  std::uint64_t files_expected = 0;  ///< the same of files
  bool is_all_known = false;         ///< there are no more
  std::uint64_t files_done = 0;      ///< files whose outcome is known
  std::uint64_t bytes_offered = 0;   ///< receiving: bytes offered so far
  bool is_stream = false;            ///< nothing of a stream is kept
  /// on_restart() was called: what is skipped since then arrived in this session.
  bool has_restarted = false;
  const pair::DeviceKey* signer = nullptr;  ///< of the receipt; null: it is not signed
  rate::RateState last_state;  ///< of the data path that ended; its packets count all data paths
  RecentRate recent, recent_files;
  std::array<RecentRate, 3> recent_drains;  // in the order of api::buffer_names
  UsageMeter usage;
  Instant first_data_at{}, all_arrived_at{}, ended_at{};
  std::optional<Instant> link_down_since;

  /// has_data: data of this session has flowed, so an interrupt keeps something.
  [[nodiscard]] bool has_data() const { return first_data_at != Instant{}; }
  [[nodiscard]] bool is_sending() const { return facts.role == api::Role::sending; }
  /// bytes_absent: bytes expected or offered that will not arrive, because they exist already, are
  /// a hole, or belong to a file that is not taken.
  [[nodiscard]] std::uint64_t bytes_absent() const { return bytes_absent_; }
  /// bytes_held: bytes that the receiver says it holds, and that are not compared yet.
  [[nodiscard]] std::uint64_t bytes_held() const { return bytes_held_; }
  /// bytes_to_arrive: bytes expected in the running data path.
  [[nodiscard]] std::uint64_t bytes_to_arrive() const {
    return bytes_expected - std::min(bytes_expected, bytes_absent_ + bytes_held_);
  }

  /// note_drains is for recent_drains, about ten times a second.
  void note_drains(Instant now, const PathReport& path) noexcept;
  /// files_total is never less than the files done: a peer announces the number.
  [[nodiscard]] std::uint64_t files_total() const { return std::max(files_expected, files_done); }
  /// phase_at is the phase once `bytes` have arrived: a receiver knows all digests before it has
  /// all data, for the sender reads ahead.
  [[nodiscard]] session::Phase phase_at(std::uint64_t bytes) const;
  /// eta_seconds is the time left once `bytes_done` have arrived; nullopt: the list is not
  /// complete, or nothing moves.
  [[nodiscard]] std::optional<double> eta_seconds(std::uint64_t bytes_done) const;
  /// set_place records the peer, and the folder of the receiver.
  void set_place(std::string peer, const std::string& folder);
  /// learn counts a fact that the session reports, and shows the user what concerns the user.
  void learn(const session::SessionFact& fact);
  /// tell_unnamed emits a LeftOut of the entries since its last call whose names the receiver's
  /// file system cannot hold.
  void tell_unnamed();
  /// on_left_out: sending; a restart does not offer the entry again.
  void on_left_out(const list::ManifestEntry& entry);
  /// begin_receipt begins the session's receipt, if one is asked for. Error: 8.
  [[nodiscard]] Result<void> begin_receipt();
  /// on_restart: a source changed, and what is not done is offered again.
  void on_restart();
  /// say_notices: a law cannot print. It sets a bit, and the account emits the text of each bit
  /// once.
  void say_notices(const rate::RateState& state);
  /// tick emits an Interval if one is due. `bytes` have arrived.
  void tick(Instant now, std::uint64_t bytes, const rate::RateState& state);
  /// close_data keeps the last state of a data path that ended.
  void close_data(const rate::RateState& state);

  /// set_start sets the law's start rate from an earlier run on this path, and notes the path.
  void set_start(const std::string& peer, law::SafeRangeParams& params);
  /// end closes the receipt, emits the error and the end event, and stores the rate of a success.
  /// It returns `end`, or the receipt's error if `end` had none.
  [[nodiscard]] session::SessionEnd end(session::SessionEnd end);
  /// forget_session: a receiver's next session counts from zero.
  void forget_session();

 private:
  void on(session::Phase now);
  void on(const Event& event);
  void on(const session::Report& report);
  void on(const session::VolumeOver& over);
  void on(const session::Notice& notice);
  void on(const session::SeemsHeld& held) { bytes_held_ += held.bytes; }
  void on(const session::Skipped& skipped);
  void on(const session::HoleAnnounced& hole);
  void on(const session::LinkState& link);
  void count(const list::ManifestEntry& entry, const session::FileDone& done, bool is_verified);
  void close_receipt(session::SessionEnd& end);
  void remember_rate();
  void fill_path(const rate::RateState& state);

  const Events& events_;
  const Settings& settings_;
  api::LeftOut unnamed_;                                    // not emitted yet
  std::unordered_map<std::uint32_t, std::uint64_t> holes_;  // bytes, of files under way
  std::uint64_t bytes_absent_ = 0, bytes_held_ = 0;
  std::uint64_t bytes_over_ = 0;      // of the entries whose outcome is known
  std::unique_ptr<Receipt> receipt_;  // of the session under way; null: none
  std::uint32_t notices_said_ = 0;
  std::optional<RememberedRate> path_used_;  // sending: whose rate is worth remembering
  Instant interval_at_{};
  std::uint64_t interval_bytes_ = 0;
};

}  // namespace onehop::transfer
