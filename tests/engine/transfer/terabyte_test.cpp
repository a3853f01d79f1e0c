// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A terabyte in virtual time. Goal: memory does not follow the size of the file. Method: the same
// link with the same buffers carries 1 MB and then 1 TB of blocks, both digest trees included, and
// the kernel's own account of this process's peak (VmHWM) is compared. Frames are whole blocks and
// bodies are not made: the protocol's state is what is looked at. Bounds: the peak may grow by 5 %
// of what either end of the program holds (40 MiB of port, pool and code, so 2 MiB); one bit per
// block is 0.5 MiB of that.
#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "engine/crypto/tree.hpp"
#include "tests/engine/transfer/lossy_link.hpp"

using namespace onehop;
using namespace onehop::transfer;

namespace {

/// peak_kib is VmHWM; starting anew sets it to what is resident now (proc(5), clear_refs).
std::size_t peak_kib() {
  std::ifstream file{"/proc/self/status"};
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6));
  FAIL("no VmHWM in /proc/self/status");
  return 0;
}
void start_peak_anew() {
  std::ofstream file{"/proc/self/clear_refs"};
  file << 5 << std::flush;
  REQUIRE(file);
}

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

}  // namespace

TEST_CASE("a terabyte needs no more memory than a megabyte") {
  const std::size_t small = peak_kib_of(1'000'000);
  const std::size_t big = peak_kib_of(1'000'000'000'000);
  CAPTURE(small, big);
  CHECK(big <= small + 2048);
}
