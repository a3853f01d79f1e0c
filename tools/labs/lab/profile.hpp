// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Profile: what a lab link is like, read from a TOML file (configs/lab/NAME.toml). Values only;
// nothing is built here.
//
//   rate = "600Mbit"            no rate, no trace: unshaped
//   [[trace]]                   at = 0.5, rate = "150Mbit"
//   trace_period = 2.0          the trace repeats after it
//   reverse_rate = "same"       or "none", or "100Mbit"
//   queue = "1MB"               limit of the sender's queue
//   burst = "256KB"             of the shaper
//   mtu = 1500
//   loss_permille = 10          reverse_loss_permille = 10 (default: as forward)
//   direct = true               no middle namespace: cheaper, and nothing can be lost
//   gro = true                  the receiving devices join segments (software GRO), as most NICs do
//   [disk]  rate = "300Mbit", read_rate = "40Mbit", stall = ["2:10"],
//           errors = ["write@1M=ENOSPC"], folder = "/dev/shm"
//   [wifi]                      a channel that both directions share, instead of rate, queue and
//                               loss: air/air_profile.hpp
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"
#include "tools/labs/lab/air/air_profile.hpp"

namespace onehop::lab {

struct TracePoint {
  Nanos at{};
  BytesPerSecond rate;
};

struct DiskProfile {
  std::string rate;                 ///< as onehop-slow-disk reads it; empty: not limited
  std::string read_rate;            ///< the same of what is read
  std::vector<std::string> stalls;  ///< AT:FOR in seconds, from the start of the lab
  std::vector<std::string> errors;  ///< CALL[@BYTES]=ERRNO
  std::string folder;               ///< where the files really are
};

struct Profile {
  std::string name;
  std::string description;
  std::optional<BytesPerSecond> rate;  ///< none: unshaped; with a trace: its first rate
  std::vector<TracePoint> trace;  ///< in order of time, the first at 0; empty: the rate is steady
  Nanos trace_period{};
  bool is_reverse_shaped = false;
  bool is_reverse_same = true;  ///< the reverse direction follows the trace, too
  BytesPerSecond reverse_rate;
  Bytes queue;
  Bytes burst;
  int mtu_bytes = 1500;
  bool is_direct = false;
  bool is_gro_on = false;
  std::uint32_t loss_ppm = 0;
  std::uint32_t reverse_loss_ppm = 0;
  std::optional<DiskProfile> disk;
  std::optional<air::AirProfile> wifi;
};

/// Shaper: the queueing discipline that a profile gets.
enum class Shaper : std::uint8_t { none, tbf, htb };

/// shaper_of chooses. A steady rate gets TBF. A changing one gets HTB: each change of a TBF gives a
/// full bucket away (100 changes in 2 s turned 50 into 137 Mbit/s). But an HTB class pays for its
/// last packet at the rate it had then: one frame sent at 8 kbit/s silenced a 200 Mbit/s class
/// for 1.4 s after the rate had come back, so a trace that nearly stops gets TBF as well.
[[nodiscard]] Shaper shaper_of(const Profile& profile) noexcept;

/// load_profile reads NAME from the profile folders, or a file where the text has a slash or ends
/// in .toml.
[[nodiscard]] Result<Profile> load_profile(const std::string& name_or_path);

/// parse_profile reads the text of a profile.
[[nodiscard]] Result<Profile> parse_profile(const std::string& text, const std::string& name);

/// profile_folders: where profiles are looked for, in order (below $ONEHOP_CONFIGS first).
[[nodiscard]] std::vector<std::string> profile_folders();

}  // namespace onehop::lab
