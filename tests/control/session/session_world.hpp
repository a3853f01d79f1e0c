// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A world for session tests: real TCP and TLS on 127.0.0.1, and behind each session an engine
// that the test plays. The engine's side of the rings is driven by a timer on the same io_context,
// so a test has one thread and no races.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/session/channel/listener.hpp"
#include "control/session/send_session.hpp"
#include "control/session/volume.hpp"

namespace onehop::session::test {

namespace asio = boost::asio;

inline constexpr std::string_view right_code = "correct horse battery staple";
inline constexpr std::string_view wrong_code = "incorrect horse battery staple";
inline constexpr std::string_view other_code = "another horse battery staple";
/// As make_code() writes it, with check letters that fit.
inline constexpr std::string_view made_code = "abcd-efgh-ijkl-mnop-qrst-uvwx-yzpg";
inline constexpr std::string_view word_code = "abhor-jab-tuxedo",
                                  other_words = "ability-jack-twang";
[[nodiscard]] PairingCode code_of(std::string_view text);
/// some_digest is a digest that depends on file and block, of the width of XXH3.
[[nodiscard]] Digest some_digest(std::uint32_t file, std::uint64_t block);
[[nodiscard]] list::Manifest some_manifest(std::size_t files = 3,
                                           std::uint64_t size = 3 * block_bytes + 7);
/// short_limits are those of a test: hundreds of milliseconds where users have tens of seconds.
[[nodiscard]] SessionLimits short_limits();

/// EngineScript: what the engine that the test plays shall do.
struct EngineScript {
  bool proves_path = true;              ///< false: path_dead, as an engine says after 2 s
  bool stays_silent = false;            ///< never answers anything but finish
  std::size_t commands_per_turn = 64;   ///< small: a slow consumer
  std::optional<int> fails_with_errno;  ///< once data should flow; sending: the source changed (0),
                                        ///< receiving: write_error
  std::optional<EventKind> fails_with_event;  ///< once data should flow
  std::optional<FileOutcome>
      outcome;                    ///< receiving: of files that are compared; empty: none may be
  std::uint16_t name_number = 0;  ///< receiving: of the names that files get
  bool sends_blocks = true;
};

/// FakeEngine answers commands the way the engine loop and a file thread would.
class FakeEngine {
 public:
  FakeEngine(asio::io_context& io, Role role, const list::Manifest& manifest,
             std::vector<FileAction> actions, Held held, EngineScript script);
  [[nodiscard]] SessionRings rings() { return {&commands_, &events_, &file_}; }
  void stop() {
    timer_.cancel();
    is_stopped_ = true;
  }
  [[nodiscard]] const std::vector<CommandKind>& seen() const { return seen_; }
  /// was_stopped: the next checkpoint was to be the last.
  [[nodiscard]] bool was_stopped() const { return was_stopped_; }
  [[nodiscard]] std::size_t digests() const { return digests_; }
  [[nodiscard]] std::size_t skipped() const { return skipped_; }
  /// told: sending, the tags.
  [[nodiscard]] const std::vector<HeldBlock>& told() const { return told_; }
  [[nodiscard]] std::size_t path_updates() const { return path_updates_; }

 private:
  void turn();
  void obey(const Command& command);
  void obey(const FileCommand& command);
  void say(const Event& event) { unsaid_.push_back(event); }
  void say(EventKind kind) { say(Event{.kind = kind}); }
  void say(const FileEvent& event) { unsaid_of_file_.push_back(event); }
  void send_all();
  void send_file(std::uint32_t file);
  void tell_held();
  [[nodiscard]] bool is_held(std::uint32_t file) const {
    return file < held_.size() && !held_[file].empty();
  }
  void finish_if_complete(std::uint32_t file);

