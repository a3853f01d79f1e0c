// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Service: what `recv --service` does beside receiving: systemd is told, sessions are counted, a
// program is run, the person at the desktop is asked and told. Main thread.
#pragma once

#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "control/transfer/api/transfer.hpp"
#include "tools/onehop/service/arrivals.hpp"
#include "tools/onehop/service/metrics.hpp"
#include "tools/onehop/service/notifier.hpp"
#include "tools/onehop/text/report.hpp"
#if ONEHOP_HAS_BUS
#include "tools/onehop/service/desktop.hpp"
#endif

namespace onehop::tool {

class Service {
 public:
  explicit Service(ServiceOptions options) : options_{std::move(options)} {}
  /// start: as the user that we are by now, before there are threads and before it is confined.
  /// Errors: Arrivals::start()'s; 8, the file of metrics cannot be written.
  [[nodiscard]] Result<void> start();
  [[nodiscard]] double beat_seconds() const noexcept { return notifier_.beat_seconds(); }
  /// is_desktop_possible: a device whose rule is `ask` may be asked about.
  [[nodiscard]] static bool is_desktop_possible();
  /// attend has Offers answered, from now until stop().
  using Answer = std::function<void(std::uint64_t offer, api::Answer)>;
  void attend(boost::asio::io_context& io, const Reporter& reporter, Answer answer);
  void stop();
  void note(const api::Event& event, const Reporter& reporter);

 private:
  void ask(const api::Offer& offer, const Reporter& reporter);
  void note_end(const api::End& end, const Reporter& reporter);
  const ServiceOptions options_;
  const Notifier notifier_;
  Metrics metrics_;
  Answer answer_;
  std::unique_ptr<Arrivals> arrivals_;  // null: nothing is run
#if ONEHOP_HAS_BUS
  std::unique_ptr<Desktop> desktop_;  // null: there is no session
  bool is_trouble_said_ = false;      // since something was answered
#endif
};

}  // namespace onehop::tool
