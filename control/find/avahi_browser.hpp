// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AvahiBrowser: what avahi-daemon knows of receivers on the links of this machine. A hint, as an
// answer to our own question is, and a weaker one: it may be of a receiver that has gone. So it is
// tested by a connection that carries nothing, and only where nobody has answered from there.
//
//   ItemNew ─▶ resolve ─▶ Found ─▶ hints ── test() ─▶ connect ─▶ on_there
//
// It asks a daemon that runs, and starts none. The thread of its io_context; the calls of open()
// and of each find block for a moment, at most for call_limit.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/bus/bus.hpp"
#include "control/find/message.hpp"
#include "engine/base/system/address.hpp"

namespace onehop::find {

class AvahiBrowser {
 public:
  struct Hint {
    std::string name;  ///< any bytes: escape it where it is shown
    Endpoint place;
    unsigned ifindex = 0;
    Instance instance{};  ///< zero: it says none
  };
  /// More: whoever publishes names on the link has us resolve as many.
  static constexpr int found_max = 64;
  /// A daemon that answers takes a millisecond. Longer: one that hangs holds up a sender.
  static constexpr Nanos call_limit = 200ms;

  struct Handler {
    std::function<bool(const Hint&)> is_known;  ///< who is there has answered himself
    std::function<void(const Hint&)> on_there;  ///< it takes connections
  };
  /// open: null where no daemon runs. Syscalls: those of Bus; fcntl.
  [[nodiscard]] static std::unique_ptr<AvahiBrowser> open(boost::asio::io_context& io,
                                                          Handler handler);
  /// test tests what is found, from now on. False: there is nothing to test yet.
  bool test();

 private:
  AvahiBrowser(boost::asio::io_context& io, bus::Bus bus, int fd, Handler handler)
      : io_{io}, bus_{std::move(bus)}, events_{io, fd}, handler_{std::move(handler)} {}
  void read();
  bool test(const Hint& hint);
  void on(const bus::Bus::Signal& signal);
  void resolve(const bus::Bus::Signal& found);

  boost::asio::io_context& io_;
  bus::Bus bus_;
  boost::asio::posix::stream_descriptor events_;
  const Handler handler_;
  std::vector<Hint> hints_;  // that wait for test()
  std::vector<std::unique_ptr<boost::asio::ip::tcp::socket>> tests_;
  bool is_tested_ = false;
  int found_total_ = 0;
};

}  // namespace onehop::find
