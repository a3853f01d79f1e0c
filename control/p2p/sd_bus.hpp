// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What Bus uses of sd-bus, loaded by the first Bus. libsystemd and the libraries that it needs are
// 0.8 MB of a process's memory (`tools/measure/compare --case trees-million`, before and after),
// and most transfers form no group. In this namespace each name is a
// pointer, and hides the function that it points to: callers read as if they were linked with it.
#pragma once

#include <systemd/sd-bus.h>

#include "engine/base/result.hpp"

#define ONEHOP_SD_BUS(each)             \
  each(sd_bus_call);                    \
  each(sd_bus_error_free);              \
  each(sd_bus_flush_close_unref);       \
  each(sd_bus_get_events);              \
  each(sd_bus_get_fd);                  \
  each(sd_bus_match_signal);            \
  each(sd_bus_message_append);          \
  each(sd_bus_message_append_array);    \
  each(sd_bus_message_close_container); \
  each(sd_bus_message_enter_container); \
  each(sd_bus_message_exit_container);  \
  each(sd_bus_message_get_member);      \
  each(sd_bus_message_get_path);        \
  each(sd_bus_message_new_method_call); \
  each(sd_bus_message_open_container);  \
  each(sd_bus_message_peek_type);       \
  each(sd_bus_message_read_array);      \
  each(sd_bus_message_read_basic);      \
  each(sd_bus_message_skip);            \
  each(sd_bus_message_unref);           \
  each(sd_bus_open_system);             \
  each(sd_bus_process);                 \
  each(sd_bus_set_method_call_timeout)

namespace onehop::p2p {

#define ONEHOP_DECLARE(name) extern decltype(&::name) name
ONEHOP_SD_BUS(ONEHOP_DECLARE);
#undef ONEHOP_DECLARE

/// load_sd_bus loads it once; before it has succeeded no pointer may be used. Any thread.
/// Error io_unavailable: it is not installed. Syscalls: openat, mmap.
[[nodiscard]] Result<void> load_sd_bus();

}  // namespace onehop::p2p
