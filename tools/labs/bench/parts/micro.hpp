// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The parts that run on one thread, as objects whose run() does a fixed amount of work through the
// engine's own code. `onehop bench` times them itself; onehop-micro hands the same objects to
// Google Benchmark.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"
#include "engine/crypto/aead.hpp"
#include "engine/crypto/digest.hpp"

namespace onehop::bench {

class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;
  virtual void run() = 0;
  [[nodiscard]] virtual std::uint64_t bytes_per_run() const noexcept { return 0; }  ///< payload
  [[nodiscard]] virtual std::uint64_t items_per_run()
      const noexcept = 0;  ///< frames, blocks, ticks, messages
};

/// make_seal seals a batch of frames of `frame_bytes`, as the sender does; make_open opens one. The
/// backend must be available.
[[nodiscard]] std::unique_ptr<Work> make_seal(crypto::AeadBackend backend, std::size_t frame_bytes);
[[nodiscard]] std::unique_ptr<Work> make_open(crypto::AeadBackend backend, std::size_t frame_bytes);
/// make_digest digests blocks from a set that is as large as what a sender keeps read ahead.
[[nodiscard]] std::unique_ptr<Work> make_digest(crypto::DigestKind kind);
/// make_law_step steps a law once per run over samples of a busy link. Error: no such law (2).
[[nodiscard]] Result<std::unique_ptr<Work>> make_law_step(const std::string& law);
/// make_ring passes blocks through the ring between file thread and engine core, both ends on one
/// thread.
[[nodiscard]] std::unique_ptr<Work> make_ring();

/// Timing: CPU time of the calling thread, so that other programs' turns do not count.
struct Timing {
  double seconds = 0;
  std::uint64_t runs = 0;
};
/// time_for runs `work` once to warm up, then until `span` of CPU time has gone.
[[nodiscard]] Timing time_work(Work& work, Nanos span);

}  // namespace onehop::bench
