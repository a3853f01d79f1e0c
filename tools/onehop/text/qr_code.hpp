// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Text as a QR code, for a user with a camera and no keyboard. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace onehop::tool {

/// qr_code draws `text` with half blocks, two modules a character, dark on light. Empty where this
/// build has no libqrencode.
[[nodiscard]] std::string qr_code(const std::string& text);

/// beside puts lines of ASCII to the right of a picture, two columns from it. Empty where there is
/// no picture.
[[nodiscard]] std::string beside(const std::string& picture, const std::vector<std::string>& lines);
/// size_of gives rows and columns of what these made.
[[nodiscard]] std::pair<std::size_t, std::size_t> size_of(const std::string& picture);

}  // namespace onehop::tool
