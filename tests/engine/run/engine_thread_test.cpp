// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// EngineThread and placement: the real thread, the real clock, a real port on loopback.
#include <catch2/catch.hpp>

#include <sched.h>
#include <sys/prctl.h>

#include <thread>

#include "engine/base/system/cpu.hpp"
#include "engine/port/udp_port.hpp"
#include "engine/run/engine_thread.hpp"
#include "tests/engine/run/loop_bench.hpp"
#include "tests/support/needs.hpp"

using namespace onehop;
using namespace onehop::run;

namespace {

cpu_set_t allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(::sched_getaffinity(0, sizeof set, &set) == 0);
  return set;
}
int first_of(const cpu_set_t& set) {
  int cpu = 0;
  while (!CPU_ISSET(static_cast<unsigned>(cpu), &set)) ++cpu;
  return cpu;
}
/// Affinity narrows this thread's CPUs and gives them back at the end, also of a failed test.
struct Affinity {
  cpu_set_t before = allowed_cpus();
  void set(std::initializer_list<int> cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(static_cast<unsigned>(cpu), &set);
    REQUIRE(::sched_setaffinity(0, sizeof set, &set) == 0);
  }
  ~Affinity() { ::sched_setaffinity(0, sizeof before, &before); }
};

std::unique_ptr<UdpPort> loopback_port() {
  UdpPortConfig config;
  config.local.address = *IpAddress::parse("127.0.0.1");
  auto port = UdpPort::open(config);
  REQUIRE(port);
  return std::move(port).value();
}

/// Watched is a SenderLoop that also notes where it runs.
struct Watched {
  SenderLoop<UdpPort> loop;
  std::atomic<int> cpus{-1}, cpu{-1};
  std::array<char, 17> name{};
  NextWakeup turn(Instant now) noexcept {
    if (cpus < 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      (void)::sched_getaffinity(0, sizeof set, &set);
      (void)::prctl(PR_GET_NAME, name.data());
      cpu = ::sched_getcpu();
      cpus = CPU_COUNT(&set);
    }
    return loop.turn(now);
  }
  bool is_closed() const noexcept { return loop.is_closed(); }
  void count_wakeup() noexcept { loop.count_wakeup(); }
};

}  // namespace

TEST_CASE("EngineThread starts, pins itself, and ends on finish") {
  const Poll poll = GENERATE(Poll::adaptive, Poll::busy);
  const bool is_pinned = GENERATE(true, false);
  const cpu_set_t allowed = allowed_cpus();
  const auto port = loopback_port();
  Side side;
  const auto watched =
      std::unique_ptr<Watched>(new Watched{{*port, keys_of(true), sender_config(), side.links()}});
  EngineThread thread;
  REQUIRE(thread.start(*watched, *port,
                       {.poll = poll,
                        .core = is_pinned ? std::optional{first_of(allowed)} : std::nullopt,
                        .name = "engine-test"}));
  while (side.report.load().counters.turns_total < 3) std::this_thread::sleep_for(1ms);
  side.command(CommandKind::finish);
  thread.join();
  CHECK(watched->is_closed());
  CHECK(side.has_event(EventKind::closed));
  CHECK(std::string{watched->name.data()} == "engine-test");
  CHECK(watched->cpus == (is_pinned ? 1 : CPU_COUNT(&allowed)));
  if (is_pinned) CHECK(watched->cpu == first_of(allowed));
  if (poll == Poll::busy)
    CHECK(watched->loop.counters().wakeups_total == 0);
  else
    CHECK(watched->loop.counters().wakeups_total > 0);
  const cpu_set_t after = allowed_cpus();
  CHECK(CPU_EQUAL(&allowed, &after));  // the caller's thread is not moved
}

TEST_CASE("EngineThread that cannot be pinned runs all the same") {
  const auto port = loopback_port();
  Side side;
  const auto watched =
      std::unique_ptr<Watched>(new Watched{{*port, keys_of(true), sender_config(), side.links()}});
  EngineThread thread;
  REQUIRE(thread.start(*watched, *port, {.core = CPU_SETSIZE + 7}));
  side.command(CommandKind::finish);
  thread.join();
  CHECK(watched->is_closed());
}

