// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/dpdk/eal.hpp"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_version.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "engine/port/dpdk/frame_pool.hpp"
#include "engine/port/dpdk/output_capture.hpp"

namespace onehop::dpdk {

namespace {

bool has_started = false;  // EAL cannot be started twice in a process; set-up runs on one thread

bool wants_log(const std::vector<std::string>& words) {
  return std::ranges::any_of(
      words, [](const std::string& word) { return word.starts_with("--log-level"); });
}

Error start_error(int errno_value, const std::string& output) {
  // EINVAL: the arguments; ENODEV: a device of a driver that is not there.
  const bool is_usage = errno_value == EINVAL || errno_value == ENODEV;
  return {is_usage                                        ? ExitCode::usage
          : errno_value == EACCES || errno_value == EPERM ? ExitCode::privilege_missing
                                                          : ExitCode::io_unavailable,
          "start DPDK's EAL", cause_or_errno(output, errno_value),
          is_usage ? "See docs/dpdk.md and doc.dpdk.org, EAL parameters"
                   : "Run as root, try --eal \"... --no-huge\", or take --io udp",
          errno_value};
}

/// EAL makes a folder below /var/run/dpdk (or XDG_RUNTIME_DIR) even where it puts nothing into it.
void remove_runtime_folder() noexcept {
  const char* folder = rte_eal_get_runtime_dir();
  if (folder != nullptr && folder[0] != '\0') (void)::rmdir(folder);
}

}  // namespace

Result<std::unique_ptr<Eal>> Eal::start(const EalArguments& arguments) {
  if (has_started)
    return Error{ExitCode::internal_error, "start DPDK's EAL", "it ran in this process before"};
  has_started = true;

  // 1. The frame pool's handler takes its place before the drivers' do.
  ONEHOP_TRYV(FramePool::register_handler());

  // 2. EAL keeps and reorders the pointers, and may keep what they point to.
  static std::vector<std::string> words;
  words.assign(1, "onehop");
  words.insert(words.end(), arguments.words.begin(), arguments.words.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  // 3. Start, with the calling thread's CPUs kept and nothing printed.
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool has_allowed = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  OutputCapture capture;
  (void)rte_openlog_stream(stderr);  // its default is stdout
  if (!wants_log(words)) rte_log_set_global_level(RTE_LOG_ERR);
  const int rc = rte_eal_init(static_cast<int>(words.size()), argv.data());
  const int error = rte_errno;
  const std::string output = capture.end();
  if (has_allowed) (void)::sched_setaffinity(0, sizeof allowed, &allowed);
  remove_runtime_folder();
  if (rc < 0) return start_error(error, output);
  std::unique_ptr<Eal> self{new Eal};
  self->is_huge_ = arguments.is_huge;

  // 4. A device that its driver refused is no error to EAL.
  const std::string cause = cause_of(output);
  if (rte_eth_dev_count_avail() == 0 && !cause.empty())
    return Error{ExitCode::io_unavailable, "bring up the device that --eal names", cause,
                 "See docs/dpdk.md for what each driver needs"};
  return self;
}

Eal::~Eal() {
  // Not rte_eal_cleanup: in DPDK 22.11 it unmaps the memory under EAL's own interrupt thread, which
  // dies of it now and then. The process ends here anyway, and with it all that EAL holds; only
  // devices leave something behind (memif: its socket).
  const OutputCapture quiet;
  for (std::uint16_t device = 0; device < RTE_MAX_ETHPORTS; ++device)
    if (rte_eth_dev_is_valid_port(device) != 0) (void)rte_eth_dev_close(device);
}

std::string dpdk_version() { return rte_version(); }

}  // namespace onehop::dpdk
