// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/supplicant.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "control/p2p/supplicant_names.hpp"

namespace onehop::p2p {

namespace {

constexpr const char* reach = "reach wpa_supplicant";
constexpr const char* start_hint =
    "Start it with its D-Bus interface: systemctl start wpa_supplicant, or wpa_supplicant -u -s";

/// The bus says that the service is missing; who else may have the radio is worth a look.
Error with_reason(Error error, Bus& bus) {
  if (error.errno_value != ESRCH) return error;
  error.cause = "there is no wpa_supplicant on the system bus";
  error.hint = start_hint;
  if (bus.has_owner("net.connman.iwd")) {
    error.cause += ", and iwd has the radios";
    error.hint =
        "onehop speaks to wpa_supplicant only: systemctl stop iwd, then start wpa_supplicant "
        "with -u";
  }
  return error;
}

}  // namespace

std::string mac_text(const ByteArray& bytes) {
  return bytes.size() == 6 ? fmt::format("{:02x}", fmt::join(bytes, ":")) : std::string{};
}

Bus::Target Supplicant::target(const char* interface) const {
  return {supplicant_service, path_, interface};
}

Result<Supplicant> Supplicant::open(const Options& options) {
  ONEHOP_TRY(bus, Bus::open());
  Supplicant supplicant{std::move(bus)};
  if (auto chosen = supplicant.choose_interface(options); chosen.has_error())
    return with_reason(chosen.error(), supplicant.bus_);
  if (options.needs_p2p) {
    ONEHOP_TRYV(supplicant.check_p2p());
  }
  ONEHOP_TRYV(supplicant.bus_.listen(supplicant_service, p2p_interface));
  return supplicant;
}

Result<void> Supplicant::choose_interface(const Options& options) {
  const Bus::Target root{supplicant_service, root_path, supplicant_service};
  ONEHOP_TRY(listed, bus_.property(root, "Interfaces", reach));
  const auto* paths = std::get_if<std::vector<std::string>>(&listed);
  std::string known;
  for (const std::string& path : paths == nullptr ? std::vector<std::string>{} : *paths) {
    const Dict about = fields(path, interface_interface, {"Ifname"});
    const std::string role = text_of(fields(path, p2p_interface, {"Role"}), "Role");
    const std::string name = text_of(about, "Ifname");
    // Groups have interfaces of their own, which are no radios.
    if (name.empty() || role == "GO" || role == "client") continue;
    known += (known.empty() ? "" : ", ") + name;
    if (!options.interface.empty() && name != options.interface) continue;
    path_ = path;
    name_ = name;
    return success();
  }
  const std::string attempt =
      options.interface.empty() ? "find a Wi-Fi interface" : "use " + options.interface;
  if (options.may_create && !options.interface.empty()) return create_interface(options.interface);
  return Error{
      ExitCode::io_unavailable, attempt,
      known.empty() ? "wpa_supplicant has no interface" : "wpa_supplicant has only " + known,
      known.empty() ? "Name the radio's interface with --iface" : "Name that with --iface"};
}

Result<void> Supplicant::create_interface(const std::string& name) {
  const Bus::Target root{supplicant_service, root_path, supplicant_service};
  ONEHOP_TRY(path, bus_.call(root, "CreateInterface",
                             {Dict{{"Ifname", name}, {"Driver", std::string{"nl80211"}}}},
                             "hand " + name + " to wpa_supplicant"));
  path_ = path;
  name_ = name;
  return success();
}

Result<void> Supplicant::check_p2p() {
  const std::string attempt = "use Wi-Fi Direct on " + name_;
  const auto config = bus_.dict_property(target(p2p_interface), "P2PDeviceConfig", attempt);
  if (config.has_value()) return success();
  if (config.error().code == ExitCode::privilege_missing) return config.error();
  return Error{
      ExitCode::io_unavailable, attempt,
      "its driver has none, or wpa_supplicant has it switched off (" + config.error().cause + ")",
      "Let the other machine host: 'onehop p2p host' there, 'onehop p2p join --ssid' here"};
}

Dict Supplicant::fields(const std::string& path, const char* interface,
                        std::initializer_list<const char*> names) {
  Dict found;
  for (const char* name : names)
    if (auto value = bus_.property({supplicant_service, path, interface}, name, reach);
        value.has_value())
      found.insert_or_assign(name, std::move(value).value());
  return found;
}

Result<Supplicant::Device> Supplicant::device() {
  ONEHOP_TRY(config, bus_.dict_property(target(p2p_interface), "P2PDeviceConfig",
                                        "read what others see of this machine"));
  return Device{name_, text_of(config, "DeviceName")};
}

Result<void> Supplicant::name_device(const std::string& name) {
  ONEHOP_TRY(now, device());
  if (!now.name.empty() || name.empty()) return success();
  return bus_.set_property(target(p2p_interface), "P2PDeviceConfig", Dict{{"DeviceName", name}},
                           "give this machine a name that others see");
}

Result<void> Supplicant::find(const Find& find) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(find.span).count();
  const Dict how{{"Timeout", static_cast<std::int64_t>(seconds)},
                 {"DiscoveryType", std::string{find.is_social ? "social" : "start_with_full"}}};
  ONEHOP_TRYV(bus_.call(target(p2p_interface), "Find", {how}, "find peers"));
  return success();
}

void Supplicant::stop_find() {
  (void)bus_.call(target(p2p_interface), "StopFind", {}, "end the search");
}

