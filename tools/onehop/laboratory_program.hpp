// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The main function of a laboratory's program (laboratories.hpp).
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace onehop::tool {

/// run_laboratory reads the command line as `onehop NAME ...` has it, with the help and the
/// refusals of onehop, and runs what `add` has put into the parser under that name. Returns what
/// the process exits with; all is said then.
[[nodiscard]] int run_laboratory(int argc, char** argv, const std::string& name,
                                 const std::function<void(CLI::App&)>& add,
                                 const std::function<int()>& run);

}  // namespace onehop::tool
