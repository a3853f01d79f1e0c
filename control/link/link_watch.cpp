// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/link_watch.hpp"

namespace onehop::link {

FactSource::~FactSource() = default;

Result<LinkWatch> LinkWatch::open(const LinkOptions& options) {
  // A model's link has no carrier to follow.
  std::unique_ptr<LinkEvents> events;
  if (options.model_path.empty()) {
    ONEHOP_TRY(made, make_link_events(options.ifindex));
    events = std::move(made);
  }
  Find find = [options] { return find_sources(options); };
  const LinkState state = read_link_state(options.ifindex);
  ONEHOP_TRY(found, find());
  return LinkWatch{std::move(find), std::move(events), state, std::move(found)};
}

LinkWatch::LinkWatch(Find find, std::unique_ptr<LinkEvents> events, LinkState state,
                     SourceSet found)
    : find_{std::move(find)},
      events_{std::move(events)},
      state_{std::move(state)},
      found_{std::move(found)} {
  rename();
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
  if (events_ == nullptr) return;
  // Wireless events come as RTM_NEWLINK too, for every scan: only a change of what matters counts.
  if (auto state = events_->poll(); state && *state != state_) {
    state_ = *std::move(state);
    auto backlog = facts.lower_queue;
    facts = {};
    facts.lower_queue = std::move(backlog);
    std::erase_if(found_, [](const FoundSource& found) { return found.is_of_link; });
    found_.push_back({"link", nullptr,
                      state_.exists ? "the interface has no carrier" : "the interface is gone"});
    rename();
    is_look_due_ = state_.exists && state_.is_running;
  }
  if (!is_look_due_ || (has_looked_ && now - looked_at_ < look_period)) return;
  is_look_due_ = false;
  has_looked_ = true;
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
