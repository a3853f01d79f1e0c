// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Responder answers senders that look for receivers, while a receiver waits or is in a session.
//
//   question ─▶ group socket of each link and family ─▶ of a neighbour? ─▶ limiter ─▶ answer
//   rtnetlink ─▶ the links have changed ─▶ other sockets
//
// It answers neighbours alone: link-local addresses on the link, or addresses in a local subnet
// there. (A hop limit of 1 would prove nothing: a sender can choose the hop limit at arrival.) It
// reads a bounded number of datagrams in a turn, and pauses if more wait, so a flood costs a
// bounded time. Its sockets receive only what is sent to the group: no frame of a transfer arrives
// there, and none of their datagrams at the data port.
//
// At its start it sends itself a question. If that does not come back, a firewall of this machine
// blocks all others, too.
//
// The thread of its io_context; between two questions only changes of links wake it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/find/answer_limiter.hpp"
#include "control/find/links.hpp"
#include "engine/base/system/netlink.hpp"

namespace onehop::find {

class Responder {
 public:
  struct Options {
    std::string name;                  ///< shown to all on the link
    std::string interface;             ///< answers on this link alone; empty: on all
    std::optional<IpAddress> address;  ///< the address the receiver listens on; none: all of
                                       ///< `families`
    bool has_v6 = true;                ///< IPv6 is listened on
    bool is_pairing = false;           ///< it pairs, and takes no files
    /// What paired devices recognize us by, for that question and this run; empty: none is to.
    std::function<PeerHash(const Nonce&, const Instance&)> peer_hash;
    /// Links that let in no question, reported once.
    std::function<void(const std::vector<std::string>&)> on_blocked;
  };

  /// open opens the sockets. Error: 9, if a link refuses them. Syscalls: those of list_links(),
  /// open_group_socket() and NetlinkSocket::open(); fcntl.
  [[nodiscard]] static Result<std::unique_ptr<Responder>> open(boost::asio::io_context& io,
                                                               Options options);

  /// is_there: there is a link to answer on.
  [[nodiscard]] bool is_there() const { return !doors_.empty(); }
  /// instance is this run's number.
  [[nodiscard]] const Instance& instance() const { return instance_; }
  /// start answers from now on that a receiver listens on this port.
  void start(std::uint16_t port);
  void stop();

 private:
  struct Door {
    Link link;
    bool is_v6;
    boost::asio::posix::stream_descriptor socket;
    boost::asio::steady_timer pause;
  };

  Responder(boost::asio::io_context& io, Options options, NetlinkSocket news, int news_fd);
  [[nodiscard]] Result<void> open_doors();
  void follow_links();
  void ask_self();
  void wait(const std::shared_ptr<Door>& door);
  void read(const std::shared_ptr<Door>& door);
  void answer(Door& door, const Datagram& datagram);

  boost::asio::io_context& io_;
  const Options options_;
  NetlinkSocket news_;
  boost::asio::posix::stream_descriptor news_events_;
  boost::asio::steady_timer settle_timer_, self_timer_;
  std::vector<Link> links_;
  std::vector<std::shared_ptr<Door>> doors_;
  AnswerLimiter limiter_;
  Instance instance_{};
  Nonce self_nonce_{};
  std::set<std::string> reached_;  // links whose question to ourselves came in
  std::uint16_t port_ = 0;         // 0: not yet, or no longer
};

}  // namespace onehop::find
