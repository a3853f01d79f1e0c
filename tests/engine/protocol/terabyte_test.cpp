// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A terabyte in virtual time. Goal: memory does not follow the size of the file. Method: the same
// link with the same buffers carries 1 MB and then 1 TB of blocks, both digest trees included, and
// the kernel's own account of this process's peak (VmHWM) is compared. Frames are whole blocks and
// bodies are not made: the protocol's state is what is looked at. The same for sizes that are only
// claimed. Bounds: the peak may grow by 5 % of what either end of the program holds (40 MiB of
// port, pool and code, so 2 MiB).
#include <catch2/catch.hpp>

#include "engine/crypto/tree.hpp"
#include "tests/engine/protocol/lossy_link.hpp"
#include "tests/engine/protocol/receiver_bench.hpp"
#include "tests/support/peak_memory.hpp"

using namespace onehop;
using namespace onehop::protocol;
using onehop::test::peak_kib;
using onehop::test::start_peak_anew;

namespace {

std::size_t peak_kib_of(std::uint64_t bytes) {
  start_peak_anew();
  LossyLink link{{.seed = 4,
                  .sizes = {bytes},
                  .loss = 0.001,
                  .frames_per_step = 40,
                  .body_max = block_bytes,
                  .slots = 96,
                  .is_body_checked = false}};
  link.receiver.set_rx_ring({.capacity = mib(64), .scope = QueueScope::own_ring});
  crypto::DigestTree sent{crypto::DigestKind::xxh3}, received{crypto::DigestKind::xxh3};
  std::uint64_t blocks = 0;
  while (!link.is_done() && link.violation == wire::Violation::none) {
    link.step();
    for (; blocks < link.blocks_checked; ++blocks) {
      sent.add({});
      received.add({});
    }
  }
  CHECK(link.violation == wire::Violation::none);
  CHECK(link.receiver.totals().bytes_accepted == bytes);
  CHECK(sent.root() == received.root());
  return peak_kib();
}

constexpr std::size_t growth_kib_max = 2048;

/// What a receiver of such files needs, of which a few blocks come, and one hole.
std::size_t peak_kib_of_claim(const std::vector<std::uint64_t>& sizes) {
  start_peak_anew();
  ReceiverBench bench{sizes};
  const std::uint64_t blocks = blocks_of(sizes.back());
  const auto last = static_cast<std::uint32_t>(sizes.size() - 1);
  for (const std::uint64_t block : {std::uint64_t{0}, blocks / 2, blocks - 1}) {
    const std::uint64_t offset = block * block_bytes;
    CHECK(bench.data(last, offset, block_length_at(sizes.back(), offset)) ==
          Placement::Verdict::fresh);
    CHECK(bench.data(last, offset, block_length_at(sizes.back(), offset)) ==
          Placement::Verdict::duplicate);
    BlockRef full;
    REQUIRE(bench.receiver.pop_full(full));
    bench.receiver.add_free(full);
  }
  for (std::uint64_t block = 1; block <= std::min(hole_blocks_max, blocks / 2 - 1); ++block)
    bench.receiver.mark_skipped(last, block * block_bytes);
  CHECK(bench.data(last, block_bytes, block_bytes) == Placement::Verdict::duplicate);
  CHECK_FALSE(bench.receiver.is_complete());
  return peak_kib();
}

}  // namespace

TEST_CASE("a terabyte needs no more memory than a megabyte") {
  const std::size_t small = peak_kib_of(1'000'000);
  const std::size_t big = peak_kib_of(1'000'000'000'000);
  CAPTURE(small, big);
  CHECK(big <= small + growth_kib_max);
}

TEST_CASE("Z1 a size that a sender claims takes no memory, nor do many") {
  const std::size_t small = peak_kib_of_claim({std::uint64_t{1} << 30});
  for (const int bits : {40, 52, 61, 62, 63}) {
    CAPTURE(bits, small);
    CHECK(peak_kib_of_claim({std::uint64_t{1} << bits}) <= small + growth_kib_max);
  }
  const std::vector<std::uint64_t> many(4096, std::uint64_t{1} << 47);
  CHECK(peak_kib_of_claim(many) <= small + growth_kib_max);
}

TEST_CASE("Z1 blocks in an order that no sender has are refused, and take no memory") {
  const std::uint64_t size = std::uint64_t{1} << 61;
  const std::size_t small = peak_kib_of_claim({size});
  start_peak_anew();
  ReceiverBench bench{{size}};
  std::size_t fresh = 0, blocks = 0;
  for (std::uint64_t offset = 0; blocks < 1'000'000; offset += 2 * block_bytes, ++blocks) {
    if (blocks >= 10'000) {
      bench.receiver.mark_skipped(0, offset);
      continue;
    }
    if (bench.data(0, offset, block_bytes) != Placement::Verdict::fresh) continue;
    ++fresh;
    BlockRef full;
    REQUIRE(bench.receiver.pop_full(full));
    bench.receiver.add_free(full);
  }
  CHECK(fresh > 2 * 224);  // all buffers of both ends: what an honest sender can need
  CHECK(fresh < blocks);
  CHECK(bench.receiver.totals().no_room > 0);
  CHECK(peak_kib() <= small + growth_kib_max);
}
