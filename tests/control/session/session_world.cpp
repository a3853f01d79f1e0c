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
                       std::vector<FileAction> actions, Held held, EngineScript script)
    : timer_{io},
      role_{role},
      manifest_{manifest},
      actions_{std::move(actions)},
      held_{std::move(held)},
      script_{script},
      arrived_(manifest_.files.size()),
      roots_(manifest_.files.size()) {
  turn();
}

void FakeEngine::turn() {
  if (is_stopped_) return;
  Command command;
  FileCommand file_command;
  for (std::size_t i = 0; i < script_.commands_per_turn && commands_.pop(command); ++i)
    obey(command);
  for (std::size_t i = 0; i < script_.commands_per_turn && file_.commands.pop(file_command); ++i)
    obey(file_command);
  while (!unsaid_.empty() && events_.push(unsaid_.front())) unsaid_.erase(unsaid_.begin());
  while (!unsaid_of_file_.empty() && file_.events.push(unsaid_of_file_.front()))
    unsaid_of_file_.erase(unsaid_of_file_.begin());
  timer_.expires_after(1ms);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) turn();
  });
}

void FakeEngine::obey(const Command& command) {
  seen_.push_back(command.kind);
  if (command.kind == CommandKind::finish) return say(EventKind::closed);
  if (command.kind == CommandKind::path_update) ++path_updates_;
  if (script_.stays_silent) return;
  switch (command.kind) {
    case CommandKind::prove_path:
      return say(Event{.kind = script_.proves_path ? EventKind::path_proven : EventKind::path_dead,
                       .value = 1472});
    case CommandKind::checkpoint:
      if (role_ == Role::receiver) say(CheckpointMade{});
      return;
    case CommandKind::start:
      if (script_.fails_with_event) return say(*script_.fails_with_event);
      if (script_.fails_with_errno) {
        if (role_ == Role::receiver)
          return say(FileFailed{1, FileFailure::write_error, *script_.fails_with_errno});
        const std::uint32_t changed =
            manifest_.files.size() == 3 ? 1 : 0;  // the same file in a second offer
        if (changed == 1) send_file(0);
        const int errno_value = *script_.fails_with_errno;
        return say(FileFailed{
            changed, errno_value == 0 ? FileFailure::source_changed : FileFailure::read_error,
            errno_value});
      }
      if (role_ == Role::receiver) return tell_held();
      if (script_.sends_blocks) send_all();
      return;
    case CommandKind::skip_block:
      ++digests_, ++skipped_;
      ++arrived_.at(command.block.file);
      return finish_if_complete(command.block.file);
    default: return;
  }
}

void FakeEngine::obey(const FileCommand& command) {
  if (script_.stays_silent) return;
  was_stopped_ = was_stopped_ || std::holds_alternative<EndAtCheckpoint>(command);
  if (const auto* announced = std::get_if<AnnouncedDigest>(&command)) {
    ++digests_;
    ++arrived_.at(announced->file);
    finish_if_complete(announced->file);
  }
  if (const auto* announced = std::get_if<AnnouncedRoot>(&command)) {
    roots_.at(announced->file) = announced->root;
    finish_if_complete(announced->file);
  }
  if (const auto* held = std::get_if<HeldBlock>(&command)) told_.push_back(*held);
  if (const auto* end = std::get_if<HeldEnd>(&command)) send_file(end->file);
}

void FakeEngine::tell_held() {
  for (std::uint32_t file = 0; file < held_.size(); ++file) {
    for (const BlockRun& run : held_[file])
      for (std::uint64_t block = run.first; block < run.end; ++block)
        say(HeldBlock{file, block, some_digest(file, block)});
    if (is_held(file)) say(HeldEnd{file});
  }
}

// Every block of every wanted file is "sent", and each file's root follows. What the receiver holds
// something of waits until that is told.
void FakeEngine::send_all() {
  say(EventKind::first_data);
  for (std::uint32_t file = 0; file < manifest_.files.size(); ++file)
    if (has_digests(actions_[file]) && !is_held(file)) send_file(file);
  say(EventKind::all_arrived);
}

void FakeEngine::send_file(std::uint32_t file) {
  for (std::uint64_t block = 0; block < blocks_of(manifest_.files[file].size); ++block) {
    const bool is_claimed = actions_[file] == FileAction::compare ||
                            std::ranges::any_of(told_, [&](const HeldBlock& held) {
                              return held.file == file && held.block == block;
                            });
    Event event{.kind = is_claimed ? EventKind::block_skipped : EventKind::block_sent};
    if (is_claimed) event.block.kind = BlockKind::skipped;
    event.block.file = file;
    event.block.offset = block * block_bytes;
    event.block.digest = some_digest(file, block);
    say(event);
  }
  say(RootRead{file, some_digest(file, 200)});
}

// As a file thread would: a file is done when its root agrees and a digest of each block came.
void FakeEngine::finish_if_complete(std::uint32_t file) {
  if (!roots_[file] || arrived_[file] != blocks_of(manifest_.files[file].size)) return;
  FileFinished done{.file = file, .root = *roots_[file]};
  if (actions_[file] == FileAction::compare)
    done.outcome = script_.outcome.value();
  else
    done.name_number = script_.name_number;
  say(done);
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