  asio::steady_timer timer_;
  Role role_;
  const list::Manifest manifest_;
  std::vector<FileAction> actions_;
  Held held_;
  EngineScript script_;
  SpscRing<Command> commands_{64};
  SpscRing<Event> events_{64};
  FileRings file_{64, 64};
  std::vector<Event> unsaid_;
  std::vector<FileEvent> unsaid_of_file_;
  std::vector<CommandKind> seen_;
  std::vector<HeldBlock> told_;
  std::vector<std::uint64_t> arrived_;
  std::vector<std::optional<Digest>> roots_;
  std::size_t digests_ = 0, skipped_ = 0, path_updates_ = 0;
  bool is_stopped_ = false, was_stopped_ = false;
};

/// Common parts of both hosts: what was seen.
template <class Host>
class HostBase : public Host {
 public:
  HostBase(asio::io_context& io, Role role) : io_{io}, role_{role} {}
  Result<DataOpened> open_data(const PeerLink& link) override {
    ++opened;
    peer_link = link;
    return DataOpened{data_port, frame_body_max, "fake"};
  }
  Result<SessionRings> start_data(const DataPlan& given) override {
    plan = given;
    engine.emplace(io_, role_, data_manifest(), data_actions(), data_held(), script);
    return engine->rings();
  }
  void stop_data() noexcept override {
    ++stopped;
    if (engine) engine->stop();
  }
  Result<void> on_path(const std::string&, const PathUpdate&) override {
    if (path_refusal) return *path_refusal;
    return success();
  }
  Result<void> on_introduced(const pair::Peer& device) override {
    if (!introduced) return Host::on_introduced(device);
    introduced(device);
    return success();
  }
  void on_fact(const SessionFact& fact) override {
    if (const auto* phase = std::get_if<Phase>(&fact)) phases.push_back(*phase);
    if (const auto* event = std::get_if<Event>(&fact)) events.push_back(event->kind);
    if (const auto* notice = std::get_if<Notice>(&fact)) notices.push_back(notice->text);
    if (const auto* report = std::get_if<Report>(&fact)) {
      done.push_back(report->done.file);
      outcomes.push_back(report->done);
    }
  }
  [[nodiscard]] virtual const list::Manifest& data_manifest() = 0;
  [[nodiscard]] virtual std::vector<FileAction> data_actions() = 0;
  [[nodiscard]] virtual Held data_held() = 0;

  EngineScript script;
  std::function<void(const pair::Peer&)> introduced;  ///< empty: it keeps no devices
  std::optional<Error> path_refusal;                  ///< of each other path
  std::uint16_t data_port = 40'001;
  std::uint32_t frame_body_max = 1428;
  int opened = 0, stopped = 0;
  PeerLink peer_link;
  std::optional<DataPlan> plan;
  std::optional<FakeEngine> engine;
  std::vector<Phase> phases;
  std::vector<std::uint32_t> done;
  std::vector<FileDone> outcomes;
  std::vector<EventKind> events;
  std::vector<std::string> notices;

 protected:
  asio::io_context& io_;
  Role role_;
};

class FakeSendHost : public HostBase<SendHost> {
 public:
  explicit FakeSendHost(asio::io_context& io, list::Manifest files = some_manifest())
      : HostBase{io, Role::sender}, files_{std::make_shared<list::Manifest>(std::move(files))} {}
  void next_volume(TakeVolume take) override { take(list::Volume{files_, true}); }
  KnownTree known() override { return {files_->files.size(), list::total_bytes(*files_), true}; }
  void on_accepted(const Accepted& given) override { accepted = given; }
  Result<std::shared_ptr<const list::Manifest>> offer_again(
      const std::vector<Unsettled>& volumes) override {
    settled = volumes.at(0).is_settled;
    if (volumes[0].unsent) why_unsent = volumes[0].unsent->why;
    if (why_unsent && !is_below_folder) return *why_unsent;
    auto left = std::make_shared<list::Manifest>();
    for (std::size_t i = 0; i < settled.size(); ++i)
      if (!settled[i]) left->files.push_back(files_->files[i]);
    if (!left->files.empty()) left->files[0].size += block_bytes;  // it grew
    files_ = std::move(left);
    return files_;
  }
  Result<SessionRings> start_data(const DataPlan& given) override {
    if (static_cast<int>(secrets.size()) >= changes) script.fails_with_errno.reset();
    secrets.emplace_back(given.secret.bytes().begin(), given.secret.bytes().end());
    return HostBase::start_data(given);
  }
  const list::Manifest& data_manifest() override { return *files_; }
  std::vector<FileAction> data_actions() override { return accepted->answer->actions; }
  Held data_held() override { return accepted->answer->held; }

