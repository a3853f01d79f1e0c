// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/form_group.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <set>
#include <utility>

#include "engine/base/time.hpp"

namespace onehop::p2p {

namespace {

/// After a failure wpa_supplicant may still finish what it began. Too short: a group may appear
/// after we looked. It removes the interface of a cancelled negotiation within milliseconds.
constexpr Nanos sweep_span = 500ms;

class Runner {
 public:
  Runner(Supplicant& supplicant, const Plan& plan, const Progress& progress, int stop_fd)
      : supplicant_{supplicant}, formation_{plan}, progress_{progress}, stop_fd_{stop_fd} {}

  Result<std::optional<Group>> run() {
    ONEHOP_TRY(before, supplicant_.interfaces());
    for (const Supplicant::Known& one : before)
      if (one.is_group) known_.insert(one.path);
    step(Begun{});
    while (!ended_) {
      if (auto polled = wait(formation_.next_wakeup()); polled.has_error()) {
        ended_ = Ended{polled.error(), std::nullopt};
        break;
      }
      if (!ended_) step(TimePassed{});
    }
    if (!ended_->error) {
      // An attempt that was given up may have come to a group after all: two would be one machine
      // twice.
      if (ended_->group) remove_groups(ended_->group->path);
      return ended_->group;
    }
    sweep();
    return *ended_->error;
  }

 private:
  void step(const Event& event) {
    events_.push_back(event);
    // An action may bring forth the next event, so this is a loop and no recursion.
    while (!events_.empty()) {
      const Event next = std::move(events_.front());
      events_.pop_front();
      for (const Action& action : formation_.step(monotonic_now(), next))
        std::visit([this](const auto& one) { perform(one); }, action);
    }
  }

  Result<void> wait(Instant until) {
    const Nanos left = std::max(until - monotonic_now(), Nanos{0});
    const auto milliseconds =
        std::chrono::ceil<std::chrono::milliseconds>(std::min(left, Nanos{1s}));
    pollfd fds[2] = {{supplicant_.fd(), supplicant_.events(), 0}, {stop_fd_, POLLIN, 0}};
    if (::poll(fds, 2, static_cast<int>(milliseconds.count())) < 0 && errno != EINTR)
      return errno_error(ExitCode::internal_error, "wait for wpa_supplicant");
    if ((fds[1].revents & POLLIN) != 0) {
      step(Interrupted{});
      return success();
    }
    return supplicant_.process([this](const Event& event) { step(event); });
  }

  /// sweep removes groups that came in spite of the failure.
  void sweep() {
    const Instant until = monotonic_now() + sweep_span;
    while (monotonic_now() < until) {
      pollfd fd{supplicant_.fd(), supplicant_.events(), 0};
      (void)::poll(&fd, 1, 100);
      if (supplicant_.process([](const Event&) {}).has_error()) return;
    }
    remove_groups("");
  }

  /// remove_groups removes those that came since run() began, but `kept`.
  void remove_groups(const std::string& kept) {
    const auto interfaces = supplicant_.interfaces();
    if (interfaces.has_error()) return;
    for (const Supplicant::Known& one : interfaces.value())
      if (one.is_group && !known_.contains(one.path) && one.path != kept)
        (void)supplicant_.remove_group(one.path);
  }

  void report(const Result<void>& result) {
    events_.push_back(CallDone{result.has_error() ? std::optional{result.error()} : std::nullopt});
  }

  void perform(const Find& find) {
    if (auto started = supplicant_.find(find); started.has_error()) {
      // Without a search nothing can follow, and what refuses one refuses the next as well.
      ended_ = Ended{started.error(), std::nullopt};
    }
  }
  void perform(const StopFind&) { supplicant_.stop_find(); }
  void perform(const Connect& connect) { report(supplicant_.connect(connect)); }
  void perform(const AddGroup& add) { report(supplicant_.add_group(add)); }
  void perform(const Cancel&) { supplicant_.cancel(); }
  void perform(const Authorize& join) { (void)supplicant_.authorize(join.group, {}); }
  void perform(const ShowPeer& show) { progress_.on_peer(show.peer); }
  void perform(const ShowPin& show) { progress_.on_pin(show.pin); }
  void perform(const Say& say) { progress_.on_text(say.text); }
  void perform(const Ended& ended) { ended_ = ended; }

  Supplicant& supplicant_;
  Formation formation_;
  const Progress& progress_;
  const int stop_fd_;
  std::set<std::string> known_;  // paths of groups that were there before
  std::deque<Event> events_;
  std::optional<Ended> ended_;
};

}  // namespace

Result<std::optional<Group>> form_group(Supplicant& supplicant, const Plan& plan,
                                        const Progress& progress, int stop_fd) {
  return Runner{supplicant, plan, progress, stop_fd}.run();
}

}  // namespace onehop::p2p
