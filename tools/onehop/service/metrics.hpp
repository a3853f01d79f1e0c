// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Metrics: what a service has done since its start, as OpenMetrics text. Each write replaces the
// file as a whole, so a collector (node_exporter's textfile) never reads half of one.
#pragma once

#include <map>
#include <string>

#include "control/transfer/api/transfer.hpp"
#include "engine/base/result.hpp"

namespace onehop::tool {

class Metrics {
 public:
  void count(const api::End& end);
  [[nodiscard]] std::string text() const;
  /// write replaces the file (disk::replace_file). Error: 8.
  [[nodiscard]] Result<void> write(const std::string& file) const;

 private:
  struct Device {
    std::map<int, std::uint64_t> sessions;  // by exit code
    std::uint64_t bytes = 0, files = 0;
    double seconds = 0;
  };
  std::map<std::string, Device> devices_;
  std::uint64_t frames_ = 0, retransmitted_bytes_ = 0, auth_failures_ = 0;
  std::map<std::string, double> thread_seconds_;
  std::map<std::string, std::uint64_t> ring_full_;
  api::End newest_;
};

}  // namespace onehop::tool
