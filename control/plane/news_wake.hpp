// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NewsWake: says when a descriptor has something to read, so that news of the path do not wait for the session's next poll: an
// AF_XDP sender stands still from the moment its link is back until it knows.
//
//   arm() ─▶ readable ─▶ on_news() ─▶ the session's turn reads all of it ─▶ arm() ...
//
// Between on_news() and arm() it sleeps, whatever comes. Plane thread only; it never reads.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>
#include <memory>
#include <utility>

#include "engine/base/result.hpp"

namespace onehop::plane {

class NewsWake : public std::enable_shared_from_this<NewsWake> {
 public:
  /// open watches a duplicate of `fd`, so that either may be closed first. Syscalls: fcntl, epoll_ctl.
  [[nodiscard]] static Result<std::shared_ptr<NewsWake>> open(boost::asio::io_context& io, int fd, std::function<void()> on_news);

  /// arm asks for one call, at once if there is something to read already; again before that changes nothing.
  void arm();
  /// close: on_news is not called any more, and what it holds is let go.
  void close();

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;
  NewsWake(boost::asio::io_context& io, int fd, std::function<void()> on_news) : descriptor_{io, fd}, on_news_{std::move(on_news)} {}

  Descriptor descriptor_;
  std::function<void()> on_news_;  ///< empty: closed
  bool is_armed_ = false;
};

}  // namespace onehop::plane
