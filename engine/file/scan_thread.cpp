// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/scan_thread.hpp"

#include <new>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/base/cpu.hpp"
#include "engine/base/memory.hpp"
#include "engine/base/thread.hpp"
#include "engine/file/tree_walk.hpp"

namespace onehop::file {

Result<std::unique_ptr<ScanThread>> ScanThread::start(std::span<const std::string> paths,
                                                      ScanOptions options,
                                                      const ChapterSizes& sizes,
                                                      std::function<void()> on_ready) {
  ONEHOP_CHECK(sizes.entries_max > 0);
  ONEHOP_CHECK(sizes.ahead_max > 0);
  ONEHOP_TRY(arguments, check_arguments(paths));
  std::unique_ptr<ScanThread> scan{
      new ScanThread{std::move(arguments), std::move(options), sizes, std::move(on_ready)}};
  auto started = start_thread<std::jthread>(
      "scan", [self = scan.get()](const std::stop_token& stop) { self->run(stop); });
  ONEHOP_TRYV(started);
  scan->thread_ = std::move(started).value();
  return scan;
}

ScanThread::ScanThread(ScanArguments arguments, ScanOptions options, const ChapterSizes& sizes,
                       std::function<void()> on_ready)
    : options_{std::move(options)},
      sizes_{sizes},
      on_ready_{std::move(on_ready)},
      arguments_{std::move(arguments)} {}

ScanThread::~ScanThread() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void ScanThread::run(const std::stop_token& stop) {
  name_this_thread("scan");
  stop_ = stop;
  Result<ScanChapter> last = walk();
  if (stop.stop_requested()) return;
  {
    const std::lock_guard lock{mutex_};
    ready_.push_back(std::move(last));
  }
  tell_ready();
}

Result<ScanChapter> ScanThread::walk() {
  try {
    return walk_arguments(arguments_, options_, sizes_, this);
  } catch (const std::bad_alloc& refused) {
    return memory_error("look through the folders", refused);
  }
}

Result<void> ScanThread::wait_put(ScanChapter chapter) {
  {
    std::unique_lock lock{mutex_};
    if (!has_room_.wait(lock, stop_, [&] { return ready_.size() < sizes_.ahead_max; }))
      return Error{ExitCode::interrupted, "look through the folders", "it was ended", {}, 0};
    ready_.emplace_back(std::move(chapter));
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
Result<ScanChapter> ScanThread::take_ready() {
  Result<ScanChapter> next = std::move(ready_.front());
  ready_.pop_front();
  is_over_ = next.has_error() || next.value().is_last;
  has_room_.notify_one();
  return next;
}

Result<ScanChapter> ScanThread::wait_next() {
  ONEHOP_CHECK(!is_over_);
  std::unique_lock lock{mutex_};
  is_ready_.wait(lock, [&] { return !ready_.empty(); });
  return take_ready();
}

std::optional<Result<ScanChapter>> ScanThread::try_next() {
  ONEHOP_CHECK(!is_over_);
  const std::lock_guard lock{mutex_};
  if (ready_.empty()) return std::nullopt;
  return take_ready();
}

}  // namespace onehop::file
