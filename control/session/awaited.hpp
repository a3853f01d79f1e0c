// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Awaited: an answer that the host gives later, perhaps from another thread, and perhaps after the
// session has stopped waiting for it. Session thread only, but for what expect() returns.
#pragma once

#include <boost/asio/post.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "control/session/channel/channel.hpp"
#include "engine/base/result.hpp"

namespace onehop::session {

template <class T>
class Awaited {
 public:
  /// expect returns the function that the host calls once with its answer; the call wakes the
  /// channel's session. An earlier expected answer is dropped.
  [[nodiscard]] std::function<void(Result<T>)> expect(asio::io_context& io,
                                                      std::shared_ptr<Channel> channel) {
    answer_ = std::make_shared<std::optional<Result<T>>>();
    return [&io, answer = answer_, channel = std::move(channel)](Result<T> given) {
      asio::post(io, [answer, channel, given = std::move(given)]() mutable {
        if (!answer->has_value()) answer->emplace(std::move(given));
        channel->wake();
      });
    };
  }
  /// take returns the answer, once.
  [[nodiscard]] std::optional<Result<T>> take() {
    if (!answer_ || !answer_->has_value()) return std::nullopt;
    return std::move(*std::exchange(answer_, nullptr));
  }

 private:
  std::shared_ptr<std::optional<Result<T>>> answer_;  // null: no answer is expected
};

}  // namespace onehop::session
