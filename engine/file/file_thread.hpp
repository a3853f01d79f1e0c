// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FileThread: runs a FileWorker (Source, Sink, or one of memory alone) on a thread of its own, next to the engine core.
//
// It is never woken by the engine core: a wake-up would cost that core a system call per block. It naps instead, and
// the nap follows the load: longer while it finds nothing, shorter when much has gathered meanwhile. The rings and
// the pool bound what can gather. At 600 Mbit/s the nap stays at its longest (file_worker.hpp).
// Started by the program's composition; start() and request_stop() from one thread, counters() from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "engine/base/block.hpp"
#include "engine/base/result.hpp"
#include "engine/base/spsc_ring.hpp"
#include "engine/file/file_worker.hpp"

namespace onehop::file {

struct FileThreadCounters {
  std::uint64_t naps_total = 0;
  std::uint64_t turns_total = 0;
  std::uint64_t io_syscalls_total = 0;  ///< made by FileIo; opening and naming files come on top
};

class FileThread {
 public:
  /// The rings outlive the thread. to_engine holds at least the pool's slots.
  FileThread(std::unique_ptr<FileWorker> worker, SpscRing<BlockRef>& to_engine, SpscRing<BlockRef>& from_engine);
  ~FileThread();  ///< request_stop() and join()
  FileThread(const FileThread&) = delete;
  FileThread& operator=(const FileThread&) = delete;

  [[nodiscard]] Result<void> start();  ///< Error: the system refuses a thread
  /// request_stop returns at once. The thread ends after its turn; a Sink makes durable first what has arrived.
  void request_stop() noexcept;
  void join();

  /// is_over: the worker has nothing more to do; the thread still takes and gives buffers until it is stopped.
  [[nodiscard]] bool is_over() const noexcept { return is_over_.load(std::memory_order_acquire); }
  [[nodiscard]] FileThreadCounters counters() const noexcept;
  [[nodiscard]] std::string_view io_name() const noexcept { return worker_->io_name(); }

 private:
  void run();
  [[nodiscard]] std::size_t turn();

  std::unique_ptr<FileWorker> worker_;
  SpscRing<BlockRef>& to_engine_;
  SpscRing<BlockRef>& from_engine_;
  std::thread thread_;
  std::atomic<bool> is_stopping_{false};  // release in request_stop(), acquire in run()
  std::atomic<bool> is_over_{false};      // release in run(), acquire in is_over()
  std::atomic<std::uint64_t> naps_total_{0}, turns_total_{0}, io_syscalls_total_{0};  // written by the thread only
};

/// next_nap is the nap's law: `moved` is the messages that the turns since the last nap found to do.
[[nodiscard]] Nanos next_nap(Nanos nap, std::size_t moved, Nanos limit) noexcept;

inline constexpr Nanos nap_min = 200us;

}  // namespace onehop::file
