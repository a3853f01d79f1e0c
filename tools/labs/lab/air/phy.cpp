// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/air/phy.hpp"

#include <array>

namespace onehop::lab::air {

namespace {

struct Coding {
  std::int64_t bits, numerator, denominator;  ///< bits per subcarrier, code rate
};
constexpr std::array<Coding, 12> codings{{{1, 1, 2},
                                          {2, 1, 2},
                                          {2, 3, 4},
                                          {4, 1, 2},
                                          {4, 3, 4},
                                          {6, 2, 3},
                                          {6, 3, 4},
                                          {6, 5, 6},
                                          {8, 3, 4},
                                          {8, 5, 6},
                                          {10, 3, 4},
                                          {10, 5, 6}}};

constexpr std::int64_t service_bits = 16;
constexpr Nanos legacy_preamble = 20us;  // L-STF 8, L-LTF 8, L-SIG 4
constexpr Nanos symbol_ac = 3600ns, symbol_ac_grid = 4us, symbol_ax = 13600ns;
constexpr std::int64_t control_bits_per_symbol = 96, control_extra_bits = 22;  // SERVICE 16, tail 6

std::int64_t subcarriers(const PhyMode& mode) noexcept {
  const bool is_ac = mode.standard == Standard::ac;
  switch (mode.width_mhz) {
    case 20: return is_ac ? 52 : 234;
    case 40: return is_ac ? 108 : 468;
    case 160: return is_ac ? 468 : 1960;
    default: return is_ac ? 234 : 980;
  }
}

Nanos preamble(const PhyMode& mode) noexcept {
  return mode.standard == Standard::ac ? legacy_preamble + 8us + 4us + mode.streams * 4us + 4us
                                       : legacy_preamble + 4us + 8us + 4us + mode.streams * 8us;
}

constexpr std::int64_t ceil_of(std::int64_t value, std::int64_t unit) noexcept {
  return (value + unit - 1) / unit;
}

}  // namespace

std::int64_t data_bits_per_symbol(const PhyMode& mode) noexcept {
  const Coding& coding = codings[static_cast<std::size_t>(mode.mcs)];
  return subcarriers(mode) * coding.bits * mode.streams * coding.numerator / coding.denominator;
}

BytesPerSecond phy_rate(const PhyMode& mode) noexcept {
  const Nanos symbol = mode.standard == Standard::ac ? symbol_ac : symbol_ax;
  return {data_bits_per_symbol(mode) * 1'000'000'000 / 8 / symbol.count()};
}

Nanos ppdu_time(const PhyMode& mode, Bytes psdu) noexcept {
  const std::int64_t symbols = ceil_of(service_bits + 8 * psdu.count, data_bits_per_symbol(mode));
  if (mode.standard == Standard::ax) return preamble(mode) + symbols * symbol_ax;
  // Short symbols end on the grid of long ones.
  return preamble(mode) +
         ceil_of(symbols * symbol_ac.count(), symbol_ac_grid.count()) * symbol_ac_grid;
}

Bytes psdu_max(const PhyMode& mode) noexcept {
  const Nanos payload = ppdu_time_max - preamble(mode);
  const Nanos symbol = mode.standard == Standard::ac ? symbol_ac : symbol_ax;
  const std::int64_t symbols = payload / symbol;
  return {(symbols * data_bits_per_symbol(mode) - service_bits) / 8};
}

Nanos control_time(Bytes frame) noexcept {
  return legacy_preamble +
         ceil_of(control_extra_bits + 8 * frame.count, control_bits_per_symbol) * 4us;
}

Nanos ack_time() noexcept { return control_time(Bytes{14}); }

Nanos block_ack_time(int window_mpdus) noexcept {
  return control_time(Bytes{window_mpdus > 64 ? 56 : 32});
}

Bytes mpdu_bytes(Bytes frame) noexcept {
  return {ceil_of(frame.count - 14 + 8 + 26 + 4 + 4, 4) * 4};
}

}  // namespace onehop::lab::air
