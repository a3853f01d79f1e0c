// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the ends say of folders: before anything is sent, and of what is left out.
#pragma once

#include <string>
#include <vector>

#include "tools/onehop/text/report.hpp"

namespace onehop::tool {

/// found_text is "4 files in 3 folders, 7 B", with the hard links where there are some.
[[nodiscard]] std::string found_text(const api::Found& found);

/// left_out_text has a line for each of the first five, and the number of the others.
[[nodiscard]] std::string left_out_text(const api::LeftOut& left_out, bool is_sender);

/// write_report writes all that was left out as JSON.
[[nodiscard]] Result<void> write_report(const std::string& file,
                                        const std::vector<api::LeftOut::Item>& items);

/// read_excludes gives the patterns of --exclude, --include and --exclude-from, in their order.
[[nodiscard]] Result<std::vector<std::string>> read_excludes(const std::vector<ExcludeWord>& words);

/// dry_run prints what would be sent, and what would not and why, on standard output.
[[nodiscard]] Result<void> dry_run(const api::SendOptions& options);

}  // namespace onehop::tool
