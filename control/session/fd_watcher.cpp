// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/fd_watcher.hpp"

#include <fcntl.h>

namespace onehop::session {

Result<std::shared_ptr<FdWatcher>> FdWatcher::open(boost::asio::io_context& io, int fd,
                                                   std::function<void()> on_readable) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return errno_error(ExitCode::internal_error, "watch for changes of the path");
  return std::shared_ptr<FdWatcher>{new FdWatcher{io, copy, std::move(on_readable)}};
}

void FdWatcher::arm() {
  if (is_armed_ || !on_readable_) return;
  is_armed_ = true;
  descriptor_.async_wait(Descriptor::wait_read,
                         [self = shared_from_this()](const boost::system::error_code& error) {
                           self->is_armed_ = false;
                           if (!error && self->on_readable_) self->on_readable_();
                         });
}

void FdWatcher::close() {
  boost::system::error_code ignored;
  descriptor_.close(ignored);
  on_readable_ = nullptr;
}

}  // namespace onehop::session
