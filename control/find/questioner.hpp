// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Questioner asks for receivers on every link, again and again, and keeps the answers. An answer is
// kept only with the nonce of this search and from a link that was asked on, and is only a hint
// where to connect. The thread of its io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "control/find/links.hpp"
#include "control/find/receivers.hpp"

namespace onehop::find {

class Questioner {
 public:
  struct Options {
    std::string interface;  ///< asks on this link alone; empty: on all
    /// Keeps only answers of this name, or of the device of this name; empty: all. `shown` converts
    /// a name to its comparable form.
    std::string name;
    std::function<std::string(const std::string&)> shown;
    bool is_pairing = false;  ///< keeps only devices that pair; else only receivers
    /// Returns our name of the paired device that sent an answer; empty: not a known one.
    std::function<std::string(const Answer&)> device_of;
  };

  /// `on_new` is called when an answer brought something new.
  Questioner(boost::asio::io_context& io, Options options, std::function<void()> on_new);

  /// start asks at once, and then about once a second. Syscalls: those of list_links() and
  /// send_to_group() for each question.
  void start();
  /// test_reach makes this machine answer itself on each link, as another one would. A firewall
  /// that blocks answers blocks this one, too.
  void test_reach();

  /// note_hint has a receiver listed that did not answer; it is on a link that was asked on.
  void note_hint(const Answer& said, const Endpoint& place, unsigned ifindex);

  [[nodiscard]] const Receivers& receivers() const { return receivers_; }
  /// links: those of the last question.
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  /// is_reached: the datagram that test_reach() sent on that link came back.
  [[nodiscard]] bool is_reached(const Link& link) const { return reached_.contains(link.ifindex); }
  /// refused: why the kernel did not send the last question on a link, by the link's name.
  [[nodiscard]] const std::map<std::string, std::string>& refused() const { return refused_; }

 private:
  struct Mouth {
    bool is_v6;
    boost::asio::posix::stream_descriptor socket;
  };
  void open(bool is_v6);
  void ask();
  void wait(Mouth& mouth);
  void take(const Datagram& datagram);
  [[nodiscard]] Way way_of(const Link& link, const IpAddress& address);
  [[nodiscard]] BytesPerSecond rate_of(const std::string& interface);

  boost::asio::io_context& io_;
  const Options options_;
  const std::function<void()> on_new_;
  const Nonce nonce_;
  std::vector<std::unique_ptr<Mouth>> mouths_;
  boost::asio::steady_timer timer_;
  int asked_total_ = 0;
  std::vector<Link> links_;
  Receivers receivers_;
  std::set<unsigned> reached_;
  std::map<std::string, std::string> refused_;
  std::map<std::string, BytesPerSecond> rates_;
};

}  // namespace onehop::find