Result<std::string> Supplicant::connect(const Connect& connect) {
  using Method = Pairing::Method;
  const Method method = connect.pairing.method;
  Dict how{{"peer", ObjectPath{connect.peer_path}},
           {"join", connect.is_join},
           {"persistent", connect.is_persistent},
           {"wps_method", std::string{method == Method::button     ? "pbc"
                                      : method == Method::show_pin ? "display"
                                                                   : "keypad"}}};
  if (!connect.is_join) how["go_intent"] = static_cast<std::int64_t>(connect.owner_intent);
  if (!connect.pairing.pin.empty()) how["pin"] = connect.pairing.pin;
  if (connect.frequency > 0) how["frequency"] = static_cast<std::int64_t>(connect.frequency);
  return bus_.call(target(p2p_interface), "Connect", {how}, "connect to the peer");
}

Result<void> Supplicant::add_group(const AddGroup& add) {
  Dict how{{"persistent", add.is_persistent}};
  if (add.frequency > 0) how["frequency"] = static_cast<std::int64_t>(add.frequency);
  ONEHOP_TRYV(bus_.call(target(p2p_interface), "GroupAdd", {how}, "start a group"));
  return success();
}

void Supplicant::cancel() {
  (void)bus_.call(target(p2p_interface), "Cancel", {}, "end the negotiation");
}

Result<void> Supplicant::remove_group(const std::string& path) {
  const auto done =
      bus_.call({supplicant_service, path, p2p_interface}, "Disconnect", {}, "leave the group");
  if (done.has_value() || !group_at(path)) return success();
  return done.error();
}

Result<std::vector<Group>> Supplicant::groups() {
  const Bus::Target root{supplicant_service, root_path, supplicant_service};
  ONEHOP_TRY(listed, bus_.property(root, "Interfaces", reach));
  std::vector<Group> found;
  if (const auto* paths = std::get_if<std::vector<std::string>>(&listed))
    for (const std::string& path : *paths)
      if (auto group = group_at(path)) found.push_back(std::move(*group));
  return found;
}

std::optional<Group> Supplicant::group_at(const std::string& path) {
  const Dict roles = fields(path, p2p_interface, {"Role", "Group"});
  const std::string role = text_of(roles, "Role"), object = text_of(roles, "Group");
  if ((role != "GO" && role != "client") || object.empty() || object == "/") return std::nullopt;
  const Dict about = fields(object, group_interface, {"SSID", "BSSID", "Frequency", "Passphrase"});
  const ByteArray ssid = bytes_of(about, "SSID");
  return Group{.path = path,
               .interface_name = text_of(fields(path, interface_interface, {"Ifname"}), "Ifname"),
               .role = role == "GO" ? Role::owner : Role::client,
               .ssid = std::string(ssid.begin(), ssid.end()),
               .passphrase = text_of(about, "Passphrase"),
               .bssid = mac_text(bytes_of(about, "BSSID")),
               .frequency_mhz = static_cast<int>(number_of(about, "Frequency"))};
}

Result<void> Supplicant::authorize(const Group& group, const Pairing& pairing) {
  const bool is_button = pairing.method == Pairing::Method::button;
  Dict how{{"Role", std::string{"registrar"}}, {"Type", std::string{is_button ? "pbc" : "pin"}}};
  if (!is_button) how["Pin"] = pairing.pin;
  ONEHOP_TRYV(bus_.call({supplicant_service, group.path, wps_interface}, "Start", {how},
                        "let a device join the group"));
  return success();
}

Result<void> Supplicant::process(const std::function<void(const Event&)>& on_event) {
  const bool is_open = bus_.process([&](const Bus::Signal& signal) {
    if (const auto event = event_of(signal)) on_event(*event);
  });
  if (is_open) return success();
  return Error{ExitCode::io_unavailable, reach, "the connection to the system bus was lost",
               "Was dbus restarted? Try again"};
}

std::optional<Event> Supplicant::event_of(const Bus::Signal& signal) {
  const auto argument = [&](std::size_t number) {
    return number < signal.arguments.size() ? text_of(signal.arguments[number]) : std::string{};
  };
  const Dict& dict = signal.dict;
  if (signal.name == "DeviceFoundProperties")
    return PeerFound{{.path = argument(0),
                      .name = text_of(dict, "DeviceName"),
                      .address = mac_text(bytes_of(dict, "DeviceAddress")),
                      .signal_dbm = static_cast<int>(number_of(dict, "level")),
                      .is_group_owner = (number_of(dict, "groupcapability") & owner_bit) != 0}};
  if (signal.name == "DeviceLost") return PeerLost{argument(0)};
  if (signal.name == "FindStopped") return FindEnded{};
  if (signal.name == "GONegotiationRequest") return PeerAsked{argument(0)};
  if (signal.name == "GONegotiationFailure")
    return AttemptFailed{negotiation_failure(number_of(dict, "status"))};
  if (signal.name == "GroupFormationFailure")
    return AttemptFailed{"the group could not be formed" +
                         (argument(0).empty() ? "" : ": " + argument(0))};
  if (signal.name == "WpsFailed")
    return AttemptFailed{"pairing failed: " + argument(0) + " (was the PIN right?)"};
  if (signal.name == "GroupFinished") return GroupFinished{text_of(dict, "interface_object")};
  if (signal.name == "GroupStarted") {
    auto group = group_at(text_of(dict, "interface_object"));
    if (!group) return std::nullopt;  // gone already: GroupFinished follows
    group->is_persistent = flag_of(dict, "persistent");
    return GroupStarted{std::move(*group)};
  }
  return std::nullopt;
}

}  // namespace onehop::p2p
