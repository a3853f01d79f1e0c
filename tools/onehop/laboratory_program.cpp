// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/laboratory_program.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/base/memory.hpp"
#include "tools/onehop/command_line.hpp"
#include "tools/onehop/text/help.hpp"
#include "tools/onehop/text/refusal.hpp"
#include "tools/onehop/text/terminal.hpp"

namespace onehop::tool {

int run_laboratory(int argc, char** argv, const std::string& name,
                   const std::function<void(CLI::App&)>& add, const std::function<int()>& run) {
  remember_command_line(argc, argv);
  command_line().replace(0, std::string_view{argv[0]}.size(), "onehop " + name);
  CLI::App app{"", "onehop"};
  app.formatter(std::make_shared<Help>());
  app.set_help_flag("-h,--help", "print this help and exit");
  app.set_help_all_flag("--help-all", "also list options for experiments");
  app.require_subcommand(1);
  add(app);
  const auto refuse = [&app](const Error& error) {
    tell(fitted(words_of(app) + ": " + error.message() + "\n"));
    return static_cast<int>(error.code);
  };
  std::vector<std::string> words{argv + 1, argv + argc};
  words.insert(words.begin(), name);
  std::ranges::reverse(words);  // as the library wants them
  try {
    app.parse(words);
    if (const auto error = value_fault(app)) return refuse(*error);
    return run();
  } catch (const CLI::Success& asked_for_help) {
    return app.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    return refuse(refusal_of(app, error));
  } catch (const std::bad_alloc& refused) {
    return refuse(memory_error("run", refused));
  }
}

}  // namespace onehop::tool
