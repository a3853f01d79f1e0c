// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FactSource: one place where facts of the link are read.
//
//   qdisc, nl80211, ethtool, a simulator's MAC ─▶ FactSource.read() ─▶ RateLoop ─▶ LinkSample.facts
//
// Called by the control thread only: a netlink dump can wait for a lock for milliseconds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "control/law/link_facts.hpp"
#include "engine/base/result.hpp"

namespace onehop::link {

class FactSource {
 public:
  virtual ~FactSource();
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// read writes what it has newly read into `facts` and leaves everything else as it is. The rate
  /// loop calls it once per tick while data flows; it reads its sensor no more often than its own
  /// period.
  virtual void read(Instant now, law::LinkFacts& facts) = 0;
  /// read_backlog is called instead while nothing is sent and our bytes still wait below us. Only
  /// the source of `lower_queue` acts on it.
  virtual void read_backlog(Instant /*now*/, law::LinkFacts& /*facts*/) {}
  /// remark is a text for the user about this source, such as what it cannot read here; or empty.
  [[nodiscard]] virtual std::string remark() const { return {}; }
  /// error is why the last read failed; nullopt while all is well or the link has no such fact.
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }

 protected:
  std::optional<Error> error_;
};

}  // namespace onehop::link
