// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// VolumePreparer examines what is offered, volume after volume, on a thread of its own: which names
// are not possible, what exists already, what can be resumed, and what the user decides about
// existing names.
//
//   consider ─▶ start() ─▶ [ thread: Destination, NameProbe, SinkVolume::prepare, a question ]
//                          ─▶ decide
//                                              take() ◀─ the session goes on with the volume
//
// The thread in run() calls it; answer() may come from any thread.
#pragma once

#include <boost/asio/io_context.hpp>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "control/session/session.hpp"
#include "control/transfer/events.hpp"
#include "control/transfer/question.hpp"
#include "engine/sink/sink_volume.hpp"

namespace onehop::transfer {

class VolumePreparer {
 public:
  /// The first three outlive it; `room` is shared by all sessions of the receiver.
  VolumePreparer(const api::ReceiveOptions& options, const Events& events,
                 boost::asio::io_context& io, std::shared_ptr<sink::TakenRoom> room)
      : options_{options}, events_{events}, io_{io}, room_{std::move(room)} {}
  ~VolumePreparer() { end(); }
  VolumePreparer(const VolumePreparer&) = delete;
  VolumePreparer& operator=(const VolumePreparer&) = delete;

  /// begin_session: `device` is the paired sender, whose rule applies; null: none.
  void begin_session(const pair::KnownPeer& device) {
    device_ = device;
    const bool has_own = device != nullptr && device->rule == pair::Rule::accept &&
                         !device->folder.empty() && options_.stream_fd < 0;
    directory_ = has_own ? device->folder : options_.directory;
  }
  /// start drops the previous volume, if it was not taken. `decide` is called on the preparer's
  /// thread; the first volume of a session opens the destination.
  void start(std::shared_ptr<const session::OfferedVolume> offer, const crypto::CompareKey& key,
             session::Decide decide);
  void answer(std::uint64_t offer, api::Answer answer) { question_.answer(offer, answer); }

  [[nodiscard]] const std::shared_ptr<sink::TakenRoom>& taken_room() const noexcept {
    return room_;
  }

  // --- after the decision
  [[nodiscard]] std::unique_ptr<sink::SinkVolume> take();
  [[nodiscard]] const std::shared_ptr<sink::Destination>& destination() const noexcept {
    return destination_;
  }
  /// folder is where the files go, as text for the user.
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

  /// end stops the preparation and any open question of a session that is over, and frees their
  /// resources.
  void end();

 private:
  using Prepared = Result<std::unique_ptr<sink::SinkVolume>>;
  void join() { thread_ = {}; }  // joins it, after a request to stop
  [[nodiscard]] Result<list::Answer> prepare(
      const std::shared_ptr<const session::OfferedVolume>& offer, const std::stop_token& stop);
  [[nodiscard]] Result<void> open_destination(const session::OfferedVolume& offer);
  [[nodiscard]] Prepared prepare_or_ask(const std::shared_ptr<const session::OfferedVolume>& offer,
                                        const std::stop_token& stop);
  [[nodiscard]] Prepared prepare_one(const std::shared_ptr<const session::OfferedVolume>& offer,
                                     std::vector<sink::Conflict>* conflicts,
                                     const std::stop_token& stop);
  [[nodiscard]] bool is_replaced(std::string_view name) const;
  [[nodiscard]] Error unasked_error() const;
  void refuse_symlinks(const list::Manifest& volume);
  void clear_left();
  std::optional<api::Answer> ask(const session::OfferedVolume& offer,
                                 const std::vector<sink::Conflict>& conflicts,
                                 const std::stop_token& stop);

  const api::ReceiveOptions& options_;
  const Events& events_;
  boost::asio::io_context& io_;
  const std::shared_ptr<sink::TakenRoom> room_;
  pair::KnownPeer device_;  // of the session
  std::string directory_ = options_.directory;
  Question question_;
  crypto::CompareKey key_;  // of the session
  // Used by the thread, until it has decided.
  std::shared_ptr<sink::Destination> destination_;
  std::unique_ptr<sink::SinkVolume> volume_;
  std::unordered_map<std::string, sink::OnExist> answers_;  // by name, of the volume
  // Folders of the session that replace files. A later volume may continue them.
  std::set<std::string, std::less<>> replaced_;
  std::vector<int> name_faults_;                 // of the volume's entries
  std::shared_ptr<list::SymlinkRule> symlinks_;  // of the session
  bool is_approved_ = false;                     // in this session
  bool is_unsaid_ = false;                       // the sender does not learn why the volume is
                                                 // refused
  std::string folder_;
  std::jthread thread_;
};

}  // namespace onehop::transfer
