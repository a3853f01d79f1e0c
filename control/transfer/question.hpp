// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Question: what a receiver asks its user; the answer comes from another thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>

#include "control/transfer/api/transfer.hpp"

namespace onehop::transfer {

/// Question: an Offer that waits for its answer. The preparing thread asks, any thread answers.
class Question {
 public:
  std::uint64_t begin() {
    const std::lock_guard lock{mutex_};
    answer_.reset();
    id_ = ++newest_id_;
    return id_;
  }
  /// wait_answer blocks until there is one; nullopt if `stop` or the limit comes first.
  std::optional<api::Answer> wait_answer(const std::stop_token& stop,
                                         std::chrono::nanoseconds limit) {
    std::unique_lock lock{mutex_};
    (void)has_answer_.wait_for(lock, stop, limit, [this] { return answer_.has_value(); });
    id_ = 0;  // a later answer has no effect
    return answer_;
  }
  void answer(std::uint64_t id, api::Answer answer) {
    const std::lock_guard lock{mutex_};
    if (id != id_ || answer_) return;
    answer_ = answer;
    has_answer_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any has_answer_;
  inline static std::atomic<std::uint64_t> newest_id_ = 0;  // several sessions ask at once
  std::uint64_t id_ = 0;                                    // 0: none
  std::optional<api::Answer> answer_;
};

}  // namespace onehop::transfer
