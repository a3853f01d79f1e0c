// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/estimate/queue_view.hpp"

namespace onehop::law {

namespace {
/// clamp_view: a sensor that subtracts may go below zero; a backlog does not.
void clamp_view(QueueView& view) noexcept {
  view.queue.occupancy = std::max(view.queue.occupancy, Bytes{0});
  view.foreign = std::max(view.foreign, Bytes{0});
  view.backlog_least = view.queue.occupancy;
}

QueueView view_below(const QueueReading& reading) noexcept {
  QueueView view{.queue = reading.queue, .foreign = reading.foreign, .sensor = reading.sensor};
  view.queue.occupancy -= view.foreign;
  clamp_view(view);
  return view;
}
}  // namespace

QueueView view_inexact_queue(const LinkSample& sample) noexcept {
  if (pushes_back(sample.path.tx_queue.scope)) {
    QueueView view{.queue = without_refused(sample.path),
                   .foreign = lower_queue_foreign(sample),
                   .sensor = QueueSensor::port,
                   .has_push_back = true};
    clamp_view(view);
    return view;
  }
  const QueueReading* lower = fresh(sample.facts.lower_queue, sample.at);
  if (lower == nullptr) return {};
  QueueView view = view_below(*lower);
  view.backlog_least += view.foreign;  // a qdisc's backlog counts with the bytes of others in it
  return view;
}

QueueView view_queue(const LinkSample& sample) noexcept {
  QueueView view = view_inexact_queue(sample);
  const QueueReading* exact = fresh(sample.facts.exact_queue, sample.at);
  if (exact == nullptr || exact->queue.scope == QueueScope::none) return view;
  const QueueView below = view_below(*exact);
  if (!view.has_push_back) view.queue = below.queue;
  view.sensor = below.sensor;
  view.foreign = below.foreign;
  view.backlog_least = std::min(below.queue.occupancy, view.queue.occupancy);
  view.is_exact = true;
  return view;
}

}  // namespace onehop::law
