// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/facts_datagram.hpp"

#include <algorithm>

#include "engine/wire/byte_codec.hpp"

namespace onehop::link {

namespace {

constexpr std::uint32_t magic = 0x4f48'4c46;  // "OHLF"
constexpr std::uint8_t version = 1;
constexpr std::uint64_t total_max = std::uint64_t{1} << 62;
constexpr std::uint64_t period_us_max = static_cast<std::uint64_t>(facts_period_max / 1us);

std::uint64_t clamp(std::int64_t value, std::uint64_t limit = total_max) noexcept {
  return std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0)), limit);
}

struct Writer {
  wire::ByteWriter out;

  void total(std::uint64_t value) { out.u64(std::min(value, total_max)); }
  void bytes(Bytes value) { out.u64(clamp(value.count)); }
  void span(Nanos value) { out.u64(clamp(value.count())); }
  template <class T>
  void head(const law::Fact<T>& fact) {
    out.u64(clamp(fact.at.time_since_epoch().count()));
    // A period below a microsecond is still a period: 0 means something else.
    const auto period_us = clamp((fact.period + 1us - 1ns) / 1us, period_us_max);
    out.u32(static_cast<std::uint32_t>(period_us));
  }
};

void write(Writer& w, const law::QueueReading& queue) {
  w.bytes(queue.queue.occupancy);
  w.bytes(queue.queue.drained_total);
  w.bytes(queue.queue.capacity);
  w.total(queue.queue.refused_total);
  w.bytes(queue.foreign);
  w.out.u8(queue.marks_total ? 1 : 0);
  if (queue.marks_total) w.total(*queue.marks_total);
}

void write(Writer& w, const law::ChannelAirtime& channel) {
  w.span(channel.active_total);
  w.out.u8(channel.busy_total ? 1 : 0);
  if (channel.busy_total) w.span(*channel.busy_total);
}

void write(Writer& w, const law::OwnAirtime& air) {
  w.out.u8(static_cast<std::uint8_t>((air.tx_total ? 1 : 0) | (air.rx_total ? 2 : 0)));
  if (air.tx_total) w.span(*air.tx_total);
  if (air.rx_total) w.span(*air.rx_total);
}

void write(Writer& w, const law::MacCounters& mac) {
  w.total(mac.tx_frames_total);
  w.total(mac.tx_retries_total);
  w.total(mac.tx_failed_total);
}

void write(Writer& w, const BytesPerSecond& rate) { w.out.u64(clamp(rate.count, facts_rate_max)); }
void write(Writer& w, const Bytes& bytes) { w.bytes(bytes); }
void write(Writer& w, const Nanos& exchange) {
  w.out.u64(clamp(std::min(exchange, facts_exchange_max).count()));
}
void write(Writer& w, const std::int32_t& stations) {
  w.out.u32(static_cast<std::uint32_t>(clamp(stations, facts_stations_max)));
}

template <class T>
void write_fact(Writer& w, const law::MaybeFact<T>& fact) {
  if (!fact) return;
  w.head(*fact);
  write(w, fact->value);
}

struct Reader {
  wire::ByteReader in;

  std::uint64_t total(std::uint64_t limit = total_max) { return in.u64_max(limit); }
  Bytes bytes() { return {static_cast<std::int64_t>(total())}; }
  Nanos span(std::uint64_t limit = total_max) {
    return Nanos{static_cast<Nanos::rep>(total(limit))};
  }
  std::uint8_t flags(std::uint8_t known) {
    const std::uint8_t value = in.u8();
    if ((value & ~known) != 0) in.fail();
    return value;
  }
  std::uint32_t u32_max(std::uint64_t limit) {
    const std::uint32_t value = in.u32();
    if (value > limit) in.fail();
    return in.is_ok() ? value : 0;
  }
};

void read(Reader& r, law::QueueReading& out) {
  out.queue.occupancy = r.bytes();
  out.queue.drained_total = r.bytes();
  out.queue.capacity = r.bytes();
  out.queue.refused_total = r.total();
  out.foreign = r.bytes();
  out.queue.scope = QueueScope::lower_queue;
  out.sensor = law::QueueSensor::model;
  if (r.flags(1) != 0) out.marks_total = r.total();
}

void read(Reader& r, law::ChannelAirtime& out) {
  out.active_total = r.span();
  if (r.flags(1) != 0) out.busy_total = r.span();
}

void read(Reader& r, law::OwnAirtime& out) {
  const std::uint8_t flags = r.flags(3);
  if ((flags & 1) != 0) out.tx_total = r.span();
  if ((flags & 2) != 0) out.rx_total = r.span();
}

void read(Reader& r, law::MacCounters& out) {
  out.tx_frames_total = r.total();
  out.tx_retries_total = r.total();
  out.tx_failed_total = r.total();
}

void read(Reader& r, BytesPerSecond& out) {
  out.count = static_cast<std::int64_t>(r.total(facts_rate_max));
}
void read(Reader& r, Bytes& out) { out = r.bytes(); }
void read(Reader& r, Nanos& out) {
  out = r.span(static_cast<std::uint64_t>(facts_exchange_max.count()));
}
void read(Reader& r, std::int32_t& out) {
  out = static_cast<std::int32_t>(r.u32_max(facts_stations_max));
}

template <class T>
void read_fact(Reader& r, bool is_present, law::MaybeFact<T>& out) {
  if (!is_present) return;
  law::Fact<T>& fact = out.emplace();
  fact.at = Instant{r.span()};
  fact.period = Nanos{1us} * r.u32_max(period_us_max);
  read(r, fact.value);
}

}  // namespace

std::size_t encode_facts(const FactsDatagram& datagram,
                         std::span<std::byte, facts_datagram_bytes_max> out) noexcept {
  const law::LinkFacts& facts = datagram.facts;
  unsigned present = 0, bit = 0;
  each_carried_fact([&](auto fact) { present |= unsigned{(facts.*fact).has_value()} << bit++; });
  Writer w{wire::ByteWriter{out}};
  w.out.u32(magic);
  w.out.u8(version);
  w.out.u8(static_cast<std::uint8_t>(facts.medium));
  w.out.u16(static_cast<std::uint16_t>(present));
  w.out.u64(datagram.instance);
  w.out.u64(datagram.sequence);
  w.out.u64(clamp(datagram.published_at.time_since_epoch().count()));
  each_carried_fact([&](auto fact) { write_fact(w, facts.*fact); });
  return w.out.is_ok() ? w.out.size() : 0;
}

std::optional<FactsDatagram> decode_facts(std::span<const std::byte> bytes) noexcept {
  Reader r{wire::ByteReader{bytes}};
  if (r.in.u32() != magic || r.in.u8() != version) return std::nullopt;
  const std::uint8_t medium = r.in.u8();
  const unsigned present = r.in.u16();
  if (medium > static_cast<std::uint8_t>(law::Medium::wifi) || present >> carried_facts != 0)
    return std::nullopt;
  FactsDatagram out;
  out.facts.medium = static_cast<law::Medium>(medium);
  out.instance = r.in.u64();
  out.sequence = r.in.u64();
  out.published_at = Instant{r.span()};
  unsigned bit = 0;
  each_carried_fact([&](auto fact) { read_fact(r, (present >> bit++ & 1) != 0, out.facts.*fact); });
  if (!r.in.is_done()) return std::nullopt;
  if (out.facts.exact_queue) out.facts.exact_queue->value.queue.at = out.facts.exact_queue->at;
  return out;
}

}  // namespace onehop::link
