// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What is said of a command line that cannot be read: attempt, cause and remedy, as of any other
// error.
#pragma once

#include <optional>
#include <string>

#include "engine/base/result.hpp"

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace onehop::tool {

/// words_of is the command that `app` was parsed to, as one writes it: "onehop lab up".
[[nodiscard]] std::string words_of(const CLI::App& app);

/// refusal_of puts the library's error, which parsing by `app` threw, into our words.
[[nodiscard]] Error refusal_of(const CLI::App& app, const CLI::Error& error);

/// value_fault refuses values that the library accepts and that cannot be meant. An empty value, as
/// from a script whose variable is not set: as "not given" it would remove a limit. A number that
/// is NaN: it is within any limits.
[[nodiscard]] std::optional<Error> value_fault(const CLI::App& app);

}  // namespace onehop::tool
