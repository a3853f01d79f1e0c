// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop doctor: what onehop can see and use here. Exit code 0 where each interface looked at can
// be used, 9 where one is not there or has no carrier.
#include <fmt/format.h>
#include <net/if.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "tools/onehop/command/commands.hpp"
#include "tools/onehop/confine/seccomp.hpp"
#include "tools/onehop/doctor/doctor.hpp"
#include "tools/onehop/privilege.hpp"

namespace onehop::tool {

Result<Diagnosis> diagnose(const std::string& interface, Probe probe) {
  const int ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  if (ifindex == 0) {
    return Error{ExitCode::io_unavailable, "look at interface '" + interface + "'",
                 "there is none of this name", "`ip link` lists the interfaces", 0};
  }
  Diagnosis out{.interface = interface};
  find_interface(ifindex, out);
  find_io(interface, probe, out);
  find_telemetry(ifindex, out);
  find_limits(out);
  // The sockets that tell how frames leave also tell the limits of their buffers: sections together
  // again.
  const auto rank = [](const Finding& finding) {
    static constexpr std::array<std::string_view, 6> order{"interface", "io",     "radio",
                                                           "telemetry", "limits", "quirks"};
    return std::ranges::find(order, finding.section) - order.begin();
  };
  std::ranges::stable_sort(out.findings, {}, rank);
  return out;
}

namespace {

ExitCode print_system_calls() {
  for (const confine::SystemCall& call : confine::system_calls()) {
    const std::string_view when = confine::describe(call.let);
    fmt::print("{}{}{}\n", call.name, when.empty() ? "" : "  ", when);
  }
  return ExitCode::done;
}

ExitCode try_peer(const DoctorOptions& options, const Reporter& reporter) {
  const auto tried = diagnose_peer(options.peer, options.interface, reporter);
  if (!tried) {
    reporter.error(tried.error());
    return tried.error().code;
  }
  if (options.is_json)
    reporter.event("reach", reach_json(tried.value()));
  else
    fmt::print("{}", doctor_text(tried.value()));
  return tried.value().is_usable ? ExitCode::done : ExitCode::peer_unreachable;
}

}  // namespace

ExitCode doctor_command(const DoctorOptions& options) {
  if (options.has_system_calls) return print_system_calls();
  OutputOptions common;
  common.is_json = options.is_json;
  const Reporter reporter{common, "doctor"};
  if (!options.peer.empty()) return try_peer(options, reporter);
  std::vector<std::string> names = interfaces_up();
  if (!options.interface.empty()) names.assign(1, options.interface);
  if (names.empty()) {
    const Error error{ExitCode::io_unavailable, "look for an interface", "none is up",
                      "ip link set NAME up", 0};
    reporter.error(error);
    return error.code;
  }
  if (const auto free = check_report(options.report_file); !free) {
    reporter.error(free.error());
    return free.error().code;
  }
  const Probe probe = !options.is_probing         ? Probe::none
                      : options.is_on_spare_queue ? Probe::spare_queue
                                                  : Probe::as_sent;
  std::vector<Diagnosis> found;
  ExitCode code = ExitCode::done;
  for (const std::string& name : names) {
    auto diagnosis = diagnose(name, probe);
    if (!diagnosis) {
      reporter.error(diagnosis.error());
      return diagnosis.error().code;
    }
    if (!diagnosis.value().is_usable) code = ExitCode::io_unavailable;
    if (options.is_json)
      reporter.event("doctor", doctor_json(diagnosis.value()));
    else
      fmt::print("{}{}", &name == &names.front() ? "" : "\n", doctor_text(diagnosis.value()));
    found.push_back(std::move(diagnosis).value());
  }
  if (options.report_file.empty()) return code;
  // Made by sudo's user, the file is that user's.
  const auto user = become_for_files({}, {});
  const auto rc = user ? write_report(options.report_file, found) : user.error();
  if (!rc) {
    reporter.error(rc.error());
    return rc.error().code;
  }
  reporter.say("The report is in '" + options.report_file + "'. Read it before you send it.");
  return code;
}

}  // namespace onehop::tool
