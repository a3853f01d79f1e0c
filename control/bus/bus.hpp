// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Bus: the system's or the session's D-Bus, as far as a client of the services that onehop calls
// needs it; a thin layer over sd-bus (libsystemd).
//
// Calls block until they are answered, at most for call_limit. Signals that arrive meanwhile wait
// for process(). One thread. $DBUS_SYSTEM_BUS_ADDRESS and $DBUS_SESSION_BUS_ADDRESS name others.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

struct sd_bus;

namespace onehop::bus {

/// ObjectPath is a string of its own type on the bus; read it is a std::string.
struct ObjectPath {
  std::string text;
};
using ByteArray = std::vector<std::uint8_t>;
/// Number is written as an integer of the type 'y', 'q', 'u' or 'i' of D-Bus.
struct Number {
  char type;
  std::int64_t value;
};
struct Value;
using Dict = std::map<std::string, Value>;
/// Value: what a call takes and a variant holds, of the types that are used. Integers of all widths
/// are widened when they are read; one that is no Number is written as 'i'.
struct Value : std::variant<bool, std::int64_t, std::string, ObjectPath, ByteArray,
                            std::vector<std::string>, std::vector<ByteArray>, Dict, Number> {
  using variant::variant;
};

class Bus {
 public:
  /// A call that takes longer is a failed one: wpa_supplicant answers within milliseconds.
  static constexpr Nanos call_limit = 10s;

  struct Target {
    std::string service, path, interface;
    bool is_activated = true;  ///< the bus may start the service where it does not run
  };
  struct Signal {
    std::string path, name;
    std::string text;                ///< the first argument that is a string or an object path
    Dict dict;                       ///< the dictionary among the arguments
    std::vector<Value> arguments{};  ///< all but dictionaries, up to the first of another type
    /// at is an argument; empty, 0 or false where it is not there or of another type.
    template <class T>
    [[nodiscard]] T at(std::size_t place) const {
      const T* const found = place < arguments.size() ? std::get_if<T>(&arguments[place]) : nullptr;
      return found == nullptr ? T{} : *found;
    }
  };

  /// open connects; each call fails that is not answered within `limit`. Error io_unavailable:
  /// there is no system bus. Syscalls: socket, connect, ...
  [[nodiscard]] static Result<Bus> open(Nanos limit = call_limit);
  /// open_session connects to the bus of the user's session. Error io_unavailable: there is none.
  [[nodiscard]] static Result<Bus> open_session(Nanos limit = call_limit);

  /// call returns the answer's first argument if it is a string or an object path. Errors:
  /// privilege_missing if the bus's policy refuses; io_unavailable if the service does not exist
  /// (errno_value ESRCH), or reports it (cause).
  [[nodiscard]] Result<std::string> call(const Target& target, const std::string& method,
                                         const std::vector<Value>& arguments,
                                         const std::string& attempt);
  /// call_for returns the answer's first argument, and false where it has none.
  [[nodiscard]] Result<Value> call_for(const Target& target, const std::string& method,
                                       const std::vector<Value>& arguments,
                                       const std::string& attempt);
  /// get reads a property. A type that Value does not have, or another than T, is an error.
  template <class T>
  [[nodiscard]] Result<T> get(const Target& target, const std::string& name,
                              const std::string& attempt) {
    ONEHOP_TRY(value, property(target, name, attempt));
    if (T* found = std::get_if<T>(&value)) return std::move(*found);
    return Error{ExitCode::io_unavailable, attempt, name + " has an unexpected type", "", EPROTO};
  }
  [[nodiscard]] Result<void> set_property(const Target& target, const std::string& name,
                                          const Value& value, const std::string& attempt);
  [[nodiscard]] bool has_owner(const std::string& service);

  /// listen makes process() pass on each signal that `service` sends from `interface`.
  [[nodiscard]] Result<void> listen(const std::string& service, const std::string& interface);
  /// listen_owner has it hand over NameOwnerChanged of that name alone.
  [[nodiscard]] Result<void> listen_owner(const std::string& service);
  /// process handles what has arrived and returns; `on_signal` may call. False: the connection is
  /// lost.
  [[nodiscard]] bool process(const std::function<void(const Signal&)>& on_signal);
  /// fd and events are for poll(). No call is left open, so there is no time-out to keep.
  [[nodiscard]] int fd() const;
  [[nodiscard]] short events() const;

 private:
  struct Closer {
    void operator()(sd_bus* bus) const noexcept;
  };
  explicit Bus(sd_bus* bus);
  [[nodiscard]] static Result<Bus> opened(int code, sd_bus* bus, Nanos limit, Error refused);
  [[nodiscard]] Result<Value> property(const Target& target, const std::string& name,
                                       const std::string& attempt);

  std::unique_ptr<sd_bus, Closer> bus_;
  // On the heap: sd-bus keeps its address, and a Bus moves.
  std::unique_ptr<std::vector<Signal>> waiting_ = std::make_unique<std::vector<Signal>>();
};

/// value_of reads a value of a dictionary; empty, 0 or false if it is absent or of another type.
template <class T>
[[nodiscard]] T value_of(const Dict& dict, const std::string& key) {
  const auto found = dict.find(key);
  const T* value = found == dict.end() ? nullptr : std::get_if<T>(&found->second);
  return value == nullptr ? T{} : *value;
}
[[nodiscard]] inline std::string text_of(const Dict& dict, const std::string& key) {
  return value_of<std::string>(dict, key);
}

}  // namespace onehop::bus
