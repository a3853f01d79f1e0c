// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Job: what the two hosts of a session share: port, links, threads, progress and the account at the end.
//
//   plane thread (this one): session ─▶ Job ─▶ starts engine thread, control thread, file thread; joins them at the end
//
// The plane thread calls all of it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "control/law/make_law.hpp"
#include "control/link/interface_drops.hpp"
#include "control/link/link_watch.hpp"
#include "control/link/qdisc_source.hpp"
#include "control/plane/path_follower.hpp"
#include "control/plane/session.hpp"
#include "control/rate/rate_thread.hpp"
#include "control/rate/trace.hpp"
#include "engine/file/file_io.hpp"
#include "engine/file/file_thread.hpp"
#include "tools/onehop/engine.hpp"
#include "tools/onehop/onehop_port.hpp"
#include "tools/onehop/options.hpp"
#include "tools/onehop/progress.hpp"
#include "tools/onehop/rate_memory.hpp"
#include "tools/onehop/report.hpp"
#include "tools/onehop/usage.hpp"
#include "tools/watch/publisher.hpp"
#include "tools/watch/recent_rate.hpp"
#include "tools/watch/telemetry.hpp"

namespace onehop::tool {

class Job {
 public:
  Job(boost::asio::io_context& io, const CommonOptions& options, Reporter& reporter, std::string role);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // --- before the session
  /// open_dpdk starts DPDK for --io dpdk, where it has not been; `local` where it is known by now.
  [[nodiscard]] Result<void> open_dpdk(const std::optional<sockaddr_storage>& local);
  /// open_port opens the data port for the way to or from `local`; a second call for the same keeps the port.
  [[nodiscard]] Result<void> open_port(const std::string& interface, const plane::IpAddress& local, std::uint16_t port,
                                       bool has_fragments);
  /// keep_port: the privileges are gone, so a port that is closed now could not be opened again.
  void keep_port() noexcept { is_port_last_ = true; }
  /// opened describes the port to the peer.
  [[nodiscard]] Result<plane::DataOpened> opened(const plane::RouteInfo& route) const;

  // --- observers on this machine
  /// let_watch lets `onehop watch` see this process, from now on; once, and as the user that it keeps. A machine without a
  /// place for the socket is no reason not to transfer: it is said.
  void let_watch();
  /// end_watch ends what keeps the io_context busy for observers. Who watches already still hears end().
  void end_watch();

  // --- the session's calls
  /// start_control starts the control thread for `plan`'s path, or on the receiving end the counting.
  [[nodiscard]] Result<void> start_control(const plane::DataPlan& plan, bool is_sending);
  /// open_link_sources finds what can be read of the link below `path`; again where the path has changed to another one.
  [[nodiscard]] Result<void> open_link_sources(const PathUpdate& path);
  /// follow_path opens on the new interface what an earlier one had: a port of that interface alone, and what is read of the link. An
  /// Error: it cannot be had there, or no longer, because the privileges are gone.
  [[nodiscard]] Result<void> follow_path(const std::string& interface, const PathUpdate& path);
  [[nodiscard]] run::GateKeys keys_of(const plane::DataPlan& plan, bool is_sending) const;
  [[nodiscard]] Result<void> start_engine(std::unique_ptr<Engine> engine);
  /// start_sending starts all threads of a session whose blocks `worker` makes; start_receiving of one whose blocks it
  /// takes, for files of these sizes.
  [[nodiscard]] Result<plane::EngineRings> start_sending(const plane::DataPlan& plan, std::unique_ptr<file::FileWorker> worker);
  [[nodiscard]] Result<plane::EngineRings> start_receiving(const plane::DataPlan& plan, std::unique_ptr<file::FileWorker> worker,
                                                           std::vector<std::uint64_t> sizes);
  /// stop joins engine, file and control threads, in this order, and keeps what they counted.
  void stop() noexcept;
  void on_phase(plane::Phase phase);
  void on_first_data(Instant at);
  void on_all_arrived(Instant at) { all_arrived_at_ = at; }  ///< sending
  /// set_place: between whom the session is, and into which folder of the receiver the files go, for people.
  void set_place(std::string peer, const std::string& folder);
  void on_file_done(const file::ManifestEntry& entry, const plane::FileDone& done);

