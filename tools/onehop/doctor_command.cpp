// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop doctor: what onehop can see and use here. Exit code 0 where each interface looked at can
// be used, 9 where one is not there or has no carrier.
#include <fmt/format.h>
#include <net/if.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "tools/onehop/commands.hpp"
#include "tools/onehop/doctor.hpp"

namespace onehop::tool {

Result<Diagnosis> diagnose(const std::string& interface, bool is_probing) {
  const int ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  if (ifindex == 0) {
    return Error{ExitCode::io_unavailable, "look at interface '" + interface + "'",
                 "there is none of this name", "`ip link` lists the interfaces", 0};
  }
  Diagnosis out{.interface = interface};
  find_interface(ifindex, out);
  find_io(interface, is_probing, out);
  find_telemetry(ifindex, out);
  find_limits(out);
  // The sockets that tell how frames leave also tell the limits of their buffers: sections together
  // again.
  const auto rank = [](const Finding& finding) {
    static constexpr std::array<std::string_view, 4> order{"interface", "io", "telemetry",
                                                           "limits"};
    return std::ranges::find(order, finding.section) - order.begin();
  };
  std::ranges::stable_sort(out.findings, {}, rank);
  return out;
}

ExitCode doctor_command(const DoctorOptions& options) {
  OutputOptions common;
  common.is_json = options.is_json;
  const Reporter reporter{common, "doctor"};
  std::vector<std::string> names = interfaces_up();
  if (!options.interface.empty()) names.assign(1, options.interface);
  if (names.empty()) {
    const Error error{ExitCode::io_unavailable, "look for an interface", "none is up",
                      "ip link set NAME up", 0};
    reporter.error(error);
    return error.code;
  }
  ExitCode code = ExitCode::done;
  for (const std::string& name : names) {
    const auto diagnosis = diagnose(name, options.is_probing);
    if (!diagnosis) {
      reporter.error(diagnosis.error());
      return diagnosis.error().code;
    }
    if (!diagnosis.value().is_usable) code = ExitCode::io_unavailable;
    if (options.is_json)
      reporter.event("doctor", doctor_json(diagnosis.value()));
    else
      fmt::print("{}{}", &name == &names.front() ? "" : "\n", doctor_text(diagnosis.value()));
  }
  return code;
}

}  // namespace onehop::tool
