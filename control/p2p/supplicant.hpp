// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Supplicant: wpa_supplicant's Wi-Fi Direct through its D-Bus interface, fi.w1.wpa_supplicant1.
//
//   Formation ─ Action ─▶ Supplicant ─ call ─▶ wpa_supplicant ─▶ radio
//             ◀─ Event ──             ◀ signal ─
//
// It owns a connection to the system bus, and the interface of wpa_supplicant if it had to create
// one. What it starts there (a search, a group) outlives it and must be ended by calls. A process
// of wpa_supplicant does Wi-Fi Direct on one radio. Calls block, see bus.hpp. One thread.
//= wpa_supplicant 2.10, dbus_new.c and dbus_new_handlers_p2p.c: methods, keys and signals
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/bus/bus.hpp"
#include "control/p2p/control_socket.hpp"
#include "control/p2p/formation.hpp"

namespace onehop::p2p {

using namespace bus;

inline constexpr const char* supplicant_service = "fi.w1.wpa_supplicant1";

class Supplicant {
 public:
  struct Options {
    std::string interface;        ///< of the radio, wlan0; empty: the first with Wi-Fi Direct
    bool needs_p2p = true;        ///< false: joining an access point needs none
    bool needs_interface = true;  ///< false: there may be none, to leave
    bool may_create = false;      ///< hand `interface` to wpa_supplicant if it does not have it yet
  };

  /// open finds wpa_supplicant and the radio. Errors: io_unavailable (no bus, no wpa_supplicant,
  /// no such interface, no Wi-Fi Direct), privilege_missing.
  [[nodiscard]] static Result<Supplicant> open(const Options& options);

  /// Known: an interface that wpa_supplicant has, those of groups included.
  struct Known {
    std::string path, name;
    bool is_group = false;
  };
  [[nodiscard]] Result<std::vector<Known>> interfaces();
  [[nodiscard]] bool is_interface_known();  ///< wpa_supplicant still has it
  [[nodiscard]] bool has_created() const { return has_created_; }
  /// remove_interface removes an interface from wpa_supplicant that create_interface created.
  [[nodiscard]] Result<void> remove_interface(const std::string& path);
  [[nodiscard]] Result<void> remove_own_interface() { return remove_interface(path_); }

  [[nodiscard]] const std::string& interface() const { return name_; }
  [[nodiscard]] Bus& bus() { return bus_; }
  [[nodiscard]] Bus::Target target(const char* interface) const;
  /// field reads a property of any object of wpa_supplicant; empty, 0 or false if it has none.
  template <class T>
  [[nodiscard]] T field(const std::string& path, const char* interface, const char* name) {
    auto found = bus_.get<T>({supplicant_service, path, interface}, name, "");
    return found.has_value() ? std::move(found).value() : T{};
  }
  /// device_name is the name of this machine that others see.
  [[nodiscard]] Result<std::string> device_name();
  /// is_connected: the radio's own interface is in a network now.
  [[nodiscard]] bool is_connected();
  /// name_device sets this machine's name for others, if wpa_supplicant has none.
  [[nodiscard]] Result<void> name_device(const std::string& name);
  /// announce starts or stops announcing to all in reach that onehop waits here for a connection.
  [[nodiscard]] Result<void> announce(bool is_accepting);

  [[nodiscard]] Result<void> find(const Find& find);
  void stop_find();
  /// is_wide_possible: groups that we own may have 40 and 80 MHz, see control_socket.hpp.
  [[nodiscard]] bool is_wide_possible() const { return control_.has_value(); }
  /// The reason why they may not, as text for the user.
  [[nodiscard]] std::string narrow_reason() const { return control_.error().message(); }
  [[nodiscard]] Result<void> connect(const Connect& connect);
  [[nodiscard]] Result<void> add_group(const AddGroup& add);
  /// cancel ends a negotiation; it is no error if there is none.
  void cancel();
  /// remove_group: it is no error if the group is gone already.
  [[nodiscard]] Result<void> remove_group(const std::string& path);
  /// groups that this machine is in now, including those of other programs.
  [[nodiscard]] Result<std::vector<Group>> groups();
  /// group_at is the group on the interface of that path. Its bssid and frequency are missing while
  /// a client is not connected.
  [[nodiscard]] std::optional<Group> group_at(const std::string& interface_path);
  /// authorize lets a device join a group that we own: by push button for two minutes, or by PIN.
  [[nodiscard]] Result<void> authorize(const Group& group, const Pairing& pairing);

  /// process passes on the events so far; `on_event` may call. Error: the bus is gone.
  [[nodiscard]] Result<void> process(const std::function<void(const Event&)>& on_event);
  [[nodiscard]] int fd() const { return bus_.fd(); }
  [[nodiscard]] short events() const { return bus_.events(); }

 private:
  explicit Supplicant(Bus&& bus) : bus_{std::move(bus)} {}
  [[nodiscard]] Result<void> choose_interface(const Options& options);
  [[nodiscard]] Result<void> create_interface(const std::string& name);
  [[nodiscard]] Result<void> check_p2p();
  /// stored_group is the path of a group that we own and wpa_supplicant keeps; empty: none.
  [[nodiscard]] std::string stored_group();
  [[nodiscard]] std::optional<Event> event_of(const Bus::Signal& signal);
  [[nodiscard]] std::optional<Group> group_of(const std::string& interface_path,
                                              const std::string& role, const std::string& object);

  /// interface_name: empty if the object's name is not valid.
  [[nodiscard]] std::string interface_name(const std::string& path);
  void open_control();
  [[nodiscard]] Result<void> ask_wide(const std::string& command, const std::string& attempt);

  Bus bus_;
  std::string path_, name_;  // of the radio's interface
  bool has_created_ = false;
  Result<Fd> control_ = Error{};
};

/// mac_text writes an address of six bytes; empty: another length.
[[nodiscard]] std::string mac_text(const ByteArray& bytes);

}  // namespace onehop::p2p
