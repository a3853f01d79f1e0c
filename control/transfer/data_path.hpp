// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DataPath: what the hosts of both roles drive: port, links, threads, the sources of link facts,
// and the account.
//
//   thread in run(): session ─▶ host ─▶ DataPath ─▶ engine, rate and file threads: start, join
//
// Only the thread in run() calls it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/law/make_law.hpp"
#include "control/link/interface_drops.hpp"
#include "control/link/link_watch.hpp"
#include "control/rate/rate_thread.hpp"
#include "control/rate/trace.hpp"
#include "control/session/channel/path_follower.hpp"
#include "control/session/session.hpp"
#include "control/transfer/account/account.hpp"
#include "control/transfer/engine.hpp"
#include "control/transfer/port/ports.hpp"
#include "engine/base/system/mapping.hpp"
#include "engine/disk/thread/file_thread.hpp"
#include "engine/protocol/file_volume.hpp"
#include "engine/run/packet_protection.hpp"
#include "engine/source/source.hpp"

namespace onehop::transfer {

class DataPath {
 public:
  DataPath(boost::asio::io_context& io, const Settings& settings, const Events& events,
           api::Role role);
  ~DataPath();
  DataPath(const DataPath&) = delete;
  DataPath& operator=(const DataPath&) = delete;

  // --- before the session
  /// open_dpdk starts DPDK for --io dpdk, unless it runs already; `local` if it is known by now.
  [[nodiscard]] Result<void> open_dpdk(const std::optional<onehop::Endpoint>& local);
  /// open_port opens the data port for the path to or from `local`; a second call for the same path
  /// keeps the port. is_small: see PortRequest; a port opened for a small session is not kept for a
  /// larger one.
  [[nodiscard]] Result<void> open_port(const std::string& interface, const IpAddress& local,
                                       std::uint16_t port, bool has_fragments,
                                       bool is_small = false);
  void close() noexcept {
    port_.reset();
    dpdk_.reset();
  }
  [[nodiscard]] Result<session::DataOpened> opened(const session::RouteInfo& route) const;

  // --- the session's calls
  [[nodiscard]] source::SourceOptions source_options(const session::DataPlan& plan) const;
  /// start_sending starts all threads of a session whose blocks come from `worker`; start_receiving
  /// those of a session whose blocks go to `worker`, for files of these sizes.
  [[nodiscard]] Result<session::SessionRings> start_sending(
      const session::DataPlan& plan, std::unique_ptr<disk::FileWorker> worker);
  [[nodiscard]] Result<session::SessionRings> start_receiving(
      const session::DataPlan& plan, std::unique_ptr<disk::FileWorker> worker,
      std::vector<std::uint64_t> sizes);
  /// add_files makes the command that gives the engine of a receiving end its next volume: files
  /// of these sizes from index `first_file` on. No volume is over before the engine has all its
  /// blocks, so the session's bound (volumes_open_max) keeps the engine's.
  [[nodiscard]] Command add_files(std::uint32_t first_file, std::span<const std::uint64_t> sizes);
  /// stop joins engine, file and rate threads, in this order, and keeps what they counted.
  void stop() noexcept;
  /// follow_path opens on the new interface what was open on the last one: a port that is bound to
  /// one interface, and the sources of link facts. Error: that is not possible there, or not any
  /// more after the privileges were dropped.
  [[nodiscard]] Result<void> follow_path(const std::string& interface, const PathUpdate& path);
  /// fall_back switches to UDP if --io auto chose AF_XDP and no frame comes back over it.
  [[nodiscard]] Result<void> fall_back();
  void on_fact(const session::SessionFact& fact);
  void emit_progress() const { events_.emit(progress()); }
  /// end: see Account.
  [[nodiscard]] session::SessionEnd end(const session::SessionEnd& end);

  /// arrived is all that has come over the link `ifindex()` in the running session, in wire bytes
  /// as if each frame were full; nothing while none runs. offer bounds what its sender brings; 0:
  /// by --max-rate alone.
  [[nodiscard]] std::optional<Bytes> arrived() const;
  void offer(BytesPerSecond rate) noexcept;
  [[nodiscard]] int ifindex() const noexcept { return link_.ifindex; }
  /// arrival is what has arrived in the running session.
  [[nodiscard]] session::Arrival arrival() const;

  [[nodiscard]] Account& account() { return account_; }
  [[nodiscard]] SessionLinks& links() { return *links_; }
  [[nodiscard]] OpenPort& port() { return *port_; }

 private:
  // --- data_path_start.cpp
  [[nodiscard]] Result<void> start_control(const session::DataPlan& plan);
  [[nodiscard]] Result<void> start_trace(const session::DataPlan& plan);
  [[nodiscard]] Result<session::SessionRings> start_threads(
      std::unique_ptr<Engine> engine, std::unique_ptr<disk::FileWorker> worker);
  [[nodiscard]] run::SessionKeys keys_of(const session::DataPlan& plan) const;
  /// backend_of: the cipher is the one that both ends agreed on.
  [[nodiscard]] crypto::AeadBackend backend_of(const session::DataPlan& plan) const;

  // --- the link
  /// has_kernel_link: false on a link that DPDK owns; the kernel's interface there is that of the
  /// control connection.
  [[nodiscard]] bool has_kernel_link() const { return !dpdk_ || !dpdk_->interface().empty(); }
  [[nodiscard]] Result<Limits> limits_on(int ifindex) const;
  /// open_link_sources finds the sources of link facts below `path`; again if the path has changed
  /// to another one.
  [[nodiscard]] Result<void> open_link_sources(const PathUpdate& path);
  [[nodiscard]] Result<void> reopen_link_sources(const PathUpdate& path);
  void tell_port(const std::string& interface);
  void note_drops() noexcept;

  void tick();
  void say_single();  ///< reports once that fragments have ended
  [[nodiscard]] std::uint64_t bytes_arrived() const;
  [[nodiscard]] api::Progress progress() const;

  const Settings& settings_;
  const Events& events_;
  Account account_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<SessionLinks> links_;

  std::unique_ptr<DpdkHost> dpdk_;  // before port_, which goes first
  std::optional<OpenPort> port_;
  onehop::Endpoint peer_;  // of the running session
  PathUpdate path_;        // of its start, or the newest that has another interface
  struct {
    std::optional<IpAddress> address;
    unsigned ifindex = 0;  // 0: of no interface of the kernel
    bool has_fragments = false, is_small = false;
    unsigned user = 0;  // effective: another user could not reopen the port
  } opened_for_;
  struct {
    int ifindex = 0;  // of the path that sources and port are open on
    std::optional<link::LinkWatch> watch;
    // Sending; from the first session on, also when a session restarts.
    std::optional<link::InterfaceDrops> drops;
  } link_;

  std::unique_ptr<law::Controller> law_;
  std::unique_ptr<rate::RateLoop> rate_;
  // Sending only: the receiving end has no rate to set, and its thread in run() counts.
  std::jthread rate_thread_;
  std::optional<rate::TraceWriter> trace_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<disk::FileThread> file_thread_;
  std::vector<std::uint64_t> file_sizes_;  // receiving, of the first volume; of the others:
  std::deque<std::unique_ptr<protocol::FileVolume>> volumes_;
};

}  // namespace onehop::transfer
