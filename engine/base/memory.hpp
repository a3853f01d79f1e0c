// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What happens when the system refuses memory. Constructors can only throw; the code that runs a
// session, a thread or the program catches std::bad_alloc and makes an Error of it here, which the
// session also reports to the peer. Set-up only; any thread.
#pragma once

#include <new>
#include <string>
#include <utility>

#include "engine/base/result.hpp"

namespace onehop {

/// MemoryRefused is a std::bad_alloc that knows what the memory was for.
class MemoryRefused : public std::bad_alloc {
 public:
  explicit MemoryRefused(Error error) : error_{std::move(error)} {}
  [[nodiscard]] const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

/// memory_error is the Error of a refusal; `attempt` where nothing more is known.
[[nodiscard]] inline Error memory_error(std::string attempt, const std::bad_alloc& refused) {
  const auto* known = dynamic_cast<const MemoryRefused*>(&refused);
  Error error = known != nullptr
                    ? known->error()
                    : Error{ExitCode::io_unavailable, std::move(attempt), "out of memory"};
  error.hint = "Raise the limit on memory (ulimit -v), or end other programs";
  return error;
}

}  // namespace onehop
