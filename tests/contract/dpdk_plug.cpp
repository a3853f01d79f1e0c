// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Compiled by itself: DPDK's headers bring compiler flags of their own.
#include "tests/contract/dpdk_plug.hpp"

#include <rte_dev.h>

#include <stdexcept>

#include "engine/port/dpdk/output_capture.hpp"

namespace onehop::test {

void plug(const std::string& name, const std::string& arguments) {
  dpdk::OutputCapture capture;
  const int rc = rte_eal_hotplug_add("vdev", name.c_str(), arguments.c_str());
  const std::string output = capture.end();
  if (rc != 0)
    throw std::runtime_error("bring up " + name + ": " + dpdk::cause_or_errno(output, -rc));
}

void unplug(const std::string& name) noexcept {
  const dpdk::OutputCapture quiet;
  (void)rte_eal_hotplug_remove("vdev", name.c_str());
}

}  // namespace onehop::test
