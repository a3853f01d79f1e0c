// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/plane/news_wake.hpp"

#include <fcntl.h>

namespace onehop::plane {

Result<std::shared_ptr<NewsWake>> NewsWake::open(boost::asio::io_context& io, int fd, std::function<void()> on_news) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return errno_error(ExitCode::internal_error, "watch for news of the path");
  return std::shared_ptr<NewsWake>{new NewsWake{io, copy, std::move(on_news)}};
}

void NewsWake::arm() {
  if (is_armed_ || !on_news_) return;
  is_armed_ = true;
  descriptor_.async_wait(Descriptor::wait_read, [self = shared_from_this()](const boost::system::error_code& error) {
    self->is_armed_ = false;
    if (!error && self->on_news_) self->on_news_();
  });
}

void NewsWake::close() {
  boost::system::error_code ignored;
  descriptor_.close(ignored);
  on_news_ = nullptr;
}

}  // namespace onehop::plane
