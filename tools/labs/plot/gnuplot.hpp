// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The same plates for gnuplot: a script that holds its data, and the pictures that gnuplot makes of
// it. gnuplot runs what stands between backquotes, so no text of a trace reaches a script but
// through plain(), and strings are in single quotes.
#pragma once

#include <string>
#include <vector>

#include "tools/labs/plot/page.hpp"

namespace onehop::plot {

struct Pictures {
  std::string svg,
      png;  ///< paths, in the script's words: relative ones are from where gnuplot runs
};

[[nodiscard]] std::string script_of(const std::vector<RunData>& runs,
                                    const std::vector<Plate>& plates, const PageText& text,
                                    const Pictures& pictures);

/// plain leaves of a text what gnuplot takes for text anywhere: letters, digits and harmless signs.
[[nodiscard]] std::string plain(std::string_view text);

/// run_gnuplot runs a script in `folder`. False: there is no gnuplot. Error: it failed; its words
/// are on standard error. Syscalls: posix_spawn, wait.
[[nodiscard]] Result<bool> run_gnuplot(const std::string& folder, const std::string& script);

}  // namespace onehop::plot
