// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The program's commands, one file each. They return what the process exits with, and have said
// everything by then.
#pragma once

#include "tools/onehop/doctor.hpp"
#include "tools/onehop/options.hpp"

namespace onehop::tool {

[[nodiscard]] ExitCode send_command(SendCommand command);
[[nodiscard]] ExitCode recv_command(RecvCommand command);
[[nodiscard]] ExitCode doctor_command(const DoctorOptions& options);
[[nodiscard]] ExitCode watch_command(const WatchOptions& options);
[[nodiscard]] ExitCode plot_command(const PlotOptions& options);
[[nodiscard]] ExitCode version_command(bool is_verbose);

}  // namespace onehop::tool
