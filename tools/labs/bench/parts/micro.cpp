// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/parts/micro.hpp"

#include <array>
#include <vector>

#include "control/law/make_law.hpp"
#include "engine/base/block.hpp"
#include "engine/base/check.hpp"
#include "engine/base/spsc_ring.hpp"
#include "engine/base/system/cpu.hpp"
#include "engine/crypto/frame_sealer.hpp"
#include "engine/source/read_ahead.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::bench {

namespace {

constexpr std::size_t batch_frames = 256;  // a sender's longest turn
constexpr std::uint64_t digest_blocks = source::ReadAhead::blocks_min;

crypto::DirectionSecret secret() {
  return crypto::direction_secret(crypto::ExporterSecret{}, crypto::Direction::from_sender, 0);
}

/// Frames as they lie one after the other in a port's memory, bodies in a block.
struct Frames {
  explicit Frames(std::size_t frame_bytes)
      : body_bytes{frame_bytes - wire::overhead_bytes},
        bodies(body_bytes * batch_frames, std::byte{0x5a}),
        sealed(frame_bytes * batch_frames) {}
  [[nodiscard]] std::span<std::byte> body(std::size_t i) {
    return std::span{bodies}.subspan(i * body_bytes, body_bytes);
  }
  [[nodiscard]] std::span<std::byte> frame(std::size_t i) {
    const std::size_t bytes = body_bytes + wire::overhead_bytes;
    return std::span{sealed}.subspan(i * bytes, bytes);
  }
  std::size_t body_bytes;
  std::vector<std::byte> bodies, sealed;
};

void seal_all(crypto::FrameSealer& sealer, Frames& frames, std::uint64_t& number) {
  for (std::size_t i = 0; i < batch_frames; ++i) {
    const std::span<std::byte> frame = frames.frame(i);
    ++number;
    wire::encode_header({.type = wire::FrameType::data,
                         .key_phase = sealer.key_phase(number),
                         .packet_number = number},
                        frame.first<wire::header_bytes>());
    sealer.seal(number, frame.first(wire::header_bytes), frames.body(i),
                frame.data() + wire::header_bytes);
  }
}

class SealWork final : public Work {
 public:
  SealWork(crypto::AeadBackend backend, std::size_t frame_bytes)
      : frames_{frame_bytes}, sealer_{secret(), crypto::key_interval_default, backend} {}
  void run() override { seal_all(sealer_, frames_, number_); }
  std::uint64_t bytes_per_run() const noexcept override { return frames_.bodies.size(); }
  std::uint64_t items_per_run() const noexcept override { return batch_frames; }

 private:
  Frames frames_;
  crypto::FrameSealer sealer_;
  std::uint64_t number_ = 0;
};

/// Opens the same sealed batch again and again: the AEAD alone, since a replay window would refuse
/// the second time.
class OpenWork final : public Work {
 public:
  OpenWork(crypto::AeadBackend backend, std::size_t frame_bytes)
      : frames_{frame_bytes}, aead_{backend} {
    const std::array<std::byte, crypto::aead_key_bytes_max> key{};
    aead_.set_key(std::span{key}.first(aead_.key_bytes()));
    for (std::size_t i = 0; i < batch_frames; ++i) {
      const std::span<std::byte> frame = frames_.frame(i);
      aead_.seal(nonce_, frame.first(wire::header_bytes), frames_.body(i),
                 frame.data() + wire::header_bytes);
    }
  }
  void run() override {
    for (std::size_t i = 0; i < batch_frames; ++i) {
      const std::span<std::byte> frame = frames_.frame(i);
      const bool is_good = aead_.open(nonce_, frame.first(wire::header_bytes),
                                      frame.subspan(wire::header_bytes), frames_.body(i).data());
      ONEHOP_CHECK(is_good);
    }
  }
  std::uint64_t bytes_per_run() const noexcept override { return frames_.bodies.size(); }
  std::uint64_t items_per_run() const noexcept override { return batch_frames; }

