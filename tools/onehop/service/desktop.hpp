// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Desktop: a process of its own ("onehop-desktop") that asks and tells by notifications on the bus
// of the user's session. On that bus programs can be started, so the process that parses a peer's
// bytes is not on it.
//
//   onehop ── ask, gone, done ──▶ onehop-desktop ── Notify ───▶ org.freedesktop.Notifications
//          ◀── answer, trouble ──                ── ShowItems ─▶ org.freedesktop.FileManager1
//
// The main thread's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/transfer/api/transfer.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::tool {

class Desktop {
 public:
  struct Handler {
    std::function<void(std::uint64_t offer, api::Answer)> answer;
    std::function<void(const std::string&)> trouble;
  };

  /// is_possible: the environment names the bus of a session. Syscalls: access.
  [[nodiscard]] static bool is_possible();
  /// start: as the user that we are by now, and before there are threads. It connects to the bus
  /// when there is something to show. Error: 1. Syscalls: socketpair, fork.
  [[nodiscard]] static Result<std::unique_ptr<Desktop>> start();

  void listen(boost::asio::io_context& io, Handler handler);
  void stop();
  /// ask is answered in any case, by `unasked` where nothing can be shown. Syscalls: send.
  void ask(const api::Offer& offer);
  /// withdraw: nobody waits for the answer any more.
  void withdraw(std::uint64_t offer);
  /// tell of a session that brought files.
  void tell(const api::End& end);

 private:
  explicit Desktop(Fd socket) : socket_{std::move(socket)} {}
  [[nodiscard]] bool send(const std::vector<std::string>& fields);
  void wait();
  void take(const std::string& message);
  void give_up();

  Fd socket_;  // until listen(); its end is the other process's end
  std::optional<boost::asio::posix::stream_descriptor> events_;
  Handler handler_;
  std::set<std::uint64_t> asked_;
};

}  // namespace onehop::tool
