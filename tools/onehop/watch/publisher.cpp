// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/watch/publisher.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "tools/onehop/watch/folder.hpp"
#include "tools/onehop/watch/local_socket.hpp"
#include "tools/onehop/watch/telemetry.hpp"

namespace onehop::watch {

namespace {
constexpr std::chrono::milliseconds period{
    100};  // as often as progress is redrawn; a person sees no more
constexpr std::size_t watchers_max = 8;
// A few lines: a watcher that was away goes on with what is new. Less than one line, and no line
// would ever pass whole.
constexpr int send_buffer_bytes = 16 * 1024;
constexpr int last_line_bytes = 8 * 1024;  // beside it
}  // namespace

Result<std::unique_ptr<Publisher>> Publisher::open(boost::asio::io_context& io,
                                                   MakeLine make_line) {
  ONEHOP_TRY(folder, make_folder());
  remove_stale(folder);
  std::string path = path_of(folder, ::getpid());
  ONEHOP_TRY(fd, listen_local(path, fmt::format("{}/.{}.new", folder, ::getpid())));
  std::unique_ptr<Publisher> self{
      new Publisher{io, std::move(path), fd.release(), std::move(make_line)}};
  self->accept();
  return self;
}

Publisher::Publisher(boost::asio::io_context& io, std::string path, int fd, MakeLine make_line)
    : make_line_{std::move(make_line)},
      path_{std::move(path)},
      listener_{io, fd},
      timer_{io},
      pause_{io} {}

Publisher::~Publisher() {
  stop();
  ::unlink(path_.c_str());
}

void Publisher::stop() {
  is_stopped_ = true;
  boost::system::error_code ignored;
  listener_.cancel(ignored);
  timer_.cancel();
  pause_.cancel();
}

void Publisher::accept() {
  listener_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                       [this](const boost::system::error_code& error) {
                         // A wait that had ended before cancel() still calls back, without an
                         // error.
                         if (error || is_stopped_) return;
                         if (take_watcher()) return accept();
                         // Without a descriptor it stays the next to be accepted, and would call
                         // back at once, for ever.
                         pause_.expires_after(period);
                         pause_.async_wait([this](const boost::system::error_code& ended) {
                           if (!ended && !is_stopped_) accept();
                         });
                       });
}

bool Publisher::take_watcher() {
  Watcher watcher{.fd = Fd{::accept4(listener_.native_handle(), nullptr, nullptr,
                                     SOCK_CLOEXEC | SOCK_NONBLOCK)},
                  .rest = {}};
  if (!watcher.fd.is_open()) return errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
  if (!is_allowed(watcher.fd.get())) return true;
  (void)::setsockopt(watcher.fd.get(), SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes,
                     sizeof send_buffer_bytes);
  forget_gone();
  if (watchers_.size() >= watchers_max) {
    send(watcher, line_of(Refused{fmt::format("{} others watch it already", watchers_max)}));
    return true;
  }
  send(watcher, make_line_());
  watchers_.push_back(std::move(watcher));
  if (!is_ticking_) tick();
  return true;
}

void Publisher::tick() {
  is_ticking_ = true;
  timer_.expires_after(period);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || is_stopped_) return;
    // The process lives a little longer than its transfer: nothing follows the end but news.
    if (const std::string line = make_line_(); line != line_at_end_) tell(line);
    forget_gone();
    if (watchers_.empty())
      is_ticking_ = false;
    else
      tick();
  });
}

void Publisher::tell(std::string_view line) {
  for (Watcher& watcher : watchers_) send(watcher, line);
}

void Publisher::tell_last(std::string_view line) {
  constexpr int room = send_buffer_bytes + last_line_bytes;
  for (const Watcher& watcher : watchers_)
    (void)::setsockopt(watcher.fd.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  tell(line);
  line_at_end_ = make_line_();
}

void Publisher::send(Watcher& watcher, std::string_view line) {
  const auto push = [&](std::string_view text) -> std::size_t {
    const ssize_t sent =
        ::send(watcher.fd.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) watcher.is_gone = true;
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  };
  if (watcher.is_gone) return;
  watcher.rest.erase(0, watcher.rest.empty() ? 0 : push(watcher.rest));
  if (!watcher.rest.empty()) return;
  std::string whole{line};
  whole += '\n';
  const std::size_t sent = push(whole);
  if (sent > 0) watcher.rest = whole.substr(sent);  // nothing sent: the whole line is dropped
}

void Publisher::forget_gone() {
  for (Watcher& watcher : watchers_) {
    // Nothing is read, but an end that was closed is seen.
    char byte = 0;
    if (::recv(watcher.fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) watcher.is_gone = true;
  }
  std::erase_if(watchers_, [](const Watcher& watcher) { return watcher.is_gone; });
}

}  // namespace onehop::watch
