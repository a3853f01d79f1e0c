// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Service: what `recv --service` does beside receiving: systemd is told, sessions are counted, a
// program is run. Main thread.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "control/transfer/api/transfer.hpp"
#include "tools/onehop/service/arrivals.hpp"
#include "tools/onehop/service/metrics.hpp"
#include "tools/onehop/service/notifier.hpp"
#include "tools/onehop/text/report.hpp"

namespace onehop::tool {

class Service {
 public:
  explicit Service(ServiceOptions options) : options_{std::move(options)} {}
  /// start: as the user that we are by now, before there are threads and before it is confined.
  /// Errors: Arrivals::start()'s; 8, the file of metrics cannot be written.
  [[nodiscard]] Result<void> start();
  [[nodiscard]] double beat_seconds() const noexcept { return notifier_.beat_seconds(); }
  void note(const api::Event& event, const Reporter& reporter);

 private:
  void note_end(const api::End& end, const Reporter& reporter);
  const ServiceOptions options_;
  const Notifier notifier_;
  Metrics metrics_;
  std::unique_ptr<Arrivals> arrivals_;  // null: nothing is run
};

}  // namespace onehop::tool
