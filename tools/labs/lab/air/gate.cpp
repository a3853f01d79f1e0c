// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/air/gate.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/labs/lab/process/netns.hpp"

namespace onehop::lab::air {

namespace {

// Size table: slots of 32 bytes, sizes in units of 16. Larger than the table's end counts 1 MB and
// more.
constexpr int cell_log = 5, size_log = 4;
constexpr std::size_t table_slots = 128;
constexpr std::uint16_t too_large = 65'535;
constexpr std::uint16_t kick_cost = 0;           // the kernel makes it one byte
constexpr std::uint32_t queue_bytes = 1U << 30;  // the tap limits the queue, in frames
constexpr std::size_t slot_of(std::uint32_t bytes) noexcept { return (bytes - 1) >> cell_log; }
// A frame shorter than a slot.
constexpr std::size_t kick_bytes = 20;
// For kicks that stand between the frames of a grant, one byte each. Too few: a kick keeps the
// frames behind it back until the grant is repeated. As much as the last frame of a GSO packet
// costs (66 at the least): that frame leaves too early.
constexpr std::uint32_t kicks_cost_max = 48;

class Message {
 public:
  explicit Message(std::vector<std::byte>& out) : out_{out} { out_.clear(); }
  std::size_t raw(const void* data, std::size_t bytes) {
    const std::size_t at = out_.size();
    out_.resize(at + NLMSG_ALIGN(bytes));
    if (bytes > 0) std::memcpy(out_.data() + at, data, bytes);
    return at;
  }
  std::size_t attribute(std::uint16_t type, const void* data, std::size_t bytes) {
    const nlattr header{static_cast<std::uint16_t>(sizeof(nlattr) + bytes), type};
    raw(&header, sizeof header);
    return raw(data, bytes);
  }
  std::size_t nest(std::uint16_t type) { return attribute(type, nullptr, 0) - sizeof(nlattr); }
  void end(std::size_t nest_at) {
    const auto bytes = static_cast<std::uint16_t>(out_.size() - nest_at);
    std::memcpy(out_.data() + nest_at, &bytes, sizeof bytes);
  }

 private:
  std::vector<std::byte>& out_;
};

// answer waits for the kernel's verdict on a request with NLM_F_ACK.
int answer(int netlink) {
  std::array<std::byte, 4096> buffer;
  const ssize_t length = ::recv(netlink, buffer.data(), buffer.size(), 0);
  if (length < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr))))
    return length < 0 ? errno : EPROTO;
  nlmsgerr verdict;
  std::memcpy(&verdict, buffer.data() + NLMSG_HDRLEN, sizeof verdict);
  return -verdict.error;
}

}  // namespace

void Gate::write_message(int ifindex, int mtu_bytes) {
  unit_ = unit_bytes(mtu_bytes);
  Message out{message_};
  nlmsghdr header{};
  header.nlmsg_type = RTM_NEWQDISC;
  out.raw(&header, sizeof header);
  tcmsg qdisc{};
  qdisc.tcm_ifindex = ifindex;
  qdisc.tcm_parent = TC_H_ROOT;
  qdisc.tcm_handle = 0x10000;
  out.raw(&qdisc, sizeof qdisc);
  out.attribute(TCA_KIND, "tbf", 4);
  const std::size_t stab = out.nest(TCA_STAB);
  tc_sizespec spec{};
  spec.cell_log = cell_log;
  spec.size_log = size_log;
  // A slot ends with a whole multiple of its size: 32 bytes are the last of slot 0
  spec.cell_align = -1;
  spec.linklayer = TC_LINKLAYER_ETHERNET;
  spec.tsize = table_slots;
  out.attribute(TCA_STAB_BASE, &spec, sizeof spec);
  std::array<std::uint16_t, table_slots> table;
  table.fill(too_large);
  table[0] = kick_cost;
  // The last slot of the unit may reach beyond it; only GSO packets are there, and TBF lets those
  // go as one.
  for (std::size_t slot = 1; slot <= slot_of(unit_); ++slot)
    table[slot] = static_cast<std::uint16_t>(unit_ >> size_log);
  out.attribute(TCA_STAB_DATA, table.data(), sizeof table);
  out.end(stab);
  const std::size_t options = out.nest(TCA_OPTIONS);
  tc_tbf_qopt tbf{};
  tbf.rate.rate = 1;
  tbf.rate.linklayer = TC_LINKLAYER_ETHERNET;
  tbf.limit = queue_bytes;
  out.attribute(TCA_TBF_PARMS, &tbf, sizeof tbf);
  burst_at_ = out.attribute(TCA_TBF_BURST, &unit_, sizeof unit_);
  out.end(options);
  header.nlmsg_len = static_cast<std::uint32_t>(message_.size());
  header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
  std::memcpy(message_.data(), &header, sizeof header);
}

