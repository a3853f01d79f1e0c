// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// display_name(): the one escaping function for names on a terminal. A name is a peer's bytes;
// printed raw it can move the cursor, hide a line, or show its letters in another order.
#pragma once

#include <string>
#include <string_view>

namespace onehop {

/// display_name is how any name reaches a terminal, a log or a text: control, bidirectional and
/// invisible characters and invalid UTF-8 become visible escapes, a backslash is doubled.
[[nodiscard]] std::string display_name(std::string_view name);

}  // namespace onehop
