// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/port/dpdk_host.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>

#include "engine/base/system/cpu.hpp"
#include "engine/port/dpdk/eal_arguments.hpp"
#if ONEHOP_HAS_XDP
#include "xdp/steer.hpp"
#include "xdp/xsk_queue.hpp"
#endif

namespace onehop::transfer {

Result<void> check_eal(const Settings& options) {
  if (options.io != "dpdk") {
    if (options.eal.empty()) return success();
    return Error{ExitCode::usage, "use --eal", "it is for --io dpdk",
                 "Add --io dpdk, or leave --eal out"};
  }
  ONEHOP_TRY(words, dpdk::split_words(options.eal));
  return dpdk::check_words(words);
}

Result<std::string> kernel_interface_of(const Settings& options) {
  ONEHOP_TRY(words, dpdk::split_words(options.eal));
  for (const char* driver : {"net_af_xdp", "net_af_packet"}) {
    if (std::string name = dpdk::device_argument(words, driver, "iface"); !name.empty())
      return name;
  }
  return std::string{};
}

namespace {

/// EAL's lcore is where the engine will run, so that EAL's own threads stay off it: the core asked
/// for, else the last one.
Result<int> engine_cpu(const Settings& options) {
  ONEHOP_TRY(core, choose_core(options.core));
  if (core) return *core;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) last = cpu;
  return last;
}

std::string summary_of(const std::string& version, const dpdk::Device& device, bool is_steered) {
  const dpdk::DeviceFacts& facts = device.facts();
  const std::string link =
      facts.has_own_link() ? "DPDK owns the link" : "beside the kernel on " + facts.interface;
  return fmt::format("{} {} ({}), {}{}, frames in {}", version, facts.name, facts.driver, link,
                     is_steered ? ", own steering program" : "",
                     device.is_huge() ? "huge pages" : "small pages (--no-huge)");
}

}  // namespace

Result<void> DpdkHost::steer(std::vector<std::string>& words,
                             const std::optional<onehop::Endpoint>& local) {
  const std::string name = dpdk::device_argument(words, "net_af_xdp", "iface");
  ONEHOP_TRY(facts, read_interface_facts(name));
  scope_ = tx_scope(facts, false);
  if (!dpdk::device_argument(words, "net_af_xdp", "xdp_prog").empty()) return success();
#if ONEHOP_HAS_XDP
  if (!local)
    return Error{ExitCode::usage, "steer frames to net_af_xdp on " + name,
                 "no local address was given", "Name it with --listen ADDR"};
  if (const std::string other = xdp::attached_program(facts.ifindex); !other.empty())
    return Error{ExitCode::io_unavailable, "give net_af_xdp the interface " + name,
                 "it already has the XDP program " + other,
                 "Detach it: ip link set " + name + " xdp off, where nobody needs it"};
  ONEHOP_TRY(reservation, UdpReservation::bind(*local));
  reservation_ = std::move(reservation);
  steered_ = reservation_.address();
  ONEHOP_TRY(file, xdp::steer_file(xdp::steer_frames(*steered_)));
  steer_file_ = std::move(file);
  dpdk::add_device_argument(words, "net_af_xdp", "xdp_prog=" + xdp::path_of(steer_file_));
  return success();
#else
  (void)local;
  return Error{ExitCode::io_unavailable, "steer frames to net_af_xdp on " + name,
               "this build has no steering program (libxdp, libbpf or clang was missing)",
               "Name one of your own: xdp_prog=FILE"};
#endif
}

Result<std::unique_ptr<DpdkHost>> DpdkHost::open(const Settings& options,
                                                 const std::optional<onehop::Endpoint>& local) {
  // 1. Arguments.
  ONEHOP_TRY(words, dpdk::split_words(options.eal));
  ONEHOP_TRYV(dpdk::check_words(words));
  ONEHOP_TRY(cpu, engine_cpu(options));
  ONEHOP_TRY(module, dpdk::load());
  std::unique_ptr<DpdkHost> self{new DpdkHost};
  if (dpdk::has_device(words, "net_af_xdp")) {
    ONEHOP_TRYV(self->steer(words, local));
  }

  // 2. EAL and the device. A driver that closes its queues tells a peer on a socket
  // (net_virtio_user: GET_VRING_BASE), which may be gone by then. That write raises SIGPIPE, which
  // the process ignores (transfer.hpp).
  ONEHOP_TRY(device,
             module->open(dpdk::complete(std::move(words), dpdk::read_host(cpu)), self->scope_));
  self->device_ = std::move(device);
  const dpdk::DeviceFacts& facts = self->device_->facts();
  self->interface_ = facts.interface;
  self->device_name_ = facts.name;

  // 3. The program that the driver attached becomes ours: it is to go with us, and without root's
  // privileges. And the driver's socket gets the room that its ring has.
#if ONEHOP_HAS_XDP
  if (facts.driver == "net_af_xdp")
    xdp::widen_sockets(facts.tx_frames, facts.mtu_bytes + 14U, priority_of(options));
  if (self->steered_) {
    ONEHOP_TRY(link, xdp::hold_program(static_cast<int>(::if_nametoindex(facts.interface.c_str())),
                                       facts.interface));
    self->steer_link_ = std::move(link);
  }
#endif
  self->summary_ =
      summary_of(module->library_version(), *self->device_, self->steered_.has_value());
  return self;
}

Result<std::unique_ptr<dpdk::ModulePort>> DpdkHost::open_port(const onehop::Endpoint& local) {
  if (steered_ && steered_->address != local.address)
    return Error{ExitCode::io_unavailable, "open the DPDK port",
                 "frames on " + interface_ + " are steered by another address",
                 "Name the one that the peer uses with --listen ADDR"};
  DpdkPortConfig config;
  config.local = steered_ ? *steered_ : local;  // with the port that the program knows
  config.reservation = std::move(reservation_);
  return device_->open_port(std::move(config));
}

}  // namespace onehop::transfer
