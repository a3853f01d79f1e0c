// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/watch/feed.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "engine/base/time.hpp"
#include "tools/onehop/watch/local_socket.hpp"

namespace onehop::watch {

Result<Feed> Feed::open(const std::string& socket) {
  ONEHOP_TRY(fd, connect_local(socket));
  if (::geteuid() != 0 && !is_allowed(fd.get()))
    return Error{ExitCode::peer_unreachable, "watch " + socket, "another user's process serves it",
                 "Remove it"};
  return Feed{std::move(fd)};
}

Result<bool> Feed::read(std::vector<Message>& messages) {
  std::array<char, 16 * 1024> buffer;
  const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got == 0) return false;
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    if (errno == ECONNRESET) return false;
    return errno_error(ExitCode::internal_error, "read what the transfer tells");
  }
  pending_.append(buffer.data(), static_cast<std::size_t>(got));
  for (std::size_t end = 0; (end = pending_.find('\n')) != std::string::npos;) {
    ONEHOP_TRY(message, read_line(std::string_view{pending_}.substr(0, end)));
    messages.push_back(std::move(message));
    pending_.erase(0, end + 1);
  }
  if (pending_.size() > line_bytes_max) {
    ONEHOP_TRYV(read_line(pending_));
  }
  return true;
}

Result<Message> Feed::wait_first(Nanos patience) {
  const Instant give_up_at = monotonic_now() + patience;
  std::vector<Message> messages;
  for (;;) {
    const Nanos left = give_up_at - monotonic_now();
    if (left <= Nanos{0})
      return Error{ExitCode::timed_out, "watch the transfer", "its process does not answer",
                   "Is it stopped? 'kill -CONT PID' lets it go on"};
    pollfd entry{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    const timespec timeout{.tv_sec = left / 1s, .tv_nsec = static_cast<long>((left % 1s).count())};
    if (::ppoll(&entry, 1, &timeout, nullptr) <= 0) continue;
    ONEHOP_TRY(is_open, read(messages));
    if (!messages.empty()) return std::move(messages.front());
    if (!is_open)
      return Error{ExitCode::peer_unreachable, "watch the transfer", "it has ended", {}};
  }
}

}  // namespace onehop::watch
