// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TailProbe: the timer that asks after what is lost at the very end, where no later packet shows
// the gap. It fires after 2 x srtt without a new report, and backs off by 2 up to 1 s. Engine core.
#pragma once

#include <algorithm>

#include "engine/base/units.hpp"

namespace onehop::protocol {

class TailProbe {
 public:
  // Specification.
  static constexpr Nanos wait_before_srtt = 100ms, wait_min = 10ms, wait_max = 1s;

  void on_sent(Instant now) noexcept { sent_at_ = now; }
  /// on_news: the peer reported numbers that it had not reported before.
  void on_news(Instant now) noexcept {
    news_at_ = now;
    wait_ = 0ns;
  }

  /// tick says whether a probe is due. `is_armed`: data is in flight above all that the peer has
  /// reported, and nothing else is to be sent. What is in our own queue is not lost, so the
  /// wait begins when that is empty.
  [[nodiscard]] bool tick(Instant now, bool is_armed, Bytes own_queue, Nanos srtt) noexcept {
    const bool is_empty = own_queue.count == 0;
    if (!is_empty || !was_empty_) queue_empty_since_ = now;
    was_empty_ = is_empty;
    if (!is_armed || !is_empty) {
      deadline_ = Instant::max();
      return false;
    }
    if (wait_ == 0ns)
      wait_ = srtt == 0ns ? wait_before_srtt : std::clamp(2 * srtt, wait_min, wait_max);
    deadline_ = std::max({sent_at_, news_at_, queue_empty_since_}) + wait_;
    if (now < deadline_) return false;
    sent_at_ = now;
    wait_ = std::min(wait_ * 2, wait_max);
    deadline_ = now + wait_;
    return true;
  }
  [[nodiscard]] Instant deadline() const noexcept { return deadline_; }

 private:
  Instant sent_at_{}, news_at_{}, queue_empty_since_{};
  Instant deadline_ = Instant::max();
  Nanos wait_{0};  // 0: to be taken from srtt at the next tick
  bool was_empty_ = true;
};

}  // namespace onehop::protocol
