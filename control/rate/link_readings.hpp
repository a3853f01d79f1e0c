// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LinkReadings: the facts of the path's link as its source gives them, with what takes several
// readings: the bytes of others in the queue below us, and what queues refused since we look.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "control/law/estimate/queue_view.hpp"
#include "control/link/fact_source.hpp"
#include "engine/base/telemetry.hpp"

namespace onehop::rate {

class LinkReadings {
 public:
  void set_source(link::FactSource* source) noexcept {
    source_ = source;
    foreign_count_ = 0;  // of a link that is not there any more
    exact_.has_reading = lower_.has_reading = false;
  }
  [[nodiscard]] std::string_view source_name() const noexcept {
    return source_ != nullptr ? source_->name() : "none";
  }
  /// read brings `facts` up to date; `own` is our port's queue. Syscalls: those of the source.
  void read(Instant now, bool is_flowing, const QueueTelemetry& own, law::LinkFacts& facts) {
    if (source_ != nullptr && is_flowing)
      source_->read(now, facts);
    else if (source_ != nullptr && own.occupancy > Bytes{0})
      source_->read_backlog(now, facts);
    auto& lower = facts.lower_queue;
    if (lower && now - lower->at > lower_queue_dead) lower.reset();
    exact_.step(facts.exact_queue);
    lower_.step(lower);
    if (!lower || lower->at == foreign_at_) return;
    foreign_at_ = lower->at;
    if (law::pushes_back(own.scope)) {
      // The dump and our own reading are of two moments, and between them our own bytes move by a
      // burst. Bytes of others are what is in excess in every one of the last readings: the least
      // excess.
      foreign_[foreign_count_++ % foreign_.size()] =
          std::max((lower->value.queue.occupancy - own.occupancy).count, std::int64_t{0});
    }
    if (foreign_count_ >= foreign_.size())
      lower->value.foreign = {*std::min_element(foreign_.begin(), foreign_.end())};
  }

 private:
  static constexpr Nanos lower_queue_dead{100ms};  // an older reading is not shown to the law
  /// Refusals: what a queue refused between two of our readings. The kernel counts since the queue
  /// was made, so the first reading shows no refusal.
  struct Refusals {
    Instant at{};
    std::uint64_t counter = 0, total = 0;
    bool has_reading = false;
    void step(law::MaybeFact<law::QueueReading>& fact) noexcept {
      const bool has_before = std::exchange(has_reading, fact.has_value());
      if (!fact) return;
      std::uint64_t& refused_total = fact->value.queue.refused_total;
      if (has_before && fact->at == at) {  // reported twice
        refused_total = total;
        return;
      }
      if (has_before && refused_total > counter) total += refused_total - counter;
      at = fact->at;
      counter = std::exchange(refused_total, total);
    }
  };

  link::FactSource* source_ = nullptr;
  Instant foreign_at_{};
  std::array<std::int64_t, 16> foreign_{};
  std::size_t foreign_count_ = 0;  // readings so far
  Refusals exact_, lower_;
};

}  // namespace onehop::rate
