// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RefusalLimit: how much our own queue holds, as its refusals show. A queue may be shorter than any
// sensor reports.
//
//   refused with a backlog       limit = 3/4 of the backlog
//   refused without a backlog    says nothing of the length: a filter drops
//   the link goes down, or up    no limit: what was refused then was refused for want of a link
//   a second without a refusal   limit <- 1.05 limit; the next second 1.1, then 1.2, ...
//
// A link that goes away refuses frames before anybody says that it is down, and those that it holds
// are still a backlog. So the limit goes with the news of it, and with the news of its return.
//
// The growth doubles because a limit that is far from the queue's length was learnt from something
// else (another flow's burst), and 5 % a second would take a minute to forget it. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "engine/base/units.hpp"

namespace onehop::law {

class RefusalLimit {
 public:
  struct Reading {
    Instant at;
    std::uint64_t refused_total;       ///< frames
    std::uint64_t link_changes_total;  ///< of PathReport
    Bytes backlog;
    Bytes least;  ///< what the limit may not fall below, as of now
  };
  void step(const Reading& r) noexcept {
    const bool is_refused = refused_total_ && r.refused_total > *refused_total_;
    refused_total_ = std::max(refused_total_.value_or(0), r.refused_total);
    least_ = r.least;
    if (std::exchange(link_changes_total_, r.link_changes_total) != r.link_changes_total) {
      limit_ = {};
    } else if (is_refused && r.backlog > Bytes{0}) {
      limit_ = r.backlog * gain;
      growth_permille_ = growth_first_permille;
      at_ = r.at;
    } else if (limit_ > Bytes{0} && r.at - at_ >= relax) {
      limit_ = limit_ + Bytes{static_cast<std::int64_t>(static_cast<Wide>(limit_.count) *
                                                        growth_permille_ / 1000)};
      growth_permille_ = std::min(growth_permille_ * 2, growth_max_permille);
      at_ = r.at;
    }
  }
  /// bound lowers `backlog` to the limit, if there is one.
  [[nodiscard]] Bytes bound(Bytes backlog) const noexcept {
    return limit_ > Bytes{0} ? std::min(backlog, std::max(limit_, least_)) : backlog;
  }

 private:
  // Ours, of the backlog at a refusal. Low: a short queue runs dry. High: it is refused again at
  // once.
  static constexpr Gain gain{750};
  // Ours. Low: a refusal each second for a queue that is as short as it was. High: a limit of a
  // moment lasts.
  static constexpr Nanos relax{1s};
  // Ours, see above. Low: a minute to forget a limit that was no queue's length. High: the true
  // length is passed by far.
  static constexpr std::int64_t growth_first_permille = 50, growth_max_permille = 1000;

  Bytes limit_{}, least_{};  // limit_ 0: none was seen
  std::int64_t growth_permille_ = growth_first_permille;
  std::optional<std::uint64_t> refused_total_;
  std::uint64_t link_changes_total_ = 0;
  Instant at_{};
};

}  // namespace onehop::law