bool Gate::is_cut(std::uint32_t packet_bytes, std::uint32_t unit) noexcept {
  return slot_of(packet_bytes) > slot_of(unit);
}

Result<Gate> Gate::open(const Place& place, int mtu_bytes) {
  const std::string attempt = std::string{"put the gate on "} + place.device + " of " + place.host;
  const Result<InNetns> inside = InNetns::enter(place.host);
  if (inside.has_error()) return inside.error();
  Gate gate{Fd{::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)},
            Fd{::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)}};
  if (!gate.netlink_.is_open() || !gate.packet_.is_open())
    return errno_error(ExitCode::privilege_missing, attempt, "Run as root");
  gate.ifindex_ = static_cast<int>(::if_nametoindex(place.device));
  gate.write_message(gate.ifindex_, mtu_bytes);
  if (::send(gate.netlink_.get(), gate.message_.data(), gate.message_.size(), 0) < 0)
    return errno_error(ExitCode::io_unavailable, attempt);
  if (const int error = answer(gate.netlink_.get()); error != 0)
    return errno_error(ExitCode::io_unavailable, attempt, "The kernel needs CONFIG_NET_SCH_TBF",
                       error);
  // From now on: change what is there, and no answer but an error's.
  auto* const header = reinterpret_cast<nlmsghdr*>(gate.message_.data());
  header->nlmsg_flags = NLM_F_REQUEST;
  // The first frame's tokens came with the gate: a frame to nobody takes them.
  std::array<std::uint8_t, ETH_ZLEN> frame{
      0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, ETH_P_802_EX1 >> 8, ETH_P_802_EX1 & 0xff};
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(ETH_P_802_EX1);
  to.sll_ifindex = gate.ifindex_;
  if (::bind(gate.packet_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return errno_error(ExitCode::io_unavailable, attempt);
  if (::send(gate.packet_.get(), frame.data(), frame.size(), 0) < 0)
    return errno_error(ExitCode::io_unavailable, attempt);
  return gate;
}

bool Gate::grant(std::uint32_t cost_bytes) noexcept {
  // A burst below a unit would make TBF refuse every packet at its door. The rest of it is too
  // little for a packet.
  const std::uint32_t burst = std::max(cost_bytes, unit_) + kicks_cost_max;
  std::memcpy(message_.data() + burst_at_, &burst, sizeof burst);
  if (::send(netlink_.get(), message_.data(), message_.size(), MSG_DONTWAIT) < 0) return false;
  constexpr std::array<std::uint8_t, kick_bytes> frame{
      0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, ETH_P_802_EX1 >> 8, ETH_P_802_EX1 & 0xff};
  return ::send(packet_.get(), frame.data(), frame.size(), 0) >= 0 || errno == ENOBUFS;
}

int Gate::error() noexcept {
  std::array<std::byte, 4096> buffer;
  const ssize_t length = ::recv(netlink_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (length < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr)))) return 0;
  nlmsgerr verdict;
  std::memcpy(&verdict, buffer.data() + NLMSG_HDRLEN, sizeof verdict);
  return -verdict.error;
}

}  // namespace onehop::lab::air
