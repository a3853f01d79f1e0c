// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How values go into D-Bus messages and come out of them; for bus.cpp alone. Functions return what
// sd-bus does: below zero an errno.
#pragma once

#include "control/p2p/bus.hpp"
#include "control/p2p/sd_bus.hpp"

namespace onehop::p2p {

/// Message and BusError own what sd-bus writes into them.
class Message {
 public:
  Message() = default;
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() { sd_bus_message_unref(message_); }
  [[nodiscard]] sd_bus_message* get() const { return message_; }
  [[nodiscard]] sd_bus_message** out() { return &message_; }

 private:
  sd_bus_message* message_ = nullptr;
};

class BusError {
 public:
  BusError() = default;
  BusError(const BusError&) = delete;
  BusError& operator=(const BusError&) = delete;
  ~BusError() { sd_bus_error_free(&error_); }
  [[nodiscard]] sd_bus_error* get() { return &error_; }

 private:
  sd_bus_error error_{};
};

[[nodiscard]] int append(sd_bus_message* message, const Argument& argument);
[[nodiscard]] int append_variant(sd_bus_message* message, const Argument& argument);

/// read_variant: 0 where it holds a type that Value does not have; it is skipped.
[[nodiscard]] int read_variant(sd_bus_message* message, Value& value);
[[nodiscard]] int read_dict(sd_bus_message* message, Dict& dict);
/// read_arguments reads as far as types are known.
void read_arguments(sd_bus_message* message, std::vector<Value>& values, Dict& dict);

}  // namespace onehop::p2p
