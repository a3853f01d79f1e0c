// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How findings are shown: text in columns, and JSON.

#include "tools/onehop/doctor/doctor.hpp"
#include "tools/onehop/text/help.hpp"

namespace onehop::tool {

namespace {

constexpr std::size_t key_columns = 18;  // two spaces, the key, and a space

const char* title_of(const std::string& section) {
  if (section == "interface") return "The interface";
  if (section == "io") return "How frames can leave";
  if (section == "radio") return "What the radio can do";
  if (section == "quirks") return "What this driver is known for";
  if (section == "peer") return "From this machine to that receiver";
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
    out += head + wrap(finding.text, columns, key_columns, head.size()) + '\n';
    if (finding.remedy.empty()) continue;
    const std::size_t indent = key_columns + 2;
    out +=
        std::string(key_columns, ' ') + "> " + wrap(finding.remedy, columns, indent, indent) + '\n';
  }
  return out;
}

namespace {

Json entry_of(const Finding& finding) {
  Json entry{{"ok", word_of(finding.verdict)}, {"value", finding.value}, {"text", finding.text}};
  if (!finding.remedy.empty()) entry["remedy"] = finding.remedy;
  return entry;
}

}  // namespace

Json doctor_json(const Diagnosis& diagnosis) {
  Json out{{"interface", diagnosis.interface}, {"is_usable", diagnosis.is_usable}};
  for (const Finding& finding : diagnosis.findings) {
    // "interface" is the name already; its facts stand beside the other sections as "link".
    out[finding.section == "interface" ? "link" : finding.section][finding.key] = entry_of(finding);
  }
  return out;
}

Json reach_json(const Diagnosis& diagnosis) {
  Json findings = Json::array();
  for (const Finding& finding : diagnosis.findings) {
    findings.push_back(entry_of(finding));
    findings.back()["key"] = finding.key;
  }
  return {{"peer", diagnosis.interface},
          {"is_reached", diagnosis.is_usable},
          {"findings", std::move(findings)}};
}

}  // namespace onehop::tool
