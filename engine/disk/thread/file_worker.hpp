// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FileWorker: what a FileThread runs: a Source or a Sink over files, or over memory.
//
//   sending     Source, MemorySource ──▶ blocks ──▶ engine
//   receiving   engine ──▶ blocks ──▶ Sink, MemorySink
//               session ──▶ FileCommand ──▶ both ──▶ FileEvent ──▶ session
//
// It is called once per turn of the file thread, which owns it: virtual calls are cheap enough.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/file_message.hpp"
#include "engine/base/units.hpp"

namespace onehop::disk {

// Longest naps; twice as long on a slow link (next_nap()). Shorter: more wake-ups for the same
// blocks, one per 3.5 ms at 600 Mbit/s.
/// Reading. Longer: a faster link empties what is read ahead, and the lower queue holds only 8 ms.
inline constexpr Nanos nap_max_reading = 8ms;
/// Writing. Longer: a disk slower than the link idles, and what gathers looks like a slower disk.
inline constexpr Nanos nap_max_writing = 4ms;
/// While the last blocks are awaited: this sleep is added to the transfer's time.
inline constexpr Nanos nap_max_at_end = 1ms;

class FileWorker {
 public:
  FileWorker() = default;
  FileWorker(const FileWorker&) = delete;
  FileWorker& operator=(const FileWorker&) = delete;
  virtual ~FileWorker() = default;

  /// turn does what can be done now and returns how many blocks and messages moved; 0: nap.
  virtual std::size_t turn(Instant now, FileRings& rings) = 0;
  /// nap_max is the longest that the thread may sleep now.
  [[nodiscard]] virtual Nanos nap_max() const noexcept = 0;
  /// close is the last call: what arrived is made durable, where that means something.
  virtual void close() {}

  [[nodiscard]] virtual const char* thread_name() const noexcept = 0;  ///< at most 15 bytes
  /// io_name: "threads", "io_uring", "memory".
  [[nodiscard]] virtual std::string_view io_name() const noexcept = 0;
  /// cache_text: after close(), what went past the page cache (PageCache::text()).
  [[nodiscard]] virtual std::string cache_text() const { return {}; }
};

}  // namespace onehop::disk
