// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Medium: one radio channel for the radios of mac80211_hwsim. Its time is that of the lab's model
// of a channel (tools/labs/lab/air/channel.hpp), its frames are those of a real mac80211.
//
//   frames of each radio ─▶ queue of that radio ─▶ Channel: who sends, how long, which are lost
//                           (queue_frames_max)              └─▶ at its end: deliver, report
//
// The rate follows a trace of MCS, in which the medium may also stand still. Frames are given to
// the radio that has the receiver's address, and are acknowledged where it takes them. Real time is
// read by run() alone; lateness of this process does not add up, for the channel's time is virtual.
#pragma once

#include <csignal>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/histogram.hpp"
#include "tests/vm/hwsim_socket.hpp"
#include "tools/labs/lab/air/channel.hpp"

namespace onehop::vm {

struct TraceStep {
  Nanos at{};
  std::optional<int> mcs;  ///< nothing: the medium stands still
};

struct MediumOptions {
  lab::air::ChannelOptions channel;
  std::vector<TraceStep> trace;  ///< the first at 0
  Nanos period{1s};              ///< the trace repeats after it
  int loss_permille = 0;         ///< of unicast data frames, by their number, both ways; no retries
  Nanos span = 24h;              ///< it ends by itself after so long
};

/// Carried: what went over the air from one radio.
struct Carried {
  std::uint64_t data_frames_total = 0, data_bytes_total = 0;
  std::uint64_t lost_total = 0;     ///< data frames that were not acknowledged
  std::uint64_t dropped_total = 0;  ///< frames that its queue had no room for
  std::uint64_t bulk_frames_total = 0;
  std::size_t largest_bytes = 0;     ///< of a data frame, as Ethernet would count it
  Instant bulk_begin{}, bulk_end{};  ///< of the first and the last large data frame
  /// Of each large data frame, from its arrival to its status.
  std::vector<std::uint32_t> bulk_delays_us;

  void begin_bulk(Instant at) {
    bulk_frames_total = 0;
    bulk_begin = at;
    bulk_delays_us.clear();
  }
};

class Medium {
 public:
  Medium(HwsimSocket&& socket, const MediumOptions& options);
  /// run is the medium until its span is over or `stop` is set. Syscalls: ppoll, and those of
  /// HwsimSocket.
  void run(const volatile std::sig_atomic_t& stop);
  /// report is what has been carried, as one line of JSON.
  [[nodiscard]] std::string report() const;

 private:
  struct Radio {
    RadioAddress address{};
    std::deque<AirFrame> queue;
    Carried carried;
  };
  struct Unreported {
    AirFrame frame;
    bool is_acked = false;
    Instant since{};
  };
  void receive();
  void report_status(const AirFrame& frame, bool is_acked);
  void report_again();
  void play(Instant now);
  void finish_exchange();
  void finish_frame(Radio& radio, const AirFrame& frame, bool is_given_up);
  [[nodiscard]] bool hand_over(const AirFrame& frame);
  [[nodiscard]] const TraceStep& step_at(Instant now) const noexcept;
  [[nodiscard]] Instant next_wakeup(Instant now) const noexcept;
  [[nodiscard]] double frames_carried_at_most(const Carried& carried) const;

  HwsimSocket socket_;
  MediumOptions options_;
  Instant begun_at_, ended_at_{};
  lab::air::Channel channel_;
  std::optional<lab::air::Exchange> exchange_;
  std::vector<Radio> radios_;                     // by station of the channel
  std::map<RadioAddress, std::size_t> owner_of_;  // of the address of an interface
  std::vector<AirFrame> received_;
  std::vector<Unreported> unreported_;  // hwsim did not have them yet
  std::uint64_t unicast_data_total_ = 0, reported_again_total_ = 0;
  LogLinearHistogram late_us_;  // how much after its end an exchange was finished
};

}  // namespace onehop::vm
