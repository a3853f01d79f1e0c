// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What people read of phases and of the ends of a session.
#include <algorithm>
#include <array>
#include <cerrno>

#include "control/session/channel/tls.hpp"
#include "control/session/session_machine.hpp"
#include "engine/base/system/descriptors.hpp"
#include "engine/list/symlink_rule.hpp"
#include "engine/wire/feedback.hpp"

namespace onehop::session {

ExitCode exit_code_for_failure_of_peer(ExitCode code) noexcept {
  switch (code) {
    case ExitCode::peer_unreachable:
    case ExitCode::authentication_failed:
    case ExitCode::verification_failed:
    case ExitCode::interrupted:
    case ExitCode::timed_out: return code;
    default: return ExitCode::refused_by_peer;
  }
}

bool is_way_missing(const Error& error) noexcept {
  constexpr std::array errors{ENETDOWN, ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, ENODEV};
  return error.code == ExitCode::peer_unreachable ||
         std::ranges::find(errors, error.errno_value) != errors.end();
}

std::string name_fault_text(FileOutcome outcome, int name_fault) {
  if (outcome == FileOutcome::name_taken)
    return "another entry of this session has this name there";
  if (const auto text = list::symlink_fault_text(name_fault); !text.empty())
    return std::string{text};
  switch (name_fault) {
    case EEXIST: return "something else there has this name";
    case EISDIR: return "a folder there has this name";
    case ENOTDIR: return "something there is in the way that is no folder";
    case ELOOP: return "a symbolic link there is in the way, which is not followed";
    case EXDEV: return "its folder there is on another file system than the destination";
    case EACCES: return "the receiver has no right to it there";
    case EROFS: return "its folder there is on a file system that is read only";
    case EPERM:
      return "it is not permitted there: what is there may not be changed, or there is no such "
             "thing";
    case EBUSY: return "it is in use there: another file system is mounted on it";
    case EFBIG: return "it is larger than a file may be there";
    case EINVAL:
    case EILSEQ:
    case ENAMETOOLONG: return "the file system there refuses the name: " + errno_text(name_fault);
    default: return "it cannot be made there: " + errno_text(name_fault);
  }
}

Error burnt_error(unsigned failures, const char* hint) {
  return {ExitCode::authentication_failed, "authenticate a sender",
          "somebody tried " + std::to_string(failures) + " wrong codes, so this one is burnt",
          hint};
}

std::optional<Error> rejection_of(HandshakeFailure failure) {
  const std::string attempt = "authenticate a sender";
  switch (failure) {
    case HandshakeFailure::none: return std::nullopt;
    case HandshakeFailure::wrong_code:
      return Error{ExitCode::authentication_failed, attempt, "it does not have the same code",
                   "Give both ends the same code"};
    case HandshakeFailure::wrong_role:
      return Error{ExitCode::authentication_failed, attempt,
                   "it does not present itself as a sender", ""};
    case HandshakeFailure::not_onehop:
      return Error{ExitCode::authentication_failed, attempt, "it does not speak onehop", ""};
    case HandshakeFailure::timed_out:
      return Error{ExitCode::timed_out, attempt, "it did not finish the handshake in time", ""};
    case HandshakeFailure::unknown_device:
      return Error{ExitCode::authentication_failed, attempt,
                   "it comes as a paired device, and is none that is known here",
                   "Pair both: onehop pair at each"};
    case HandshakeFailure::changed_key:
      return Error{ExitCode::authentication_failed, attempt,
                   "it is a paired device by its secret, and shows another key",
                   "If it was set up anew: onehop peers forget it here, and pair again"};
    case HandshakeFailure::own_key_refused:
      return Error{ExitCode::authentication_failed, attempt, "it knows this device by another key",
                   "There: onehop peers forget this device, and pair again"};
    case HandshakeFailure::vanished: break;
  }
  return Error{ExitCode::interrupted, attempt, "it closed the connection during the handshake", ""};
}

namespace {

constexpr const char* digest_hint =
    "Run the same command again; if it persists, suspect memory or disk of either machine";
constexpr const char* disk_hint =
    "What arrived was kept: look at the disk there, then run the same command again";

struct FailureText {
  const char* cause;
  const char* hint = "";
};

FailureText text_of(FileFailure failure) {
  switch (failure) {
    case FileFailure::read_error:
      return {"read", "Look at the disk that it is on, then run the same command again"};
    case FileFailure::source_changed:
      return {"it changed while it was being sent, and again when it was sent anew",
              "Wait until nothing writes to it, then send it again"};
    case FileFailure::source_vanished:
      return {"it vanished while it was being sent", "Put it back, or send the others without it"};
    case FileFailure::source_length:
      return {"it holds more or less than its size says",
              "Files of /proc and /sys are such: copy it with cat, then send the copy"};
    case FileFailure::exists:
      return {"a file of this name exists",
              "It came up meanwhile: move it away, or choose --on-exist, then run the same command "
              "again"};
    case FileFailure::differs:
      return {"a file of this name and size with other content is there",
              "Move it away, or choose --on-exist rename or overwrite, then run the same command "
              "again"};
    case FileFailure::digest_mismatch:
      return {"a block's digest differs from what was sent", digest_hint};
    case FileFailure::root_mismatch:
      return {"the file's digest differs from what was sent", digest_hint};
    case FileFailure::protocol: return {"the peer announced what cannot be"};
    case FileFailure::write_error: return {"write", disk_hint};
    case FileFailure::sync_error: return {"write to the disk", disk_hint};
    case FileFailure::rename_error: return {"rename", disk_hint};
    case FileFailure::none: break;
  }
  return {"failed", disk_hint};
}

}  // namespace

Error file_error(const FileFailed& failed, const std::string& name) {
  const auto [file, failure, errno_value] = failed;
  const FailureText text = text_of(failure);
  Error error{ExitCode::local_file_error, "transfer " + name, text.cause, text.hint, errno_value};
  if (failure == FileFailure::protocol) error.code = ExitCode::internal_error;
  if (failure == FileFailure::digest_mismatch || failure == FileFailure::root_mismatch)
    error.code = ExitCode::verification_failed;
  if (error.code != ExitCode::local_file_error) return error;
  if (has_run_out(errno_value)) return ran_out(std::move(error.attempt), errno_value);
  if (errno_value != 0) error.cause += ": " + errno_text(errno_value);
  if (errno_value == ENOSPC || errno_value == EDQUOT)
    error.hint = "Free space there, then run the same command with --on-exist resume";
  return error;
}

SessionEnd SessionMachine::end() const {
  if (error_)
    return {.code = error_->code,
            .error = *error_,
            .is_peer_interrupted = has_peer_verdict_ && error_->code == ExitCode::interrupted};
  // One code at both ends: what has the name does not have the announced digest, as far as anybody
  // knows.
  if (missing_.kept.total > 0)
    return end_of(ExitCode::verification_failed, missing_.kept,
                  role_ == Role::sender ? "Ask for --on-exist rename or overwrite there"
                                        : "Choose --on-exist rename or overwrite");
  if (missing_.unnamed.total > 0)
    return end_of(ExitCode::partly_done, missing_.unnamed,
                  "All else arrived. --report FILE lists all of them; where it is the name, give "
                  "it another one at the sender, or receive into another file system");
  return {.is_complete = true};
}

SessionEnd SessionMachine::end_of(ExitCode code, const Tally& tally, const char* hint) const {
  std::string cause = tally.first;
  if (tally.total > 1) cause += " (and " + std::to_string(tally.total - 1) + " more)";
  const char* attempt = role_ == Role::sender ? "send every file to " : "receive every file from ";
  return {.code = code,
          .error = {code, attempt + peer_name_, std::move(cause), hint},
          .is_complete = true};
}

Error SessionMachine::path_error() const {
  return {ExitCode::peer_unreachable,
          "prove the data path to " + peer_name_ + ", UDP port " + std::to_string(path_.peer_port) +
              " over " + path_.interface,
          path_.port_elsewhere == 0
              ? "no frame of full size came back"
              : "its frames come from UDP port " + std::to_string(path_.port_elsewhere) +
                    ": an address translation (NAT) lies between, and the " + data_->io +
                    " port could not follow it there",
          "let UDP ports " + std::to_string(path_.peer_port) + " (there) and " +
              std::to_string(data_->data_port) + " (here) through the firewalls, check that " +
              path_.interface + " is the right interface (--iface) and that both MTUs are real" +
              (data_->io != "udp" ? ", or use --io udp: there are drivers that lose what " +
                                        data_->io + " sends (onehop doctor names some)"
                                  : "") +
              (path_.has_fragments
                   ? "; leave out --fragment, or wait 30 s: a reassembly memory that is "
                     "full takes no fragment"
                   : "")};
}

std::optional<Error> SessionMachine::fault_of(const Event& event) {
  const std::string step = "transfer files with " + peer_name_;
  const int errno_value = static_cast<int>(event.value);
  switch (event.kind) {
    case EventKind::feedback_silent:
      if (!path_.is_link_up)
        return Error{ExitCode::timed_out, step,
                     path_.interface + " was down or gone for the session's limit",
                     "Bring it up. " + again_hint()};
      return Error{ExitCode::timed_out, step,
                   "nothing came back on the data path for the session's limit",
                   "Look at the link and at the other machine"};
    case EventKind::stalled:
      return Error{
          ExitCode::timed_out, step,
          "no file data has come through for the session's limit, although " + peer_name_ +
              " still answers",
          "Check that both MTUs are real, and the disk of the receiving machine. " + again_hint()};
    case EventKind::protocol_error:
      return violation("the peer broke the data protocol: " +
                       std::string{wire::to_string(static_cast<wire::Violation>(event.value))});
    case EventKind::peer_moved:
      learn(Notice{"frames of " + peer_name_ + " come from UDP port " +
                   std::to_string(event.value) + " and not from " +
                   std::to_string(path_.peer_port) +
                   ", as behind an address translation (NAT): it answered there"});
      path_.peer_port = static_cast<std::uint16_t>(event.value);
      path_.port_elsewhere = 0;
      return std::nullopt;
    case EventKind::heard_elsewhere:
      path_.port_elsewhere = static_cast<std::uint16_t>(event.value);
      return std::nullopt;
    case EventKind::port_failed:
      return Error{ExitCode::io_unavailable, "use the " + data_->io + " port",
                   errno_text(errno_value), again_hint(), errno_value};
    case EventKind::port_refused:
      learn(Notice{"this machine refuses the frames that we send to " + peer_name_ + ", UDP port " +
                   std::to_string(path_.peer_port) + " (" + errno_text(errno_value) +
                   "): a firewall rule for its output (`nft list ruleset`), an IPsec policy "
                   "or a prohibit route. Let them through; the transfer goes on then"});
      return std::nullopt;
    case EventKind::closed:
      return Error{ExitCode::internal_error, step, "the engine stopped on its own", ""};
    default: return std::nullopt;
  }
}

std::optional<Error> SessionMachine::fault_of(const FileEvent& event) {
  const auto* const failed = std::get_if<FileFailed>(&event);
  if (failed == nullptr) return std::nullopt;
  return file_error(*failed, name_of_file(failed->file));
}

}  // namespace onehop::session
