// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a command line is answered: help within 80 columns, and refusals with attempt, cause and
// remedy.
//
// Goal:   whatever an option is called and takes, its help fits and keeps its indentation; whatever
// is wrong with a command
//         line, one sentence says what was read, why not, and what to write.
// Method: a program with an option of each kind, parsed by the real library; the words of the help
// and of the error. Bounds: none; the whole program's help is measured by program_test.py.
#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>
#include <sstream>

#include "tools/onehop/text/help.hpp"
#include "tools/onehop/text/refusal.hpp"

namespace onehop::tool {
namespace {

const std::string many_words =
    "words that explain it, more of them than fit into one line of a terminal, and then some";

struct Program {
  CLI::App app{"a program with " + many_words, "onehop"};
  std::vector<std::string> paths, kinds{"fast"};
  std::string to, level = "low", note;
  std::optional<int> core;
  double wait = 5;
  bool is_loud = true;

  Program() {
    app.formatter(std::make_shared<Help>());
    app.set_config("--config", "", "a file")->type_name("FILE");
    app.allow_config_extras(CLI::config_extras_mode::error);
    app.require_subcommand(0, 1);
    CLI::App* send = app.add_subcommand("send", "send with " + many_words);
    send->fallthrough();
    send->add_option("PATH", paths, "files")->required();
    send->add_option("--to", to, "the receiver")->type_name("HOST[:PORT]")->required();
    send->add_option("--wait", wait, many_words)
        ->check(CLI::Range(0.0, 3600.0))
        ->capture_default_str();
    send->add_option("--level", level, many_words)
        ->check(CLI::IsMember({"low", "high", "a level with a name so long", "another of these"}));
    send->add_option("-k,--kinds", kinds, "kinds")
        ->delimiter(',')
        ->check(CLI::IsMember({"fast", "slow"}))
        ->capture_default_str();
    send->add_option("--core", core, "a CPU")->type_name("N");
    send->add_option("--note", note, "a note")->excludes("--core")->needs("--level");
    send->add_flag("--quiet{false}", is_loud, "say less");
    send->add_flag_callback("-R,--reverse",
                            [] {
                              throw CLI::ValidationError{"--reverse", "there is one direction"};
                            })
        ->group("");
    app.add_subcommand("lab", "a lab")->require_subcommand(1)->add_subcommand("up", "build it");
  }

  /// help is what is printed for these words, error what refuses them.
  std::string help(std::vector<std::string> words) {
    std::ostringstream out;
    try {
      parse(std::move(words));
      FAIL("no help was asked for");
    } catch (const CLI::Success& asked) {
      app.exit(asked, out);
    }
    return out.str();
  }
  Error error(std::vector<std::string> words) {
    try {
      parse(std::move(words));
    } catch (const CLI::ParseError& refused) {
      return refusal_of(app, refused);
    }
    FAIL("nothing was refused");
    return {};
  }
  std::string message(std::vector<std::string> words) {
    const Error refused = error(std::move(words));
    CHECK(refused.code == ExitCode::usage);
    return words_of(app) + ": " + refused.message();
  }

