// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/facts_datagram.hpp"

#include <algorithm>
#include <concepts>

#include "engine/base/byte_codec.hpp"

namespace onehop::link {

namespace {

constexpr std::uint32_t magic = 0x4f48'4c46;  // "OHLF"
constexpr std::uint8_t version = 2;
constexpr std::uint64_t total_max = std::uint64_t{1} << 62;
constexpr std::uint64_t exchange_ns_max = static_cast<std::uint64_t>(facts_exchange_max / 1ns);
constexpr std::uint64_t period_us_max = static_cast<std::uint64_t>(facts_period_max / 1us);

std::uint64_t clamp(std::int64_t value, std::uint64_t limit) noexcept {
  return std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0)), limit);
}

// Writer and Reader have the same members, so that code() below states each fact once. The Writer
// clamps to `limit`, the Reader fails above it.
struct Writer {
  ByteWriter out;

  void total(std::uint64_t value) { out.u64(std::min(value, total_max)); }
  void count(std::int64_t value, std::uint64_t limit = total_max) { out.u64(clamp(value, limit)); }
  void bytes(Bytes value) { count(value.count); }
  void span(Nanos value, std::uint64_t limit = total_max) { count(value.count(), limit); }
  void at(Instant value) { span(value.time_since_epoch()); }
  void u32(std::int64_t value, std::uint64_t limit) {
    out.u32(static_cast<std::uint32_t>(clamp(value, limit)));
  }
  void period(Nanos value) {
    u32((value + 1us - 1ns) / 1us, period_us_max);  // one below a microsecond is still a period
  }
  /// flags: which of the optional values that follow are there.
  void flags(const auto&... values) {
    unsigned set = 0, bit = 0;
    ((set |= unsigned{values.has_value()} << bit++), ...);
    out.u8(static_cast<std::uint8_t>(set));
  }
};

struct Reader {
  ByteReader in;

  void total(std::uint64_t& value) { value = in.u64_max(total_max); }
  void count(std::int64_t& value, std::uint64_t limit = total_max) {
    value = static_cast<std::int64_t>(in.u64_max(limit));
  }
  void bytes(Bytes& value) { count(value.count); }
  void span(Nanos& value, std::uint64_t limit = total_max) {
    value = Nanos{static_cast<Nanos::rep>(in.u64_max(limit))};
  }
  void at(Instant& value) {
    value = Instant{Nanos{static_cast<Nanos::rep>(in.u64_max(total_max))}};
  }
  void u32(auto& value, std::uint64_t limit) {
    const std::uint32_t read = in.u32();
    if (read > limit) in.fail();
    value = in.is_ok() ? static_cast<std::int32_t>(read) : 0;
  }
  void period(Nanos& value) {
    std::int64_t period_us = 0;
    u32(period_us, period_us_max);
    value = 1us * period_us;
  }
  void flags(auto&... values) {
    unsigned set = in.u8();
    const auto take = [&](auto& value) {
      if ((set & 1) != 0) value.emplace();
      set >>= 1;
    };
    (take(values), ...);
    if (set != 0) in.fail();
  }
};

template <class M, class T>
concept Is = std::same_as<std::remove_const_t<M>, T>;

// --- each fact, once for both directions

void code(auto& c, Is<law::QueueReading> auto& m) {
  c.bytes(m.queue.occupancy);
  c.bytes(m.queue.drained_total);
  c.bytes(m.queue.capacity);
  c.total(m.queue.refused_total);
  c.bytes(m.foreign);
}
void code(auto& c, Is<law::ChannelAirtime> auto& m) {
  c.span(m.active_total);
  c.flags(m.busy_total);
  if (m.busy_total) c.span(*m.busy_total);
}
void code(auto& c, Is<law::OwnAirtime> auto& m) {
  c.flags(m.tx_total, m.rx_total);
  if (m.tx_total) c.span(*m.tx_total);
  if (m.rx_total) c.span(*m.rx_total);
}
void code(auto& c, Is<law::MacCounters> auto& m) {
  c.total(m.tx_frames_total);
  c.total(m.tx_retries_total);
  c.total(m.tx_failed_total);
}
void code(auto& c, Is<BytesPerSecond> auto& m) { c.count(m.count, facts_rate_max); }
void code(auto& c, Is<Bytes> auto& m) { c.bytes(m); }
void code(auto& c, Is<Nanos> auto& m) { c.span(m, exchange_ns_max); }
void code(auto& c, Is<std::int32_t> auto& m) { c.u32(m, facts_stations_max); }

void code_fact(auto& c, auto& fact) {
  c.at(fact.at);
  c.period(fact.period);
  code(c, fact.value);
}
}  // namespace

std::size_t encode_facts(const law::LinkFacts& facts,
                         std::span<std::byte, facts_datagram_bytes_max> out) noexcept {
  unsigned present = 0, bit = 0;
  each_carried_fact([&](auto fact) { present |= unsigned{(facts.*fact).has_value()} << bit++; });
  Writer w{ByteWriter{out}};
  w.out.u32(magic);
  w.out.u8(version);
  w.out.u8(static_cast<std::uint8_t>(facts.medium));
  w.out.u16(static_cast<std::uint16_t>(present));
  each_carried_fact([&](auto fact) {
    if (facts.*fact) code_fact(w, *(facts.*fact));
  });
  return w.out.is_ok() ? w.out.size() : 0;
}

std::optional<law::LinkFacts> decode_facts(std::span<const std::byte> bytes) noexcept {
  Reader r{ByteReader{bytes}};
  if (r.in.u32() != magic || r.in.u8() != version) return std::nullopt;
  const std::uint8_t medium = r.in.u8();
  const unsigned present = r.in.u16();
  if (medium > static_cast<std::uint8_t>(law::Medium::wifi) || present >> carried_facts != 0)
    return std::nullopt;
  law::LinkFacts out;
  out.medium = static_cast<law::Medium>(medium);
  unsigned bit = 0;
  each_carried_fact([&](auto fact) {
    if ((present >> bit++ & 1) != 0) code_fact(r, (out.*fact).emplace());
  });
  if (!r.in.is_done()) return std::nullopt;
  if (auto& exact = out.exact_queue) {
    exact->value.sensor = law::QueueSensor::model;
    exact->value.queue.scope = QueueScope::lower_queue;
    exact->value.queue.at = exact->at;
  }
  return out;
}

}  // namespace onehop::link
