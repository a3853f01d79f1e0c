// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Which device and firmware an interface is, what its driver is known for, and of Wi-Fi what the
// radio can do. It only reads, and needs no privilege.
#include <fmt/format.h>
#include <linux/ethtool.h>

#include <filesystem>
#include <fstream>

#include "control/link/nl80211_socket.hpp"
#include "control/link/radio.hpp"
#include "engine/base/system/driver_quirks.hpp"
#include "engine/base/system/interface.hpp"
#include "tools/onehop/doctor/doctor.hpp"

namespace onehop::tool {

namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::string line;
  std::ifstream file{path};
  std::getline(file, line);
  return line.starts_with("0x") ? line.substr(2) : line;
}

/// device_of is the vendor's and the device's number on the bus, "pci 8086:10c9"; empty where there
/// is none. No serial number is read.
std::string device_of(const std::string& interface, int ifindex) {
  constexpr int depth_max = 4;  // usb: interface, device; virtio: device, card
  const fs::path entry = fs::path{"/sys/class/net"} / interface;
  // A mounted sysfs shows the namespace it was mounted in: another interface may have the name.
  if (first_line(entry / "ifindex") != std::to_string(ifindex)) return {};
  std::error_code error;
  fs::path at = fs::canonical(entry / "device", error);
  for (int depth = 0; !error && depth < depth_max; ++depth, at = at.parent_path()) {
    const std::string bus = fs::read_symlink(at / "subsystem", error).filename();
    if (bus == "virtio") continue;  // the card below it is the device
    const bool is_usb = bus == "usb";
    const std::string vendor = first_line(at / (is_usb ? "idVendor" : "vendor"));
    if (!vendor.empty())
      return fmt::format("{} {}:{}", bus, vendor,
                         first_line(at / (is_usb ? "idProduct" : "device")));
  }
  return {};
}

Finding fact(const char* section, const char* key, const std::string& text) {
  return {section, key, Verdict::info, text.empty() ? "not told" : text,
          text.empty() ? Json(nullptr) : Json(text)};
}

Finding find_direct(const link::RadioFacts& radio) {
  std::string has, lacks;
  const auto add = [&](bool is_there, const char* name) {
    std::string& list = is_there ? has : lacks;
    list += (list.empty() ? "" : ", ") + std::string{name};
  };
  add(radio.can_join, "P2P-client");
  add(radio.can_own, "P2P-GO");
  add(radio.has_p2p_device, "P2P-device");
  return {"radio",
          "wifi-direct",
          radio.has_p2p() ? Verdict::good : Verdict::bad,
          (has.empty() ? "none" : has) + (lacks.empty() ? "" : "; the driver lacks " + lacks),
          {{"client", radio.can_join}, {"owner", radio.can_own}, {"device", radio.has_p2p_device}},
          radio.has_p2p() ? "" : "one side is enough: `onehop p2p host` there, `p2p join` here"};
}

Finding find_band(const link::RadioBand& band) {
  const std::string key{band.name};
  const std::uint32_t width_mhz = std::min(band.radio_mhz, band.allowed_mhz);
  if (band.radio_mhz == 0)
    return {"radio", key, Verdict::info, "the radio has no such channels", nullptr};
  const std::string where = band.channels == 0 ? "the rules in force close all of its channels"
                            : band.group_channels == 0
                                ? fmt::format(
                                      "{} channels, up to {} MHz wide; on none of them "
                                      "may a group start",
                                      band.channels, width_mhz)
                                : fmt::format(
                                      "{} channels, up to {} MHz wide; a group may start "
                                      "on {} of them",
                                      band.channels, width_mhz, band.group_channels);
  return {"radio",
          key,
          band.group_channels > 0 ? Verdict::good : Verdict::bad,
          where,
          {{"channels", band.channels},
           {"group_channels", band.group_channels},
           {"width_mhz", width_mhz}},
          band.group_channels > 0 ? "" : "iw reg set XX, with your country's code"};
}

Finding find_survey(int ifindex) {
  auto socket = link::Nl80211Socket::open();
  std::vector<link::SurveyMessage> surveys;
  const auto rc = socket ? socket.value().surveys(ifindex, surveys) : socket.error();
  const bool is_busy_told = std::ranges::any_of(
      surveys, [](const auto& survey) { return survey.busy_total.has_value(); });
  return {"radio", "survey", is_busy_told ? Verdict::good : Verdict::bad,
          is_busy_told ? "yes: how busy the channel is"
          : rc         ? "no busy time is told of any channel"
                       : "no: " + rc.error().cause,
          is_busy_told};
}

void find_radio(const link::RadioFacts& radio, int ifindex, Diagnosis& out) {
  const auto add = [&](const char* key, bool is_there, const char* yes, const char* no) {
    out.findings.push_back(
        {"radio", key, is_there ? Verdict::good : Verdict::bad, is_there ? yes : no, is_there});
  };
  out.findings.push_back(find_direct(radio));
  const std::uint32_t channels = radio.channels_beside_station;
  if (radio.has_p2p())
    out.findings.push_back(
        {"radio", "beside-network", channels > 0 ? Verdict::good : Verdict::bad,
         channels > 0 ? radio_text(radio)
                      : "the driver lists no combination of a station with P2P-client or P2P-GO",
         channels,
         channels > 0
             ? ""
             : "leave the network before a group: nmcli device disconnect " + out.interface});
  for (const link::RadioBand& band : radio.bands) out.findings.push_back(find_band(band));
  add("txq-statistics", radio.has_txq_statistics, "yes: what waits in mac80211",
      "no: what waits in the driver is not told");
  add("tx-status", radio.has_tx_status, "yes: which frames were acknowledged (SO_WIFI_STATUS)",
      "no: the driver does not report which frames were acknowledged");
  out.findings.push_back(find_survey(ifindex));
}

}  // namespace

void find_driver(int ifindex, const std::string& driver, Diagnosis& out) {
  const EthtoolSocket socket{out.interface};
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  std::string firmware;
  if (socket.ask(&info))
    firmware.assign(info.fw_version, ::strnlen(info.fw_version, sizeof info.fw_version));
  out.findings.push_back(fact("interface", "device", device_of(out.interface, ifindex)));
  out.findings.push_back(fact("interface", "firmware", firmware == "N/A" ? "" : firmware));
  const auto radio = link::read_radio(out.interface);
  if (radio) find_radio(radio.value(), ifindex, out);
  for (const DriverQuirk& quirk : driver_quirks()) {
    if (!quirk.is_of(driver, radio.has_value())) continue;
    out.findings.push_back(
        {"quirks",
         std::string{quirk.key},
         Verdict::info,
         fmt::format("{} (Linux {}). onehop: {}", quirk.quirk, quirk.kernels, quirk.answer),
         {{"kernels", quirk.kernels}, {"source", quirk.source}}});
  }
}

}  // namespace onehop::tool
