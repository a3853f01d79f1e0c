// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The arguments of DPDK's EAL (environment abstraction layer): what the user wrote, and what onehop
// adds where the user said nothing, so that a run disturbs no other program. Pure; no DPDK header.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"

namespace onehop::dpdk {

/// split_words splits as a shell would, with quotes and backslashes. Error: 2, an open quote.
[[nodiscard]] Result<std::vector<std::string>> split_words(std::string_view text);

/// check_words refuses what EAL would take and this program cannot: help (EAL prints it and exits),
/// a secondary process, and arguments that name no device. Error: 2.
[[nodiscard]] Result<void> check_words(const std::vector<std::string>& words);

/// HostFacts: what the completion depends on.
struct HostFacts {
  std::uint64_t huge_bytes_free = 0;
  int process_id = 0;
  int main_cpu = 0;  ///< where EAL believes its one lcore to be; its own threads are put elsewhere
};
/// read_host reads /sys/kernel/mm/hugepages. Syscalls: open, read, getdents, getpid.
[[nodiscard]] HostFacts read_host(int main_cpu);

struct EalArguments {
  std::vector<std::string> words;  ///< argv without the program's name
  bool is_huge = true;             ///< frames lie in huge pages
};
/// complete adds, each only where the user named no argument of its kind: private memory, a prefix
/// of our own, one lcore, no telemetry socket, no PCI device that was not named.
[[nodiscard]] EalArguments complete(std::vector<std::string> words, const HostFacts& host);

/// device_argument is the value of `key` of `driver` ("net_af_xdp", "iface" -> "va"), or empty.
[[nodiscard]] std::string device_argument(const std::vector<std::string>& words,
                                          std::string_view driver, std::string_view key);
/// has_device: one of --vdev's devices is of that driver.
[[nodiscard]] bool has_device(const std::vector<std::string>& words, std::string_view driver);
/// add_device_argument appends ",text" to each device of that driver.
void add_device_argument(std::vector<std::string>& words, std::string_view driver,
                         std::string_view text);

}  // namespace onehop::dpdk
