// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Questioner: asks on every link who receives there, again and again, and keeps who answers.
//
// Nothing that comes is believed but that it may be worth a connection: it has the nonce of this
// look, and came over a link that was asked on. The thread of its io_context.
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
    /// Keeps answers of this name alone, and of the device of this name; empty: all. A name is what
    /// the function makes of it.
    std::string name;
    std::function<std::string(const std::string&)> shown;
    bool is_pairing = false;  ///< keeps who pairs alone; else who receives
    /// The paired device that an answer is of, by our name; empty: none that we know.
    std::function<std::string(const Answer&)> device_of;
  };

  /// `on_new` is called where an answer told something new.
  Questioner(boost::asio::io_context& io, Options options, std::function<void()> on_new);

  /// start asks at once, and then about once a second. Syscalls: those of list_links() and
  /// send_to_group() for each question.
  void start();
  /// test_reach has this machine answer itself on each link, as another one would. A firewall that
  /// keeps answers out keeps this one out.
  void test_reach();

  [[nodiscard]] const Receivers& receivers() const { return receivers_; }
  /// links: those that were asked on last.
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  /// is_reached: what test_reach() sent on that link came back.
  [[nodiscard]] bool is_reached(const Link& link) const { return reached_.contains(link.ifindex); }
  /// refused: why the kernel did not send the last question on a link, by its name.
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
