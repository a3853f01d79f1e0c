// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Rings of other programs, as far as no program is needed: what is read of memory maps, of indices,
// of the kernel's answers, and what is said of it. The rest is in tests/lab/rings_test.py.
#include <linux/sock_diag.h>
#include <linux/xdp_diag.h>

#include <catch2/catch.hpp>

#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/base/system/netlink_message.hpp"
#include "tools/onehop/rings/view.hpp"

namespace onehop::rings {
namespace {

RingMapping mapping(std::uint64_t inode, RingKind kind, std::uint64_t address,
                    std::uint64_t bytes = 4096) {
  return {inode, kind, address, bytes};
}

/// socket_with is one whose rings hold `held` of `entries`.
Socket socket_with(std::uint32_t entries, std::array<std::uint32_t, ring_kinds> held) {
  Socket socket{.inode = 7, .facts = {}, .rings = {}};
  for (std::size_t kind = 0; kind < ring_kinds; ++kind) {
    Ring& ring = socket.rings[kind].emplace();
    ring.use.capacity = {entries, entries};
    ring.use.add({held[kind], 0, 0});
  }
  return socket;
}

}  // namespace

TEST_CASE("the rings of a process are those that its memory map names", "[tools][rings]") {
  const auto found = mappings_in(
      "55d0c0000000-55d0c0001000 r-xp 00000000 08:01 31337      /usr/bin/socket:[31337]\n"
      "7f0000000000-7f0000001000 rw-s 180000000 00:08 31337                     socket:[31337]\n"
      "7f0000001000-7f0000004000 rw-s 100000000 00:08 31337                     socket:[31337]\n"
      "7f0000010000-7f0000019000 rw-s 80000000 00:08 31337                      socket:[31337]\n"
      "7f0000020000-7f0000029000 rw-s 00000000 00:08 31337                      socket:[31337]\n"
      "7f0000030000-7f0000039000 rw-s 00000000 00:08 4                          socket:[4]\n");
  CHECK(found == std::vector{mapping(31337, RingKind::completion, 0x7f0000000000),
                             mapping(31337, RingKind::fill, 0x7f0000001000, 0x3000),
                             mapping(31337, RingKind::tx, 0x7f0000010000, 0x9000),
                             mapping(31337, RingKind::rx, 0x7f0000020000, 0x9000),
                             mapping(4, RingKind::rx, 0x7f0000030000, 0x9000)});
  // A process of 32 bits.
  CHECK(mappings_in("f7a00000-f7a01000 rw-s 100000000 00:08 9     socket:[9]\n") ==
        std::vector{mapping(9, RingKind::fill, 0xf7a00000)});
}

TEST_CASE("no name of a file passes for a ring", "[tools][rings]") {
  for (const char* line :
       {"7f0000000000-7f0000001000 rw-s 00000000 00:08 9 /tmp/a\\012socket:[9]",
        "7f0000000000-7f0000001000 rw-s 00000000 00:08 9 /socket:[9]",
        "7f0000000000-7f0000001000 rw-s 00000000 00:08 9 socket:[9] (deleted)",
        "7f0000000000-7f0000001000 rw-s 00000000 00:08 9 socket:[10]",
        "7f0000000000-7f0000001000 rw-s 00000000 00:08 9 socket:[]",
        "7f0000000000-7f0000001000 rw-s 00000000 00:08 0 socket:[0]",
        "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 [anon:socket:[9]]",
        "7f0000000000-7f0000001000 rw-s 00000000 00:01 9 /memfd:socket:[9] (deleted)",
        "7f0000001000-7f0000000000 rw-s 00000000 00:08 9 socket:[9]",
        "7f0000000000-7f0000001000 rw-s 00001000 00:08 9 socket:[9]",
        "7f0000000000-7f0000001000 rw-s 40000000 00:08 9 socket:[9]",
        "7f0000000000-7f0000001000 rw-s 00000000 00:08 99999999999999999999 socket:[9]",
        "7f0000000000-7f0000001000 rw-s 00000000 00:08 9", "7f0000000000-7f0000001000", "-", "",
        "socket:[9]"}) {
    CAPTURE(line);
    CHECK(mappings_in(line).empty());
  }
}

TEST_CASE("a ring that was mapped twice or cut in pieces is one", "[tools][rings]") {
  CHECK(mappings_in("7f0000000000-7f0000001000 rw-s 100000000 00:08 9 socket:[9]\n"
                    "7f0000001000-7f0000002000 r--s 100001000 00:08 9 socket:[9]\n"
                    "7f0000002000-7f0000003000 rw-s 100002000 00:08 9 socket:[9]\n"
                    "7f0000003000-7f0000004000 rw-s 100003000 00:08 8 socket:[8]\n"
                    "7f0000005000-7f0000006000 rw-s 100000000 00:08 9 socket:[9]") ==
        std::vector{mapping(9, RingKind::fill, 0x7f0000000000, 0x3000)});
}

TEST_CASE("a mapping says how many entries a ring has, but within one page", "[tools][rings]") {
  constexpr std::uint64_t entries_at = 320, page = 4096;
  for (const std::size_t entry : {std::size_t{8}, std::size_t{16}})
    for (std::uint32_t entries = 1; entries <= 1U << 20; entries *= 2)
      for (const std::uint64_t page_bytes : {page, 16 * page}) {
        const std::uint64_t bytes =
            (entries_at + entries * entry + page_bytes - 1) / page_bytes * page_bytes;
        const Capacity capacity = capacity_of(bytes, entries_at, entry, page_bytes);
        CAPTURE(entry, entries, page_bytes);
        CHECK(capacity.least <= entries);
        CHECK(capacity.most >= entries);
        CHECK(capacity.is_known() == (bytes > page_bytes));
      }
  CHECK(capacity_of(0, entries_at, 8, page) == Capacity{1, 1});
  CHECK(capacity_of(UINT64_MAX, entries_at, 8, page).most == 1U << 31);
}

TEST_CASE("entries that went round say how many there are", "[tools][rings]") {
  const auto slots_of = [](std::uint32_t entries, std::uint32_t written) {
    std::vector<std::byte> slots(256 * std::size_t{8});
    for (std::uint32_t i = 0; i < written; ++i) {
      const std::uint64_t address = std::uint64_t{i} % 100 * 2048;  // the first one is 0
      std::memcpy(&slots[i % entries * std::size_t{8}], &address, sizeof address);
    }
    return slots;
  };
  for (const std::uint32_t entries : {16U, 64U, 256U})
    for (std::uint32_t written = 0; written < 600; ++written) {
      CAPTURE(entries, written);
      const Capacity capacity = narrowed({1, 256}, slots_of(entries, written), 8, written);
      CHECK(capacity.least <= entries);
      CHECK(capacity.most >= entries);
      if (written >= entries + 8) CHECK(capacity.is_known());
    }
  // The index has wrapped: it says nothing any more, the entries say what they can.
  CHECK(narrowed({1, 256}, slots_of(64, 500), 8, 3) == Capacity{64, 256});
}

TEST_CASE("what a ring holds is told across the wrap, and never more than it has",
          "[tools][rings]") {
  CHECK(held_in({.producer = 5, .consumer = 2}, 64) == 3U);
  CHECK(held_in({.producer = 2, .consumer = 0xfffffffeU}, 64) == 4U);
  CHECK(held_in({.producer = 64, .consumer = 0}, 64) == 64U);
  // The producer was read, then both moved on: no pair.
  CHECK_FALSE(held_in({.producer = 10, .consumer = 12}, 64));
  CHECK_FALSE(held_in({.producer = 0, .consumer = 2}, 64));
  CHECK_FALSE(held_in({.producer = 100, .consumer = 0}, 64));
  RingUse use;
  use.capacity = {64, 64};
  use.add({0xfffffff0U, 0xfffffff0U, 0});
  use.add({0x10, 0xfffffffaU, 0});
  use.add({0x10, 0x20, 0});  // torn: as if it were not there
  use.add({0x20, 0x10, 0});
  CHECK(use.held.count() == 3);
  CHECK(use.now == 16);
  CHECK(use.least == 0);
  CHECK(use.held.max() == 22);
  CHECK(use.moved == 32);
}

TEST_CASE("what the kernel says of a socket is read, whatever it adds", "[tools][rings]") {
  NetlinkRequest<xdp_diag_msg> message{
      SOCK_DIAG_BY_FAMILY, 0, {.xdiag_family = AF_XDP, .xdiag_ino = 31337}};
  const auto put = [&](std::uint16_t type, const auto& value) {
    ::mnl_attr_put(message, type, sizeof value, &value);
  };
  put(XDP_DIAG_INFO, xdp_diag_info{.ifindex = 3, .queue_id = 2});
  put(XDP_DIAG_RX_RING, xdp_diag_ring{.entries = 64});
  put(XDP_DIAG_UMEM_FILL_RING, xdp_diag_ring{.entries = 128});
  put(XDP_DIAG_UMEM, xdp_diag_umem{.id = 5, .flags = XDP_DU_F_ZEROCOPY});
  put(XDP_DIAG_STATS, xdp_diag_stats{.n_rx_dropped = 4, .n_rx_full = 6});
  put(99, std::uint32_t{1});
  const nlmsghdr* const header = message;
  const auto socket = parse_diag(bytes_of(header));
  REQUIRE(socket);
  CHECK(socket->inode == 31337);
  CHECK(socket->ifindex == 3);
  CHECK(socket->facts.queue == 2U);
  CHECK(socket->facts.umem == 5U);
  CHECK(socket->facts.is_zero_copy == true);
  CHECK(socket->facts.entries == std::array<std::uint32_t, ring_kinds>{64, 0, 128, 0});
  REQUIRE(socket->facts.counts);
  CHECK(socket->facts.counts->rx_dropped == 4);
  CHECK(socket->facts.counts->rx_ring_full == 6);
  for (std::size_t size = 0; size < header->nlmsg_len; ++size)
    CHECK_FALSE(parse_diag(bytes_of(header).first(size)));
}

TEST_CASE("thresholds are of one ring or of any", "[tools][rings]") {
  const std::vector<Socket> sockets{socket_with(64, {32, 0, 60, 1})};
  const auto count = [&](const std::string& text, bool is_above) {
    const auto threshold = read_threshold(text, is_above);
    REQUIRE(threshold);
    return crossed(sockets, std::array{threshold.value()}).size();
  };
  CHECK(count("50", true) == 1);
  CHECK(count("rx=50", true) == 0);
  CHECK(count("rx=49", true) == 1);
  CHECK(count("fill=95", false) == 1);
  CHECK(count("0", false) == 0);
  CHECK(count("2", false) == 2);
  for (const char* text : {"", "x", "rx", "rx=", "=5", "RX=5", "-1", "100.1", "nan", "5%", "rx=5x"})
    CHECK(read_threshold(text, true).has_error());
}

TEST_CASE("a picture of rings fits its terminal and tells the worst", "[tools][rings]") {
  std::vector<Socket> sockets(5, socket_with(2048, {2048, 0, 0, 3}));
  sockets[0].facts.missing = "this kernel has no xdp_diag";
  const Moment moment{.pid = 1, .name = "x", .samples = 1, .interval = 1s};
  for (const std::size_t columns : {80U, 40U, 20U})
    for (const std::size_t rows : {0U, 24U, 10U, 3U}) {
      const watch::ScreenOptions options{
          .columns = columns, .rows = rows, .is_utf8 = false, .has_color = false};
      const std::string text = watch::text_of(lines_of(moment, sockets, options), options);
      CAPTURE(columns, rows);
      std::size_t widest = 0, begin = 0, lines = 0;
      for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; ++lines)
        widest = std::max(widest, end - begin), begin = end + 1;
      CHECK(widest <= columns);
      if (rows > 0) CHECK(lines <= rows);
      if (columns == 80 && rows == 0) {
        CHECK(text.find("full: frames are dropped") != std::string::npos);
        CHECK(text.find("empty: frames are dropped") != std::string::npos);
        CHECK(text.find("no xdp_diag") != std::string::npos);
      }
    }
  const auto json = json_of(moment, sockets[0]);
  CHECK(json["rx"]["held"] == 2048);
  CHECK(json["rx"]["tenths"] == std::vector{0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  CHECK(json["interface"].is_null());
}

}  // namespace onehop::rings
