// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FdWatcher: says when a descriptor has something to read, so that a change of the path does not
// wait for the session's next poll: an AF_XDP sender stands still from the moment its link is back
// until it knows.
//
//   arm() ─▶ readable ─▶ on_readable() ─▶ the session's turn reads all of it ─▶ arm() ...
//
// Between on_readable() and arm() it sleeps, whatever comes. Session thread only; it never reads.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>
#include <memory>
#include <utility>

#include "engine/base/result.hpp"

namespace onehop::session {

class FdWatcher : public std::enable_shared_from_this<FdWatcher> {
 public:
  /// open watches a duplicate of `fd`, so that either may be closed first. Syscalls: fcntl,
  /// epoll_ctl.
  [[nodiscard]] static Result<std::shared_ptr<FdWatcher>> open(boost::asio::io_context& io, int fd,
                                                               std::function<void()> on_readable);

  /// arm asks for one call, at once if there is something to read already. A second arm() before
  /// the call changes nothing.
  void arm();
  /// close: on_readable is not called any more, and what it holds is let go.
  void close();

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;
  FdWatcher(boost::asio::io_context& io, int fd, std::function<void()> on_readable)
      : descriptor_{io, fd}, on_readable_{std::move(on_readable)} {}

  Descriptor descriptor_;
  std::function<void()> on_readable_;  ///< empty: closed
  bool is_armed_ = false;
};

}  // namespace onehop::session
