// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Parsers of nl80211 messages (linux/nl80211.h) and of the generic netlink controller's. Pure:
// bytes in, values out; no socket. A message that is too short, has an attribute beyond its end or
// a value of the wrong size, or is of another kind yields nothing; what a driver did not report is
// absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/base/system/address.hpp"
#include "engine/base/units.hpp"

namespace onehop::link {

/// Family: what the controller reports of a generic netlink family. Ids are assigned at run time.
struct Family {
  std::uint16_t id = 0;
  std::string name;
};
[[nodiscard]] std::optional<Family> parse_family(std::span<const std::byte> message);

enum class WifiGeneration : std::uint8_t { legacy, ht, vht, he, eht };

/// WifiRate: the present modulation of frames, as the driver's rate control reports it.
struct WifiRate {
  BytesPerSecond rate{};
  WifiGeneration generation = WifiGeneration::legacy;
  std::optional<std::uint8_t> mcs;  ///< ht: 0..76, streams included; later generations: per stream
  std::optional<std::uint8_t> streams;  ///< absent for legacy
  std::uint16_t width_mhz = 20;
  std::optional<Nanos> guard;  ///< absent for legacy
};

/// to_text is for people: "VHT MCS 5, 3 streams, 80 MHz, guard 800 ns".
[[nodiscard]] std::string to_text(const WifiRate& rate);

/// TxqCounters: queues of mac80211 (fq_codel) below one interface or towards one station. Bytes are
/// of 802.11 frames before encryption, a few more than on Ethernet. Absent: not reported.
struct TxqCounters {
  std::optional<std::uint64_t> backlog_bytes;
  std::optional<std::uint64_t> drops_total;
  std::optional<std::uint64_t> tx_bytes_total;  ///< that left the queue towards the driver
};

struct StationMessage {
  int ifindex = 0;
  MacAddress mac{};
  std::optional<WifiRate> tx_rate;
  std::optional<int> signal_dbm;
  std::optional<std::uint64_t> tx_bytes_total;
  std::optional<std::uint64_t> rx_bytes_total;
  std::optional<std::uint64_t> tx_packets_total;
  std::optional<std::uint64_t> tx_retries_total;
  std::optional<std::uint64_t> tx_failed_total;
  std::optional<Nanos> tx_airtime_total;
  std::optional<Nanos> rx_airtime_total;
  std::optional<TxqCounters> txq;  ///< summed over the TIDs that report queues
};
[[nodiscard]] std::optional<StationMessage> parse_station(std::span<const std::byte> message,
                                                          std::uint16_t family);

enum class WifiRole : std::uint8_t { other, client, access_point, ad_hoc };

struct WifiInterfaceMessage {
  int ifindex = 0;
  std::string name;
  WifiRole role = WifiRole::other;
  bool is_p2p = false;                         ///< of a Wi-Fi Direct group
  std::optional<std::uint32_t> frequency_mhz;  ///< of the control channel
  std::optional<std::uint32_t> width_mhz;      ///< of the whole channel
};
[[nodiscard]] std::optional<WifiInterfaceMessage> parse_wifi_interface(
    std::span<const std::byte> message, std::uint16_t family);

/// SurveyMessage: one channel's airtime counters, in steps of a millisecond.
struct SurveyMessage {
  int ifindex = 0;
  std::uint32_t frequency_mhz = 0;
  bool is_in_use = false;
  std::optional<Nanos> active_total;
  std::optional<Nanos> busy_total;
};
[[nodiscard]] std::optional<SurveyMessage> parse_survey(std::span<const std::byte> message,
                                                        std::uint16_t family);

/// pick_survey finds the operating channel among a dump's: the one in use, else the one at
/// `frequency_mhz`.
[[nodiscard]] const SurveyMessage* pick_survey(std::span<const SurveyMessage> surveys,
                                               std::uint32_t frequency_mhz) noexcept;

}  // namespace onehop::link
