// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/plot/run_data.hpp"

#include <algorithm>
#include <deque>
#include <filesystem>

namespace onehop::plot {

namespace {

// Columns, in the order in which read_trace() is to give them.
constexpr std::array<std::string_view, 41> columns{"rate_bytes_per_s",
                                                   "backlog_max_bytes",
                                                   "link_rate_bytes_per_s",
                                                   "srtt_ns",
                                                   "wakeups",
                                                   "syscalls",
                                                   "lost_total",
                                                   "refused_total",
                                                   "cpu_ns_total",
                                                   "phy_rate_bytes_per_s",
                                                   "tx_drained_bytes_total",
                                                   "tx_queue_bytes",
                                                   "tx_queue_target_bytes",
                                                   "tx_queue_under_bytes",
                                                   "tx_queue_over_bytes",
                                                   "tx_queue_limit_bytes",
                                                   "tx_queue_drain_bytes_per_s",
                                                   "rx_ring_bytes",
                                                   "rx_ring_target_bytes",
                                                   "rx_ring_under_bytes",
                                                   "rx_ring_over_bytes",
                                                   "rx_ring_limit_bytes",
                                                   "rx_ring_drain_bytes_per_s",
                                                   "app_buffer_bytes",
                                                   "app_buffer_target_bytes",
                                                   "app_buffer_under_bytes",
                                                   "app_buffer_over_bytes",
                                                   "app_buffer_limit_bytes",
                                                   "app_buffer_drain_bytes_per_s",
                                                   "socket",
                                                   "rx_held_entries",
                                                   "rx_ring_entries",
                                                   "tx_held_entries",
                                                   "tx_ring_entries",
                                                   "fill_held_entries",
                                                   "fill_ring_entries",
                                                   "completion_held_entries",
                                                   "completion_ring_entries",
                                                   "rx_dropped_total",
                                                   "rx_ring_full_total",
                                                   "fill_ring_empty_total"};
constexpr std::size_t first_buffer_column = 11, socket_column = 29,
                      first_ring_column = socket_column + 1,
                      first_drop_column = first_ring_column + 2 * ring_names.size();

/// Growth is what a total grew by from row to row; a total that fell began anew.
class Growth {
 public:
  std::optional<double> step(const std::optional<double>& total) {
    std::optional<double> grown;
    if (total && last_) grown = std::max(*total - *last_, 0.0);
    if (total) last_ = total;
    return grown;
  }

 private:
  std::optional<double> last_;
};

class Builder {
 public:
  explicit Builder(RunData& run) : run_{run} {}

  void add(const TraceRow& row) {
    if (run_.rows == 0) run_.first = last_ = row.at;
    const Nanos since = row.at - last_;
    last_ = row.at;
    ++run_.rows;
    run_.span = row.at - run_.first;
    if (run_.law != row.law) run_.law = row.law;
    values_.assign(quantities, std::nullopt);
    const auto& in = row.values;
    values_[granted] = in[0];
    values_[backlog] = in[1];
    values_[link_rate] = in[2] ? in[2] : in[9];
    if (in[3] && *in[3] > 0) values_[srtt] = in[3];  // 0: no sample yet
    values_[wakeups] = in[4];
    values_[syscalls] = in[5];
    values_[lost_step] = lost_.step(in[6]);
    values_[refused_step] = refused_.step(in[7]);
    values_[cpu_step] = cpu_.step(in[8]);
    values_[drained_step] = drained_.step(in[10]);
    const auto spent = static_cast<double>(since.count());
    values_[elapsed] = spent;
    const auto found = std::ranges::find(bottleneck_names, row.bottleneck);
    const std::size_t at = found == bottleneck_names.end()
                               ? bottleneck_names.size() - 1
                               : static_cast<std::size_t>(found - bottleneck_names.begin());
    if (!in[socket_column]) values_[bottleneck_first + at] = spent;
    for (std::size_t b = 0; b < buffer_names.size(); ++b)
      add_buffer(b, in.subspan(first_buffer_column + b * buffer_quantities, buffer_quantities),
                 spent);
    std::ranges::copy(in.subspan(first_ring_column, 2 * ring_names.size()),
                      values_.begin() + ring_first);
    if (in[first_drop_column])
      values_[ring_drop_step] =
          dropped_.step(*in[first_drop_column] + in[first_drop_column + 1].value_or(0) +
                        in[first_drop_column + 2].value_or(0));
    run_.samples.add(row.at - run_.first, values_);
    for (std::size_t i = 0; i < quantities; ++i)
      if (values_[i]) {
        run_.whole[i].add(*values_[i]);
        run_.over_time[i].sum += *values_[i] * spent;
        run_.over_time[i].time += spent;
      }
  }

