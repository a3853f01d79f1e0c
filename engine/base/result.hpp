// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Result<T> and Error: how set-up code fails.
//
// An error names the attempt, the cause and the remedy, and carries the exit code of the program if
// it is not handled. The hot path returns counts instead.
#pragma once

#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/terminate.hpp>
#include <boost/outcome/try.hpp>

#include <string>

namespace onehop {

/// ExitCode is the contract of the command line; README.md lists it for users.
enum class ExitCode : int {
  done = 0,
  internal_error = 1,
  usage = 2,
  peer_unreachable = 3,
  authentication_failed = 4,
  refused_by_peer = 5,
  verification_failed = 6,
  interrupted = 7,
  local_file_error = 8,
  io_unavailable = 9,
  privilege_missing = 10,
  timed_out = 11,
  partly_done = 12,
  interrupted_twice = 130,
};

/// Error is what a user reads: "attempt: cause. hint". errno_value 0: no system call failed.
struct Error {
  ExitCode code = ExitCode::internal_error;
  std::string attempt;
  std::string cause;
  std::string hint;
  int errno_value = 0;

  /// message joins the parts for one line of text.
  [[nodiscard]] std::string message() const;
};

template <class T>
using Result = boost::outcome_v2::basic_result<T, Error, boost::outcome_v2::policy::terminate>;
using boost::outcome_v2::success;

/// errno_error makes an Error from errno (or the one given) before anything can overwrite it.
[[nodiscard]] Error errno_error(ExitCode code, std::string attempt, std::string hint = {},
                                int errno_value = -1);

/// errno_text is strerror without its static buffer.
[[nodiscard]] std::string errno_text(int errno_value);

}  // namespace onehop

/// ONEHOP_TRY(name, expr) unwraps a Result into `name` or returns its Error; ONEHOP_TRYV drops it.
/// They are Outcome's own but for one thing: Boost 1.76 changed what BOOST_OUTCOME_TRY declares.
#define ONEHOP_TRY(name, ...) ONEHOP_TRY_AS(BOOST_OUTCOME_TRY_UNIQUE_NAME, name, __VA_ARGS__)
#define ONEHOP_TRYV(...) ONEHOP_TRYV_AS(BOOST_OUTCOME_TRY_UNIQUE_NAME, __VA_ARGS__)
#define ONEHOP_TRYV_AS(result, ...)     \
  auto&& result = (__VA_ARGS__);        \
  if (!result.has_value()) [[unlikely]] \
  return std::move(result).as_failure()
#define ONEHOP_TRY_AS(result, name, ...) \
  ONEHOP_TRYV_AS(result, __VA_ARGS__);   \
  auto&& name = std::move(result).assume_value()
