// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Patterns of gitignore(5).
#include "engine/list/ignore.hpp"

#include <cstdlib>

#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

/// The rule that decides about a path in a walk: nothing below an excluded folder is asked for.
const IgnoreRule* find_in_walk(const IgnoreRules& rules, const std::string& name, bool is_folder) {
  for (std::size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    const IgnoreRule* const rule = rules.find(name.substr(0, slash), true);
    if (rule != nullptr && !rule->is_include) return rule;
  }
  return rules.find(name, is_folder);
}

/// A name with a slash at its end is a folder.
bool is_out(const std::string& lines, std::string name) {
  IgnoreRules rules;
  for (const std::string& pattern : patterns_of(lines)) rules.add(pattern);
  const bool is_folder = name.ends_with('/');
  if (is_folder) name.pop_back();
  const IgnoreRule* const rule = find_in_walk(rules, name, is_folder);
  return rule != nullptr && !rule->is_include;
}

struct Case {
  std::string lines;
  std::vector<std::string> out, in;
};

std::string some_pattern(std::mt19937_64& random) {
  static const std::vector<std::string> parts{
      "a",    "b",    "ab",    "*",    "**",  "?",     "/",  "/",           "/",     "[ab]",
      "[!a]", "[^b]", "[a-c]", "\\a",  "\\*", "[]a]",  "[a", "[[:alpha:]]", " ",     "\\ ",
      ".",    "**/",  "/**",   "[b-]", "\\",  "[\\]]", "c",  "[[:x:]]",     "[z-a]", "#"};
  std::string pattern = random() % 4 == 0 ? "!" : "";
  for (std::uint64_t i = 1 + random() % 5; i > 0; --i) pattern += parts[random() % parts.size()];
  if (random() % 5 == 0) pattern += '/';
  return pattern;
}

}  // namespace

TEST_CASE("patterns mean what gitignore(5) says", "[engine][file]") {
  const std::vector<Case> cases{
      {"foo", {"foo", "a/foo", "foo/x", "foo/"}, {"foo2", "Foo"}},
      {"foo/", {"foo/", "a/foo/", "foo/x"}, {"foo", "a/foo"}},
      {"/foo", {"foo"}, {"a/foo"}},
      {"doc/frotz", {"doc/frotz"}, {"a/doc/frotz"}},
      {"/doc/frotz/", {"doc/frotz/"}, {"doc/frotz", "a/doc/frotz/"}},
      {"*.o", {"x.o", "a/x.o", ".o"}, {"x.oo"}},
      {"foo/*", {"foo/test.json", "foo/bar/", "foo/bar/hello.c"}, {"foo/"}},
      {"/*.c", {"cat-file.c"}, {"mozilla-sha1/sha1.c"}},
      {"**/foo", {"foo", "a/foo", "a/b/foo/x"}, {"afoo"}},
      {"**/foo/bar", {"foo/bar", "a/foo/bar"}, {"foo/x/bar"}},
      {"abc/**", {"abc/x", "abc/x/y"}, {"abc/", "x/abc/y"}},
      {"a/**/b", {"a/b", "a/x/b", "a/x/y/b"}, {"ab", "x/a/b"}},
      {"a?c", {"abc"}, {"ac", "a/c"}},
      {"[a-c]x[!0-9]", {"axy", "cx-"}, {"dxy", "ax1"}},
      {"*\n!keep\n", {"x", "d/keep"}, {"keep"}},
      {"!x\nx", {"x"}, {}},
      {"x\n!x", {}, {"x"}},
      {"d/\n!d/keep", {"d/keep"}, {}},
      {"d/*\n!d/keep", {"d/other"}, {"d/keep"}},
      {"# comment\n\n\\#x\n\\!y\n", {"#x", "!y"}, {"# comment", "x", "y"}},
      {"a  \nb\\ \nc\\  \r\n", {"a", "b ", "c "}, {"a  ", "b", "c"}},
      {"d\\\\ \n", {"d\\"}, {"d\\ "}},
      {"x\\", {}, {"x", "x\\"}},
      {"[", {}, {"["}},
      {"\xEF\xBB\xBFx", {"x"}, {}},
  };
  for (const Case& one : cases) {
    INFO(one.lines);
    for (const std::string& name : one.out) {
      INFO(name);
      CHECK(is_out(one.lines, name));
    }
    for (const std::string& name : one.in) {
      INFO(name);
      CHECK_FALSE(is_out(one.lines, name));
    }
  }
}

