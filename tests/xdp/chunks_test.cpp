// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   no chunk is lost, doubled or lent twice, and a frame in several chunks goes out and comes
//         in as one.
// Method: the real RxChunks and TxChunks over libxdp's rings on plain memory; the test plays the
//         kernel.
#include <array>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "tools/labs/world/plain_ring.hpp"
#include "xdp/rx_chunks.hpp"
#include "xdp/tx_chunks.hpp"

using namespace onehop::xdp;
using onehop::RxFrame;
using onehop::scenario::PlainRing;

namespace {

const std::array<std::uint32_t, 4> starts = {0, 5, 0x7fffffffU, 0xfffffffaU};
constexpr std::uint32_t chunk_bytes = 4096;

/// RxSide: a receive ring over a UMEM whose chunks the test fills as the kernel does.
struct RxSide {
  static constexpr std::uint32_t chunks = 256;
  explicit RxSide(std::uint32_t start) : plain{256, start}, fill_plain{512, start} {}

  /// show puts a UDP datagram of `payload_bytes` into the ring, each chunk filled with up to `room`
  /// bytes; the chunks are taken in descending order, so that none of a frame's lie side by side.
  void show(std::size_t payload_bytes, std::size_t room, std::size_t padding = 0) {
    std::array<std::byte, onehop::wire::l2_l4_bytes_max> headers{};
    const std::size_t header_bytes = onehop::wire::build_headers({}, headers);
    std::vector<std::byte> frame(header_bytes + payload_bytes);
    for (std::size_t i = 0; i < payload_bytes; ++i)
      frame[header_bytes + i] = static_cast<std::byte>(i * 7 + (i >> 8) + payload_bytes);
    onehop::wire::HeaderTemplate{std::span{headers}.first(header_bytes)}.write(
        frame.data(), std::span{frame}.subspan(header_bytes));
    frame.resize(frame.size() + padding);
    for (std::size_t at = 0; at < frame.size(); at += room) {
      const std::size_t length = std::min(room, frame.size() - at);
      const std::uint64_t addr =
          std::uint64_t{--next_chunk % chunks} * chunk_bytes + packet_headroom_bytes;
      std::copy_n(frame.begin() + static_cast<std::ptrdiff_t>(at), length,
                  umem.begin() + static_cast<std::ptrdiff_t>(addr));
      plain.at(plain.producer++) = {
          .addr = addr,
          .len = static_cast<std::uint32_t>(length),
          .options = at + length < frame.size() ? std::uint32_t{XDP_PKT_CONTD} : 0U};
    }
  }
  static bool is_whole(const RxFrame& view, std::size_t payload_bytes) {
    std::vector<std::byte> got(view.bytes().size());
    view.bytes().copy_to(got.data(), 0, got.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != static_cast<std::byte>(i * 7 + (i >> 8) + payload_bytes)) return false;
    return got.size() == payload_bytes;
  }

  std::vector<std::byte> umem = std::vector<std::byte>(std::size_t{chunks} * chunk_bytes);
  std::uint32_t next_chunk = 1U << 30;
  PlainRing<xdp_desc> plain;
  PlainRing<std::uint64_t> fill_plain;
  xsk_ring_cons rx = plain.attach<xsk_ring_cons>();
  xsk_ring_prod fill = fill_plain.attach<xsk_ring_prod>();
  RxChunks held;
  std::array<RxFrame, onehop::rx_batch_max> views{};
};

}  // namespace

TEST_CASE("every chunk can be given back while the kernel still shows its old fill entry") {
  const auto start = GENERATE(from_range(starts));
  constexpr std::uint32_t count = 8;
  PlainRing<std::uint64_t> plain_fill{fill_entries(count), start};
  PlainRing<xdp_desc> plain_rx{count, start};
  std::array<std::byte, count * chunk_bytes> umem{};
  xsk_ring_prod fill = plain_fill.attach<xsk_ring_prod>();
  xsk_ring_cons rx = plain_rx.attach<xsk_ring_cons>();
  std::uint32_t index = 0;
  REQUIRE(xsk_ring_prod__reserve(&fill, count, &index) == count);
  for (std::uint32_t chunk = 0; chunk < count; ++chunk)
    *xsk_ring_prod__fill_addr(&fill, index + chunk) = std::uint64_t{chunk} * chunk_bytes;
  xsk_ring_prod__submit(&fill, count);
  for (std::uint32_t i = 0; i < count; ++i)
    plain_rx.at(start + i) = {
        .addr = plain_fill.at(start + i) + packet_headroom_bytes, .len = 60, .options = 0};
  plain_rx.producer = start + count;  // shown, and the fill ring's consumer index is not

  RxChunks chunks;
  std::array<onehop::RxFrame, count> views{};
  CHECK(chunks.take(rx, umem, views).malformed_frames == count);  // empty frames
  chunks.give_back(fill, chunk_bytes);
  CHECK(plain_fill.producer == start + 2 * count);
  CHECK(plain_fill.consumer == start);
  for (std::uint32_t i = 0; i < 2 * count; ++i)
    CHECK(plain_fill.at(start + i) == std::uint64_t{i % count} * chunk_bytes);
}

