// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FileThread: runs a FileWorker on a thread of its own, next to the engine core.
//
// The engine core never wakes it: a wake-up would cost that core a system call per block. The
// thread naps instead. The nap gets longer while there is nothing to do, and shorter when much has
// gathered meanwhile. The rings and the pool bound what can gather. At 600 Mbit/s the nap stays at
// its longest (file_worker.hpp). The composition owns it, on one thread. Its end stops and joins
// the thread.
#pragma once

#include <memory>
#include <stop_token>
#include <thread>

#include "engine/base/result.hpp"
#include "engine/disk/thread/file_worker.hpp"

namespace onehop::disk {

class FileThread {
 public:
  /// The rings outlive the thread. to_engine holds at least the pool's slots.
  FileThread(std::unique_ptr<FileWorker> worker, FileRings& rings);

  [[nodiscard]] Result<void> start();  ///< Error: the system refuses a thread
  /// request_stop returns at once. The thread ends after its turn and close().
  void request_stop() noexcept { thread_.request_stop(); }
  void join();
  /// worker: to be asked once the thread has been joined.
  [[nodiscard]] const FileWorker& worker() const noexcept { return *worker_; }

 private:
  void run(const std::stop_token& stop);

  std::unique_ptr<FileWorker> worker_;
  FileRings& rings_;
  std::jthread thread_;  // last: it ends before what it uses
};

/// next_nap is the length of the next nap, from that of the last one and from how many messages
/// moved since: many, shorter; few, longer. It stays within nap_min and `limit`; where one block at
/// most moves in a nap, within twice of it, but not at the end.
[[nodiscard]] Nanos next_nap(Nanos nap, std::size_t moved, Nanos limit) noexcept;

inline constexpr Nanos nap_min = 200us;

}  // namespace onehop::disk
