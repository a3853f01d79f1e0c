// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/rate/trace.hpp"

#include <cerrno>
#include <charconv>

namespace onehop::rate {

namespace {
// About 700 rows; smaller: the control thread writes more often
constexpr std::size_t buffer_bytes = 256 * 1024;
constexpr std::array<const char*, 3> buffer_names{"tx_queue", "rx_ring", "app_buffer"};

std::int64_t number_of(std::uint64_t n) noexcept { return static_cast<std::int64_t>(n); }
std::int64_t number_of(Bytes b) noexcept { return b.count; }
std::int64_t number_of(BytesPerSecond r) noexcept { return r.count; }
std::int64_t number_of(Gain g) noexcept { return g.permille; }
std::int64_t number_of(Nanos t) noexcept { return t.count(); }
std::int64_t number_of(std::int32_t n) noexcept { return n; }
std::int64_t number_of(std::int64_t n) noexcept { return n; }
std::int64_t number_of(bool b) noexcept { return b ? 1 : 0; }
template <class T>
std::optional<std::int64_t> number_of(const std::optional<T>& value) noexcept {
  return value ? std::optional{number_of(*value)} : std::nullopt;
}

/// Line: the names of all columns, or a row's cells, so that add_columns() states each column once.
class Line {
 public:
  Line(std::string& out, bool is_head) noexcept : out_{out}, is_head_{is_head} { out_.clear(); }
  /// number: the column's name is `buffer`, if one is given, and then `name`.
  template <class T>
  void number(std::string_view name, const T& value, std::string_view buffer = {}) {
    text(buffer, {});
    if (is_head_) {
      out_ += name;
    } else if (const std::optional<std::int64_t> number = number_of(value)) {
      std::array<char, 20> digits;
      out_.append(digits.data(),
                  std::to_chars(digits.data(), digits.data() + digits.size(), *number).ptr);
    }
  }
  void text(std::string_view name, std::string_view value) {
    if (!out_.empty()) out_ += ',';
    out_ += is_head_ ? name : value;
  }

