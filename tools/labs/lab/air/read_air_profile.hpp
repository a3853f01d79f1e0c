// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Reads the [wifi] table of a lab profile.
#pragma once

#include <string>

#include <toml++/toml.h>

#include "engine/base/result.hpp"
#include "tools/labs/lab/air/air_profile.hpp"

namespace onehop::lab::air {

/// read_air_profile refuses what no 802.11 link has, and names the key. `name` is the profile's.
[[nodiscard]] Result<AirProfile> read_air_profile(const toml::table& table,
                                                  const std::string& name);

}  // namespace onehop::lab::air
