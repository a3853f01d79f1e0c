// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Bus: the system bus, as far as a client of wpa_supplicant and NetworkManager needs it; a thin
// layer over sd-bus (libsystemd).
//
// Calls block until they are answered, at most for call_limit. Signals that come meanwhile wait for
// process(). One thread. $DBUS_SYSTEM_BUS_ADDRESS names another bus.
#pragma once

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

namespace onehop::p2p {

/// ObjectPath is a string of its own type on the bus.
struct ObjectPath {
  std::string text;
};
using ByteArray = std::vector<std::uint8_t>;
/// Value: what a variant holds, of the types that are used. Integers of all widths are widened.
using Value = std::variant<bool, std::int64_t, std::string, ObjectPath, ByteArray,
                           std::vector<std::string>, std::vector<ByteArray>>;
using Dict = std::map<std::string, Value>;
/// Arguments of a call in their order: values of a{sv}, s, o, i and b.
using Argument = std::variant<Dict, std::string, ObjectPath, std::int32_t, bool>;

class Bus {
 public:
  /// A call that takes longer is a failed one: wpa_supplicant answers within milliseconds.
  static constexpr Nanos call_limit = 10s;

  struct Target {
    std::string service, path, interface;
  };
  struct Signal {
    std::string path, interface, name;
    std::vector<Value> arguments;  ///< in their order; a dictionary is in `dict`
    Dict dict;
  };

  /// open connects; each call fails that is not answered within `limit`. Error io_unavailable:
  /// there is no system bus, or no
  /// libsystemd. Syscalls: socket, connect, ...
  [[nodiscard]] static Result<Bus> open(Nanos limit = call_limit);

  /// call returns the answer's first argument where it is a string or an object path.
  /// Errors: privilege_missing where the bus's policy refuses; io_unavailable where the service is
  /// not there (errno_value ESRCH), or says so itself (cause).
  [[nodiscard]] Result<std::string> call(const Target& target, const std::string& method,
                                         const std::vector<Argument>& arguments,
                                         const std::string& attempt);
  /// Values of a type that Value does not have are left out, or an error.
  [[nodiscard]] Result<Value> property(const Target& target, const std::string& name,
                                       const std::string& attempt);
  /// dict_property reads one that is a dictionary, a{sv}.
  [[nodiscard]] Result<Dict> dict_property(const Target& target, const std::string& name,
                                           const std::string& attempt);
  /// set_property: of type b, s, i or a{sv}.
  [[nodiscard]] Result<void> set_property(const Target& target, const std::string& name,
                                          const Argument& value, const std::string& attempt);
  [[nodiscard]] bool has_owner(const std::string& service);

  /// listen has process() hand over each signal that `service` sends from `interface`.
  [[nodiscard]] Result<void> listen(const std::string& service, const std::string& interface);
  /// process handles what has come and returns; `on_signal` may call. False: the connection is
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

  std::unique_ptr<sd_bus, Closer> bus_;
  // On the heap: sd-bus keeps its address, and a Bus moves.
  std::unique_ptr<std::vector<Signal>> waiting_ = std::make_unique<std::vector<Signal>>();
};

/// value_of takes a value out of a dictionary, text_of also a path as a text; empty, 0 or false
/// where it is not there or of another type.
template <class T>
[[nodiscard]] T value_of(const Dict& dict, const std::string& key) {
  const auto found = dict.find(key);
  const T* value = found == dict.end() ? nullptr : std::get_if<T>(&found->second);
  return value == nullptr ? T{} : *value;
}
[[nodiscard]] std::string text_of(const Dict& dict, const std::string& key);
/// text_of a value: a string or an object path.
[[nodiscard]] std::string text_of(const Value& value);

}  // namespace onehop::p2p
