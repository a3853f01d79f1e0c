// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/find/avahi_browser.hpp"

#include <fcntl.h>

#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "control/find/avahi_entry.hpp"

namespace onehop::find {

namespace {

using bus::Bus;
using bus::Number;

constexpr const char* browse_attempt = "ask Avahi for receivers";
constexpr std::int64_t any = -1;        // AVAHI_IF_UNSPEC, AVAHI_PROTO_UNSPEC
constexpr std::int64_t local_flag = 8;  // AVAHI_LOOKUP_RESULT_LOCAL: of this machine

Instance instance_of(const std::vector<bus::ByteArray>& texts) {
  constexpr std::string_view key = instance_key;
  Instance instance{};
  for (const bus::ByteArray& text : texts) {
    const std::string line{text.begin(), text.end()};
    if (!line.starts_with(key)) continue;
    std::uint64_t number = 0;
    std::from_chars(line.data() + key.size(), line.data() + line.size(), number, 16);
    for (auto one = instance.rbegin(); one != instance.rend(); ++one, number >>= 8)
      *one = static_cast<std::byte>(number);
  }
  return instance;
}

}  // namespace

std::unique_ptr<AvahiBrowser> AvahiBrowser::open(boost::asio::io_context& io, Handler handler) {
  auto bus = Bus::open(call_limit);
  if (bus.has_error() || !bus.value().has_owner(avahi)) return {};
  for (const char* interface : {".ServiceBrowser", ".ServiceResolver"})
    if (bus.value().listen(avahi, avahi + interface).has_error()) return {};
  const auto made = bus.value().call(
      avahi_server, "ServiceBrowserNew",
      {{any}, {any}, {std::string{avahi_type}}, {std::string{}}, {Number{'u', 0}}}, browse_attempt);
  const int fd = ::fcntl(bus.value().fd(), F_DUPFD_CLOEXEC, 0);  // Asio closes its own
  if (made.has_error() || fd < 0) return {};
  std::unique_ptr<AvahiBrowser> browser{
      new AvahiBrowser{io, std::move(bus).value(), fd, std::move(handler)}};
  browser->read();
  return browser;
}

void AvahiBrowser::read() {
  // What came with the answers of calls is there already.
  if (!bus_.process([this](const Bus::Signal& signal) { on(signal); })) return;
  events_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this](const boost::system::error_code& error) {
                       if (!error) read();
                     });
}

void AvahiBrowser::on(const Bus::Signal& signal) {
  if (signal.name == "ItemNew") return resolve(signal);
  if (signal.name != "Found") return;
  // ServiceResolver.Found: interface, protocol, name, type, domain, host, protocol of the address,
  // address, port, text, flags.
  auto address = IpAddress::parse(signal.at<std::string>(7));
  const auto port = signal.at<std::int64_t>(8);
  const bool is_local = (signal.at<std::int64_t>(10) & local_flag) != 0;
  if (!address || port <= 0 || is_local) return;
  const auto ifindex = static_cast<unsigned>(signal.at<std::int64_t>(0));
  if (address->is_link_local()) address->scope_id = ifindex;
  const Hint hint{.name = signal.at<std::string>(2),
                  .place = {*address, static_cast<std::uint16_t>(port)},
                  .ifindex = ifindex,
                  .instance = instance_of(signal.at<std::vector<bus::ByteArray>>(9))};
  if (is_tested_)
    test(hint);
  else
    hints_.push_back(hint);
}

bool AvahiBrowser::test() {
  is_tested_ = true;
  bool is_testing = false;
  for (const Hint& hint : std::exchange(hints_, {})) is_testing |= test(hint);
  return is_testing;
}

bool AvahiBrowser::test(const Hint& hint) {
  if (handler_.is_known(hint)) return false;
  const SocketAddress at = hint.place.to_sockaddr();
  boost::asio::ip::tcp::endpoint place;
  std::memcpy(place.data(), at.get(), at.size_bytes);
  place.resize(at.size_bytes);
  auto& socket = *tests_.emplace_back(std::make_unique<boost::asio::ip::tcp::socket>(io_));
  socket.async_connect(place, [this, hint, &socket](const boost::system::error_code& error) {
    boost::system::error_code ignored;
    socket.close(ignored);
    if (!error) handler_.on_there(hint);
  });
  return true;
}

/// ServiceBrowser.ItemNew: interface, protocol, name, type, domain, flags.
void AvahiBrowser::resolve(const Bus::Signal& found) {
  if (found_total_ >= found_max) return;
  ++found_total_;
  (void)bus_.call(avahi_server, "ServiceResolverNew",
                  {{found.at<std::int64_t>(0)},
                   {found.at<std::int64_t>(1)},
                   {found.at<std::string>(2)},
                   {found.at<std::string>(3)},
                   {found.at<std::string>(4)},
                   {found.at<std::int64_t>(1)},  // addresses of the protocol that it came over
                   {Number{'u', 0}}},
                  browse_attempt);
}

}  // namespace onehop::find
