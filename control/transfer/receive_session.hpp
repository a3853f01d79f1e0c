// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ReceiveSession: the host of a receiver's session: it decides on offers, and owns the data path.
// It serves one session after the other. A receiver of several sessions at a time has several.
//
//   RecvServer ─▶ Receiver (this, too) ─ begin_session() ─▶ ReceiveSession
//                                                             ├─▶ VolumePreparer
//                                                             └─▶ DataPath
//
// The thread in run() calls all of it but answer().
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <string>

#include "control/session/session.hpp"
#include "control/transfer/data_path.hpp"
#include "control/transfer/volume_preparer.hpp"
#include "engine/base/system/rights.hpp"
#include "engine/sink/sink.hpp"

namespace onehop::transfer {

class ReceiveSession : public session::RecvHost {
 public:
  /// Shared: what all sessions of the receiver share. It outlives them.
  struct Shared {
    boost::asio::io_context& io;
    const Settings& settings;
    const Events& events;
    DataPath& path;  ///< of this host alone
    std::shared_ptr<sink::TakenRoom> room;
  };
  ReceiveSession(api::ReceiveOptions options, Shared shared);

  void answer(std::uint64_t offer, api::Answer answer) { preparer_.answer(offer, answer); }
  /// begin: the next session is with `device`; null: with a sender that has the code. `own` signs
  /// the receipt.
  void begin(const pair::KnownPeer& device, const pair::DeviceKey* own);
  /// set_place: the only interface that it may use, empty: any; and its data port, 0: any.
  void set_place(std::string interface, std::uint16_t data_port) {
    fixed_interface_ = std::move(interface);
    data_port_ = data_port;
  }
  [[nodiscard]] bool is_busy() const noexcept { return is_busy_; }
  [[nodiscard]] DataPath& path() noexcept { return path_; }

  // --- session::RecvHost
  void consider(std::shared_ptr<const session::OfferedVolume> offer, const crypto::CompareKey& key,
                session::Decide decide) override;
  Result<session::DataOpened> open_data(const session::PeerLink& link) override;
  Result<session::SessionRings> start_data(const session::DataPlan& plan) override;
  Result<Command> take_volume(const session::OfferedVolume& offer) override;
  void stop_data() noexcept override {
    preparer_.end();
    file_side_ = nullptr;
    path_.stop();
  }
  Result<void> fall_back() override { return path_.fall_back(); }
  Result<void> on_path(const std::string& interface, const PathUpdate& path) override {
    return path_.follow_path(interface, path);
  }
  void on_fact(const session::SessionFact& fact) override { path_.on_fact(fact); }
  session::Arrival arrival() const override { return path_.arrival(); }
  void on_session_end(const session::SessionEnd& end) override;

 protected:
  /// what_is_kept is text for the user: what an interrupt would leave now.
  [[nodiscard]] std::string what_is_kept() const;
  [[nodiscard]] const std::shared_ptr<sink::TakenRoom>& taken_room() const noexcept {
    return preparer_.taken_room();
  }
  [[nodiscard]] const std::string& fixed_interface() const noexcept { return fixed_interface_; }

  const api::ReceiveOptions options_;
  session::SessionEnd ended_;  // the newest session's end, as reported

 private:
  void open_and_prepare(std::shared_ptr<const session::OfferedVolume> offer,
                        const crypto::CompareKey& key, session::Decide decide, Instant since);
  [[nodiscard]] Result<void> open_port(const session::RouteInfo& route, const IpAddress& local);
  [[nodiscard]] Result<void> open_before_files(const IpAddress& peer);
  [[nodiscard]] bool is_small() const;
  /// A port that was opened for a small offer is opened again for a later session, if the
  /// privileges still exist then.
  [[nodiscard]] bool can_open_again() const {
    return !options_.before_files || kept_rights() != nullptr;
  }
  void expect(const session::OfferedVolume& offer, bool is_stream);
  void begin_offer(bool is_again);

  boost::asio::io_context& io_;
  const Settings& settings_;
  const Events& events_;
  DataPath& path_;
  std::string fixed_interface_;
  std::uint16_t data_port_ = 0;
  std::shared_ptr<const session::OfferedVolume> offer_;  // the newest volume
  std::uint64_t files_offered_ = 0;
  sink::Sink* file_side_ = nullptr;  // the data path's, while it runs
  VolumePreparer preparer_;
  boost::asio::steady_timer way_timer_;
  bool is_busy_ = false;
};

}  // namespace onehop::transfer
