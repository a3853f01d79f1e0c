// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/port/noack_keeper.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>

#include "control/link/nl80211_socket.hpp"
#include "control/transfer/port/noack_record.hpp"

namespace onehop::transfer {

namespace {

constexpr char set_verb = 's', clear_verb = 'c';

std::string attempt_on(const std::string& interface) {
  return "set the no-ack map of " + interface + " (--mac-noack)";
}

std::string remedy_for(const std::string& interface) {
  return "iw dev " + interface + " set noack_map 0x0000";
}

/// Answer: what travels back from the keeper, in one datagram.
struct Answer {
  ExitCode code = ExitCode::done;
  int errno_value = 0;
  char cause[160] = {};
  char hint[160] = {};
};

Answer answer_of(const Result<void>& result) {
  Answer answer;
  if (result) return answer;
  answer.code = result.error().code;
  answer.errno_value = result.error().errno_value;
  std::snprintf(answer.cause, sizeof answer.cause, "%s", result.error().cause.c_str());
  std::snprintf(answer.hint, sizeof answer.hint, "%s", result.error().hint.c_str());
  return answer;
}

/// Keeper is the child's state: whether the map is set, and the note of it.
class Keeper {
 public:
  Keeper(const NoAckKeeper::Config& config, link::Nl80211Socket& nl80211)
      : config_{config}, nl80211_{nl80211} {}

  Result<void> set() {
    if (record_) return success();
    // The note first: between the two a kill leaves a note without a map, which misleads less than
    // a map without a note.
    ONEHOP_TRY(record, NoAckRecord::make(config_.record_folder, config_.ifindex));
    record_ = std::move(record);
    const auto done =
        nl80211_.set_noack_map(config_.ifindex, static_cast<std::uint16_t>(1U << config_.tid));
    if (!done) forget();
    return done;
  }
  Result<void> clear() {
    if (!record_) return success();
    const auto done = nl80211_.set_noack_map(config_.ifindex, 0);
    const bool is_gone = !done && done.error().errno_value == ENODEV;  // and its map with it
    if (!done && !is_gone) return done;
    forget();
    return success();
  }

 private:
  void forget() {
    record_->remove();
    record_.reset();
  }
  const NoAckKeeper::Config& config_;
  link::Nl80211Socket& nl80211_;
  std::optional<NoAckRecord> record_;
};

[[noreturn]] void keep(const NoAckKeeper::Config& config, link::Nl80211Socket& nl80211,
                       const Fd& socket) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
    (void)std::signal(number, SIG_IGN);
  ::prctl(PR_SET_NAME, "onehop-noack", 0, 0, 0);
  Keeper keeper{config, nl80211};
  char verb = 0;
  for (;;) {
    const ssize_t got = ::recv(socket.get(), &verb, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // the sender has gone
    const Answer answer = answer_of(verb == set_verb ? keeper.set() : keeper.clear());
    (void)!::send(socket.get(), &answer, sizeof answer, MSG_NOSIGNAL);
  }
  if (const auto undone = keeper.clear(); !undone)
    fmt::print(stderr, "onehop send: undo the no-ack map of {}: {}. {}\n", config.interface,
               undone.error().cause, remedy_for(config.interface));
  ::_exit(0);
}

}  // namespace

Result<NoAckKeeper> NoAckKeeper::start(const Config& config) {
  const auto refuse = [&](Error error, const char* hint) {
    error.attempt = attempt_on(config.interface);
    if (hint != nullptr) error.hint = hint;
    return error;
  };
  auto nl80211 = link::Nl80211Socket::open();
  if (!nl80211) return refuse(nl80211.error(), "Leave --mac-noack out");
  if (const auto wifi = nl80211.value().interface(config.ifindex); !wifi)
    return refuse(
        {ExitCode::io_unavailable, {}, "it is not a Wi-Fi interface", {}, wifi.error().errno_value},
        "Leave --mac-noack out, or name the Wi-Fi interface with --iface");
  if (const auto probed = nl80211.value().set_noack_map(config.ifindex, 0); !probed)
    return refuse(probed.error(), nullptr);

  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error(ExitCode::internal_error,
                       "make a socket pair for the keeper of the no-ack map");
  Fd ours{ends[0]}, theirs{ends[1]};
  std::fflush(nullptr);  // what is buffered is ours to write
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(ExitCode::internal_error, "fork the keeper of the no-ack map");
  if (pid == 0) {
    ours = Fd{};
    keep(config, nl80211.value(), theirs);
  }
  return NoAckKeeper{config, std::move(ours), pid};
}

NoAckKeeper::NoAckKeeper(Config config, Fd socket, pid_t pid)
    : config_{std::move(config)}, socket_{std::move(socket)}, pid_{pid} {}
NoAckKeeper::NoAckKeeper(NoAckKeeper&& other) noexcept
    : config_{std::move(other.config_)},
      socket_{std::move(other.socket_)},
      pid_{std::exchange(other.pid_, 0)} {}

NoAckKeeper::~NoAckKeeper() {
  if (pid_ == 0) return;
  socket_ = Fd{};
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<void> NoAckKeeper::ask(char verb) {
  const std::string attempt = verb == set_verb ? attempt_on(config_.interface)
                                               : "undo the no-ack map of " + config_.interface;
  Answer answer;
  ssize_t got = ::send(socket_.get(), &verb, 1, MSG_NOSIGNAL);
  while (got > 0 && (got = ::recv(socket_.get(), &answer, sizeof answer, 0)) < 0 && errno == EINTR)
    got = 1;
  if (got != sizeof answer)
    return Error{ExitCode::internal_error, attempt, "the process that keeps it has ended",
                 "If it is set: " + remedy_for(config_.interface)};
  if (answer.code == ExitCode::done) return success();
  return Error{answer.code, attempt, answer.cause, answer.hint, answer.errno_value};
}

Result<void> NoAckKeeper::set() { return ask(set_verb); }
Result<void> NoAckKeeper::clear() { return ask(clear_verb); }

std::string noack_warning(const NoAckKeeper::Config& config) {
  return fmt::format(
      "--mac-noack: while data flows, frames of TID {} that leave {} are sent once, and their "
      "receiver's MAC acknowledges none: our data, which "
      "no other TID has, and what other programs send with that TID. What the air loses of it lazy "
      "repair has to send again, and the driver's rate "
      "control learns nothing. It is undone when this run ends, also when it is killed; a map that "
      "was set before is not restored. By hand: {}",
      config.tid, config.interface, remedy_for(config.interface));
}

Result<void> check_noack(bool is_repair_lazy, bool is_same_interface) {
  if (!is_repair_lazy)
    return Error{ExitCode::refused_by_peer, "send without the MAC's acknowledgements (--mac-noack)",
                 "the peer keeps to eager repair",
                 "Leave --mac-noack out, or start the receiver without --repair eager"};
  if (!is_same_interface)
    return Error{ExitCode::io_unavailable, "set the no-ack map (--mac-noack)",
                 "the way to the peer leads through another interface than when this run began",
                 "Run the same command again"};
  return success();
}

}  // namespace onehop::transfer
