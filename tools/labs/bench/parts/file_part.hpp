// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The file part: a file read and a fresh one written block by block through the engine's own
// FileIo. The files have no names (O_TMPFILE), so nothing is left behind however the program ends.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/result.hpp"
#include "engine/disk/file_io.hpp"
#include "tools/labs/bench/points.hpp"

namespace onehop::bench {

/// measure_file reads and writes `bytes` in `folder`. CPU time is that of the whole process, so
/// that the kernel's io_uring workers count. Errors: 8 (the folder), 9 (no io_uring).
[[nodiscard]] Result<RunResult> measure_file(const std::string& kind, const std::string& folder,
                                             std::uint64_t bytes);

}  // namespace onehop::bench
