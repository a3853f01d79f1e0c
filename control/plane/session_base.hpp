// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SessionBase: what both sessions do alike once there is an authenticated channel. Internal to control/plane.
//
//   open_data ─▶ (offer, accept) ─▶ start_data ─▶ prove ─▶ turns of 5 ms ─▶ wind_down
//
// A turn: messages in, events in, path news in; then sleep until a message or path news come, or the poll is due. Plane thread only.
#pragma once

#include <boost/outcome/try.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "control/plane/channel.hpp"
#include "control/plane/engine_link.hpp"
#include "control/plane/news_wake.hpp"
#include "control/plane/path_follower.hpp"
#include "control/plane/session.hpp"

/// ONEHOP_CO_TRY is ONEHOP_TRY inside a coroutine.
#define ONEHOP_CO_TRY(...) BOOST_OUTCOME_CO_TRY(__VA_ARGS__)
#define ONEHOP_CO_TRYV(...) BOOST_OUTCOME_CO_TRYV(__VA_ARGS__)

namespace onehop::plane {

using Clock = std::chrono::steady_clock;

class SessionBase {
 public:
  /// run is the whole session; it has stopped the data path and closed the channel when it returns.
  [[nodiscard]] Task<SessionEnd> run();
  /// interrupt asks for an orderly end (exit code 7). Plane thread.
  void interrupt();
  /// end_with asks for an orderly end with `why`, which the peer is told. Plane thread.
  void end_with(Error why);

 protected:
  SessionBase(asio::io_context& io, SessionHost& host, const SessionLimits& limits, Role role);
  ~SessionBase() = default;

  /// converse is what this end says and hears, to the last message.
  [[nodiscard]] virtual Task<Result<void>> converse() = 0;
  /// receive gives the next message within `limit`. Everything that ends a session comes as an Error: the end of the
  /// channel, Refuse, Failure and Bye of the peer, an interrupt.
  [[nodiscard]] Task<Result<Message>> receive(Nanos limit, std::string step);
  /// expect is receive() for a message that must be a T.
  template <class T>
  [[nodiscard]] Task<Result<T>> expect(Nanos limit, std::string step) {
    ONEHOP_CO_TRY(message, co_await receive(limit, step));
    if (auto* wanted = std::get_if<T>(&message)) co_return std::move(*wanted);
    co_return violation("the peer sent " + std::string{name_of(type_of(message))} + " out of turn", step);
  }
  /// ended turns the end of the channel into an Error.
  [[nodiscard]] Error ended(const std::string& step) const;
  [[nodiscard]] Error violation(std::string cause, std::string step) const;
  /// verdict_of gives the Error of a Refuse, Failure or Bye, and nothing for other messages.
  [[nodiscard]] std::optional<Error> verdict_of(const Message& message, const std::string& step);

  [[nodiscard]] Result<void> open_data();
  /// DataTerms: what both ends agreed on for the data path.
  struct DataTerms {
    std::uint16_t port = 0;  ///< the peer's
    std::uint32_t frame_body_max_bytes = 0;
    bool is_repair_lazy = false;
    bool has_fragments = false;
    std::string peer_io{};
  };
  [[nodiscard]] Result<void> start_data(const crypto::ExporterContext& context, DataTerms terms, const std::string& interface,
                                        std::uint8_t dscp);
  /// prove has both ends see their full-size PINGs answered; the peer's port is up when it is called.
  [[nodiscard]] Task<Result<void>> prove();
  /// follow_path tells the host, and then the engine, of news about route, neighbour, MTU and link.
  [[nodiscard]] Result<void> follow_path();
  /// pause_for is `pause`, or less where the path wants to be looked at sooner.
  [[nodiscard]] Nanos pause_for(Nanos pause) const noexcept;
  /// fault_of turns an event that ends the session into an Error.
  [[nodiscard]] std::optional<Error> fault_of(const Event& event, const file::Manifest& manifest);
  /// wind_down ends a session in order: what arrived is made durable, the peer is told, the engine stops, the host
  /// joins its threads, the channel closes. Every step has a limit.
  [[nodiscard]] Task<void> wind_down(const Error* error);
  /// drop_data has the host join its threads, and forgets the data path; the engine has closed, or never ran.
  void drop_data();
  [[nodiscard]] Task<bool> wait_event(EventKind kind, std::optional<BlockKind> block, Nanos limit);
  void set_phase(Phase phase);
  /// report_done tells the host what became of a file. One that was kept makes the session end with `verification_failed`.
  void report_done(const FileDone& done, const file::Manifest& manifest);

  asio::io_context& io_;
  SessionHost& host_;
  const SessionLimits limits_;
  const Role role_;
  std::shared_ptr<Channel> channel_;
  std::optional<DataOpened> data_;
  bool has_fragments_ = false;
  std::optional<EngineLink> engine_;
  std::optional<PathFollower> path_;
  std::shared_ptr<NewsWake> news_;     ///< of the path; null as long as path_ is
  std::string peer_name_;              ///< for errors: address, or host and address
  std::uint16_t peer_data_port_ = 0;
  std::optional<Error> end_reason_;    ///< of an end that we were asked for
  bool is_interrupted_ = false;        ///< a step returns as soon as it can
  bool is_path_proven_ = false;
  bool has_peer_verdict_ = false;      ///< the peer ended the session: it need not be told
  bool is_file_side_dead_ = false;     ///< it failed: it will not answer a checkpoint

 private:
  [[nodiscard]] Error path_error() const;
  [[nodiscard]] Error kept_error() const;

  std::size_t kept_total_ = 0;         ///< offered files whose names keep something else
  std::string kept_name_;              ///< the first of them, for people
  bool is_kept_compared_ = false;      ///< and whether it was compared
};

}  // namespace onehop::plane
