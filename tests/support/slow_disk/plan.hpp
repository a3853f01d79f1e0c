// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Plan: how a slow or failing disk behaves, and the clockwork that makes it so. Used by every FUSE
// worker thread at once; the token bucket is behind a mutex, the rest is constant after parsing. It
// knows nothing of FUSE.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onehop::slow_disk {

using Clock = std::chrono::steady_clock;

struct Stall {
  std::chrono::nanoseconds at{}, span{};  ///< since the mount
};

/// Fault: `call` fails with `error_number`. A write fails once more than `after_bytes` bytes would
/// have been written in all, as on a disk that fills up; a read where the path ends in `name`, as
/// on a disk that has a bad place. "noreplace" is a rename with flags.
struct Fault {
  std::string call, name;
  std::uint64_t after_bytes = 0;
  int error_number = 0;
};

struct Settings {
  std::string backing, mount_point;
  double rate_bytes_per_s = 0;       ///< of writes; 0: as fast as it goes
  double read_rate_bytes_per_s = 0;  ///< the same of reads
  std::vector<Stall> stalls;
  std::vector<Fault> faults;
  bool is_fat = false;      ///< names as FAT has them, and no modes
  unsigned owner = 0;       ///< of all that is there, with mode 0777; 0: as it is
  unsigned name_bytes = 0;  ///< of a name at most; 0: as it is
};

/// parse_settings reads the command line; a text for the user when it is wrong.
[[nodiscard]] std::optional<Settings> parse_settings(int argc, char** argv, std::string& wrong);

class Plan {
 public:
  explicit Plan(const Settings& settings)
      : settings_{settings}, start_{Clock::now()}, idle_at_{start_} {}

  /// wait_turn sleeps as the rate and the stalls demand before `bytes` are moved.
  void wait_turn(std::uint64_t bytes) { wait(bytes, settings_.rate_bytes_per_s); }
  void wait_read(std::uint64_t bytes) {
    if (settings_.read_rate_bytes_per_s > 0) wait(bytes, settings_.read_rate_bytes_per_s);
  }
  /// fault: 0, or the errno that `call` fails with. `bytes` counts for writes, `path` for reads.
  [[nodiscard]] int fault(std::string_view call, std::uint64_t bytes = 0,
                          std::string_view path = {});

 private:
  void wait(std::uint64_t bytes, double rate_bytes_per_s);

  const Settings settings_;
  const Clock::time_point start_;
  std::mutex mutex_;
  Clock::time_point idle_at_;  // the disk is busy until then
  std::uint64_t written_bytes_ = 0;
};

}  // namespace onehop::slow_disk