  /// arrival is what the receiving end has of the session under way.
  [[nodiscard]] plane::Arrival arrival() const;
  /// forget_session: the next one of a receiver that goes on counts from nothing.
  void forget_session();
  /// end prints the end event and the summary.
  void end(const plane::SessionEnd& end);

  [[nodiscard]] SessionLinks& links() { return *links_; }
  [[nodiscard]] OpenPort& port() { return *port_; }
  [[nodiscard]] Reporter& reporter() { return reporter_; }
  [[nodiscard]] const CommonOptions& options() const { return options_; }
  [[nodiscard]] std::size_t frame_bytes() const { return facts_.frame_bytes; }
  /// has_kernel_link: false on a link that DPDK owns whole, where the kernel's interface is that of the control connection.
  [[nodiscard]] bool has_kernel_link() const { return !dpdk_ || !dpdk_->interface().empty(); }
  /// has_data: data of this session has flowed, so there is something that an interrupt keeps.
  [[nodiscard]] bool has_data() const { return first_data_at_ != Instant{}; }
  void set_bytes_expected(std::uint64_t bytes) { bytes_expected_ = bytes; }
  /// add_bytes_skipped: of the bytes expected, these were there already (resume).
  void add_bytes_skipped(std::uint64_t bytes) { facts_.bytes_skipped_total += bytes; }

 private:
  [[nodiscard]] Result<Limits> limits_on(int ifindex) const;
  void tick();
  void tick_rate(Instant now);  ///< where it has no thread of its own: at the end that receives
  [[nodiscard]] Result<void> set_file_thread(std::unique_ptr<file::FileWorker> worker);
  void close_trace();
  /// set_start gives the law what an earlier run reached on this path, and notes the path for remember_rate().
  void set_start(const plane::DataPlan& plan, law::SafeRangeParams& params);
  void remember_rate();
  /// note_drops keeps what the interface has dropped while we sent; nothing where it cannot be told.
  void note_drops() noexcept;
  [[nodiscard]] std::uint64_t bytes_arrived() const;
  [[nodiscard]] watch::Telemetry telemetry() const;
  void emit_interval(Instant now);
  void say_notices(const RateState& state);
  /// say_single tells once that fragments have ended.
  void say_single();

  boost::asio::io_context& io_;
  const CommonOptions& options_;
  Reporter& reporter_;
  RunFacts facts_;
  UsageMeter usage_;
  Progress progress_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<SessionLinks> links_;
  std::unique_ptr<DpdkHost> dpdk_;  // before port_, which goes first
  std::optional<OpenPort> port_;
  std::optional<plane::IpAddress> port_address_;
  bool has_fragments_ = false;  // as the port was opened
  bool is_port_last_ = false;
  int ifindex_ = 0;  // of the path that sources and port are open on
  std::unique_ptr<law::Controller> law_;
  std::unique_ptr<rate::RateLoop> rate_;
  std::unique_ptr<rate::RateThread> rate_thread_;  // sending only: the receiving end has no rate to set, this thread counts
  std::optional<link::QdiscSource> qdisc_;
  std::optional<link::LinkWatch> link_;
  std::optional<link::InterfaceDrops> drops_;  // sending; from the first session on, also where one starts once more
  std::optional<rate::TraceWriter> trace_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<file::FileThread> file_thread_;
  std::vector<std::uint64_t> file_sizes_;  // receiving
  plane::Phase phase_ = plane::Phase::connecting;
  RateState last_state_;
  std::uint64_t bytes_expected_ = 0;
  std::uint32_t notices_said_ = 0;
  Instant viewed_at_{};
  Instant first_data_at_{};
  Instant all_arrived_at_{};
  std::optional<RememberedRate> path_used_;  // sending: whose rate is worth remembering
  Instant ended_at_{};
  Instant interval_at_{};
  std::uint64_t interval_bytes_ = 0;
  watch::RecentRate recent_;
  std::unique_ptr<watch::Publisher> publisher_;
};

}  // namespace onehop::tool
