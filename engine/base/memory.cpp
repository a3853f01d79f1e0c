// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/memory.hpp"

namespace onehop {

Error memory_error(std::string attempt, const std::bad_alloc& refused) {
  const auto* known = dynamic_cast<const MemoryRefused*>(&refused);
  Error error = known != nullptr
                    ? known->error()
                    : Error{ExitCode::io_unavailable, std::move(attempt), "out of memory", ""};
  error.hint = "Raise the limit on memory (ulimit -v), or end other programs";
  return error;
}

}  // namespace onehop
