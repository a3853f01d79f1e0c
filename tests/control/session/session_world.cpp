// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tests/control/session/session_world.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace onehop::session::test {

PairingCode code_of(std::string_view text) {
  auto code = PairingCode::from_text(text);
  if (!code) throw std::runtime_error{code.error().message()};
  return code.value();
}

Digest some_digest(std::uint32_t file, std::uint64_t block) {
  Digest digest{};
  digest[0] = static_cast<std::byte>(file + 1);
  digest[1] = static_cast<std::byte>(block + 1);
  digest[15] = std::byte{0xaa};
  return digest;
}

list::Manifest some_manifest(std::size_t files, std::uint64_t size) {
  list::Manifest manifest;
  for (std::size_t i = 0; i < files; ++i)
    manifest.files.push_back(
        {"folder/file-" + std::to_string(i), i == 0 ? 0 : size, 0644, 1'700'000'000'000'000'000});
  return manifest;
}

SessionLimits short_limits() {
  SessionLimits limits;
  limits.connect = 500ms;
  limits.handshake = 2s;
  limits.guess_pause = 50ms;
  limits.step = 3s;
  limits.offer = 3s;
  limits.consider = 5s;
  limits.prove = 3s;
  limits.silent = 8s;
  limits.keep_alive = 500ms;
  limits.checkpoint = 3s;
  limits.engine_stop = 3s;
  return limits;
}

FakeEngine::FakeEngine(asio::io_context& io, Role role, const list::Manifest& manifest,
                       std::vector<FileAction> actions, Claims claims, EngineScript script)
    : timer_{io},
      role_{role},
      manifest_{manifest},
      actions_{std::move(actions)},
      claims_{std::move(claims)},
      script_{script},
      arrived_(manifest_.files.size()) {
  turn();
}

void FakeEngine::turn() {
  if (is_stopped_) return;
  Command command;
  for (std::size_t i = 0; i < script_.commands_per_turn && commands_.pop(command); ++i)
    obey(command);
  while (!unsaid_.empty() && events_.push(unsaid_.front())) unsaid_.erase(unsaid_.begin());
  timer_.expires_after(1ms);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) turn();
  });
}

void FakeEngine::say(const Event& event) { unsaid_.push_back(event); }

void FakeEngine::obey(const Command& command) {
  seen_.push_back(command.kind);
  if (command.kind == CommandKind::finish) return say(EventKind::closed);
  if (command.kind == CommandKind::path_update) ++path_updates_;
  if (script_.stays_silent) return;
  switch (command.kind) {
    case CommandKind::prove_path:
      return say(Event{.kind = script_.proves_path ? EventKind::path_proven : EventKind::path_dead,
                       .value = 1472});
    case CommandKind::checkpoint: return say(FileMessageKind::checkpointed, 0);
    case CommandKind::start:
      if (script_.fails_with_event) return say(*script_.fails_with_event);
      if (script_.fails_with_errno) {
        if (role_ == Role::receiver)
          return say(FileMessageKind::failed, 1, FileFailure::write_error,
                     *script_.fails_with_errno);
        const std::uint32_t changed =
            manifest_.files.size() == 3 ? 1 : 0;  // the same file in a second offer
        if (changed == 1) send_file(0);
        const int errno_value = *script_.fails_with_errno;
        return say(FileMessageKind::failed, changed,
                   errno_value == 0 ? FileFailure::source_changed : FileFailure::read_error,
                   errno_value);
      }
      if (role_ == Role::sender && script_.sends_blocks) send_all();
      return;
    case CommandKind::file_message:
      if (command.block.kind == FileMessageKind::root) return on_root(command.block);
      if (command.block.kind == FileMessageKind::abort)
        return say(FileMessageKind::checkpointed, 0);
      ++digests_;
      if (command.block.kind == FileMessageKind::skipped) ++skipped_;
      ++arrived_.at(command.block.file);
      return;
    default: return;
  }
}

// Every block of every wanted file is "sent", and each file's root follows.
void FakeEngine::send_all() {
  say(EventKind::first_data);
  for (std::uint32_t file = 0; file < manifest_.files.size(); ++file)
    if (has_digests(actions_[file])) send_file(file);
  say(EventKind::all_arrived);
}

void FakeEngine::send_file(std::uint32_t file) {
  for (std::uint64_t block = 0; block < blocks_of(manifest_.files[file].size); ++block) {
    const bool is_claimed =
        actions_[file] == FileAction::compare ||
        (file < claims_.size() &&
         std::ranges::find(claims_[file], block, &Claim::block) != claims_[file].end());
    Event event{.kind = is_claimed ? EventKind::file_message : EventKind::block_sent};
    if (is_claimed) event.block.kind = FileMessageKind::skipped;
    event.block.file = file;
    event.block.offset = block * block_bytes;
    event.block.digest = some_digest(file, block);
    say(event);
  }
  Event event{.kind = EventKind::file_message};
  event.block.kind = FileMessageKind::root;
  event.block.file = file;
  event.block.digest = some_digest(file, 200);
  say(event);
}

void FakeEngine::say(FileMessageKind kind, std::uint32_t file, FileFailure failure, int status) {
  Event event{.kind = EventKind::file_message};
  event.block.kind = kind;
  event.block.file = file;
  event.block.failure = failure;
  event.block.status = status;
  say(event);
}

void FakeEngine::on_root(const BlockRef& block) {
  // As a file thread would: a file is done when its root agrees and a digest of each block came.
  if (arrived_.at(block.file) != blocks_of(manifest_.files[block.file].size)) return;
  Event event{.kind = EventKind::file_message, .block = block};
  event.block.kind = FileMessageKind::file_done;
  if (actions_[block.file] == FileAction::compare)
    event.block.outcome = script_.outcome.value();
  else
    event.block.status = script_.name_number;
  say(event);
}

World::World() {
  recv_options.address = "127.0.0.1";
  recv_options.port = 0;
  recv_options.is_once = true;
  recv_options.limits = short_limits();
  send_options.host = "127.0.0.1";
  send_options.limits = short_limits();
}

void World::listen(std::string_view code) {
  server = make_recv_server(io, recv_options, code_of(code), recv_host);
  auto started = server->start([this](const SessionEnd& end) { recv_end = end; });
  if (!started) throw std::runtime_error{started.error().message()};
  send_options.port = recv_host.port;
}

void World::send(std::string_view code) {
  sender = std::make_shared<SendSession>(io, send_options, code_of(code), send_host);
  sender->start([this](const SessionEnd& end) { send_end = end; });
}

bool World::run(const std::function<bool()>& is_over, Nanos limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  io.restart();
  while (!is_over()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    io.run_one_for(std::chrono::milliseconds{20});
    if (io.stopped()) io.restart();
  }
  return true;
}

}  // namespace onehop::session::test
