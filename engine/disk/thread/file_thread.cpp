// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/thread/file_thread.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <ctime>

#include "engine/base/check.hpp"
#include "engine/base/system/cpu.hpp"
#include "engine/base/system/thread.hpp"
#include "engine/base/time.hpp"

namespace onehop::disk {

namespace {
// More messages than this in one nap: the nap was too long. A block is three or four messages, so
// this is three blocks: at least half of what is read ahead, and still in the cache.
constexpr std::size_t gathered_max = 12;
// No more than these, of one block: the link is slow, and a nap of twice the limit gathers two.
constexpr std::size_t gathered_slow = 4;
// The kernel may delay a nap by this much to wake several threads at once. Larger than the default
// of 50 us: fewer wake-ups of an idle core; still small beside the nap.
constexpr unsigned long timer_slack_ns = 200'000;

}  // namespace

Nanos next_nap(Nanos nap, std::size_t moved, Nanos limit) noexcept {
  if (moved > gathered_max)
    nap = nap / 2;
  else if (moved * 2 < gathered_max)
    nap = nap * 2;
  const bool is_slow = moved <= gathered_slow && limit > nap_max_at_end;
  return std::clamp(nap, nap_min, is_slow ? limit * 2 : limit);
}

FileThread::FileThread(std::unique_ptr<FileWorker> worker, FileRings& rings)
    : worker_{std::move(worker)}, rings_{rings} {
  ONEHOP_CHECK(worker_ != nullptr);
}

Result<void> FileThread::start() {
  ONEHOP_CHECK(!thread_.joinable());
  auto started =
      start_thread<std::jthread>("file", [this](const std::stop_token& stop) { run(stop); });
  ONEHOP_TRYV(started);
  thread_ = std::move(started).value();
  return success();
}

void FileThread::join() {
  if (thread_.joinable()) thread_.join();
}

void FileThread::run(const std::stop_token& stop) {
  name_this_thread(worker_->thread_name());
  ::prctl(PR_SET_TIMERSLACK, timer_slack_ns, 0, 0, 0);
  Nanos nap = nap_min;
  std::size_t moved_since_nap = 0;
  while (!stop.stop_requested()) {
    const std::size_t moved = worker_->turn(monotonic_now(), rings_);
    moved_since_nap += moved;
    if (moved > 0) continue;
    nap = next_nap(nap, moved_since_nap, worker_->nap_max());
    moved_since_nap = 0;
    const timespec span{.tv_sec = 0, .tv_nsec = nap.count()};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &span, nullptr);  // a signal may end it early: no harm
  }
  worker_->close();
}

}  // namespace onehop::disk
