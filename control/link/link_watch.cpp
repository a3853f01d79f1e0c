// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/link_watch.hpp"

#include <sys/socket.h>

namespace onehop::link {

FactSource::~FactSource() = default;

Result<LinkWatch> LinkWatch::open(const LinkOptions& options) {
  ReadState read_state;
  if (options.model_path.empty()) {
    const auto socket = std::make_shared<Fd>(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket->is_open())
      return errno_error(ExitCode::internal_error, "open a socket to ask for the link");
    read_state = [socket, ifindex = options.ifindex] { return read_link_state(*socket, ifindex); };
  }
  return open([options] { return find_sources(options); }, std::move(read_state));
}

Result<LinkWatch> LinkWatch::open(Find find, ReadState read_state) {
  LinkWatch self{std::move(find), std::move(read_state)};
  ONEHOP_TRY(found, self.find_());
  self.found_ = std::move(found);
  self.rename();
  return self;
}

void LinkWatch::read(Instant now, law::LinkFacts& facts) {
  error_.reset();
  follow(now, facts);
  for (const FoundSource& found : found_) {
    if (found.source == nullptr) continue;
    found.source->read(now, facts);
    if (!error_) error_ = found.source->error();
  }
}

void LinkWatch::read_backlog(Instant now, law::LinkFacts& facts) {
  for (const FoundSource& found : found_) {
    if (found.source != nullptr) found.source->read_backlog(now, facts);
  }
}

void LinkWatch::follow(Instant now, law::LinkFacts& facts) {
  if (!read_state_) return;
  if (LinkState state = read_state_(); state != state_) {
    state_ = std::move(state);
    auto backlog = facts.lower_queue;
    facts = {};
    facts.lower_queue = std::move(backlog);
    std::erase_if(found_, [](const FoundSource& found) { return found.is_of_link; });
    found_.push_back(
        {"link", nullptr,
         state_.name.empty() ? "the interface is gone" : "the interface has no carrier"});
    rename();
    is_look_due_ = state_.is_running;
  }
  if (!is_look_due_ || now - looked_at_ < look_period) return;
  is_look_due_ = false;
  looked_at_ = now;
  if (auto found = find_())
    found_ = std::move(found).value();
  else
    error_ = found.error();
  rename();
}

void LinkWatch::rename() {
  name_.clear();
  for (const FoundSource& found : found_) {
    if (found.source == nullptr || !found.is_of_link) continue;
    if (!name_.empty()) name_ += '+';
    name_ += found.source->name();
  }
  if (name_.empty()) name_ = "none";
}

}  // namespace onehop::link