 private:
  void add_buffer(std::size_t b, std::span<const std::optional<double>> in, double spent) {
    for (std::size_t q = 0; q < buffer_quantities; ++q)
      values_[of(b, static_cast<BufferQuantity>(q))] = in[q];
    const auto& held = in[occupancy];
    if (!held) return;
    if (b == 0 && in[drain] && *in[drain] > 0) values_[queue_delay] = *held / *in[drain] * 1e9;
    RangeShare& share = run_.ranges[b];
    if (in[under] && in[over] && *in[over] - *in[under] < range_bytes_min)
      share.none += spent;
    else if (in[under] && *held < *in[under])
      share.below += spent;
    else if (in[over] && *held > *in[over])
      share.above += spent;
    else if (in[under] || in[over])
      share.inside += spent;
  }

  RunData& run_;
  Nanos last_{0};
  Growth lost_, refused_, cpu_, drained_, dropped_;
  std::vector<std::optional<double>> values_;
};

}  // namespace

void RunData::forget_law() {
  whole[granted] = whole[backlog] = whole[queue_delay] = {};
  for (std::size_t k = 0; k < bottleneck_names.size(); ++k) whole[bottleneck_first + k] = {};
  for (std::size_t b = 0; b < buffer_names.size(); ++b)
    for (const BufferQuantity q : {target, under, over, limit}) whole[of(b, q)] = {};
  ranges = {};
  law.clear();
}

double RunData::wire_per_payload() const {
  const auto number = [&](std::string_view word) {
    const std::size_t at = head.config.find(word);
    double value = 0;
    for (std::size_t i = at == std::string::npos ? head.config.size() : at + word.size();
         i < head.config.size() && head.config[i] >= '0' && head.config[i] <= '9'; ++i)
      value = 10 * value + (head.config[i] - '0');
    return value;
  };
  const double payload = number(" payload "), wire = number(" wire ");
  // Another trace may hold anything; headers never double a frame that is worth sending.
  return payload > 0 && wire >= payload && wire <= 2 * payload ? wire / payload : 1;
}

double RunData::capacity_mean() const {
  const std::vector<RateStep> steps = capacity.between(first, first + span);
  double sum = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Nanos until = i + 1 < steps.size() ? steps[i + 1].at : first + span;
    sum += static_cast<double>(steps[i].rate.count) *
           static_cast<double>((until - steps[i].at).count());
  }
  return span > Nanos{0} ? sum / static_cast<double>(span.count()) : 0;
}

double RunData::share(std::size_t bottleneck) const {
  const double all = whole[elapsed].sum;
  return all > 0 ? whole[bottleneck_first + bottleneck].sum / all : 0;
}

Result<std::vector<RunData>> read_runs(std::istream& in, const std::string& name, std::string label,
                                       std::size_t buckets_min) {
  if (label.empty()) label = std::filesystem::path{name}.stem().string();
  struct Part {
    Part(double number, RunData data) : socket{number}, run{std::move(data)} {}
    double socket;
    RunData run;
    Builder builder{run};
  };
  std::deque<Part> parts;  // a builder holds on to its run
  bool has_more = false;
  const auto take = [&](const TraceRow& row) {
    const double socket = row.values[socket_column].value_or(0);
    auto part = std::ranges::find(parts, socket, &Part::socket);
    if (part == parts.end() && parts.size() == runs_max) {
      has_more = true;
      return;
    }
    if (part == parts.end()) {
      parts.emplace_back(socket, RunData{.label = label,
                                         .name = name,
                                         .head = {},
                                         .law = {},
                                         .samples = Samples{quantities, buckets_min}});
      part = std::prev(parts.end());
    }
    part->builder.add(row);
  };
  ONEHOP_TRY(head, read_trace(in, name, columns, take));
  if (has_more)
    return Error{
        ExitCode::usage, "plot the trace " + name,
        "it has more sockets than a report can have runs (" + std::to_string(runs_max) + ")",
        "Trace one program at a time"};
  std::vector<RunData> runs;
  for (Part& part : parts) {
    part.run.head = head;
    if (part.run.is_receiving()) part.run.forget_law();
    if (parts.size() > 1)
      part.run.label += " socket " + std::to_string(static_cast<std::int64_t>(part.socket));
    runs.push_back(std::move(part.run));
  }
  return runs;
}

}  // namespace onehop::plot
