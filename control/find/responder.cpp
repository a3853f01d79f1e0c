// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/find/responder.hpp"

#include <fcntl.h>
#include <linux/rtnetlink.h>

#include <utility>

#include "engine/base/time.hpp"

namespace onehop::find {

namespace {

using Wait = boost::asio::posix::stream_descriptor::wait_type;

// More: a flood takes more of a core. Fewer: honest questions drown earlier.
constexpr int questions_per_turn_max = 64;
constexpr Nanos flood_pause = 20ms;
// The kernel reports an interface that comes up in several messages; its addresses follow them.
constexpr Nanos settle_span = 300ms;
// For a datagram that does not leave the machine.
constexpr Nanos self_limit = 300ms;

}  // namespace

Responder::Responder(boost::asio::io_context& io, Options options, NetlinkSocket news, int news_fd)
    : io_{io},
      options_{std::move(options)},
      news_{std::move(news)},
      news_events_{io, news_fd},
      settle_timer_{io},
      self_timer_{io} {
  fill_random(instance_);
  fill_random(self_nonce_);
}

Result<std::unique_ptr<Responder>> Responder::open(boost::asio::io_context& io, Options options) {
  constexpr std::array<unsigned, 3> groups{RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR};
  ONEHOP_TRY(news, NetlinkSocket::open(NETLINK_ROUTE, groups));
  const int fd = ::fcntl(news.fd(), F_DUPFD_CLOEXEC, 0);  // Asio closes its own
  if (fd < 0) return errno_error(ExitCode::io_unavailable, "follow the links of this machine");
  std::unique_ptr<Responder> made{new Responder{io, std::move(options), std::move(news), fd}};
  ONEHOP_TRYV(made->open_doors());
  return made;
}

Result<void> Responder::open_doors() {
  for (const auto& door : std::exchange(doors_, {})) {
    door->socket.close();
    door->pause.cancel();
  }
  links_ = list_links(options_.interface);
  std::optional<Error> refused;  // the others are answered on all the same
  for (const Link& link : links_)
    for (const bool is_v6 : {true, false}) {
      const auto& own = options_.address;
      const bool is_listened_on =
          own ? link.has_address(*own) && own->is_v6 == is_v6 : options_.has_v6 || !is_v6;
      if (!link.has_family(is_v6) || !is_listened_on) continue;
      auto fd = open_group_socket(link, is_v6);
      if (fd.has_error()) {
        refused = fd.error();
        continue;
      }
      doors_.push_back(std::make_shared<Door>(
          Door{link, is_v6, boost::asio::posix::stream_descriptor{io_, fd.value().release()},
               boost::asio::steady_timer{io_}}));
      if (port_ != 0) wait(doors_.back());
    }
  if (!refused) return success();
  links_.clear();  // the next news tries again
  if (doors_.empty()) return *refused;
  return success();
}

void Responder::start(std::uint16_t port) {
  port_ = port;
  for (const auto& door : doors_) wait(door);
  follow_links();
  ask_self();
}

void Responder::stop() {
  port_ = 0;
  for (const auto& door : doors_) {
    door->socket.close();
    door->pause.cancel();
  }
  doors_.clear();
  boost::system::error_code ignored;
  news_events_.close(ignored);
  settle_timer_.cancel();
  self_timer_.cancel();
}

void Responder::follow_links() {
  news_events_.async_wait(Wait::wait_read, [this](const boost::system::error_code& error) {
    if (error || port_ == 0) return;
    (void)news_.receive_pending([](const nlmsghdr*) {});
    settle_timer_.expires_after(settle_span);
    settle_timer_.async_wait([this](const boost::system::error_code& stopped) {
      if (stopped || port_ == 0) return;
      (void)news_.receive_pending([](const nlmsghdr*) {});
      if (list_links(options_.interface) != links_) (void)open_doors();
      follow_links();
    });
  });
}

void Responder::ask_self() {
  const QuestionBytes question = encode(Question{self_nonce_});
  // Where no question leaves, as from an address that is not proven to be unique yet, nothing is
  // known of firewalls.
  std::set<std::string> asked;
  for (const auto& door : doors_) {
    const auto asking = open_asking_socket(door->is_v6);
    if (asking && door->link.has_carrier &&
        send_to_group(asking.value().get(), door->link, door->is_v6, group_port, question,
                      Reach::self))
      asked.insert(door->link.name);
  }
  self_timer_.expires_after(self_limit);
  self_timer_.async_wait([this, asked](const boost::system::error_code& stopped) {
    if (stopped || port_ == 0) return;
    std::vector<std::string> blocked;
    for (const std::string& name : asked)
      if (!reached_.contains(name)) blocked.push_back(name);
    if (!blocked.empty() && options_.on_blocked) options_.on_blocked(blocked);
  });
}

void Responder::wait(const std::shared_ptr<Door>& door) {
  door->socket.async_wait(Wait::wait_read, [this, door](const boost::system::error_code& error) {
    if (!error && port_ != 0 && door->socket.is_open()) read(door);
  });
}

void Responder::read(const std::shared_ptr<Door>& door) {
  std::array<std::byte, question_bytes + 1> room;  // one that is longer is no question
  for (int i = 0; i < questions_per_turn_max; ++i) {
    const auto datagram = receive_datagram(door->socket.native_handle(), room);
    if (!datagram) return wait(door);
    answer(*door, *datagram);
  }
  door->pause.expires_after(flood_pause);
  door->pause.async_wait([this, door](const boost::system::error_code& stopped) {
    if (!stopped && port_ != 0 && door->socket.is_open()) wait(door);
  });
}

void Responder::answer(Door& door, const Datagram& datagram) {
  const auto question = decode_question(datagram.bytes);
  if (!question) return;
  if (question->nonce == self_nonce_) {
    reached_.insert(door.link.name);
    return;
  }
  const IpAddress& asker = datagram.from.address;
  if (!door.link.is_near(asker) || !limiter_.take(asker, monotonic_now())) return;
  Answer said{.nonce = question->nonce,
              .instance = instance_,
              .port = port_,
              .is_pairing = options_.is_pairing,
              .name = options_.name};
  if (options_.peer_hash)
    said.peer_hash = options_.peer_hash(question->nonce, instance_);
  else
    fill_random(said.peer_hash);
  send_answer(door.socket.native_handle(), datagram.from, options_.address,
              encode(said).datagram());
}

}  // namespace onehop::find
