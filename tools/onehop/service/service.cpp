// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/service/service.hpp"

#include <fmt/format.h>

namespace onehop::tool {

Result<void> Service::start() {
  if (!options_.metrics_file.empty()) {
    ONEHOP_TRYV(metrics_.write(options_.metrics_file));
  }
  if (options_.on_received.empty()) return success();
  ONEHOP_TRY(started, Arrivals::start(options_.on_received));
  arrivals_ = std::move(started);
  return success();
}

void Service::note(const api::Event& event, const Reporter& reporter) {
  if (std::holds_alternative<api::Started>(event)) notifier_.tell("READY=1");
  if (std::holds_alternative<api::Beat>(event)) notifier_.tell("WATCHDOG=1");
  if (const auto* end = std::get_if<api::End>(&event)) note_end(*end, reporter);
}

void Service::note_end(const api::End& end, const Reporter& reporter) {
  metrics_.count(end);
  if (!options_.metrics_file.empty())
    if (const auto written = metrics_.write(options_.metrics_file); written.has_error())
      reporter.warn(written.error().message());
  const bool has_files = end.exit_code == api::Status::done && end.files_total > 0;
  if (!arrivals_ || !has_files) return;
  const auto run = arrivals_->run({{"ONEHOP_DEVICE", end.device},
                                   {"ONEHOP_ADDRESS", end.peer},
                                   {"ONEHOP_FOLDER", end.directory},
                                   {"ONEHOP_PATH", end.files_total == 1 ? end.path : ""},
                                   {"ONEHOP_FILES", std::to_string(end.files_total)},
                                   {"ONEHOP_BYTES", std::to_string(end.bytes_total)},
                                   {"ONEHOP_SECONDS", fmt::format("{:.3f}", end.seconds)}});
  if (run.has_error()) reporter.warn(run.error().message());
}

}  // namespace onehop::tool
