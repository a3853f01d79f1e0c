// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/supplicant.hpp"

#include <fmt/ranges.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>

#include "control/p2p/supplicant_names.hpp"

namespace onehop::p2p {

namespace {

const Bus::Target root{supplicant_service, root_path, supplicant_service};

constexpr const char* reach = "reach wpa_supplicant";
constexpr const char* start_hint =
    "Start it with its D-Bus interface: systemctl start wpa_supplicant, or wpa_supplicant -u -s";

/// A wider channel where the radio has one: 802.11n's 40 MHz, 802.11ac's 80 MHz, and 802.11ax. Not
/// 160 MHz: all such channels but one hold some where radar must be watched for.
constexpr const char* wide_words = " ht40 vht he";

/// The service is missing (ESRCH), or the bus has started one that has no interface (ENODEV); who
/// else may have the radio is worth a look.
Error with_reason(Error error, Bus& bus) {
  if (error.errno_value != ESRCH && error.errno_value != ENODEV) return error;
  if (error.errno_value == ESRCH) {
    error.cause = "there is no wpa_supplicant on the system bus";
    error.hint = start_hint;
  }
  if (bus.has_owner("net.connman.iwd")) {
    error.cause += ", and iwd has the radios";
    error.hint =
        "onehop speaks to wpa_supplicant only: systemctl stop iwd, then start wpa_supplicant "
        "with -u";
  }
  return error;
}

/// The longest name of an interface that the kernel takes, and what it may hold.
//= Linux net/core/dev.c: dev_valid_name()
bool is_interface_name(const std::string& name) {
  return !name.empty() && name.size() < IF_NAMESIZE && std::ranges::all_of(name, [](char c) {
    return c > ' ' && c < 0x7f && c != '/' && c != ':';
  });
}

/// A service may say anything: a number beyond what the quantity can be counts as not said.
int within(std::int64_t value, int least, int most) {
  return value < least || value > most ? 0 : static_cast<int>(value);
}
constexpr int frequency_mhz_max = 100'000, signal_dbm_min = -200, signal_dbm_max = 100;

int frequency_of(std::int64_t value) { return within(value, 0, frequency_mhz_max); }

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
    supplicant.open_control();
  }
  for (const char* interface : {p2p_interface, group_interface}) {
    ONEHOP_TRYV(supplicant.bus_.listen(supplicant_service, interface));
  }
  return supplicant;
}

std::string Supplicant::interface_name(const std::string& path) {
  auto name = field<std::string>(path, interface_interface, "Ifname");
  return is_interface_name(name) ? name : std::string{};
}

Result<std::vector<Supplicant::Known>> Supplicant::interfaces() {
  ONEHOP_TRY(paths, bus_.get<std::vector<std::string>>(root, "Interfaces", reach));
  std::vector<Known> found;
  for (const std::string& path : paths) {
    const auto role = field<std::string>(path, p2p_interface, "Role");
    const auto name = interface_name(path);
    // Role is "device" while a client is not connected.
    const bool is_group = role == "GO" || role == "client" || name.starts_with("p2p-");
    if (!name.empty()) found.push_back({path, name, is_group});
  }
  return found;
}

bool Supplicant::is_interface_known() {
  const auto known = interfaces();
  return known.has_value() &&
         std::ranges::find(known.value(), path_, &Known::path) != known.value().end();
}

Result<void> Supplicant::choose_interface(const Options& options) {
  ONEHOP_TRY(all, interfaces());
  std::string known;
  for (const Known& one : all) {
    // Groups have interfaces of their own, which are no radios.
    if (one.is_group) continue;
    known += (known.empty() ? "" : ", ") + one.name;
    if (!options.interface.empty() && one.name != options.interface) continue;
    path_ = one.path;
    name_ = one.name;
    return success();
  }
  if (!options.needs_interface) return success();
  const std::string attempt =
      options.interface.empty() ? "find a Wi-Fi interface" : "use " + options.interface;
  if (options.may_create && !options.interface.empty()) return create_interface(options.interface);
  return Error{
      ExitCode::io_unavailable, attempt,
      known.empty() ? "wpa_supplicant has no interface" : "wpa_supplicant has only " + known,
      known.empty() ? "Start it with the radio's interface: wpa_supplicant -u -s -i wlan0 -D "
                      "nl80211 -c FILE"
                    : "Name that with --iface",
      known.empty() ? ENODEV : 0};
}

Result<void> Supplicant::create_interface(const std::string& name) {
  ONEHOP_TRY(path, bus_.call(root, "CreateInterface",
                             {Dict{{"Ifname", name}, {"Driver", std::string{"nl80211"}}}},
                             "hand " + name + " to wpa_supplicant"));
  path_ = path;
  name_ = name;
  has_created_ = true;
  return success();
}

Result<void> Supplicant::remove_interface(const std::string& path) {
  ONEHOP_TRYV(bus_.call(root, "RemoveInterface", {ObjectPath{path}},
                        "take the interface from wpa_supplicant"));
  return success();
}