TEST_CASE("a pattern of the command line is taken as it is", "[engine][file]") {
  IgnoreRules rules;
  rules.add("#x");
  rules.add("y ");
  rules.add("!#x");
  CHECK(rules.find("#x", false)->is_include);
  CHECK(rules.find("y ", false)->text == "y ");
  CHECK(rules.find("y", false) == nullptr);
}

TEST_CASE("many stars cost no more than the product of the lengths", "[engine][file]") {
  std::string pattern, name(4000, 'a');
  for (int i = 0; i < 100; ++i) pattern += "a*";
  CHECK_FALSE(glob_matches(pattern + "b", name));
  for (std::size_t i = 1; i < name.size(); i += 2) name[i] = '/';
  pattern.clear();
  for (int i = 0; i < 100; ++i) pattern += "**/a*/";
  CHECK_FALSE(glob_matches(pattern + "b", name));
}

// Goal:   the same decision as git, and by the same pattern.
// Method: files of random patterns over one tree; `git check-ignore` is the other opinion.
TEST_CASE("git decides the same about random patterns", "[engine][file]") {
  const TempFolder folder;
  const std::string git = "git -c core.excludesFile=/dev/null -C '" + folder.path().string() + "' ";
  if (std::system((git + "init -q . >/dev/null 2>&1").c_str()) != 0) {
    WARN("not tested here: git cannot be run");
    return;
  }
  std::vector<std::string> names, leaves{"a", "b", "ab", "c", "a b", "*", "[a", "-", "]", "a "};
  for (const std::string one : {"a", "b", "ab", "a b"})
    for (const std::string two : {"a", "b", "c"}) {
      fs::create_directories(folder / one / two);
      for (const std::string& leaf : leaves) write_file(folder / one / two / ("f" + leaf), "");
    }
  for (const std::string& leaf : leaves)
    if (!fs::exists(folder / leaf)) write_file(folder / leaf, "");
  for (const auto& entry : fs::recursive_directory_iterator{folder.path()}) {
    const std::string name = fs::relative(entry.path(), folder.path()).string();
    if (!name.starts_with(".git")) names.push_back(name);
  }
  std::string question;
  for (const std::string& name : names) question.append(name).push_back('\0');
  const TempFolder elsewhere;
  write_file(elsewhere / "names", question);
  const std::string ask = git + "check-ignore -v -n -z --no-index --stdin <'" +
                          (elsewhere / "names").string() + "' >'" +
                          (elsewhere / "answer").string() + "' 2>/dev/null";
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random{seed};
  std::size_t decided = 0;
  for (int round = 0; round < 100; ++round) {
    std::string lines;
    for (std::uint64_t i = 1 + random() % 4; i > 0; --i) lines += some_pattern(random) + "\n";
    write_file(folder / ".gitignore", lines);
    if (std::system(ask.c_str()) == -1) FAIL("git cannot be run");  // 1: nothing is ignored
    IgnoreRules rules;
    for (const std::string& pattern : patterns_of(lines)) rules.add(pattern);
    std::istringstream answer{read_file(elsewhere / "answer")};
    for (const std::string& name : names) {
      std::string source, line, pattern, path;
      for (std::string* field : {&source, &line, &pattern, &path})
        std::getline(answer, *field, '\0');
      REQUIRE(path == name);
      const IgnoreRule* const rule = find_in_walk(rules, name, fs::is_directory(folder / name));
      INFO("seed " << seed << ", round " << round << ", name '" << name << "', patterns:\n"
                   << lines);
      REQUIRE((rule == nullptr ? "" : rule->text) == pattern);
      decided += pattern.empty() ? 0U : 1U;
    }
  }
  CHECK(decided > 100);
}
