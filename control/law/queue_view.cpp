// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/queue_view.hpp"

#include <algorithm>

namespace onehop::law {

namespace {
// Derived: two polls. Low: a late poll blinds the law. High: the queue has turned over since.
constexpr Nanos qdisc_age_max{8ms};
// Ours. Low: slow cores have no saw. High: a core that was away says what it does not usually do.
constexpr Nanos report_gap_max{20ms};
}  // namespace

QueueView view_queue(const LinkSample& sample) noexcept {
  QueueView view;
  const ExactQueue* exact = fresh(sample.facts.exact_queue, sample.at);
  if (exact != nullptr && exact->queue.scope == QueueScope::none) exact = nullptr;
  view.is_exact = exact != nullptr;
  if (pushes_back(sample.path.tx_queue.scope)) {
    view.queue = without_refused(sample.path);
    view.foreign = exact != nullptr ? exact->foreign : sample.lower_queue_foreign;
    view.sensor = exact != nullptr ? exact->sensor : QueueSensor::port;
    view.has_push_back = true;
  } else if (exact != nullptr) {
    view.queue = exact->queue;
    view.foreign = exact->foreign;
    view.sensor = exact->sensor;
    view.queue.occupancy -= view.foreign;
  } else if (sample.lower_queue.scope == QueueScope::lower_queue && sample.lower_queue_age <= qdisc_age_max) {
    view.queue = sample.lower_queue;
    view.foreign = sample.lower_queue_foreign;
    view.sensor = QueueSensor::qdisc;
    view.queue.occupancy -= view.foreign;
  }
  view.queue.occupancy = std::max(view.queue.occupancy, Bytes{0});
  view.foreign = std::max(view.foreign, Bytes{0});
  view.stood = view.queue.occupancy;
  if (exact != nullptr) view.stood = std::clamp(exact->queue.occupancy - exact->foreign, Bytes{0}, view.stood);
  return view;
}

void VisitMeter::add(const PathReport& path, Bytes drained) noexcept {
  if (path.at == at_) return;
  const std::uint64_t wakeups = path.counters.wakeups_total - wakeups_total_;
  const std::uint64_t turns = path.counters.turns_total - turns_total_;
  const Nanos span = path.at - at_;
  const bool is_usable = has_reading_ && span > Nanos{0} && span < report_gap_max && drained > Bytes{0};
  wakeups_total_ = path.counters.wakeups_total;
  turns_total_ = path.counters.turns_total;
  at_ = path.at;
  has_reading_ = true;
  if (!is_usable) return;
  // A core that never waits has no wake-ups; then each turn is a visit.
  const auto visits = static_cast<std::int64_t>(std::clamp<std::uint64_t>(wakeups > 0 ? wakeups : turns, 1, 1'000'000));
  amplitude_ += (drained / visits - amplitude_) / 8;
}

}  // namespace onehop::law
