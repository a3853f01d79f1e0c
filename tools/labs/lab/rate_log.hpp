// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RateLog: when the lab's link had which rate, as a CSV file that onehop plot draws beside a trace
// (--capacity). Its times are those of the traces: CLOCK_MONOTONIC. Owns its file. One thread at a
// time.
//
//   # onehop lab run: profile trace-150-900
//   t_ns,rate_bytes_per_s           bytes of whole Ethernet frames; a rate holds until the next row
//   23313940424879,18750000
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "tools/labs/lab/profile.hpp"

namespace onehop::lab {

class RateLog {
 public:
  /// create makes the file; one that exists is refused. Error usage: the link of the profile has no
  /// one rate. Syscalls: open, write.
  [[nodiscard]] static Result<RateLog> create(const std::string& path, const Profile& profile);
  /// add says that the link has this rate from now on.
  void add(BytesPerSecond rate) noexcept;
  /// close tells of any write that failed. A log without a rate, of a link that was never up, is
  /// removed. Syscalls: write, close, unlink.
  [[nodiscard]] Result<void> close();

 private:
  struct Closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  RateLog(std::string path, std::FILE* file) : path_{std::move(path)}, file_{file} {}
  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  int failed_errno_ = 0;
  bool has_rate_ = false;
};

}  // namespace onehop::lab
