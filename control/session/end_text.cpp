// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What people read of phases and of the ends of a session.
#include <array>
#include <cerrno>

#include "control/session/session_machine.hpp"
#include "control/session/tls.hpp"
#include "engine/base/descriptors.hpp"

namespace onehop::session {

std::string_view name_of(Phase phase) noexcept {
  static constexpr std::array<std::string_view, 7> names{
      "connecting",   "authenticating", "waiting_for_accept",
      "proving_path", "transferring",   "verifying",
      "done"};
  return names[static_cast<std::size_t>(phase)];
}

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

std::string name_fault_text(FileOutcome outcome, int name_fault) {
  if (outcome == FileOutcome::name_taken)
    return "another entry of this session has this name there";
  return "the file system there refuses the name: " + errno_text(name_fault);
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

Error file_error(const BlockRef& block, const std::string& name) {
  const FailureText text = text_of(block.failure);
  Error error{ExitCode::local_file_error, "transfer " + name, text.cause, text.hint, block.status};
  if (block.failure == FileFailure::protocol) error.code = ExitCode::internal_error;
  if (block.failure == FileFailure::digest_mismatch || block.failure == FileFailure::root_mismatch)
    error.code = ExitCode::verification_failed;
  if (error.code != ExitCode::local_file_error) return error;
  if (has_run_out(block.status)) return ran_out(std::move(error.attempt), block.status);
  if (block.status != 0) error.cause += ": " + errno_text(block.status);
  if (block.status == ENOSPC || block.status == EDQUOT)
    error.hint = "Free space there, then run the same command with --on-exist resume";
  return error;
}

SessionEnd SessionMachine::end() const {
  if (error_) return {.code = error_->code, .error = *error_};
  // One code at both ends: what has the name does not have the announced digest, as far as anybody
  // knows.
  if (kept_.total > 0)
    return end_of(ExitCode::verification_failed, kept_,
                  role_ == Role::sender ? "Ask for --on-exist rename or overwrite there"
                                        : "Choose --on-exist rename or overwrite");
  if (unnamed_.total > 0)
    return end_of(ExitCode::partly_done, unnamed_,
                  "All else arrived. Rename it at the sender, or receive into another file system; "
                  "--report FILE lists all of them");
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

}  // namespace onehop::session