// Goal:   frames of every number of pieces arrive whole and in order, whatever the batch cuts, and
// each chunk goes back once. Method: drawn frames and batches, seeds named; a ring that wraps in
// slots and in 32 bits.
TEST_CASE("frames in several chunks come in whole, whatever the batch") {
  const auto start = GENERATE(from_range(starts));
  const auto seed = GENERATE(1U, 2U, 3U);
  CAPTURE(start, seed);
  std::mt19937 random{seed};
  RxSide side{start};
  std::vector<std::size_t> shown;
  std::size_t next = 0, returned = 0, taken_chunks = 0;
  for (int round = 0; round < 200; ++round) {
    while (side.plain.producer - side.plain.consumer < 200) {
      shown.push_back(random() % 4 == 0 ? 44 + random() % 100 : random() % 15'000);
      side.show(shown.back(), random() % 2 == 0 ? 3840 : 2048, random() % 5);
    }
    const std::uint32_t consumer_before = side.plain.consumer;
    const std::size_t room = 1 + random() % onehop::rx_batch_max;
    const auto taken = side.held.take(side.rx, side.umem, std::span{side.views}.first(room));
    REQUIRE(taken.views > 0);
    REQUIRE(taken.malformed_frames == 0);
    for (std::size_t i = 0; i < taken.views; ++i)
      REQUIRE(RxSide::is_whole(side.views[i], shown[next++]));
    taken_chunks += side.plain.consumer - consumer_before;
    side.held.give_back(side.fill, chunk_bytes);
    while (side.fill_plain.consumer != side.fill_plain.producer) {
      REQUIRE(side.fill_plain.at(side.fill_plain.consumer++) % chunk_bytes == 0);
      ++returned;
    }
    REQUIRE(returned == taken_chunks);
  }
  CHECK(side.held.chunk_room(chunk_bytes) == 2048);
}

TEST_CASE("a frame of too many chunks is counted, its chunks go back, and the next one arrives") {
  RxSide side{0};
  side.show(9 * 1000, 1000);  // ten pieces with the headers
  side.show(1400, 3840);
  const auto taken = side.held.take(side.rx, side.umem, side.views);
  CHECK(taken.malformed_frames == 1);
  REQUIRE(taken.views == 1);
  CHECK(RxSide::is_whole(side.views[0], 1400));
  side.held.give_back(side.fill, chunk_bytes);
  CHECK(side.fill_plain.producer == 11);
  CHECK(side.held.chunk_room(chunk_bytes) == 3840);  // what is thrown away says nothing

  // A capacity by the driver's filling follows a lowered MTU, and no frame of others can shrink it
  // for good.
  side.show(9000, 2048);
  side.show(15'000, 3840);
  CHECK(side.held.take(side.rx, side.umem, side.views).views == 2);
  CHECK(chunks_of(9014, side.held.chunk_room(chunk_bytes)) == 5);
  CHECK(chunks_of(1514, side.held.chunk_room(chunk_bytes)) == 1);
}

TEST_CASE(
    "a slot of three chunks goes out as the chunks that its frame reaches into, and is free when "
    "all are back") {
  const auto start = GENERATE(from_range(starts));
  PlainRing<xdp_desc> tx_plain{16, start};
  PlainRing<std::uint64_t> done_plain{16, start};
  xsk_ring_prod tx = tx_plain.attach<xsk_ring_prod>();
  xsk_ring_cons done = done_plain.attach<xsk_ring_cons>();
  TxChunks chunks;
  chunks.set_up(8, 16, chunk_bytes, 3);  // the sixteenth chunk is left over
  REQUIRE(chunks.slots() == 5);
  struct Row {
    std::uint32_t wire_bytes;
    std::vector<std::uint32_t> lengths;
  };
  const std::uint32_t first =
      chunk_bytes - 22;  // headers of 42 bytes end where the frame starts, at 64
  const std::vector<Row> rows = {{60, {60}},
                                 {first, {first}},
                                 {first + 1, {first, 1}},
                                 {9014, {first, chunk_bytes, 9014 - first - chunk_bytes}},
                                 {1442, {1442}}};
  std::vector<std::uint64_t> addresses;
  std::int64_t wire_bytes = 0;
  for (const Row& row : rows) {
    std::uint64_t offset = 0;
    REQUIRE(chunks.lend(done, offset));
    REQUIRE((offset / chunk_bytes - 8) % 3 == 0);
    chunks.commit(tx, offset + 22, row.wire_bytes);
    wire_bytes += row.wire_bytes;
    std::uint64_t expected = offset + 22;
    for (std::size_t i = 0; i < row.lengths.size(); ++i) {
      const xdp_desc descriptor = tx_plain.at(static_cast<std::uint32_t>(start + addresses.size()));
      CHECK(descriptor.addr == expected);
      CHECK(descriptor.len == row.lengths[i]);
      CHECK(descriptor.options == (i + 1 < row.lengths.size() ? std::uint32_t{XDP_PKT_CONTD} : 0U));
      expected += row.lengths[i];
      addresses.push_back(descriptor.addr);
    }
  }
  CHECK(tx_plain.producer == start);  // the kernel sees nothing before publish()
  chunks.publish(tx);
  CHECK(tx_plain.producer - start == addresses.size());
  CHECK(chunks.occupancy().count == wire_bytes);
  std::uint64_t none = 0;
  REQUIRE_FALSE(chunks.lend(done, none));

  // The kernel gives the chunks back one by one; a frame counts as drained with its last.
  const std::vector<std::int64_t> drained_after = {60,
                                                   60 + first,
                                                   60 + first,
                                                   61 + 2 * std::int64_t{first},
                                                   61 + 2 * std::int64_t{first},
                                                   61 + 2 * std::int64_t{first},
                                                   9075 + 2 * std::int64_t{first},
                                                   wire_bytes};
  REQUIRE(addresses.size() == drained_after.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    done_plain.at(done_plain.producer++) = addresses[i];
    (void)chunks.reclaim(done);
    CHECK(chunks.drained_total().count == drained_after[i]);
    CHECK(chunks.occupancy().count == wire_bytes - drained_after[i]);
  }
  CHECK(chunks.in_flight() == 0);
}
