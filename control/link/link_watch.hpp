// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LinkWatch finds the sources of facts of one interface at the start and again when the link
// changes, and merges them into one LinkFacts.
//
//   qdisc              ─┐
//   nl80211 (Wi-Fi)    ─┤
//   wired (speed, BQL) ─┼─▶ LinkWatch ─▶ RateLoop ─▶ LinkSample.facts
//   softnet (host)     ─┤       ▲
//   emulated           ─┘       └── the interface's name and flags: carrier, gone
//
// When the carrier or the interface goes, it forgets the sources' facts at once: they would
// describe a link that does not exist. Only the qdisc is still read: it is a queue of this machine.
// Control thread only; no privilege.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/link/fact_source.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/system/address.hpp"

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
  std::shared_ptr<FactSource> source;  ///< null: not available
  std::string reason;                  ///< why it is not available; or a remark
  bool is_of_link = true;              ///< false: a queue of this machine, and not the link's
};

using SourceSet = std::vector<FoundSource>;  ///< what was found on the interface

/// LinkState: the interface's properties that decide which sources exist.
struct LinkState {
  std::string name;  ///< empty: the interface is gone
  bool is_running = false;
  bool operator==(const LinkState&) const = default;
};

/// read_link_state works with any socket, and without rtnl_lock, which others may hold for long.
/// Syscalls: ioctl, twice.
[[nodiscard]] LinkState read_link_state(const Fd& socket, int ifindex);

/// find_sources tries every source. An unavailable source has a reason. Error only if the model's
/// socket was asked for and is not possible. Syscalls: those of the sources' open.
[[nodiscard]] Result<SourceSet> find_sources(const LinkOptions& options);

class LinkWatch final : public FactSource {
 public:
  using Find = std::function<Result<SourceSet>()>;
  using ReadState = std::function<LinkState()>;
  /// Implementation constant: how often a link that flaps is examined. Too low: a driver in trouble
  /// keeps the control thread busy. Too high: after its return a link is without facts for longer.
  static constexpr Nanos look_period = 200ms;

  /// open reads the interface's state, then looks. Syscalls: socket, those of read_link_state and
  /// find_sources.
  [[nodiscard]] static Result<LinkWatch> open(const LinkOptions& options);
  /// open for a link that a test simulates. Without `read_state` no carrier is followed: a model's
  /// link has none.
  [[nodiscard]] static Result<LinkWatch> open(Find find, ReadState read_state);

  /// name lists the link's sources in use: "nl80211+softnet", or "none".
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  void read(Instant now, law::LinkFacts& facts) override;
  void read_backlog(Instant now, law::LinkFacts& facts) override;

  [[nodiscard]] const SourceSet& found() const noexcept { return found_; }

 private:
  LinkWatch(Find find, ReadState read_state)
      : find_{std::move(find)},
        read_state_{std::move(read_state)},
        state_{read_state_ ? read_state_() : LinkState{}} {}
  void follow(Instant now, law::LinkFacts& facts);
  void rename();

  Find find_;
  ReadState read_state_;
  LinkState state_;
  SourceSet found_;
  std::string name_;
  bool is_look_due_ = false;
  Instant looked_at_{};  // after a change
};

}  // namespace onehop::link