 private:
  std::string& out_;
  const bool is_head_;
};

void add_facts(Line& line, Instant at, const law::LinkFacts& facts) {
  const auto of = [](const auto& fact, auto get) {
    return fact ? std::optional{get(*fact)} : std::nullopt;
  };
  const auto age = [&](const auto& fact) { return at - fact.at; };
  const auto& queue = facts.exact_queue;
  const auto& rate = facts.phy_rate;
  line.number("exact_queue_bytes", of(queue, [](auto& f) { return f.value.queue.occupancy; }));
  line.number("exact_drained_bytes",
              of(queue, [](auto& f) { return f.value.queue.drained_total; }));
  line.number("exact_queue_age_ns", of(queue, age));
  line.number("link_rate_bytes_per_s", of(rate, [](auto& f) { return f.value; }));
  line.number("link_rate_age_ns", of(rate, age));
  line.number("channel_busy_ns", facts.channel ? facts.channel->value.busy_total : std::nullopt);
  line.number("mac_retries_total", of(facts.mac, [](auto& f) { return f.value.tx_retries_total; }));
  line.number("mac_failed_total", of(facts.mac, [](auto& f) { return f.value.tx_failed_total; }));
  line.number("host_dropped_total", of(facts.host, [](auto& f) { return f.value.dropped_total; }));
}

void add_columns(Line& line, const RateState& state, const DataPathCounters& before,
                 std::string_view law_name, std::string_view source) {
  const law::LawTrace& law = state.law;
  const PathReport& path = state.path;
  line.number("t_ns", state.at.time_since_epoch());
  for (std::size_t i = 0; i < buffer_names.size(); ++i) {
    const law::BufferRow& b = law.buffers[i];
    line.number("_bytes", b.occupancy, buffer_names[i]);
    line.number("_drain_bytes_per_s", b.drain, buffer_names[i]);
    line.number("_target_bytes", b.target, buffer_names[i]);
    line.number("_rate_bytes_per_s", b.rate, buffer_names[i]);
    line.number("_takes_part", b.takes_part, buffer_names[i]);
  }
  const auto& lower = state.facts.lower_queue;
  line.number("rate_bytes_per_s", state.grant.rate);
  line.number("backlog_max_bytes", state.grant.backlog_max);
  line.text("bottleneck", name_of(state.bottleneck));
  line.number("is_degraded", law.is_degraded);
  line.number("srtt_ns", path.srtt);
  line.number("lower_queue_bytes", lower ? lower->value.queue.occupancy : Bytes{0});
  line.number("lower_queue_age_ns",
              lower ? state.at - lower->at : Nanos{-1});  // negative: no reading
  line.number("turns", path.counters.turns_total - before.turns_total);
  line.number("wakeups", path.counters.wakeups_total - before.wakeups_total);
  line.number("syscalls", path.counters.syscalls_total - before.syscalls_total);
  line.number("refused_total", path.tx_queue.refused_total);
  line.number("lost_total", path.packets_lost_total);
  line.text("law", law_name);
  line.text("sensor", name_of(law.details.sensor));
  for (const DetailColumn& column : columns_of(law.details)) line.number(column.name, column.value);
  line.text("link_source", source);
  add_facts(line, state.at, state.facts);
  for (std::size_t i = 0; i < buffer_names.size(); ++i) {
    const law::BufferRow& b = law.buffers[i];
    line.number("_under_bytes", b.under, buffer_names[i]);
    line.number("_over_bytes", b.over, buffer_names[i]);
    line.number("_limit_bytes",
                b.occupancy_max > Bytes{0} ? std::optional{b.occupancy_max} : std::nullopt,
                buffer_names[i]);
  }
  line.number("cpu_ns_total", state.cpu_total);
  line.number("tx_drained_bytes_total", path.tx_queue.drained_total);
}

// A line of the head stays one line, whatever the command line held.
std::string one_line(std::string s) {
  for (char& c : s) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return s;
}
}  // namespace

const char* name_of(Bottleneck bottleneck) noexcept {
  static constexpr std::array<const char*, bottleneck_count> names{
      "none", "tx_queue", "rx_ring", "app_buffer", "source", "cap"};
  return names[static_cast<std::size_t>(bottleneck)];
}

const char* name_of(law::QueueSensor sensor) noexcept {
  static constexpr std::array<const char*, 7> names{"none", "port", "qdisc", "txq",
                                                    "mac",  "ring", "model"};
  return names[static_cast<std::size_t>(sensor)];
}

DetailColumns columns_of(const law::LawDetails& d) noexcept {
  return {{{"alpha_permille", number_of(d.alpha)},
           {"beta_bytes_per_s", number_of(d.beta)},
           {"a_bytes", number_of(d.a)},
           {"b_bytes", number_of(d.b)},
           {"aggregate_bytes", number_of(d.aggregate)},
           {"phy_rate_bytes_per_s", number_of(d.phy_rate)},
           {"airtime_use_permille", number_of(d.airtime_use)},
           {"stations", number_of(d.stations)},
           {"share_bytes_per_s", number_of(d.share)},
           {"tau_ns", number_of(d.tau)},
           {"gate_bytes", number_of(d.gate)},
           {"loss_cap_bytes_per_s", number_of(d.loss_cap)},
           {"feedback_interval_ns", number_of(d.feedback_interval)}}};
}

TraceWriter::TraceWriter(std::string path, std::FILE* file)
    : path_{std::move(path)},
      buffer_{std::make_unique<std::vector<char>>(buffer_bytes)},
      file_{file} {
  std::setvbuf(file_.get(), buffer_->data(), _IOFBF, buffer_->size());
}

Result<TraceWriter> TraceWriter::open(const std::string& path, const TraceHeader& header) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr)
    return errno_error(ExitCode::local_file_error, "open the trace file " + path,
                       "Check the folder's permissions.");
  TraceWriter self{path, file};
  std::fprintf(file, "# command line: %s\n# version: %s\n# config: %s\n",
               one_line(header.command_line).c_str(), one_line(header.version).c_str(),
               one_line(header.config).c_str());
  self.write_line({}, {}, {}, {}, true);
  return self;
}

void TraceWriter::write_line(const RateState& state, const DataPathCounters& before,
                             std::string_view law, std::string_view source, bool is_head) noexcept {
  if (!file_ || failed_errno_ != 0) return;
  Line line{line_, is_head};
  add_columns(line, state, before, law, source);
  line_ += '\n';
  if (std::fwrite(line_.data(), 1, line_.size(), file_.get()) != line_.size())
    failed_errno_ = errno;
}

Result<void> TraceWriter::close() {
  if (!file_) return success();
  const bool is_flushed = std::fflush(file_.get()) == 0;
  const int flush_errno = errno;
  const bool is_closed = std::fclose(file_.release()) == 0;
  const int failed = failed_errno_ != 0 ? failed_errno_
                     : !is_flushed      ? flush_errno
                     : !is_closed       ? errno
                                        : 0;
  if (failed != 0)
    return errno_error(ExitCode::local_file_error, "write the trace file " + path_,
                       "Is the disk full?", failed);
  return success();
}

}  // namespace onehop::rate
