// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FileThread: runs a FileWorker on a thread of its own, next to the engine core.
//
// The engine core never wakes it: a wake-up would cost that core a system call per block. The
// thread naps instead. The nap gets longer while there is nothing to do, and shorter when much has
// gathered meanwhile. The rings and the pool bound what can gather. At 600 Mbit/s the nap stays at
// its longest (file_worker.hpp). The composition owns it; start() and request_stop() are for one
// thread, is_over() for any.
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

class FileThread {
 public:
  /// The rings outlive the thread. to_engine holds at least the pool's slots.
  FileThread(std::unique_ptr<FileWorker> worker, SpscRing<BlockRef>& to_engine,
             SpscRing<BlockRef>& from_engine);
  ~FileThread();  ///< request_stop() and join()

  [[nodiscard]] Result<void> start();  ///< Error: the system refuses a thread
  /// request_stop returns at once. The thread ends after its turn and close().
  void request_stop() noexcept;
  void join();

  /// is_over: the worker has nothing more to do. The thread still moves buffers.
  [[nodiscard]] bool is_over() const noexcept { return is_over_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t naps_total() const noexcept {
    return naps_total_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::string_view io_name() const noexcept { return worker_->io_name(); }

 private:
  void run();

  std::unique_ptr<FileWorker> worker_;
  SpscRing<BlockRef>& to_engine_;
  SpscRing<BlockRef>& from_engine_;
  std::thread thread_;
  std::atomic<bool> is_stopping_{false};      // release in request_stop(), acquire in run()
  std::atomic<bool> is_over_{false};          // release in run(), acquire in is_over()
  std::atomic<std::uint64_t> naps_total_{0};  // written by the thread only
};

/// next_nap is the length of the next nap, from that of the last one and from how many messages
/// moved since: many, shorter; few, longer. It stays within nap_min and `limit`.
[[nodiscard]] Nanos next_nap(Nanos nap, std::size_t moved, Nanos limit) noexcept;

inline constexpr Nanos nap_min = 200us;

}  // namespace onehop::file