Result<void> Supplicant::check_p2p() {
  const std::string attempt = "use Wi-Fi Direct on " + name_;
  const auto config = bus_.get<Dict>(target(p2p_interface), "P2PDeviceConfig", attempt);
  if (config.has_value()) return success();
  if (config.error().code == ExitCode::privilege_missing) return config.error();
  return Error{
      ExitCode::io_unavailable, attempt,
      "its driver has none, or wpa_supplicant has it switched off (" + config.error().cause + ")",
      "Let the other machine host: 'onehop p2p host' there, 'onehop p2p join --ssid' here"};
}

Result<std::string> Supplicant::device_name() {
  ONEHOP_TRY(config, bus_.get<Dict>(target(p2p_interface), "P2PDeviceConfig",
                                    "read what others see of this machine"));
  return text_of(config, "DeviceName");
}

bool Supplicant::is_connected() {
  return field<std::string>(path_, interface_interface, "State") == "completed";
}

Result<void> Supplicant::name_device(const std::string& name) {
  ONEHOP_TRY(now, device_name());
  if (!now.empty() || name.empty()) return success();
  return bus_.set_property(target(p2p_interface), "P2PDeviceConfig", Dict{{"DeviceName", name}},
                           "give this machine a name that others see");
}

Result<void> Supplicant::announce(bool is_accepting) {
  ONEHOP_TRY(config, bus_.get<Dict>(target(p2p_interface), "P2PDeviceConfig", reach));
  auto marks = value_of<std::vector<ByteArray>>(config, marks_key);
  if ((std::erase(marks, accepting_mark) > 0) == is_accepting) return success();
  if (is_accepting) marks.push_back(accepting_mark);
  return bus_.set_property(target(p2p_interface), "P2PDeviceConfig", Dict{{marks_key, marks}},
                           "tell others whether onehop waits here");
}

Result<void> Supplicant::find(const Find& find) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(find.span).count();
  Dict how{{"Timeout", seconds},
           {"DiscoveryType", std::string{find.is_social ? "social" : "start_with_full"}}};
  if (find.frequency > 0) how["freq"] = find.frequency;
  auto done = bus_.call(target(p2p_interface), "Find", {how}, "find peers");
  // An older wpa_supplicant does not know the word, and searches everywhere.
  if (done.has_error() && how.erase("freq") > 0)
    done = bus_.call(target(p2p_interface), "Find", {how}, "find peers");
  if (done.has_error()) return done.error();
  return success();
}

void Supplicant::stop_find() {
  (void)bus_.call(target(p2p_interface), "StopFind", {}, "end the search");
}

Result<void> Supplicant::connect(const Connect& connect) {
  using Method = Pairing::Method;
  const auto& [method, pin] = connect.pairing;
  const std::string word = method == Method::button     ? "pbc"
                           : method == Method::show_pin ? "display"
                                                        : "keypad";
  // The width is the owner's choice.
  if (control_.has_value() && !connect.is_join && connect.owner_intent >= likely_owner_intent) {
    std::string command = "P2P_CONNECT " + connect.peer_address + " " +
                          (pin.empty() ? "" : pin + " ") + word +
                          " go_intent=" + std::to_string(connect.owner_intent);
    if (connect.is_persistent) command += " persistent";
    if (connect.frequency > 0) command += " freq=" + std::to_string(connect.frequency);
    return ask_wide(command + wide_words, "connect to the peer");
  }
  Dict how{{"peer", ObjectPath{connect.peer_path}},
           {"join", connect.is_join},
           {"persistent", connect.is_persistent},
           {"wps_method", word}};
  if (!connect.is_join) how["go_intent"] = connect.owner_intent;
  if (!pin.empty()) how["pin"] = pin;
  if (connect.frequency > 0) how["frequency"] = connect.frequency;
  ONEHOP_TRYV(bus_.call(target(p2p_interface), "Connect", {how}, "connect to the peer"));
  return success();
}

Result<void> Supplicant::add_group(const AddGroup& add) {
  const std::string stored = add.is_persistent ? stored_group() : "";
  Result<void> done = success();
  if (control_.has_value()) {
    std::string command = "P2P_GROUP_ADD";
    if (add.is_persistent) command += " persistent";
    if (!stored.empty()) command += "=" + stored.substr(stored.rfind('/') + 1);
    if (add.frequency > 0) command += " freq=" + std::to_string(add.frequency);
    done = ask_wide(command + wide_words, "start a group");
  } else {
    Dict how{{"persistent", add.is_persistent}};
    if (!stored.empty()) how["persistent_group_object"] = ObjectPath{stored};
    if (add.frequency > 0) how["frequency"] = add.frequency;
    const auto called = bus_.call(target(p2p_interface), "GroupAdd", {how}, "start a group");
    if (called.has_error()) done = called.error();
  }
  if (done.has_value()) return success();
  Error error = done.error();
  // Both have one error for all that they do not like, and a channel is most of it.
  if (add.frequency > 0 && error.errno_value == EIO) {
    error.cause = "the radio may not start a group there now (" + error.cause + ")";
    error.errno_value = ECHRNG;
  }
  return error;
}

