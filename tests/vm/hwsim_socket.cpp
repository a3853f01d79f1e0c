// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tests/vm/hwsim_socket.hpp"

#include <linux/genetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "engine/base/check.hpp"
#include "engine/base/system/netlink_message.hpp"
#include "engine/base/time.hpp"

namespace onehop::vm {

namespace {
// Specification constants: the family's commands, attributes and flags. No header of the kernel's
// user interface has them.
constexpr std::uint8_t command_register = 1, command_frame = 2, command_tx_info = 3;
constexpr std::uint16_t attr_receiver = 1, attr_transmitter = 2, attr_frame = 3, attr_flags = 4,
                        attr_rx_rate = 5, attr_signal = 6, attr_tx_info = 7, attr_cookie = 8,
                        attr_frequency = 19;
constexpr std::uint32_t flag_acked = 4;
constexpr char family_name[] = "MAC80211_HWSIM";

// Ours. Low: the socket is full while this program waits for its CPU, and drops frames. High:
// memory.
constexpr int receive_buffer_bytes = 8 << 20;
constexpr std::int32_t signal_dbm = -40;  // ours: a near peer
constexpr std::byte no_rate{0xff};
// Least length of a frame of 802.11 with two addresses.
constexpr std::size_t frame_bytes_min = 16;

template <class T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span{&value, 1});
}

std::optional<AirFrame> read_frame(std::span<const std::byte> body) {
  AirFrame frame;
  bool has_radio = false, has_cookie = false;
  each_attribute(body, [&](std::uint16_t type, std::span<const std::byte> value) {
    switch (type) {
      case attr_transmitter: has_radio = read_value(value, frame.radio); break;
      case attr_frame: frame.bytes.assign(value.begin(), value.end()); break;
      case attr_flags: (void)read_value(value, frame.flags); break;
      case attr_cookie: has_cookie = read_value(value, frame.cookie); break;
      case attr_frequency: (void)read_value(value, frame.frequency_mhz.emplace()); break;
      case attr_tx_info:
        std::ranges::copy(value.first(std::min(value.size(), frame.rates.size())),
                          frame.rates.begin());
        break;
      default: break;
    }
  });
  if (!has_radio || !has_cookie || frame.bytes.size() < frame_bytes_min) return std::nullopt;
  return frame;
}
}  // namespace

RadioAddress AirFrame::address_at(std::size_t offset) const noexcept {
  RadioAddress address;
  std::memcpy(address.data(), bytes.data() + offset, address.size());
  return address;
}

Result<HwsimSocket> HwsimSocket::open() {
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_GENERIC));
  const int size = receive_buffer_bytes, yes = 1;
  (void)::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  // A full socket drops frames, as any medium does.
  (void)::setsockopt(socket.fd(), SOL_NETLINK, NETLINK_NO_ENOBUFS, &yes, sizeof yes);
  std::uint16_t family = 0;
  NetlinkRequest ask{GENL_ID_CTRL, 0, genlmsghdr{.cmd = CTRL_CMD_GETFAMILY, .version = 1}};
  ::mnl_attr_put_strz(ask, CTRL_ATTR_FAMILY_NAME, family_name);
  ONEHOP_TRYV(socket.request(ask, [&](const nlmsghdr* message) {
    genlmsghdr header;
    const auto body = message_body(onehop::bytes_of(message), GENL_ID_CTRL, header);
    if (!body) return;
    each_attribute(*body, [&](std::uint16_t type, std::span<const std::byte> value) {
      if (type == CTRL_ATTR_FAMILY_ID) (void)read_value(value, family);
    });
  }));
  HwsimSocket self{std::move(socket), family};
  self.begin(command_register);
  self.send();
  self.read_pending();
  if (self.refused_)
    return Error{.attempt = "become the medium of mac80211_hwsim",
                 .cause = "it refuses",
                 .hint = "run in the first network namespace, as root"};
  return self;
}

void HwsimSocket::begin(std::uint8_t command) noexcept {
  const nlmsghdr header{
      .nlmsg_type = family_, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = ++sequence_};
  const genlmsghdr family{.cmd = command, .version = 1};
  std::memcpy(message_.data(), &header, sizeof header);
  std::memcpy(message_.data() + NLMSG_HDRLEN, &family, sizeof family);
  message_bytes_ = NLMSG_HDRLEN + GENL_HDRLEN;
}

void HwsimSocket::put(std::uint16_t type, std::span<const std::byte> value) noexcept {
  const std::size_t whole = NLA_ALIGN(NLA_HDRLEN + value.size());
  ONEHOP_CHECK(message_bytes_ + whole <= message_.size());
  const nlattr header{.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + value.size()),
                      .nla_type = type};
  std::byte* at = message_.data() + message_bytes_;
  std::memset(at, 0, whole);
  std::memcpy(at, &header, sizeof header);
  std::memcpy(at + NLA_HDRLEN, value.data(), value.size());
  message_bytes_ += whole;
}

void HwsimSocket::send() {
  const auto length = static_cast<std::uint32_t>(message_bytes_);
  std::memcpy(message_.data(), &length, sizeof length);
  (void)::send(fd(), message_.data(), message_bytes_, 0);
}

// read_pending takes what the kernel has put into the socket: frames of radios, and what it says of
// our own messages.
void HwsimSocket::read_pending() {
  (void)socket_.receive_pending([this](const nlmsghdr* message) {
    const auto bytes = onehop::bytes_of(message);
    genlmsghdr family;
    nlmsgerr error;
    if (message->nlmsg_type == NLMSG_ERROR) {
      if (read_value(bytes.subspan(NLMSG_HDRLEN), error) && error.error != 0)
        refused_ = error.msg.nlmsg_seq;
      return;
    }
    const auto body = message_body(bytes, family_, family);
    if (!body || family.cmd != command_frame) return;
    if (auto frame = read_frame(*body)) {
      frame->at = monotonic_now();
      pending_.push_back(std::move(*frame));
    }
  });
}

void HwsimSocket::receive(std::vector<AirFrame>& frames) {
  read_pending();
  std::ranges::move(pending_, std::back_inserter(frames));
  pending_.clear();
}

// hwsim answers within sendto, so its refusal is in the socket when that returns.
bool HwsimSocket::deliver(const AirFrame& frame, const RadioAddress& radio) {
  begin(command_frame);
  put(attr_receiver, bytes_of(radio));
  put(attr_frame, frame.bytes);
  put(attr_rx_rate, bytes_of(std::uint32_t{0}));
  put(attr_signal, bytes_of(signal_dbm));
  if (frame.frequency_mhz) put(attr_frequency, bytes_of(*frame.frequency_mhz));
  send();
  read_pending();
  return refused_ != sequence_;
}

bool HwsimSocket::report(const AirFrame& frame, bool is_acked) {
  // One attempt at the first rate: losses here are the medium's, and say nothing of the rate.
  std::array<std::byte, 8> rates = frame.rates;
  rates[1] = std::byte{1};
  for (std::size_t i = 2; i < rates.size(); i += 2) {
    rates[i] = no_rate;
    rates[i + 1] = std::byte{0};
  }
  begin(command_tx_info);
  put(attr_transmitter, bytes_of(frame.radio));
  put(attr_flags, bytes_of(frame.flags | (is_acked ? flag_acked : 0)));
  put(attr_cookie, bytes_of(frame.cookie));
  put(attr_tx_info, rates);
  put(attr_signal, bytes_of(signal_dbm));
  send();
  read_pending();
  return refused_ != sequence_;
}

}  // namespace onehop::vm
