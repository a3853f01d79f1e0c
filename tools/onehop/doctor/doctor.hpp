// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Doctor: what onehop can see and use on this machine and one interface of it, as findings that a
// person and a program read alike.
//
//   interface, sockets, AF_XDP, radio, link sources, limits ─▶ Finding ... ─▶ text | JSON | report
//
// It looks and tries, and leaves nothing behind: probes hold what they open until the function
// returns.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "tools/onehop/text/report.hpp"

namespace onehop::tool {

enum class Verdict : std::uint8_t {
  info,  ///< a fact without good or bad
  good,
  bad,  ///< cannot be used, or is less than it could be; the remedy says what helps, where
        ///< something does
};

struct Finding {
  std::string section;  ///< "interface", "io", "radio", "telemetry", "limits", "quirks", "peer"
  std::string key;      ///< unique within its section
  Verdict verdict = Verdict::info;
  std::string text;  ///< for people
  Json value;        ///< for programs; null where there is nothing to read
  std::string remedy{};
  std::string cause{};  ///< why it is bad, without a name of this machine: for a report
};

/// Probe: how AF_XDP is tried.
enum class Probe : std::uint8_t {
  none,
  as_sent,      ///< each mode on all queues, as `onehop send --io afxdp` opens it
  spare_queue,  ///< each mode on the last queue alone; a frame to ourselves is sent
};

/// Diagnosis is of one interface. is_usable: it is up and has a carrier, so that `onehop send` can
/// use it.
struct Diagnosis {
  std::string interface;
  bool is_usable = false;
  std::vector<Finding> findings;
};

/// diagnose looks at one interface. Error io_unavailable where there is none of this name. It may
/// take seconds: a driver may rebuild its queues for a probe. Syscalls: many.
[[nodiscard]] Result<Diagnosis> diagnose(const std::string& interface, Probe probe);
/// interfaces_up names the interfaces that are up, loopback left out; only loopback where there is
/// no other.
[[nodiscard]] std::vector<std::string> interfaces_up();

/// doctor_text is never wider than `columns` but for words that are longer.
[[nodiscard]] std::string doctor_text(const Diagnosis& diagnosis, std::size_t columns = 80);
[[nodiscard]] Json doctor_json(const Diagnosis& diagnosis);
[[nodiscard]] Json reach_json(const Diagnosis& diagnosis);  ///< of diagnose_peer()
/// word_of: true, false, or null where it is neither good nor bad.
[[nodiscard]] Json word_of(Verdict verdict);

/// report_json is what a user can send us: no name, address or serial number of this machine, its
/// user or its network.
[[nodiscard]] Json report_json(std::span<const Diagnosis> diagnoses);
/// check_report refuses a file that is there. Errors of both: local_file_error.
[[nodiscard]] Result<void> check_report(const std::string& file);
[[nodiscard]] Result<void> write_report(const std::string& file,
                                        std::span<const Diagnosis> diagnoses);

/// diagnose_peer tries what passes from here to a receiver, by name or address; is_usable: a
/// connection does. `interface`: over that link alone; empty: over all. It takes seconds where
/// nothing passes. Errors: 2, `peer` is neither; 3, no route. Syscalls: those of a look, connect.
[[nodiscard]] Result<Diagnosis> diagnose_peer(const std::string& peer, const std::string& interface,
                                              const Reporter& reporter);

// The parts of diagnose(), each in a file of its own.
void find_interface(int ifindex, Diagnosis& out);
/// find_driver: device, firmware, radio, and what the driver is known for.
void find_driver(int ifindex, const std::string& driver, Diagnosis& out);
void find_io(const std::string& interface, Probe probe, Diagnosis& out);
void find_telemetry(int ifindex, Diagnosis& out);
void find_limits(Diagnosis& out);

}  // namespace onehop::tool
