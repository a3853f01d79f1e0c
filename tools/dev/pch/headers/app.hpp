// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// For the folders off the data path. Asio, JSON and CLI11 are left out: each of them costs every
// file that reads it here more than it saves those that use it.
#include "tools/dev/pch/headers/std.hpp"

#include <fmt/format.h>
