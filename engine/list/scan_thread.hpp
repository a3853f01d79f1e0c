// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ScanThread reads the folders of a command line, or a stream, on a thread of its own, ahead of the
// consumer of the volumes.
//
//   thread "scan": TreeWalk ─▶ VolumeMaker ─▶ [ ahead_max volumes ] ─▶ wait_next(), try_next()
//
// It waits when it is that far ahead, so at most ahead_max + 1 volumes are held. One thread starts
// it, takes the volumes and destroys it, which stops the thread after the system call that it is
// in, and joins it; known() is for any.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>

#include "engine/base/latest.hpp"
#include "engine/base/result.hpp"
#include "engine/list/stream_reader.hpp"
#include "engine/list/tree_scan.hpp"
#include "engine/list/volume_maker.hpp"

namespace onehop::list {

class ScanThread final : private VolumeOutlet {
 public:
  /// start checks the arguments and starts the thread. `on_ready` is called in that thread, without
  /// a lock, when try_next() has something to give that it had not; it returns at once. Error: an
  /// argument is refused, or the system refuses a thread. May block. Syscalls: those of
  /// check_arguments(), clone.
  [[nodiscard]] static Result<std::unique_ptr<ScanThread>> start(
      std::span<const std::string> paths, ScanOptions options, const VolumeSizes& sizes = {},
      std::function<void()> on_ready = {});
  /// start_stream gives the volumes of read_stream() in the same way.
  [[nodiscard]] static Result<std::unique_ptr<ScanThread>> start_stream(
      StreamInput input, std::function<void()> on_ready = {});

  /// wait_next gives the next volume. Error: the scan ended with it; the volumes before it have
  /// been given. Not to be called after the last volume or an error.
  [[nodiscard]] Result<ScanVolume> wait_next();
  /// try_next is wait_next(), or no value where that would wait.
  [[nodiscard]] std::optional<Result<ScanVolume>> try_next();

  /// known shrinks by leave_out_temporaries() alone. It is of what the thread has seen, and so of
  /// more than the volumes that were taken.
  [[nodiscard]] ScanKnown known() const noexcept { return known_.load(); }

 private:
  /// Work puts volumes and returns the last one.
  using Work = std::function<Result<ScanVolume>(VolumeOutlet&)>;
  ScanThread(Work work, std::size_t ahead_max, std::function<void()> on_ready)
      : work_{std::move(work)}, ahead_max_{ahead_max}, on_ready_{std::move(on_ready)} {}
  [[nodiscard]] static Result<std::unique_ptr<ScanThread>> start(Work work, std::size_t ahead_max,
                                                                 std::function<void()> on_ready);

  void run(const std::stop_token& stop);
  [[nodiscard]] Result<ScanVolume> work();
  [[nodiscard]] Result<ScanVolume> take_ready();
  void tell_ready();

  // --- VolumeOutlet, in the thread
  Result<void> wait_put(ScanVolume volume) override;
  bool is_stopped() const noexcept override { return stop_.stop_requested(); }
  bool is_starved() override;
  void note(const ScanKnown& known) noexcept override { known_.store(known); }

  const Work work_;
  const std::size_t ahead_max_;
  const std::function<void()> on_ready_;
  std::stop_token stop_;  // of the thread

  std::mutex mutex_;  // guards ready_
  std::condition_variable is_ready_;
  std::condition_variable_any has_room_;
  std::deque<Result<ScanVolume>> ready_;
  bool is_over_ = false;  // the consumer's: the last one or an error was returned

  Latest<ScanKnown> known_;  // written by the thread
  std::jthread thread_;      // last: it ends before what it uses
};

}  // namespace onehop::list
