// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/dpdk/dpdk_device.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "engine/port/dpdk/output_capture.hpp"

namespace onehop::dpdk {

namespace {

// Implementation constants. Ring sizes where the driver proposes none. Too low: a nap of the
// receiver drops frames. Too high: memory, and frames leave the cache before they are opened.
constexpr std::uint16_t ring_frames_default = 1024;
// What a software driver may hold beside its rings (net_af_xdp: a large fill ring), and batches.
constexpr std::uint32_t pool_frames_spare = 1024;
constexpr std::uint32_t room_bytes_min = 2048;
constexpr std::uint32_t ethernet_bytes = 14;

/// The attempt's text ends in the device's name. open() puts in what the driver printed, if it did.
Result<void> check(std::string_view attempt, const std::string& name, int rc) {
  if (rc == 0) return success();
  // Some drivers say -1 of whatever failed, which is EPERM's number.
  const bool is_privilege = (rc == -EPERM || rc == -EACCES) && ::geteuid() != 0;
  return Error{is_privilege ? ExitCode::privilege_missing : ExitCode::io_unavailable,
               std::string{attempt} + " DPDK device " + name, errno_text(-rc),
               is_privilege ? "Run as root"
                            : "See docs/dpdk.md for what each driver needs, or take --io udp",
               -rc};
}

Result<std::uint16_t> find_port(const std::string& name) {
  std::string names;
  const auto next_from = [](unsigned from) {
    return rte_eth_find_next_owned_by(static_cast<std::uint16_t>(from), RTE_ETH_DEV_NO_OWNER);
  };
  std::uint16_t found = 0;
  unsigned count = 0;
  for (std::uint64_t next = next_from(0); next < RTE_MAX_ETHPORTS;
       next = next_from(static_cast<unsigned>(next) + 1)) {
    const auto port = static_cast<std::uint16_t>(next);
    char text[RTE_ETH_NAME_MAX_LEN] = "";
    (void)rte_eth_dev_get_name_by_port(port, text);
    if (!name.empty() && name != text) continue;
    names += (names.empty() ? "" : ", ") + std::string{text};
    found = port;
    ++count;
  }
  if (count == 1) return found;
  if (count == 0)
    return Error{ExitCode::io_unavailable, "find the DPDK device",
                 name.empty() ? "EAL brought none up" : "there is no " + name,
                 "See docs/dpdk.md for what each driver needs"};
  return Error{ExitCode::usage, "choose the DPDK device", "--eal names several: " + names,
               "Leave one"};
}

std::string_view argument_of(std::string_view arguments, std::string_view key) {
  const std::size_t at = arguments.find(key);
  if (at == std::string_view::npos || (at > 0 && arguments[at - 1] != ',')) return {};
  arguments.remove_prefix(at + key.size());
  return arguments.substr(0, arguments.find(','));
}

std::string_view arguments_of(const rte_eth_dev_info& info) {
  const rte_devargs* arguments = info.device != nullptr ? rte_dev_devargs(info.device) : nullptr;
  return arguments != nullptr && arguments->args != nullptr ? arguments->args : "";
}

/// net_memif takes its ring's size from an argument and does not report it: its log2, else 10.
std::uint32_t memif_ring_frames(std::string_view arguments) {
  const std::string_view text = argument_of(arguments, "rsize=");
  unsigned log2 = 10;
  if (!text.empty())
    log2 = static_cast<unsigned>(std::strtoul(std::string{text}.c_str(), nullptr, 10));
  return 1U << std::min(log2, 14U);
}

}  // namespace

Result<std::unique_ptr<DpdkDevice>> DpdkDevice::open(Eal&, const DpdkDeviceConfig& config) {
  ONEHOP_TRY(port, find_port(config.name));
  std::unique_ptr<DpdkDevice> self{new DpdkDevice{port}};
  OutputCapture capture;
  auto done = self->bring_up(config);
  const std::string output = capture.end();
  if (done) return self;
  Error error = std::move(done).error();
  if (std::string cause = cause_of(output); !cause.empty()) error.cause = std::move(cause);
  return error;
}

Result<void> DpdkDevice::bring_up(const DpdkDeviceConfig& config) {
  // 1. What it is.
  rte_eth_dev_info info{};
  char name[RTE_ETH_NAME_MAX_LEN] = "";
  (void)rte_eth_dev_get_name_by_port(port_, name);
  facts_.name = name;
  ONEHOP_TRYV(check("query", facts_.name, rte_eth_dev_info_get(port_, &info)));
  facts_.driver = info.driver_name;
  char interface[IF_NAMESIZE] = "";
  if (info.if_index != 0 && ::if_indextoname(info.if_index, interface) != nullptr)
    facts_.interface = interface;
  const rte_bus* bus = info.device != nullptr ? rte_bus_find_by_device(info.device) : nullptr;
  facts_.is_virtual = bus == nullptr || std::string_view{rte_bus_name(bus)} == "vdev";
  (void)rte_eth_dev_get_mtu(port_, &facts_.mtu_bytes);
  rte_ether_addr mac{};
  (void)rte_eth_macaddr_get(port_, &mac);
  std::memcpy(facts_.mac.data(), mac.addr_bytes, facts_.mac.size());

  // 2. One queue each way. Other frames stay with the kernel where the device can split.
  rte_flow_error flow_error{};
  if (!facts_.has_own_link()) (void)rte_flow_isolate(port_, 1, &flow_error);
  rte_eth_conf conf{};
  conf.rxmode.mtu = facts_.mtu_bytes;
  ONEHOP_TRYV(check("configure", facts_.name, rte_eth_dev_configure(port_, 1, 1, &conf)));
  is_configured_ = true;
  ONEHOP_TRYV(set_up_queues());

  // 3. Start. Neighbour questions of IPv6 come by multicast.
  ONEHOP_TRYV(check("start", facts_.name, rte_eth_dev_start(port_)));
  if (facts_.has_own_link()) (void)rte_eth_allmulticast_enable(port_);
  find_telemetry(config);
  return success();
}

Result<void> DpdkDevice::set_up_queues() {
  rte_eth_dev_info info{};
  ONEHOP_TRYV(check("query", facts_.name, rte_eth_dev_info_get(port_, &info)));
  const auto size_of = [](const rte_eth_dev_portconf& conf) {
    return conf.ring_size != 0 ? conf.ring_size : ring_frames_default;
  };
  std::uint16_t rx_frames = size_of(info.default_rxportconf),
                tx_frames = size_of(info.default_txportconf);
  ONEHOP_TRYV(check("size the rings of", facts_.name,
                    rte_eth_dev_adjust_nb_rx_tx_desc(port_, &rx_frames, &tx_frames)));
  facts_.rx_frames = rx_frames;
  facts_.tx_frames = tx_frames;
  if (facts_.driver == "net_memif")
    facts_.rx_frames = facts_.tx_frames = memif_ring_frames(arguments_of(info));
  const int socket = rte_eth_dev_socket_id(port_);
  const std::uint32_t frame_bytes =
      std::uint32_t{facts_.mtu_bytes} + ethernet_bytes + header_room_bytes;
  ONEHOP_TRY(pool, FramePool::make(
                       {.frames = 3U * facts_.rx_frames + 2U * facts_.tx_frames + pool_frames_spare,
                        .room_bytes = std::max((frame_bytes + 63U) / 64U * 64U, room_bytes_min),
                        .numa_node = socket,
                        .is_packed = facts_.is_virtual}));
  pool_ = std::move(pool);
  const auto node = static_cast<unsigned>(socket < 0 ? 0 : socket);
  ONEHOP_TRYV(check("set up the receive queue of", facts_.name,
                    rte_eth_rx_queue_setup(port_, 0, rx_frames, node, nullptr, pool_.get())));
  return check("set up the send queue of", facts_.name,
               rte_eth_tx_queue_setup(port_, 0, tx_frames, node, nullptr));
}

// Whether a driver frees a sent frame when it has left, or whenever it next looks, no call tells.
// Those of software free at once what they copied (net_memif, net_vhost, net_af_packet); net_af_xdp
// and net_memif with zero-copy free at the next call what the other side has taken; drivers of
// hardware free in bulk, and late, unless they can be asked.
void DpdkDevice::find_telemetry(const DpdkDeviceConfig& config) noexcept {
  rte_eth_dev_info info{};
  const bool is_known = rte_eth_dev_info_get(port_, &info) == 0;
  const bool is_zero_copy_memif = is_known && facts_.driver == "net_memif" &&
                                  argument_of(arguments_of(info), "zero-copy=") == "yes" &&
                                  argument_of(arguments_of(info), "role=") != "server";
  facts_.has_done_cleanup = rte_eth_tx_done_cleanup(port_, 0, 0) >= 0;
  facts_.has_rx_count = rte_eth_rx_queue_count(port_, 0) >= 0;
  const bool has_states = rte_eth_tx_descriptor_status(port_, 0, 0) >= 0;
  if (facts_.has_done_cleanup || facts_.driver == "net_af_xdp" || is_zero_copy_memif)
    facts_.tx_count = TxCount::freed;
  else if (has_states)
    facts_.tx_count = TxCount::descriptor;
  const bool sees_below =
      facts_.tx_count != TxCount::handed && (!facts_.is_virtual || is_zero_copy_memif);
  facts_.scope = sees_below ? QueueScope::driver : QueueScope::own_ring;
  if (config.scope && facts_.tx_count != TxCount::handed) facts_.scope = *config.scope;
}

bool DpdkDevice::steer(const Endpoint& local) noexcept {
  rte_flow_error error{};
  if (rule_ != nullptr) (void)rte_flow_destroy(port_, std::exchange(rule_, nullptr), &error);
  rte_flow_item_ipv4 v4{}, v4_mask{};
  rte_flow_item_ipv6 v6{}, v6_mask{};
  rte_flow_item_udp udp{}, udp_mask{};
  const IpBytes& ip = local.address.bytes;
  const bool is_ipv6 = local.address.is_v6;
  if (is_ipv6) {
    std::memcpy(&v6.hdr.dst_addr, ip.data(), sizeof v6.hdr.dst_addr);
    std::memset(&v6_mask.hdr.dst_addr, 0xff, sizeof v6_mask.hdr.dst_addr);
  } else {
    std::memcpy(&v4.hdr.dst_addr, ip.data(), sizeof v4.hdr.dst_addr);
    v4_mask.hdr.dst_addr = ~rte_be32_t{0};
  }
  udp.hdr.dst_port = rte_cpu_to_be_16(local.port);
  udp_mask.hdr.dst_port = static_cast<rte_be16_t>(~rte_be16_t{0});
  rte_flow_item pattern[4]{};
  pattern[0].type = RTE_FLOW_ITEM_TYPE_ETH;
  pattern[1].type = is_ipv6 ? RTE_FLOW_ITEM_TYPE_IPV6 : RTE_FLOW_ITEM_TYPE_IPV4;
  pattern[1].spec = is_ipv6 ? static_cast<const void*>(&v6) : &v4;
  pattern[1].mask = is_ipv6 ? static_cast<const void*>(&v6_mask) : &v4_mask;
  pattern[2].type = RTE_FLOW_ITEM_TYPE_UDP;
  pattern[2].spec = &udp;
  pattern[2].mask = &udp_mask;
  pattern[3].type = RTE_FLOW_ITEM_TYPE_END;
  const rte_flow_action_queue queue{};
  rte_flow_action actions[2]{};
  actions[0].type = RTE_FLOW_ACTION_TYPE_QUEUE;
  actions[0].conf = &queue;
  actions[1].type = RTE_FLOW_ACTION_TYPE_END;
  rte_flow_attr attributes{};
  attributes.ingress = 1;
  rule_ = rte_flow_create(port_, &attributes, pattern, actions, &error);
  return rule_ != nullptr;
}

DpdkDevice::~DpdkDevice() {
  // net_af_xdp complains that it may not detach a program that is no longer its own.
  const OutputCapture quiet;
  rte_flow_error error{};
  if (rule_ != nullptr) (void)rte_flow_destroy(port_, rule_, &error);
  if (!is_configured_) return;
  const bool is_gated = gate() != nullptr && gate_.close();
  (void)rte_eth_dev_stop(port_);
  (void)rte_eth_dev_close(port_);
  if (is_gated) gate_.open();
}

}  // namespace onehop::dpdk
