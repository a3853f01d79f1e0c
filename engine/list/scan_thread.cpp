// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/scan_thread.hpp"

#include <new>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/base/memory.hpp"
#include "engine/base/system/cpu.hpp"
#include "engine/base/system/thread.hpp"
#include "engine/list/tree_walk.hpp"

namespace onehop::list {

Result<std::unique_ptr<ScanThread>> ScanThread::start(std::span<const std::string> paths,
                                                      ScanOptions options, const VolumeSizes& sizes,
                                                      std::function<void()> on_ready) {
  ONEHOP_CHECK(sizes.entries_max > 0);
  ONEHOP_CHECK(sizes.ahead_max > 0);
  ONEHOP_TRY(found, check_arguments(paths));
  // A function is copied, and descriptors are not.
  auto arguments = std::make_shared<ScanArguments>(std::move(found));
  return start(
      [arguments, options = std::move(options), sizes](VolumeOutlet& outlet) {
        return walk_arguments(*arguments, options, sizes, &outlet);
      },
      sizes.ahead_max, std::move(on_ready));
}

Result<std::unique_ptr<ScanThread>> ScanThread::start_stream(StreamInput input,
                                                             std::function<void()> on_ready) {
  constexpr std::size_t ahead_max = 2;  // in memory, unlike the entries of a tree
  return start(
      [input = std::move(input)](VolumeOutlet& outlet) { return read_stream(input, outlet); },
      ahead_max, std::move(on_ready));
}

Result<std::unique_ptr<ScanThread>> ScanThread::start(Work work, std::size_t ahead_max,
                                                      std::function<void()> on_ready) {
  std::unique_ptr<ScanThread> scan{new ScanThread{std::move(work), ahead_max, std::move(on_ready)}};
  auto started = start_thread<std::jthread>(
      "scan", [self = scan.get()](const std::stop_token& stop) { self->run(stop); });
  ONEHOP_TRYV(started);
  scan->thread_ = std::move(started).value();
  return scan;
}

void ScanThread::run(const std::stop_token& stop) {
  name_this_thread("scan");
  stop_ = stop;
  Result<ScanVolume> last = work();
  if (stop.stop_requested()) return;
  {
    const std::lock_guard lock{mutex_};
    ready_.push_back(std::move(last));
  }
  tell_ready();
}

Result<ScanVolume> ScanThread::work() {
  try {
    return work_(*this);
  } catch (const std::bad_alloc& refused) {
    return memory_error("read what is sent", refused);
  }
}

Result<void> ScanThread::wait_put(ScanVolume volume) {
  {
    std::unique_lock lock{mutex_};
    if (!has_room_.wait(lock, stop_, [&] { return ready_.size() < ahead_max_; }))
      return Error{ExitCode::interrupted, "read what is sent", "it was ended"};
    ready_.emplace_back(std::move(volume));
  }
  tell_ready();
  return success();
}

void ScanThread::tell_ready() {
  is_ready_.notify_one();
  if (on_ready_) on_ready_();
}

bool ScanThread::is_starved() {
  const std::lock_guard lock{mutex_};
  return ready_.empty();
}

/// With the lock held, and something ready.
Result<ScanVolume> ScanThread::take_ready() {
  Result<ScanVolume> next = std::move(ready_.front());
  ready_.pop_front();
  is_over_ = next.has_error() || next.value().is_last;
  has_room_.notify_one();
  return next;
}

Result<ScanVolume> ScanThread::wait_next() {
  ONEHOP_CHECK(!is_over_);
  std::unique_lock lock{mutex_};
  is_ready_.wait(lock, [&] { return !ready_.empty(); });
  return take_ready();
}

std::optional<Result<ScanVolume>> ScanThread::try_next() {
  ONEHOP_CHECK(!is_over_);
  const std::lock_guard lock{mutex_};
  if (ready_.empty()) return std::nullopt;
  return take_ready();
}

}  // namespace onehop::list
