// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/ignore.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace onehop::list {

namespace {

constexpr std::size_t none = std::string_view::npos;

unsigned char at(std::string_view text, std::size_t i) noexcept {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
}

/// is_in_class: the classes of the C locale. No value: the name is of no class.
std::optional<bool> is_in_class(std::string_view name, unsigned char c) noexcept {
  struct Class {
    std::string_view name;
    int (*has)(int);
  };
  static constexpr std::array<Class, 12> classes{{{"alnum", std::isalnum},
                                                  {"alpha", std::isalpha},
                                                  {"blank", std::isblank},
                                                  {"cntrl", std::iscntrl},
                                                  {"digit", std::isdigit},
                                                  {"graph", std::isgraph},
                                                  {"lower", std::islower},
                                                  {"print", std::isprint},
                                                  {"punct", std::ispunct},
                                                  {"space", std::isspace},
                                                  {"upper", std::isupper},
                                                  {"xdigit", std::isxdigit}}};
  const auto found = std::ranges::find(classes, name, &Class::name);
  if (found == classes.end()) return std::nullopt;
  return c < 0x80 && found->has(c) != 0;
}

struct SetMatch {
  bool is_valid = false;
  bool has_matched = false;
  std::size_t end = 0;  ///< after the closing bracket
};

/// Matches one byte against the set whose '[' is at `begin`. A set without end is not valid, and
/// its pattern matches nothing.
SetMatch match_set(std::string_view pattern, std::size_t begin, unsigned char c) noexcept {
  std::size_t p = begin + 1;
  const bool is_negated = at(pattern, p) == '!' || at(pattern, p) == '^';
  if (is_negated) ++p;
  bool is_member = false;
  unsigned char before = 0;  // the low end of a range; 0: none can begin here
  const std::size_t first = p;
  for (; p == first || at(pattern, p) != ']'; ++p) {
    if (p >= pattern.size()) return {};
    unsigned char low = at(pattern, p);
    if (low == '-' && before != 0 && p + 1 < pattern.size() && pattern[p + 1] != ']') {
      if (pattern[++p] == '\\' && ++p >= pattern.size()) return {};
      is_member |= before <= c && c <= at(pattern, p);
      before = 0;
      continue;
    }
    if (low == '[' && at(pattern, p + 1) == ':') {
      const std::size_t close = pattern.find(']', p + 2);
      if (close == none) return {};
      if (close > p + 2 && pattern[close - 1] == ':') {
        const auto in_class = is_in_class(pattern.substr(p + 2, close - p - 3), c);
        if (!in_class) return {};
        is_member |= *in_class;
        p = close;
        before = 0;
        continue;
      }
    }
    if (low == '\\') {
      if (++p >= pattern.size()) return {};
      low = at(pattern, p);
    }
    is_member |= c == low;
    before = low;
  }
  return {.is_valid = true, .has_matched = is_member != is_negated && c != '/', .end = p + 1};
}

/// One byte of the name against the pattern at `p`, which is moved past what matched.
bool match_one(std::string_view pattern, std::size_t& p, unsigned char c) noexcept {
  switch (at(pattern, p)) {
    case '?': ++p; return c != '/';
    case '[': {
      const SetMatch set = match_set(pattern, p, c);
      p = set.end;
      return set.is_valid && set.has_matched;
    }
    case '\\':
      if (p + 1 >= pattern.size()) return false;
      ++p;
      [[fallthrough]];
    default: return at(pattern, p++) == c;
  }
}

/// Where to go on after a mismatch: what follows the star is tried at a later place of the name.
struct Retry {
  std::size_t pattern = none, name = 0;
};

bool is_special(char c) noexcept { return c == '*' || c == '?' || c == '[' || c == '\\'; }

}  // namespace

// Only the last `*` of a component and the last `**` have to be tried again: what an earlier one
// could reach, the later one reaches as well.
bool glob_matches(std::string_view pattern, std::string_view name) noexcept {
  Retry star, folders;
  bool is_folders_whole = false;  // of `**/`: what follows begins a component
  std::size_t p = 0, n = 0;
  while (true) {
    if (p < pattern.size() && pattern[p] == '*') {
      const std::size_t begin = p;
      p = std::min(pattern.find_first_not_of('*', p), pattern.size());
      const bool is_whole = p - begin > 1 && (begin == 0 || pattern[begin - 1] == '/') &&
                            (p == pattern.size() || pattern[p] == '/' ||
                             (pattern[p] == '\\' && at(pattern, p + 1) == '/'));
      if (!is_whole) {
        star = {p, n};
        continue;
      }
      if (p == pattern.size()) return true;
      is_folders_whole = pattern[p] == '/';
      if (is_folders_whole) ++p;
      folders = {p, n};
      star = {};
      continue;
    }
    if (p < pattern.size() && n < name.size() && match_one(pattern, p, at(name, n))) {
      ++n;
      continue;
    }
    if (p == pattern.size() && n == name.size()) return true;
    if (star.pattern != none && star.name < name.size() && name[star.name] != '/') {
      p = star.pattern;
      n = ++star.name;
      continue;
    }
    if (folders.pattern == none || folders.name >= name.size()) return false;
    if (is_folders_whole) {
      const std::size_t slash = name.find('/', folders.name);
      if (slash == none) return false;
      folders.name = slash;
    }
    star = {};
    p = folders.pattern;
    n = ++folders.name;
  }
}

void IgnoreRules::add(std::string_view pattern) {
  IgnoreRule rule{.text = std::string{pattern}, .pattern = {}};
  rule.is_include = pattern.starts_with('!');
  if (rule.is_include) pattern.remove_prefix(1);
  rule.is_for_folders = pattern.ends_with('/');
  if (rule.is_for_folders) pattern.remove_suffix(1);
  rule.has_path = pattern.find('/') != none;
  if (pattern.starts_with('/')) pattern.remove_prefix(1);
  rule.pattern = pattern;
  rules_.push_back(std::move(rule));
}

std::vector<std::string> patterns_of(std::string_view text) {
  std::vector<std::string> patterns;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with('#')) continue;
    // Spaces at the end go, but for one that a backslash stands before.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool is_escape = line[i] == '\\';
      if (is_escape) ++i;
      if (is_escape || line[i] != ' ') kept = std::min(i + 1, line.size());
    }
    line = line.substr(0, kept);
    if (!line.empty()) patterns.emplace_back(line);
  }
  return patterns;
}

const IgnoreRule* IgnoreRules::find(std::string_view name, bool is_folder) const noexcept {
  const std::size_t slash = name.rfind('/');
  const std::string_view leaf = slash == none ? name : name.substr(slash + 1);
  for (std::size_t i = rules_.size(); i-- > 0;) {
    const IgnoreRule& rule = rules_[i];
    if ((rule.is_for_folders && !is_folder) || rule.pattern.empty()) continue;
    // As git has it: what stands before the first special character is compared, and the rest is
    // matched alone. So the `**` of `a**/b` begins a pattern.
    const std::string_view subject = rule.has_path ? name : leaf;
    const auto special = std::ranges::find_if(rule.pattern, is_special);
    const auto plain = static_cast<std::size_t>(special - rule.pattern.begin());
    if (subject.substr(0, plain) != std::string_view{rule.pattern}.substr(0, plain)) continue;
    const std::size_t skipped = rule.has_path ? plain : 0;
    if (glob_matches(std::string_view{rule.pattern}.substr(skipped), subject.substr(skipped)))
      return &rule;
  }
  return nullptr;
}

}  // namespace onehop::list
