// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// make_uring_io(): FileIo over io_uring. Private to engine/file; everybody else calls make_file_io().
#pragma once

#include <memory>

#include "engine/file/file_io.hpp"

namespace onehop::file {

/// Error with exit 9 where the build or the running kernel does not have io_uring.
[[nodiscard]] Result<std::unique_ptr<FileIo>> make_uring_io();

}  // namespace onehop::file
