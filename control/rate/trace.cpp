// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/rate/trace.hpp"

#include <array>
#include <cerrno>
#include <cinttypes>
#include <optional>

namespace onehop::rate {

namespace {
constexpr std::size_t buffer_bytes =
    256 * 1024;  // about 700 rows; smaller: the control thread writes more often
constexpr std::array<const char*, 3> buffer_names{"tx_queue", "rx_ring", "app_buffer"};

constexpr const char* detail_names =
    ",law,sensor,alpha_permille,beta_bytes_per_s,a_bytes,b_bytes,aggregate_bytes,phy_rate_bytes_"
    "per_s,airtime_use_permille,"
    "stations,share_bytes_per_s,tau_ns,gate_bytes,loss_cap_bytes_per_s,feedback_interval_ns";

// The link's own facts, as they were read: a fact that was never read, or went away, is an empty
// cell. Its age is against the row's time.
constexpr const char* fact_names =
    ",link_source,exact_queue_bytes,exact_drained_bytes,exact_queue_age_ns,link_rate_bytes_per_s,"
    "link_rate_age_ns,channel_busy_ns,"
    "mac_retries_total,mac_failed_total,host_dropped_total";

// The safe range of each buffer, X_under .. X_over, and its X_max; empty where the law has none.
constexpr const char* range_names = ",%s_under_bytes,%s_over_bytes,%s_limit_bytes";

std::int64_t number_of(std::uint64_t n) noexcept { return static_cast<std::int64_t>(n); }
std::int64_t number_of(Bytes b) noexcept { return b.count; }
std::int64_t number_of(BytesPerSecond r) noexcept { return r.count; }
std::int64_t number_of(Gain g) noexcept { return g.permille; }
std::int64_t number_of(Nanos t) noexcept { return t.count(); }
std::int64_t number_of(std::int32_t n) noexcept { return n; }
std::int64_t number_of(std::int64_t n) noexcept { return n; }

template <class T>
int write_cell(std::FILE* file, const std::optional<T>& value) noexcept {
  return value ? std::fprintf(file, ",%" PRId64, number_of(*value)) : std::fputc(',', file);
}

template <class... T>
bool write_cells(std::FILE* file, const std::optional<T>&... values) noexcept {
  return ((write_cell(file, values) >= 0) && ...);
}

bool write_facts(std::FILE* file, Instant at, std::string_view source,
                 const law::LinkFacts& facts) noexcept {
  std::optional<Bytes> queue, drained;
  std::optional<Nanos> queue_age, rate_age, busy;
  std::optional<BytesPerSecond> rate;
  std::optional<std::uint64_t> retries, failed, dropped;
  if (const auto& fact = facts.exact_queue) {
    queue = fact->value.queue.occupancy;
    drained = fact->value.queue.drained_total;
    queue_age = at - fact->at;
  }
  if (const auto& fact = facts.phy_rate) {
    rate = fact->value;
    rate_age = at - fact->at;
  }
  if (facts.channel) busy = facts.channel->value.busy_total;
  if (facts.mac) {
    retries = facts.mac->value.tx_retries_total;
    failed = facts.mac->value.tx_failed_total;
  }
  if (facts.host) dropped = facts.host->value.dropped_total;
  return std::fprintf(file, ",%.*s", static_cast<int>(source.size()), source.data()) >= 0 &&
         write_cells(file, queue, drained, queue_age, rate, rate_age, busy, retries, failed,
                     dropped);
}

bool write_ranges(std::FILE* file, const law::LawTrace& law) noexcept {
  bool is_written = true;
  for (const law::BufferRow& b : law.buffers) {
    const std::optional<Bytes> limit =
        b.occupancy_max > Bytes{0} ? std::optional{b.occupancy_max} : std::nullopt;
    is_written = is_written && write_cells(file, b.under, b.over, limit);
  }
  return is_written;
}

bool write_columns(std::FILE* file, const law::LawColumns& columns) noexcept {
  bool is_written = true;
  for (const law::LawColumn& column : columns)
    if (column.name != nullptr) is_written = is_written && write_cells(file, column.value);
  return is_written;
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
  switch (bottleneck) {
    case Bottleneck::none: return "none";
    case Bottleneck::tx_queue: return "tx_queue";
    case Bottleneck::rx_ring: return "rx_ring";
    case Bottleneck::app_buffer: return "app_buffer";
    case Bottleneck::source: return "source";
    case Bottleneck::cap: return "cap";
  }
  return "none";
}

const char* name_of(law::QueueSensor sensor) noexcept {
  switch (sensor) {
    case law::QueueSensor::none: return "none";
    case law::QueueSensor::port: return "port";
    case law::QueueSensor::qdisc: return "qdisc";
    case law::QueueSensor::txq: return "txq";
    case law::QueueSensor::mac: return "mac";
    case law::QueueSensor::ring: return "ring";
    case law::QueueSensor::model: return "model";
  }
  return "none";
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
  std::fprintf(file, "# command line: %s\n# version: %s\n# config: %s\nt_ns",
               one_line(header.command_line).c_str(), one_line(header.version).c_str(),
               one_line(header.config).c_str());
  for (const char* name : buffer_names) {
    std::fprintf(file,
                 ",%s_bytes,%s_drain_bytes_per_s,%s_target_bytes,%s_rate_bytes_per_s,%s_takes_part",
                 name, name, name, name, name);
  }
  std::fputs(
      ",rate_bytes_per_s,backlog_max_bytes,bottleneck,is_degraded,srtt_ns,lower_queue_bytes,lower_"
      "queue_age_ns,turns,"
      "wakeups,syscalls,refused_total,lost_total",
      file);
  std::fprintf(file, "%s%s", detail_names, fact_names);
  for (const char* name : buffer_names) std::fprintf(file, range_names, name, name, name);
  std::fputs(",cpu_ns_total,tx_drained_bytes_total", file);
  for (const law::LawColumn& column : header.law_columns)
    if (column.name != nullptr) std::fprintf(file, ",%s", column.name);
  std::fputc('\n', file);
  return self;
}

void TraceWriter::write(const TraceRow& row) noexcept {
  if (!file_ || failed_errno_ != 0) return;
  std::FILE* file = file_.get();
  std::fprintf(file, "%" PRId64, static_cast<std::int64_t>(row.at.time_since_epoch().count()));
  for (const law::BufferRow& b : row.law.buffers) {
    std::fprintf(file, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%d", b.occupancy.count,
                 b.drain.count, b.target.count, b.rate.count, b.takes_part ? 1 : 0);
  }
  const auto& lower = row.facts.lower_queue;
  const Bytes lower_queue = lower ? lower->value.queue.occupancy : Bytes{0};
  const Nanos lower_queue_age = lower ? row.at - lower->at : Nanos{-1};  // negative: no reading
  const int rc =
      std::fprintf(file,
                   ",%" PRId64 ",%" PRId64 ",%s,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRIu64
                   ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                   row.law.rate.count, row.law.backlog_max.count, name_of(row.law.bottleneck),
                   row.law.is_degraded ? 1 : 0, static_cast<std::int64_t>(row.srtt.count()),
                   lower_queue.count, static_cast<std::int64_t>(lower_queue_age.count()), row.turns,
                   row.wakeups, row.syscalls, row.refused_total, row.lost_total);
  const law::LawDetails& d = row.law.details;
  const bool is_written =
      rc >= 0 &&
      std::fprintf(file, ",%.*s,%s", static_cast<int>(row.law_name.size()), row.law_name.data(),
                   name_of(d.sensor)) >= 0 &&
      write_cells(file, d.alpha, d.beta, d.a, d.b, d.aggregate, d.phy_rate, d.airtime_use,
                  d.stations, d.share, d.tau, d.gate, d.loss_cap, d.feedback_interval) &&
      write_facts(file, row.at, row.link_source, row.facts) && write_ranges(file, row.law) &&
      write_cells(file, row.cpu_total, std::optional{row.tx_drained_total}) &&
      write_columns(file, row.law.columns) && std::fputc('\n', file) != EOF;
  if (!is_written) failed_errno_ = errno;
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