 private:
  void parse(std::vector<std::string> words) {
    std::ranges::reverse(words);  // as the library takes them
    app.parse(words);
  }
};

/// A command line that is whole, and then these words.
std::vector<std::string> sending(std::vector<std::string> words) {
  std::vector<std::string> all{"send", "f", "--to", "h"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

}  // namespace

TEST_CASE("text is wrapped at spaces, and a longer word stays whole", "[tools][help]") {
  CHECK(wrap("a bc def", 8) == "a bc def");
  CHECK(wrap("a bc def", 7) == "a bc\ndef");
  CHECK(wrap("a bc def", 7, 2) == "a bc\n  def");
  CHECK(wrap("abc d e", 4, 2) == "abc\n  d\n  e");
  CHECK(wrap("abcdefgh i", 3) == "abcdefgh\ni");
  CHECK(wrap("", 3).empty());
}

TEST_CASE("help fits into 80 columns, and what is wrapped stays in its column", "[tools][help]") {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--help"}, {"send", "--help"}, {"lab", "--help"}, {"lab", "up", "--help"}}) {
    std::istringstream text{Program{}.help(words)};
    std::size_t lines = 0;
    for (std::string line; std::getline(text, line); ++lines) CHECK(line.size() < 80);
    CHECK(lines > 4);
  }
  const std::string text = Program{}.help({"send", "--help"});
  CAPTURE(text);
  const std::string column = "\n" + std::string(28, ' ');
  for (const std::string& piece :
       {std::string{"Usage: onehop send [OPTIONS] PATH...\n"},
        std::string{"  PATH ... (required)       files\n"},
        "  --to HOST[:PORT] (required)" + column + "the receiver\n",
        std::string{"  --wait 0..3600            words that"},
        std::string{" then some (default: 5)\n"},
        "\n  --level low|high|a level with a name so long|another of these" + column + "words that",
        std::string{"  -k,--kinds fast|slow,...  kinds (default: fast)\n"},
        std::string{"  --quiet                   say less\n"},
        std::string{"  --note TEXT               a note; with --level; not with --core\n"}})
    CHECK(text.find(piece) != std::string::npos);
  CHECK(text.find("reverse") == std::string::npos);
  CHECK(text.find("\n\n\n") == std::string::npos);
}

TEST_CASE("a refused command line says what was read, why not, and what to write",
          "[tools][help]") {
  const auto said = [](std::vector<std::string> words) {
    return Program{}.message(std::move(words));
  };
  CHECK(said({"lap", "x"}) ==
        "onehop: read the command line: there is no command 'lap'. See 'onehop --help'");
  CHECK(said({"--bogus"}) ==
        "onehop: read the command line: '--bogus' was not expected. See 'onehop --help'");
  CHECK(said({"lab"}) ==
        "onehop lab: read the command line: the command is missing. See 'onehop lab --help'");
  CHECK(said({"lab", "down"}) ==
        "onehop lab: read the command line: there is no command 'down'. See 'onehop lab --help'");
  CHECK(said({"lab", "up", "x"}) ==
        "onehop lab up: read the command line: 'x' was not expected. See 'onehop lab up --help'");
  CHECK(said({"send"}) == "onehop send: read the command line: PATH is missing. Add PATH (files)");
  CHECK(said({"send", "f", "--to"}) ==
        "onehop send: read --to: its value is missing. Write --to HOST[:PORT]");
  CHECK(said(sending({"--to", "g"})) ==
        "onehop send: read --to: it was given more than once. Give it once");
  CHECK(said(sending({"--wait", "-1"})) ==
        "onehop send: read --wait: it cannot be '-1'. Take 0..3600");
  CHECK(said(sending({"--wait", "long"})) ==
        "onehop send: read --wait: it cannot be 'long'. Take 0..3600");
  CHECK(said(sending({"-k", "fast,quick"})) ==
        "onehop send: read --kinds: it cannot be 'fast,quick'. Take fast|slow");
  CHECK(said(sending({"--core", "x"})) ==
        "onehop send: read --core: it cannot be 'x'. See 'onehop send --help'");
  CHECK(said(sending({"--note", "x"})) ==
        "onehop send: read --note: it needs --level. Add --level");
  CHECK(said(sending({"--note", "x", "--level", "low", "--core", "1"})).find(": it excludes --") !=
        std::string::npos);
  CHECK(said(sending({"-R"})) ==
        "onehop send: read --reverse: there is one direction. See 'onehop send --help'");
  CHECK(said(sending({"--config", "/nowhere"})) ==
        "onehop send: read the options in /nowhere: No such file or directory. Check what --config "
        "names");
  CHECK(said(sending({"--config", "/"})) ==
        "onehop send: read the options in /: it is no file. Check what --config names");
}

}  // namespace onehop::tool
