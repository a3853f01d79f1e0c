// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The report that somebody sends us. It is put together from values that are known to be free of
// names and addresses; whatever is not on the list here stays out, and so do all texts and
// remedies.
#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "engine/base/fd.hpp"
#include "tools/onehop/doctor/doctor.hpp"

namespace onehop::tool {

namespace {

// Of these the value is passed on. "section.key"; a section alone: all of it.
constexpr std::string_view shared =
    " interface.state interface.kind interface.driver interface.device interface.firmware "
    "interface.mtu interface.receive-queues interface.speed interface.qdisc interface.no-ack-map "
    "io.udp io.afxdp-zero-copy io.afxdp-copy io.afxdp-skb io.copy-transmit io.auto io.dpdk "
    "radio quirks limits ";

bool is_shared(const Finding& finding) {
  const auto has = [](const std::string& name) {
    return shared.find(' ' + name + ' ') != shared.npos;
  };
  return has(finding.section) || has(finding.section + '.' + finding.key);
}

/// tells is what a source has to tell, without the figures.
Json tells(const Json& value) {
  Json names = Json::array();
  for (const auto& item : value.items())
    if (item.key() != "cost_ns") names.push_back(item.key());
  return names;
}

Json entry_of(const Finding& finding) {
  Json entry{{"ok", word_of(finding.verdict)}};
  if (is_shared(finding)) entry["value"] = finding.value;
  if (!finding.cause.empty()) entry["cause"] = finding.cause;
  if (finding.section == "telemetry" && finding.value.is_object()) {
    entry["tells"] = tells(finding.value);
    entry["cost_ns"] = finding.value.value("cost_ns", Json(nullptr));
  }
  return entry;
}

/// kernel_version: what follows the digits of a release may be anything that its builder chose.
std::string kernel_version() {
  utsname system{};
  if (::uname(&system) != 0) return {};
  const std::string_view release{system.release};
  return std::string{release.substr(0, release.find_first_not_of("0123456789."))};
}

}  // namespace

Json report_json(std::span<const Diagnosis> diagnoses) {
  Json out{{"schema_version", schema_version},
           {"type", "doctor_report"},
           {"onehop", ONEHOP_VERSION},
           {"kernel", kernel_version()},
           {"interfaces", Json::array()}};
  for (const Diagnosis& diagnosis : diagnoses) {
    Json sections{{"is_usable", diagnosis.is_usable}};
    for (const Finding& finding : diagnosis.findings)
      sections[finding.section][finding.key] = entry_of(finding);
    out["interfaces"].push_back(std::move(sections));
  }
  return out;
}

Result<void> check_report(const std::string& file) {
  if (::access(file.c_str(), F_OK) != 0) return success();
  return Error{ExitCode::local_file_error, "write the report '" + file + "'", "it is there already",
               "Name another file, or remove this one", EEXIST};
}

Result<void> write_report(const std::string& file, std::span<const Diagnosis> diagnoses) {
  ONEHOP_TRYV(check_report(file));
  const std::string attempt = "write the report '" + file + "'";
  const std::string text =
      report_json(diagnoses).dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
  const Fd fd{::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
  if (!fd.is_open())
    return errno_error(ExitCode::local_file_error, attempt, "Name a file in a folder of yours");
  if (::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()))
    return success();
  const Error error = errno_error(ExitCode::local_file_error, attempt, "Is the disk full?");
  (void)::unlink(file.c_str());
  return error;
}

}  // namespace onehop::tool
