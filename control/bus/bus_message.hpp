// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How values go into D-Bus messages and come out of them; for bus.cpp alone. Functions return what
// sd-bus does: below zero an errno.
#pragma once

#include <systemd/sd-bus.h>

#include <memory>

#include "control/bus/bus.hpp"

namespace onehop::bus {

struct Unref {
  void operator()(sd_bus_message* message) const noexcept { sd_bus_message_unref(message); }
};
using Message = std::unique_ptr<sd_bus_message, Unref>;

[[nodiscard]] int append(sd_bus_message* message, const Value& value);
[[nodiscard]] int append_variant(sd_bus_message* message, const Value& value);

/// read_value: 0 where the type is none of Value's, or nothing is left; then it read nothing.
[[nodiscard]] int read_value(sd_bus_message* message, Value& value);
/// read_variant: 0 where it holds a type that Value does not have; it is skipped.
[[nodiscard]] int read_variant(sd_bus_message* message, Value& value);

}  // namespace onehop::bus
