// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/wired_source.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

namespace onehop::link {

namespace {

std::optional<std::int64_t> read_number(int fd) {
  std::array<char, 24> text{};
  const ssize_t length = ::pread(fd, text.data(), text.size(), 0);
  std::int64_t value = 0;
  if (length <= 0) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + length, value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  return value;
}

Fd open_read(const std::string& path) { return Fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)}; }

}  // namespace

Result<ByteQueueLimits> ByteQueueLimits::open(const Interface& link, const std::string& root) {
  const std::string folder = root + "/class/net/" + link.name;
  const Fd index = open_read(folder + "/ifindex");
  if (!index.is_open() || read_number(index.get()) != link.ifindex)
    return Error{ExitCode::io_unavailable, "read byte queue limits of " + link.name,
                 "/sys shows another network namespace",
                 "Run in a mount namespace with its own /sys, as `ip netns exec` does", 0};
  ByteQueueLimits self;
  for (std::size_t queue = 0; queue < queues_max; ++queue) {
    Fd file =
        open_read(folder + "/queues/tx-" + std::to_string(queue) + "/byte_queue_limits/inflight");
    if (!file.is_open()) break;
    self.files_.push_back(std::move(file));
  }
  if (self.files_.empty())
    return Error{ExitCode::io_unavailable, "read byte queue limits of " + link.name,
                 "its driver has none", "", ENOENT};
  return self;
}

std::optional<Bytes> ByteQueueLimits::inflight() const {
  Bytes sum{};
  for (const Fd& file : files_) {
    const auto value = read_number(file.get());
    if (!value) return std::nullopt;
    sum += Bytes{*value};
  }
  return sum;
}

law::QueueReading exact_wired_queue(const QueueTelemetry& qdisc, Bytes inflight,
                                    Bytes drained_before) noexcept {
  law::QueueReading out{.queue = qdisc, .sensor = law::QueueSensor::ring};
  out.queue.occupancy += inflight;
  out.queue.drained_total = std::max(qdisc.drained_total - inflight, drained_before);
  return out;
}

Result<WiredSource> WiredSource::open(int ifindex, std::shared_ptr<QdiscSource> qdisc) {
  ONEHOP_TRY(link, read_interface(ifindex));
  const std::string attempt = "read the speed and the queue of " + link.name;
  if (is_software(link))
    return Error{ExitCode::io_unavailable, attempt,
                 "it is a device of software: what it claims is worth nothing"};
  WiredSource self{std::move(link)};
  if (qdisc == nullptr) {
    self.why_no_queue_ = "our frames go by the qdisc; the port's completions are the queue";
  } else if (is_stacked_kind(self.link_.kind)) {
    self.why_no_queue_ = "it is stacked on another device";
  } else if (auto limits = ByteQueueLimits::open(self.link_); !limits) {
    self.why_no_queue_ = limits.error().cause;
  } else {
    self.limits_ = std::move(limits).value();
    self.qdisc_ = std::move(qdisc);
  }
  if (read_link_rate(self.link_.name) == BytesPerSecond{} && !self.limits_)
    return Error{ExitCode::io_unavailable, attempt,
                 "it tells no speed, and no exact queue: " + self.why_no_queue_};
  return self;
}

void WiredSource::read(Instant now, law::LinkFacts& facts) {
  error_.reset();
  facts.medium = law::Medium::wired;
  BytesPerSecond rate{};
  speed_budget_.run(now, [&] { rate = read_link_rate(link_.name); });
  if (rate > BytesPerSecond{0}) facts.phy_rate = {rate, now, speed_budget_.period()};
  if (limits_) queue_budget_.run(now, [&] { read_queue(now, facts); });
}

void WiredSource::read_queue(Instant now, law::LinkFacts& facts) {
  const auto& qdisc = qdisc_->queue(now);
  error_ = qdisc_->error();
  const auto inflight = limits_->inflight();
  if (!qdisc || !inflight) return;
  const law::QueueReading queue = exact_wired_queue(*qdisc, *inflight, drained_total_);
  drained_total_ = queue.queue.drained_total;
  facts.exact_queue = {queue, now, queue_budget_.period()};
}

}  // namespace onehop::link
