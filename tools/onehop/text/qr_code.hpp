// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Text as a QR code, for a user with a camera and no keyboard. Pure.
#pragma once

#include <string>

namespace onehop::tool {

/// qr_code draws `text` with half blocks, two modules a character, dark on light. Empty where this
/// build has no libqrencode.
[[nodiscard]] std::string qr_code(const std::string& text);

}  // namespace onehop::tool