 private:
  Frames frames_;
  crypto::AeadKey aead_;
  std::array<std::byte, crypto::aead_nonce_bytes> nonce_{};
};

class DigestWork final : public Work {
 public:
  explicit DigestWork(crypto::DigestKind kind)
      : kind_{kind}, blocks_(digest_blocks * block_bytes, std::byte{0x5a}) {}
  void run() override {
    for (std::uint64_t i = 0; i < digest_blocks; ++i)
      blocks_[0] ^= crypto::block_digest(
          kind_,
          std::span{blocks_}.subspan(i * block_bytes, block_bytes))[0];  // so that none is left out
  }
  std::uint64_t bytes_per_run() const noexcept override { return blocks_.size(); }
  std::uint64_t items_per_run() const noexcept override { return digest_blocks; }

 private:
  crypto::DigestKind kind_;
  std::vector<std::byte> blocks_;
};

/// A gigabit link whose lower queue holds about 4 ms, in ticks of 1 ms.
class LawWork final : public Work {
 public:
  explicit LawWork(std::unique_ptr<law::Controller> law) : law_{std::move(law)} {
    sample_.at = Instant{1s};
    sample_.path.payload_per_frame = {1428};
    sample_.path.wire_per_frame = {1514};
    sample_.path.offered = mib(1);
    sample_.path.srtt = 2ms;
    sample_.path.tx_queue.scope = QueueScope::lower_queue;
    sample_.path.tx_queue.occupancy = kib(500);
  }
  void run() override {
    constexpr Nanos tick = 1ms;
    sample_.at += tick;
    PathReport& path = sample_.path;
    path.at = path.tx_queue.at = path.feedback_at = sample_.at;
    path.tx_step = mbit_per_s(1000) * tick;
    path.tx_step_span = tick;
    path.tx_queue.drained_total += path.tx_step;
    path.sent_total = path.tx_queue.drained_total + path.tx_queue.occupancy;
    path.packets_reported_total = path.packets_sent_total += 83;
    (void)law_->step(sample_);
  }
  std::uint64_t items_per_run() const noexcept override { return 1; }

 private:
  std::unique_ptr<law::Controller> law_;
  law::LinkSample sample_;
};

class RingWork final : public Work {
 public:
  void run() override {
    BlockRef block;
    for (std::uint32_t i = 0; i < batch_frames; ++i) {
      block.slot = i;
      const bool is_taken = ring_.push(block);
      ONEHOP_CHECK(is_taken);
    }
    while (ring_.pop(block)) {
    }
  }
  std::uint64_t items_per_run() const noexcept override { return batch_frames; }

 private:
  SpscRing<BlockRef> ring_{1024};
};

}  // namespace

std::unique_ptr<Work> make_seal(crypto::AeadBackend backend, std::size_t frame_bytes) {
  return std::make_unique<SealWork>(backend, frame_bytes);
}
std::unique_ptr<Work> make_open(crypto::AeadBackend backend, std::size_t frame_bytes) {
  return std::make_unique<OpenWork>(backend, frame_bytes);
}
std::unique_ptr<Work> make_digest(crypto::DigestKind kind) {
  return std::make_unique<DigestWork>(kind);
}
std::unique_ptr<Work> make_ring() { return std::make_unique<RingWork>(); }

Result<std::unique_ptr<Work>> make_law_step(const std::string& law) {
  ONEHOP_TRY(made, law::make_law({.spec = law}));
  return std::unique_ptr<Work>{std::make_unique<LawWork>(std::move(made))};
}

Timing time_work(Work& work, Nanos span) {
  work.run();
  Timing timing;
  const Nanos begin = thread_cpu_time();
  Nanos used{0};
  // The clock costs as much as a law's step: it is looked at after more and more runs, until a
  // quarter of the span has gone.
  std::uint64_t runs = 1;
  while (used < span) {
    for (std::uint64_t i = 0; i < runs; ++i) work.run();
    timing.runs += runs;
    used = thread_cpu_time() - begin;
    if (used * 4 < span) runs *= 2;
  }
  timing.seconds = std::chrono::duration<double>(used).count();
  return timing;
}

}  // namespace onehop::bench
