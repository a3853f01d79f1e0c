// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/session_shell.hpp"

#include <fcntl.h>
#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "engine/base/memory.hpp"
#include "engine/base/time.hpp"

namespace onehop::session {

void SessionShell::interrupt() {
  if (session_ == nullptr) return;
  session_->interrupt();
  channel_->wake();
}

void SessionShell::end_with(Error why) {
  if (session_ == nullptr) return;
  session_->end_with(std::move(why));
  channel_->wake();
}

Task<SessionEnd> SessionShell::run(SessionMachine& machine) {
  session_ = &machine;
  machine.start(monotonic_now());
  for (;;) {
    try {
      turn();
    } catch (const std::bad_alloc& refused) {
      // The peer must hear of it: it would wait for us.
      machine.fail(monotonic_now(), memory_error("run the session", refused));
    }
    if (machine.is_over()) break;
    co_await wait();
  }
  perform_all();
  co_await channel_->close();
  session_ = nullptr;
  if (!machine.has_error()) host_.on_fact(Phase::done);
  co_return machine.end();
}

void SessionShell::turn() {
  perform_all();
  take_answer();
  perform_all();
  if (postponed_ && monotonic_now() >= postponed_until_) {
    Action again = *std::exchange(postponed_, std::nullopt);
    if (!session_->is_winding_down()) perform(again);
    perform_all();
  }
  if (rings_ && session_->follows_path()) {
    if (!options_.interface.empty())
      if (const auto follows = channel_->follow_device(options_.interface); !follows)
        session_->fail(monotonic_now(), follows.error());
    while (path_) {  // what follows from an update may stop the data path
      const auto update = path_->poll(monotonic_now());
      if (!update) break;
      session_->on_path(path_->route().link.name, *update);
      perform_all();
    }
    if (path_) watch_path();
  }
  // While the peer does not read its connection, the event ring fills and the engine waits for us.
  // Not at the end: we wait for the engine, which says by an event that it has closed.
  const auto can_take_event = [this] {
    return session_->is_winding_down() || channel_->unsent_bytes() < unsent_bytes_max;
  };
  session_->note_heard(channel_->last_received_at());
  Event event;
  while (rings_ && can_take_event() && rings_->events->pop(event)) {
    if (event.kind == EventKind::peer_heard) channel_->note_life();
    session_->on_event(monotonic_now(), event);
    host_.on_fact(event);
    perform_all();
  }
  FileEvent file_event;
  while (rings_ && session_->can_take_file_event() && can_take_event() &&
         rings_->file->events.pop(file_event)) {
    session_->on_file_event(monotonic_now(), file_event);
    perform_all();
  }
  while (can_take_message()) {
    auto message = channel_->pop();
    if (!message) break;
    session_->on_message(monotonic_now(), std::move(*message));
    perform_all();
  }
  if (channel_->end() != ChannelEnd::open && !channel_->has_message())
    session_->on_channel_end(monotonic_now(), channel_->end(), channel_->end_cause());
  session_->note_heard(channel_->last_received_at());
  session_->tick(monotonic_now());
  perform_all();
  flush_commands();
  if (session_->wants_keepalive()) channel_->send_keepalive();
}

// While the engine does not take our commands, messages stay in the inbox and then in TCP.
bool SessionShell::can_take_message() const {
  return session_->can_take_message() && waiting_.size() < commands_waiting_max;
}

Task<void> SessionShell::wait() {
  if (session_->has_more_to_send()) co_return co_await channel_->wait_sent(unsent_bytes_max);
  const Instant now = monotonic_now();
  Nanos pause = std::max<Nanos>(session_->next_wakeup(now) - now, 0ns);
  if (!waiting_.empty()) pause = std::min(pause, command_retry_pause);
  if (postponed_) pause = std::min(pause, std::max<Nanos>(postponed_until_ - now, 0ns));
  if (path_ && session_->follows_path()) pause = std::min(pause, path_->due_in(now));
  if (can_take_message() && !session_->is_winding_down())
    co_await channel_->wait_activity(pause);
  else
    co_await channel_->wait_turn(pause);
}

void SessionShell::perform_all() {
  while (auto action = session_->pop_action()) perform(*action);
}

void SessionShell::perform(Action& action) {
  if (const auto* message = std::get_if<Message>(&action)) {
    channel_->send(*message);
  } else if (const auto* command = std::get_if<Command>(&action)) {
    push_command(*command);
  } else if (const auto* to_file = std::get_if<FileCommand>(&action)) {
    push_command(*to_file);
  } else if (const auto* fact = std::get_if<SessionFact>(&action)) {
    host_.on_fact(*fact);
  } else if (std::holds_alternative<OpenData>(action)) {
    open_data();
  } else if (const auto* start = std::get_if<StartData>(&action)) {
    const auto started = start_data(*start);
    // Not what the host refused: it has taken files.
    if (!started && !path_ && postpone(started.error(), *start)) return;
    postponed_since_.reset();
    session_->on_data_started(monotonic_now(), started);
  } else if (const auto* change = std::get_if<ChangePath>(&action)) {
    change_path(change->update);
  } else if (std::holds_alternative<AskPeer>(action)) {
    channel_->send(KeepAlive{.wants_answer = true});
  } else if (std::holds_alternative<FallBack>(action)) {
    if (const auto fell = host_.fall_back(); !fell)
      return session_->fail(monotonic_now(), fell.error());
    push_command(Command{.kind = CommandKind::path_update, .path = path_->update()});
  } else if (std::holds_alternative<StopData>(action)) {
    stop_data();
  } else {
    perform_own(action);
  }
}

bool SessionShell::postpone(const Error& error, Action action) {
  const Instant now = monotonic_now();
  if (!is_way_missing(error) || now - postponed_since_.value_or(now) > options_.limits.silent)
    return false;
  if (!postponed_since_) postponed_since_ = now;
  postponed_.emplace(std::move(action));
  postponed_until_ = now + way_retry_pause;
  return true;
}

void SessionShell::open_data() {
  // What can fail comes first: each open_data() that succeeded is followed by a stop_data().
  SessionId fresh_id{};
  if (::getentropy(fresh_id.data(), fresh_id.size()) != 0)
    return session_->fail(monotonic_now(),
                          errno_error(ExitCode::internal_error, "draw a session id"));
  const auto opened = host_.open_data({channel_->local(), channel_->peer()});
  if (!opened && postpone(opened.error(), OpenData{})) return;
  postponed_since_.reset();
  if (opened) data_port_ = opened.value().data_port;
  session_->on_data_opened(monotonic_now(), opened, fresh_id);
}

Result<std::string> SessionShell::start_data(const StartData& start) {
  ONEHOP_TRY(secret, export_data_secret(channel_->ssl(), start.terms.context));
  ONEHOP_TRY(compare_key, export_compare_key(channel_->ssl(), start.terms.context));
  DataPlan plan{start.terms,
                {channel_->local().address, data_port_},
                {channel_->peer().address, start.peer_port},
                std::move(secret),
                std::move(compare_key),
                {},
                negotiated_group(channel_->ssl())};
  plan.context.aead = negotiated_aead(channel_->ssl());
  ONEHOP_TRY(follower,
             PathFollower::open({plan.local, plan.peer, options_.interface, options_.dscp}));
  path_.emplace(std::move(follower));
  const int path_fd = ::fcntl(path_->fd(), F_DUPFD_CLOEXEC, 0);
  if (path_fd < 0) return errno_error(ExitCode::internal_error, "watch for changes of the path");
  path_events_.emplace(io_, path_fd);
  is_path_watched_ = std::make_shared<bool>(false);
  plan.path = path_->update();
  if (const auto& gateway = path_->route().gateway)
    host_.on_fact(Notice{"the route to " + plan.peer.address.text() +
                         " leads through the gateway " + gateway->text() +
                         ": onehop's rate laws assume one hop, and see only the first"});
  // A sender was warned before it connected.
  if (options_.interface.empty() && session_->role() == Role::receiver)
    if (const auto warning = detour_warning(plan.peer.address, path_->route()))
      host_.on_fact(Notice{*warning, true});
  ONEHOP_TRY(rings, host_.start_data(plan));
  rings_ = rings;
  push_command(Command{.kind = CommandKind::path_update, .path = plan.path});
  return path_->route().link.name;
}

void SessionShell::stop_data() {
  host_.stop_data();
  rings_.reset();
  waiting_.clear();
  path_events_.reset();
  path_.reset();
  channel_->hold(false);  // there is no connection left to report the link's return on
}

void SessionShell::watch_path() {
  if (std::exchange(*is_path_watched_, true)) return;
  path_events_->async_wait(
      asio::posix::stream_descriptor::wait_read,
      [channel = channel_, watched = is_path_watched_](const boost::system::error_code& error) {
        *watched = false;
        if (!error) channel->wake();
      });
}

void SessionShell::change_path(const PathUpdate& update) {
  if (!rings_) return;
  // A link that is down must not be sent on: the kernel would ask for the neighbour in vain.
  channel_->hold(!update.is_link_up);
  host_.on_fact(LinkState{update.is_link_up});
  if (update.is_link_up)
    if (const auto told = host_.on_path(path_->route().link.name, update); !told)
      return session_->fail(monotonic_now(), told.error());
  push_command(Command{.kind = CommandKind::path_update, .path = update});
}

void SessionShell::push_command(const AnyCommand& command) {
  if (!rings_) return;
  waiting_.push_back(command);
  flush_commands();
}

/// In order over both rings: what the file thread is told before a checkpoint is in it.
void SessionShell::flush_commands() {
  const auto push = [this](const AnyCommand& command) {
    const auto* to_file = std::get_if<FileCommand>(&command);
    return to_file != nullptr ? rings_->file->commands.push(*to_file)
                              : rings_->commands->push(std::get<Command>(command));
  };
  while (!waiting_.empty() && push(waiting_.front())) waiting_.pop_front();
}

}  // namespace onehop::session
