// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How findings are shown: text in columns, and JSON.
#include <sstream>

#include "tools/onehop/doctor.hpp"

namespace onehop::tool {

namespace {

constexpr std::size_t key_columns = 18;  // two spaces, the key, and a space

const char* title_of(const std::string& section) {
  if (section == "interface") return "The interface";
  if (section == "io") return "How frames can leave";
  if (section == "radio") return "What the radio can do";
  if (section == "quirks") return "What this driver is known for";
  if (section == "telemetry") return "What can be read while sending";
  return "Limits of this process";
}

const char* mark_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::good: return "+ ";
    case Verdict::bad: return "- ";
    case Verdict::info: break;
  }
  return "  ";
}

// wrap adds `text` to `out`, whose last line has `at` columns; further lines start at `indent`.
void wrap(std::string& out, const std::string& text, std::size_t at, std::size_t indent,
          std::size_t columns) {
  std::istringstream words{text};
  bool is_first = true;
  for (std::string word; words >> word;) {
    if (!is_first && at + 1 + word.size() > columns) {
      out += '\n' + std::string(indent, ' ');
      at = indent;
    } else if (!is_first) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
    is_first = false;
  }
  out += '\n';
}

}  // namespace

Json word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::good: return true;
    case Verdict::bad: return false;
    case Verdict::info: break;
  }
  return nullptr;
}

std::string doctor_text(const Diagnosis& diagnosis, std::size_t columns) {
  std::string out = diagnosis.interface + '\n';
  std::string section;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.section != section) {
      section = finding.section;
      out += '\n' + std::string{title_of(section)} + '\n';
    }
    std::string head = mark_of(finding.verdict) + finding.key;
    head.resize(std::max(head.size() + 1, key_columns), ' ');
    out += head;
    wrap(out, finding.text, head.size(), key_columns, columns);
    if (finding.remedy.empty()) continue;
    out += std::string(key_columns, ' ') + "> ";
    wrap(out, finding.remedy, key_columns + 2, key_columns + 2, columns);
  }
  return out;
}

Json doctor_json(const Diagnosis& diagnosis) {
  Json out{{"interface", diagnosis.interface}, {"is_usable", diagnosis.is_usable}};
  for (const Finding& finding : diagnosis.findings) {
    Json entry{{"ok", word_of(finding.verdict)}, {"value", finding.value}, {"text", finding.text}};
    if (!finding.remedy.empty()) entry["remedy"] = finding.remedy;
    // "interface" is the name already; its facts stand beside the other sections as "link".
    out[finding.section == "interface" ? "link" : finding.section][finding.key] = std::move(entry);
  }
  return out;
}

}  // namespace onehop::tool