  std::optional<Accepted> accepted;
  std::vector<bool> settled;                    ///< as offer_again() was told
  std::vector<std::vector<std::byte>> secrets;  ///< of each start of the data path
  int changes = 2;  ///< starts that end with a changed source, where the script says so
  bool is_below_folder = false;  ///< what cannot be sent is left out
  std::optional<Error> why_unsent;

 private:
  std::shared_ptr<const list::Manifest> files_;
};

class FakeRecvHost : public HostBase<RecvHost> {
 public:
  explicit FakeRecvHost(asio::io_context& io) : HostBase{io, Role::receiver} { data_port = 40'002; }
  void consider(std::shared_ptr<const OfferedVolume> given, const crypto::CompareKey&,
                Decide decide) override {
    offer = given;
    actions.assign(given->manifest->files.size(), FileAction::send);
    if (answer) return answer(*given, decide);
    decide(list::Answer{actions, {}, {}});
  }
  Result<Command> take_volume(const OfferedVolume&) override {
    return Command{.kind = CommandKind::add_files};
  }
  Arrival arrival() const override { return arrived; }
  Result<PairingCode> renew_code(const Error& why) override {
    burnt.push_back(why);
    return code_of(next_code);
  }
  void on_listening(const Endpoint& local) override {
    port = local.port;
    listening = local;
  }
  void on_rejected(const Endpoint&, const Error& why) override { rejections.push_back(why); }
  void on_session_end(const SessionEnd& end) override { ends.push_back(end); }
  const list::Manifest& data_manifest() override { return *offer->manifest; }
  std::vector<FileAction> data_actions() override { return actions; }
  Held data_held() override { return held; }

  std::function<void(const OfferedVolume&, const Decide&)> answer;
  std::shared_ptr<const OfferedVolume> offer;
  std::vector<FileAction> actions;
  Held held;
  std::uint16_t port = 0;
  Endpoint listening;
  Arrival arrived;
  std::string next_code{other_code};  ///< what renew_code() gives
  std::vector<Error> burnt;
  std::vector<Error> rejections;
  std::vector<SessionEnd> ends;
};

/// World: one receiver and one sender on one io_context.
struct World {
  asio::io_context io;
  FakeRecvHost recv_host{io};
  FakeSendHost send_host{io};
  RecvOptions recv_options;
  SendOptions send_options;
  std::shared_ptr<RecvServer> server;
  std::shared_ptr<SendSession> sender;
  std::optional<SessionEnd> recv_end, send_end;

  World();
  /// listen starts the receiver; the sender's options then know its port.
  void listen(std::string_view code = right_code);
  void send(std::string_view code = right_code);
  /// run turns the io_context until `is_over` or until `limit`; false: the limit.
  bool run(const std::function<bool()>& is_over, Nanos limit = 20s);
  bool run_to_end() {
    return run([&] { return recv_end.has_value() && send_end.has_value(); });
  }
  /// send_to_end gives the sender's code when both ends are over; internal_error if they never are.
  ExitCode send_to_end(std::string_view code = right_code) {
    send(code);
    return run_to_end() ? send_end->code : ExitCode::internal_error;
  }
};

}  // namespace onehop::session::test
