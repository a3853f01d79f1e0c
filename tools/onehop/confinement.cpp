// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/confinement.hpp"

#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/onehop/confine/confine.hpp"
#if ONEHOP_HAS_XDP
#include "tools/onehop/confine/rights_process.hpp"
#endif
#include "control/transfer/account/rate_memory.hpp"
#include "tools/onehop/preflight.hpp"
#include "tools/onehop/watch/folder.hpp"

namespace onehop::tool {

namespace {

using confine::bit_of;
using confine::Reach;

constexpr std::uint16_t dns_port = 53;

/// What no other process can do for us: AF_XDP memory beyond the limit of locked memory, and to
/// listen on a port of root's.
confine::Capabilities port_capabilities(const Confinement& transfer) {
  confine::Capabilities kept = transfer.options.io == "udp" ? 0 : bit_of(CAP_IPC_LOCK);
  // A connection that is bound to an interface is bound to the one that is made in its place.
  if (!transfer.options.interface.empty()) kept |= bit_of(CAP_NET_RAW);
  const auto listen = transfer::parse_endpoint(transfer.listen);
  if (transfer.to.empty() && listen.has_value() && listen.value().port < IPPORT_RESERVED)
    kept |= bit_of(CAP_NET_BIND_SERVICE);
  return kept;
}

confine::LandlockRules rules_of(const Confinement& transfer) {
  confine::LandlockRules rules{.places = confine::common_places()};
  const auto add = [&](std::string path, Reach reach) {
    rules.places.push_back({std::move(path), reach});
  };
  for (const std::string& source : transfer.sources) add(source, Reach::read);
  if (!transfer.destination.empty()) add(transfer.destination, Reach::tree);
  for (const std::string& folder : transfer.accepted) add(folder, Reach::tree);
  // The key beside it was read, and stays out of reach.
  if (!transfer.devices.empty())
    add(transfer.devices + "/peers", transfer.output.is_remembered ? Reach::output : Reach::read);
  if (transfer.stream_fd >= 0)
    add("/proc/self/fd/" + std::to_string(transfer.stream_fd), Reach::device);
  // A receipt gets its name when it is whole, so its folder is written, too.
  for (const std::string& file :
       {transfer.options.trace_file, transfer.options.receipt_file, transfer.output.report_file}) {
    if (file.empty()) continue;
    add(file, Reach::device);
    // Never /dev: what stands there is no file of ours.
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0 || S_ISREG(status.st_mode))
      add(folder_of(file), Reach::output);
  }
  if (!transfer.metrics_file.empty()) add(folder_of(transfer.metrics_file), Reach::output);
  if (!transfer.state_file.empty()) {
    transfer::RateMemory{transfer.state_file}.make_folder();
    add(folder_of(transfer.state_file), Reach::output);
  }
  if (const auto watched = watch::make_folder(); watched.has_value())
    add(watched.value(), Reach::socket);
  if (!transfer.options.link_model.empty())
    add(folder_of(transfer.options.link_model), Reach::socket);
  const auto to = transfer::parse_endpoint(transfer.to);
  if (!transfer.to.empty() && to.has_value()) rules.connect_ports = {to.value().port, dns_port};
  return rules;
}

}  // namespace

Result<std::shared_ptr<Rights>> keep_rights(const api::Options& options) {
#if ONEHOP_HAS_XDP
  if (options.io != "dpdk") {
    ONEHOP_TRY(started, confine::RightsProcess::start());
    kept_rights() = started.get();
    return std::shared_ptr<Rights>{std::move(started)};
  }
#else
  (void)options;
#endif
  return std::shared_ptr<Rights>{};
}

Result<void> confine_transfer(const Confinement& transfer, const Reporter& reporter) {
  if (transfer.options.io == "dpdk") {
    reporter.say(
        "not confined: DPDK has threads of its own by now, and opens devices and files at any "
        "time");
    return success();
  }
  confine::Plan plan{.kept = port_capabilities(transfer), .files = rules_of(transfer)};
  // Who stays root reads and writes what root could, within what Landlock leaves in reach.
  if (!transfer.is_other_user)
    plan.kept_in_reach =
        bit_of(CAP_DAC_READ_SEARCH) | (transfer.destination.empty() ? 0 : bit_of(CAP_DAC_OVERRIDE));
  plan.calls = {.has_io_uring = transfer.options.file_io == "io_uring",
                .is_root = ::geteuid() == 0};
  ONEHOP_TRY(missing, confine::confine(plan));
  for (const std::string& what : missing) reporter.say("not confined by all means: " + what);
  return success();
}

}  // namespace onehop::tool
