// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LinkWatch: which sources tell facts of one interface, found at the start and again when the link
// changes, merged into one LinkFacts.
//
//   qdisc              ─┐
//   nl80211 (Wi-Fi)    ─┤
//   wired (speed, BQL) ─┼─▶ LinkWatch ─▶ RateLoop ─▶ LinkSample.facts
//   softnet (host)     ─┤       ▲
//   emulated           ─┘       └── RTM_NEWLINK, RTM_DELLINK: carrier, kind, MTU, gone
//
// When the carrier goes or the interface does, what the sources told is forgotten at once: a fact
// of a link that is not there would be a lie. Only the qdisc is read on: it is a queue of this
// machine. Control thread only; no privilege.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/link/fact_source.hpp"
#include "engine/base/address.hpp"

namespace onehop::link {

struct LinkOptions {
  int ifindex = 0;
  std::optional<MacAddress> peer;  ///< the peer's link address, where it is known
  bool has_qdisc = true;           ///< our frames pass the interface's qdisc (not with AF_XDP)
  std::string model_path;          ///< not empty: a model publishes the link's facts there, and the
                                   ///< interface is not asked
};

struct FoundSource {
  std::string name;
  std::shared_ptr<FactSource> source;  ///< null: it is not there
  std::string reason;                  ///< why it is not there; or a remark
  bool is_of_link = true;              ///< false: a queue of this machine, and not the link's
};

using SourceSet = std::vector<FoundSource>;  ///< what a look at the interface found

/// LinkState: what of an interface decides which sources there are.
struct LinkState {
  bool exists = false;
  bool is_running = false;
  std::string name;
  std::string kind;
  bool operator==(const LinkState&) const = default;
};

/// find_sources looks for every source. It never fails: a source that is not there says why. Errors
/// only where the model's socket was asked for and cannot be. Syscalls: those of the sources' open.
[[nodiscard]] Result<SourceSet> find_sources(const LinkOptions& options);

/// LinkEvents tells the interface's state when it may have changed. Real: rtnetlink notifications.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  /// poll gives the state after an event about the interface; nothing without one. It never waits.
  [[nodiscard]] virtual std::optional<LinkState> poll() = 0;
};

class LinkWatch final : public FactSource {
 public:
  using Find = std::function<Result<SourceSet>()>;
  /// Implementation constant: a link that flaps is looked at no more often. Too low: a driver in
  /// trouble keeps the control thread busy. Too high: a link that came back is blind for longer.
  static constexpr Nanos look_period = 200ms;

  /// open subscribes to the interface's events, then looks. Syscalls: those of NetlinkSocket::open
  /// and find_sources.
  [[nodiscard]] static Result<LinkWatch> open(const LinkOptions& options);
  /// For tests and simulators. `state` is the interface's at the time of the call; events may be
  /// null.
  LinkWatch(Find find, std::unique_ptr<LinkEvents> events, LinkState state, SourceSet found);

  /// name is of the link's sources in use: "nl80211+softnet", or "none".
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  void read(Instant now, law::LinkFacts& facts) override;
  void read_backlog(Instant now, law::LinkFacts& facts) override;

  [[nodiscard]] const SourceSet& found() const noexcept { return found_; }

 private:
  void follow(Instant now, law::LinkFacts& facts);
  void rename();

  Find find_;
  std::unique_ptr<LinkEvents> events_;
  LinkState state_;
  SourceSet found_;
  std::string name_;
  bool is_look_due_ = false;
  Instant looked_at_{};
  bool has_looked_ = false;
};

/// make_link_events subscribes to RTNLGRP_LINK. Syscalls: socket, bind, setsockopt.
[[nodiscard]] Result<std::unique_ptr<LinkEvents>> make_link_events(int ifindex);
/// read_link_state asks for the state now. Syscalls: sendto, recvmsg.
[[nodiscard]] LinkState read_link_state(int ifindex);

}  // namespace onehop::link