TEST_CASE("choose_core takes a wish that may be had, and refuses others") {
  const cpu_set_t allowed = allowed_cpus();
  const int cpu = first_of(allowed);
  const auto chosen = choose_core(cpu);
  REQUIRE(chosen.has_value());
  CHECK(chosen.value() == cpu);
  int absent = 0;
  while (absent < CPU_SETSIZE && CPU_ISSET(static_cast<unsigned>(absent), &allowed)) ++absent;
  for (const int wish : {-1, absent, CPU_SETSIZE, 1 << 30}) {
    CAPTURE(wish);
    CHECK_FALSE(choose_core(wish).has_value());
  }
  Affinity affinity;
  affinity.set({cpu});
  CHECK(choose_core(cpu).has_value());
  CHECK_FALSE(choose_core(cpu + 1).has_value());
}

TEST_CASE("choose_core without a wish pins only where three CPUs may be used") {
  const cpu_set_t allowed = allowed_cpus();
  const auto chosen = choose_core(std::nullopt);
  REQUIRE(chosen.has_value());
  CHECK(chosen.value().has_value() == (CPU_COUNT(&allowed) >= 3));
  if (chosen.value()) CHECK(CPU_ISSET(static_cast<unsigned>(*chosen.value()), &allowed));
  Affinity affinity;
  affinity.set({first_of(allowed)});
  const auto alone = choose_core(std::nullopt);
  REQUIRE(alone.has_value());
  CHECK_FALSE(alone.value().has_value());
}

// Goal:   a turn refills the queue below as far as the grant goes, also where a batch of large
// frames is more than the UDP port
//         holds at once: with 9000-byte frames it went to rest after each 256 KB, and one nap later
//         the link had run dry.
// Method: both loops on loopback, 8972-byte frames, batches of 44 (395 KB), and room for all of it.
// Bounds: one turn sends a whole batch, of which the port holds 29 frames. More is the credit's
// matter: a user's receive buffer
//         may be as small as 416 KiB, which 66 frames fill.
TEST_CASE("a turn sends more frames than the UDP port holds") {
  ONEHOP_NEEDS(onehop::test::has_mem_info(),
               "without SO_MEMINFO the receiver's credit is a small one");
  constexpr std::size_t frame_bytes = 8972;
  constexpr std::array<std::uint64_t, 1> sizes{8 * block_bytes};
  const auto a = loopback_port(), b = loopback_port();
  for (const auto& [from, to] : {std::pair{a.get(), b.get()}, std::pair{b.get(), a.get()}}) {
    const IpAddress loopback = *IpAddress::parse("127.0.0.1");
    REQUIRE(from->connect({loopback, to->local_port().value()}));
  }
  Side sending, receiving;
  auto to_send = sender_config();
  auto to_receive = receiver_config(sizes);
  to_send.frame_bytes = to_receive.frame_bytes = frame_bytes;
  const auto sender =
      std::make_unique<SenderLoop<UdpPort>>(*a, keys_of(true), to_send, sending.links());
  const auto receiver =
      std::make_unique<ReceiverLoop<UdpPort>>(*b, keys_of(false), to_receive, receiving.links());
  std::vector<std::byte> source(8 * block_bytes), sink(16 * block_bytes);
  for (std::uint32_t slot = 0; slot < 16; ++slot)
    REQUIRE(receiving.from_file.push(
        {.data = sink.data() + std::size_t{slot} * block_bytes, .slot = slot}));
  for (std::uint32_t i = 0; i < 8; ++i)
    REQUIRE(sending.from_file.push({.data = source.data() + std::size_t{i} * block_bytes,
                                    .offset = std::uint64_t{i} * block_bytes,
                                    .length = block_bytes,
                                    .slot = i}));
  REQUIRE(sending.from_file.push({.kind = BlockKind::end_of_files}));
  sending.grant.store({.rate = mbit_per_s(100'000), .backlog_max = mib(8), .batch_frames = 44});
  for (Side* side : {&sending, &receiving}) side->command(CommandKind::start);

  std::uint64_t most = 0;
  for (int i = 0; i < 10'000 && !receiver->receiver().is_complete(); ++i) {
    const std::uint64_t before = sender->counters().frames_sent_total;
    (void)sender->turn(monotonic_now());
    most = std::max(most, sender->counters().frames_sent_total - before);
    (void)receiver->turn(monotonic_now());
    std::this_thread::sleep_for(100us);
  }
  CHECK(receiver->receiver().is_complete());
  CHECK(most >= 44);
}