void Supplicant::open_control() {
  const auto folder = field<std::string>(path_, interface_interface, "CtrlInterface");
  // Where the driver has a P2P device, that has a socket of its own, and the group that is to be
  // kept is kept with it: wpas_p2p_add_p2pdev_interface().
  control_ = p2p::open_control(folder, "p2p-dev-" + name_);
  if (control_.has_error()) control_ = p2p::open_control(folder, name_);
}

Result<void> Supplicant::ask_wide(const std::string& command, const std::string& attempt) {
  ONEHOP_TRY(answer, ask_control(control_.value(), command, attempt));
  if (!answer.starts_with("FAIL")) return success();
  const bool is_channel = answer.starts_with("FAIL-CHANNEL");
  return Error{ExitCode::io_unavailable, attempt,
               is_channel ? "the radio may not use that channel now"
                          : "wpa_supplicant refuses it (" + answer + ")",
               "", is_channel ? ECHRNG : EIO};
}

std::string Supplicant::stored_group() {
  for (const std::string& path :
       field<std::vector<std::string>>(path_, p2p_interface, "PersistentGroups"))
    if (text_of(field<Dict>(path, persistent_interface, "Properties"), "mode") == owner_mode)
      return path;
  return {};
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
  ONEHOP_TRY(all, interfaces());
  std::vector<Group> found;
  for (const Known& one : all)
    if (auto group = one.is_group ? group_at(one.path) : std::nullopt)
      found.push_back(std::move(*group));
  return found;
}

std::optional<Group> Supplicant::group_at(const std::string& path) {
  return group_of(path, field<std::string>(path, p2p_interface, "Role"),
                  field<std::string>(path, p2p_interface, "Group"));
}

std::optional<Group> Supplicant::group_of(const std::string& path, const std::string& role,
                                          const std::string& object) {
  if (object.empty() || object == "/") return std::nullopt;
  const auto name = interface_name(path);
  if (name.empty()) return std::nullopt;  // it has just ended
  const auto ssid = field<ByteArray>(object, group_interface, "SSID");
  const auto frequency = field<std::int64_t>(object, group_interface, "Frequency");
  return Group{.path = path,
               .object = object,
               .interface_name = name,
               .role = role == "GO" ? Role::owner : Role::client,
               .ssid = std::string(ssid.begin(), ssid.end()),
               .passphrase = field<std::string>(object, group_interface, "Passphrase"),
               .bssid = field<ByteArray>(object, group_interface, "BSSID"),
               .frequency_mhz = frequency_of(frequency)};
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
  const Dict& dict = signal.dict;
  if (signal.name == "DeviceFoundProperties")
    return PeerFound{
        {.path = signal.text,
         .name = text_of(dict, "DeviceName"),
         .address = mac_text(value_of<ByteArray>(dict, "DeviceAddress")),
         .signal_dbm =
             within(value_of<std::int64_t>(dict, "level"), signal_dbm_min, signal_dbm_max),
         .is_group_owner = (value_of<std::int64_t>(dict, "groupcapability") & owner_bit) != 0,
         .is_accepting = std::ranges::count(value_of<std::vector<ByteArray>>(dict, marks_key),
                                            accepting_mark) > 0}};
  if (signal.name == "DeviceLost") return PeerLost{signal.text};
  if (signal.name == "FindStopped") return FindEnded{};
  if (signal.name == "GONegotiationRequest") return PeerAsked{signal.text};
  if (signal.name == "ProvisionDiscoveryPBCRequest") return JoinAsked{signal.text};
  if (signal.name == "PeerJoined") return PeerJoined{signal.path};
  if (signal.name == "GONegotiationSuccess")
    return Negotiated{frequency_of(value_of<std::int64_t>(dict, "frequency"))};
  if (signal.name == "GONegotiationFailure")
    return AttemptFailed{negotiation_failure(value_of<std::int64_t>(dict, "status")),
                         value_of<std::int64_t>(dict, "status") == no_common_channel
                             ? AttemptFailed::Kind::channel
                             : AttemptFailed::Kind::other};
  if (signal.name == "GroupFormationFailure")
    return AttemptFailed{
        "the group could not be formed" + (signal.text.empty() ? "" : ": " + signal.text),
        AttemptFailed::Kind::group};
  if (signal.name == "WpsFailed")
    return AttemptFailed{"pairing failed: " + signal.text, AttemptFailed::Kind::pairing};
  if (signal.name == "GroupFinished") return GroupFinished{text_of(dict, "interface_object")};
  if (signal.name == "GroupStarted") {
    // The property Role says "device" where the client has lost the connection meanwhile.
    auto group = group_of(text_of(dict, "interface_object"), text_of(dict, "role"),
                          text_of(dict, "group_object"));
    if (!group) return AttemptFailed{"the group ended while it was formed"};
    group->is_persistent = value_of<bool>(dict, "persistent");
    return GroupStarted{std::move(*group)};
  }
  return std::nullopt;
}

}  // namespace onehop::p2p
