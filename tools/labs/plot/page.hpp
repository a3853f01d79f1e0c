// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// page_of: the whole report as one HTML file that needs nothing else: no script, no font, no
// address.
#pragma once

#include <string>
#include <vector>

#include "tools/labs/plot/figure.hpp"

namespace onehop::plot {

struct PageText {
  std::string title, command_line, version;
};

[[nodiscard]] std::string page_of(const std::vector<RunData>& runs,
                                  const std::vector<Plate>& plates, const PageText& text);

}  // namespace onehop::plot
