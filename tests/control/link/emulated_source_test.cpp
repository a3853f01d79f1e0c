// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A model's facts: the datagram, what is taken of it, and publisher and source over a real socket.
#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "control/link/emulated_source.hpp"

namespace onehop::link {
namespace {

constexpr Instant first_at{100s};

law::LinkFacts all_facts(Instant at) {
  law::LinkFacts facts;
  law::QueueReading queue{.foreign = kib(3), .sensor = law::QueueSensor::mac};
  queue.queue = {.at = at,
                 .occupancy = kib(64),
                 .drained_total = mib(900),
                 .capacity = mib(2),
                 .refused_total = 5,
                 .scope = QueueScope::lower_queue};
  facts.exact_queue = {queue, at, 2ms};
  facts.phy_rate = {mbit_per_s(2402), at, 10ms};
  facts.channel = {{.active_total = 90s, .busy_total = 60s}, at, 50ms};
  facts.own_airtime = {{.tx_total = 30s, .rx_total = std::nullopt}, at, 50ms};
  facts.mac = {
      {.tx_frames_total = 1'000'000, .tx_retries_total = 9'000, .tx_failed_total = 12}, at, 10ms};
  facts.stations = {3, at, 1s};
  facts.aggregate_max = {{65'535}, at, 0ns};
  facts.exchange = {442us, at, 50ms};
  facts.medium = law::Medium::wifi;
  return facts;
}

struct Folder {
  std::string path = "/tmp/onehop-facts-XXXXXX";
  Folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Folder() { ::rmdir(path.c_str()); }
  [[nodiscard]] std::string socket() const { return path + "/facts"; }
};

}  // namespace

TEST_CASE("facts come out of a datagram as they went in, but for the sensor's name",
          "[control][link][emulated]") {
  std::array<std::byte, facts_datagram_bytes_max> bytes;
  const std::size_t size = encode_facts(all_facts(first_at), bytes);
  REQUIRE(size > 0);
  const auto out = decode_facts(std::span{bytes}.first(size));
  REQUIRE(out);
  const law::LinkFacts &facts = *out, wanted = all_facts(first_at);
  CHECK(facts.medium == law::Medium::wifi);
  REQUIRE(facts.exact_queue);
  const law::QueueReading& queue = facts.exact_queue->value;
  CHECK(queue.sensor == law::QueueSensor::model);
  CHECK(queue.queue.at == first_at);
  CHECK(queue.queue.occupancy == kib(64));
  CHECK(queue.queue.drained_total == mib(900));
  CHECK(queue.queue.capacity == mib(2));
  CHECK(queue.queue.refused_total == 5);
  CHECK(queue.queue.scope == QueueScope::lower_queue);
  CHECK(queue.foreign == kib(3));
  CHECK(facts.exact_queue->period == 2ms);
  CHECK(facts.phy_rate->value == wanted.phy_rate->value);
  CHECK(facts.channel->value.busy_total == 60s);
  CHECK(facts.own_airtime->value.tx_total == 30s);
  CHECK_FALSE(facts.own_airtime->value.rx_total);
  CHECK(facts.mac->value.tx_retries_total == 9'000);
  CHECK(facts.stations->value == 3);
  CHECK(facts.aggregate_max->value == Bytes{65'535});
  CHECK(facts.aggregate_max->period == 0ns);
  CHECK(facts.exchange->value == 442us);
}

TEST_CASE("an absent fact costs nothing and stays absent", "[control][link][emulated]") {
  std::array<std::byte, facts_datagram_bytes_max> bytes;
  const std::size_t size = encode_facts({}, bytes);
  CHECK(size == 8);
  const auto out = decode_facts(std::span{bytes}.first(size));
  REQUIRE(out);
  CHECK_FALSE(out->exact_queue);
  CHECK_FALSE(out->phy_rate);
  CHECK_FALSE(out->stations);
}

TEST_CASE("N5 a model's datagram cut, prolonged, of another version or out of bounds is refused",
          "[control][link][emulated]") {
  std::array<std::byte, facts_datagram_bytes_max + 1> bytes{};
  const std::size_t size =
      encode_facts(all_facts(first_at), std::span{bytes}.first<facts_datagram_bytes_max>());
  for (std::size_t cut = 0; cut < size; ++cut)
    CHECK_FALSE(decode_facts(std::span{bytes}.first(cut)));
  CHECK(decode_facts(std::span{bytes}.first(size)));
  CHECK_FALSE(decode_facts(std::span{bytes}.first(size + 1)));
  SECTION("version") { bytes[4] = std::byte{1}; }
  SECTION("medium") { bytes[5] = std::byte{3}; }
  SECTION("a fact nobody knows") { bytes[6] = std::byte{1}; }
  SECTION("a time beyond all clocks") { bytes[8] = std::byte{0xff}; }
  SECTION("an occupancy beyond all memories") { bytes[20] = std::byte{0xff}; }
  CHECK_FALSE(decode_facts(std::span{bytes}.first(size)));
}

TEST_CASE("a fact that was overtaken or comes from the future changes nothing",
          "[control][link][emulated]") {
  law::LinkFacts facts;
  merge_facts(all_facts(first_at), first_at, facts);
  merge_facts(all_facts(first_at - 1ms), first_at, facts);
  CHECK(facts.phy_rate->at == first_at);
  merge_facts(all_facts(first_at + 1s), first_at, facts);
  CHECK(facts.phy_rate->at == first_at);
  merge_facts(all_facts(first_at + 10ms), first_at, facts);
  CHECK(facts.phy_rate->at == first_at);  // a little ahead of our clock's reading: as of now
  CHECK(facts.exact_queue->value.queue.at == first_at);
  merge_facts(all_facts(first_at + 10ms), first_at + 10ms, facts);
  CHECK(facts.phy_rate->at == first_at + 10ms);
  law::LinkFacts none;
  merge_facts(all_facts(first_at + 1s), first_at, none);
  CHECK_FALSE(none.phy_rate);
}

TEST_CASE("a publisher that starts again is followed, the one before it no more",
          "[control][link][emulated]") {
  law::LinkFacts facts, before = all_facts(first_at + 4ms);
  before.phy_rate->value = mbit_per_s(6);
  merge_facts(all_facts(first_at), first_at, facts);
  merge_facts(all_facts(first_at + 5ms), first_at + 5ms, facts);
  merge_facts(before, first_at + 5ms, facts);
  CHECK(facts.phy_rate->at == first_at + 5ms);
  CHECK(facts.phy_rate->value == mbit_per_s(2402));
}

TEST_CASE("facts that came late are old when they come", "[control][link][emulated]") {
  law::LinkFacts facts;
  merge_facts(all_facts(first_at), first_at + 30ms, facts);
  CHECK(law::fresh(facts.exact_queue, first_at + 30ms) == nullptr);
  CHECK(law::fresh(facts.channel, first_at + 30ms) != nullptr);
  CHECK(law::fresh(facts.aggregate_max, first_at + 1h) != nullptr);
}

TEST_CASE("what a publisher sends arrives over a socket, what it sends to nobody is no error",
          "[control][link][emulated]") {
  const Folder folder;
  auto publisher = FactsPublisher::open(folder.socket());
  REQUIRE(publisher);
  CHECK_FALSE(publisher.value().publish(all_facts(first_at)));
  {
    auto source = EmulatedSource::open(folder.socket());
    REQUIRE(source);
    struct stat file {};
    REQUIRE(::stat(folder.socket().c_str(), &file) == 0);
    CHECK((file.st_mode & 0777 & ~0600U) == 0);
    law::LinkFacts facts;
    source.value().read(first_at, facts);
    CHECK_FALSE(facts.phy_rate);
    CHECK(publisher.value().publish(all_facts(first_at)));
    CHECK(publisher.value().publish(all_facts(first_at + 2ms)));
    source.value().read(first_at + 3ms, facts);
    REQUIRE(facts.phy_rate);
    CHECK(facts.phy_rate->at == first_at + 2ms);
    CHECK(facts.exact_queue->value.sensor == law::QueueSensor::model);
    CHECK_FALSE(source.value().error());
  }
  struct stat gone {};
  CHECK(::stat(folder.socket().c_str(), &gone) != 0);
}

TEST_CASE("a listener that is behind loses datagrams, and has the newest facts when it has read",
          "[control][link][emulated]") {
  const Folder folder;
  auto source = EmulatedSource::open(folder.socket());
  auto publisher = FactsPublisher::open(folder.socket());
  REQUIRE(source);
  REQUIRE(publisher);
  std::uint64_t sent = 0, refused = 0;
  for (Instant at = first_at; refused == 0 && sent < 100'000; at += 1us) {
    if (publisher.value().publish(all_facts(at)))
      ++sent;
    else
      ++refused;
  }
  REQUIRE(refused == 1);
  law::LinkFacts facts;
  for (std::uint64_t i = 0; i <= sent; i += EmulatedSource::datagrams_per_read_max)
    source.value().read(first_at + 1s, facts);
  CHECK(publisher.value().publish(all_facts(first_at + 1s)));
  source.value().read(first_at + 1s, facts);
  CHECK(facts.phy_rate->at == first_at + 1s);
  CHECK(source.value().refused_total() == 0);
}

TEST_CASE("N5 garbage on the model's socket is counted and changes nothing",
          "[control][link][emulated]") {
  const Folder folder;
  auto source = EmulatedSource::open(folder.socket());
  REQUIRE(source);
  const Fd sender{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, folder.socket().c_str(), folder.socket().size());
  const std::array<char, 2000> garbage{};
  for (const std::size_t length : {0UL, 7UL, 352UL, 2000UL})
    CHECK(::sendto(sender.get(), garbage.data(), length, 0, reinterpret_cast<sockaddr*>(&to),
                   sizeof to) == static_cast<ssize_t>(length));
  law::LinkFacts facts;
  source.value().read(first_at, facts);
  CHECK(source.value().refused_total() == 4);
  CHECK_FALSE(facts.phy_rate);
}

TEST_CASE(
    "a socket file left by a killed program is taken over, one in use or of another kind is not",
    "[control][link][emulated]") {
  const Folder folder;
  {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, folder.socket().c_str(), folder.socket().size());
    const Fd left{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    REQUIRE(::bind(left.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    const auto in_use = EmulatedSource::open(folder.socket());
    REQUIRE_FALSE(in_use);
    CHECK(in_use.error().code == ExitCode::local_file_error);
  }
  CHECK(EmulatedSource::open(folder.socket()));
  std::ofstream{folder.socket()} << "mine";
  CHECK_FALSE(EmulatedSource::open(folder.socket()));
  REQUIRE(::unlink(folder.socket().c_str()) == 0);
  CHECK_FALSE(EmulatedSource::open(folder.path + "/no/such/folder"));
  CHECK_FALSE(EmulatedSource::open(std::string(200, 'x')));
  CHECK_FALSE(EmulatedSource::open(""));
}

}  // namespace onehop::link
