// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Devices that come and go while EAL runs, which the program has no use for.
#pragma once

#include <string>

namespace onehop::test {

/// plug adds a device ("net_memif0", "role=server,id=1") to a started EAL, or throws the reason.
void plug(const std::string& name, const std::string& arguments);
/// unplug removes it, after its ports.
void unplug(const std::string& name) noexcept;

}  // namespace onehop::test
