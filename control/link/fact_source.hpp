// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FactSource: one place where facts of the link are read.
//
//   nl80211, ethtool, a simulator's MAC ──▶ FactSource.read() ──▶ RateLoop ──▶ LinkSample.facts
//
// Called by the control thread only: a netlink dump can wait for a lock for milliseconds.
#pragma once

#include <optional>
#include <string_view>

#include "control/law/link_facts.hpp"
#include "engine/base/result.hpp"

namespace onehop::link {

class FactSource {
 public:
  virtual ~FactSource() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// read writes what it has newly read into `facts` and leaves everything else as it is. It is called once per tick of
  /// the rate loop while data flows and reads its sensor no more often than its own period.
  virtual void read(Instant now, law::LinkFacts& facts) = 0;
  /// error is why the last read failed; nothing while all is well or the link simply has no such fact.
  [[nodiscard]] virtual const std::optional<Error>& error() const noexcept = 0;
};

}  // namespace onehop::link
