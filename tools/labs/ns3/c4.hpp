// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// C4, the congestion control of draft-huitema-ccwg-c4-spec, as its text of July 2026 (-04) has it:
// a rival to measure beside, not a law that users choose. Acknowledgements in, pacing rate and
// window out; nothing here knows of ns-3. C++17 and C++20.
//
//   pacing rate = alpha nominal_rate
//   window      = pacing rate (nominal_max_rtt + margin)
//
//   initial ──▶ recovery ──▶ cruising ──▶ probing ──▶ recovery ──▶ pushing ──▶ recovery
//   alpha 2      15/16         1 (2 eras)   17/16        │ if the rate grew   5/4
//      ▲                       └─ congestion ─▶ recovery └─▶ cruising, if not
//      └─── pushing lasts, or the path turns out to jitter (once)
//
// An era lasts from a packet's sending to its acknowledgement. Left out: careful resume, which no
// flow here asks for, and the quantum: ns-3 paces each segment by itself.
//
// Where the draft's formulas contradict its words, the words are followed: the nominal rate grows
// to what is measured (its comparison is the other way round); the margin is a time, and is added
// to the round trip (there it is added to the rate); beta divides the whole excess by the
// threshold. What it leaves open is as in picoquic's C4: a rate has grown in the initial state if
// it did by a fourth of what alpha promises.
#pragma once

#include <cstdint>

namespace onehop::sim {

class C4 {
 public:
  enum class State { initial, recovery, cruising, probing, pushing };

  /// Ack: what an acknowledgement tells. `newest` is the packet that it acknowledges and that was
  /// sent last.
  struct Ack {
    double rtt_s = 0;               ///< of `newest`; 0: not measured
    double since_sent_s = 0;        ///< since `newest` was sent
    double send_delay_s = 0;        ///< from the oldest packet delivered since, to `newest`
    std::uint64_t acked_bytes = 0;  ///< by this acknowledgement
    std::uint64_t delivered_bytes_total = 0;
    std::uint64_t delivered_bytes_at_send = 0;  ///< the same total as `newest` was sent
    std::uint32_t lost_packets = 0;             ///< found by gaps; never by a timer alone
    std::uint32_t ce_marks = 0, ect1_marks = 0;
    bool is_app_limited = false;
  };

  /// packet_bytes: of a full packet. interface_rate: bytes per second; what is paced at first.
  C4(std::uint32_t packet_bytes, double interface_rate);

  void on_ack(const Ack& ack);

  [[nodiscard]] double pacing_rate() const;  ///< bytes per second
  [[nodiscard]] double window_bytes() const;
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] double alpha() const;
  [[nodiscard]] double nominal_rate() const { return nominal_rate_; }
  [[nodiscard]] double nominal_max_rtt_s() const { return nominal_max_rtt_s_; }
  [[nodiscard]] double sensitivity() const;
  [[nodiscard]] double delay_threshold_s() const;
  [[nodiscard]] double loss_threshold() const;
  [[nodiscard]] double ecn_threshold() const;

 private:
  enum class Signal { delay, loss, ecn };
  void measure_rtt(double rtt_s);
  void measure_rate(const Ack& ack);
  void find_congestion(const Ack& ack);
  void congest(Signal signal, double beta);
  void end_era(const Ack& ack);
  void update_max_rtt();
  void leave_initial(bool is_congested);
  void end_recovery();
  void enter(State state);
  void begin_era();

  std::uint32_t packet_bytes_;
  double interface_rate_;
  State state_ = State::initial;
  double nominal_rate_ = 0;
  double nominal_max_rtt_s_ = 0, running_min_rtt_s_ = 0;
  double initial_window_bytes_;
  std::uint64_t packets_acked_ = 0, delivered_bytes_total_ = 0;

  // of this era
  std::uint64_t era_from_bytes_ = 0;  // delivered in all as it began: what is sent later ends it
  double alpha_previous_ = 2;         // of the era before
  double era_max_rtt_s_ = 0, era_min_rtt_s_ = 0, era_rate_ = 0;

  // of this state
  std::uint32_t eras_ = 0, eras_without_increase_ = 0;
  bool is_congested_ = false;  // a signal led into this recovery, or came in it
  bool was_probing_ = false;   // before this recovery
  double rate_before_probing_ = 0;

  std::uint32_t congestions_in_a_row_ = 0;
  double recent_rate_max_ = 0;  // measured since the recovery before this one ended
  double loss_rate_ = 0, ecn_alpha_ = 0;
  bool has_seen_ce_ = false, has_begun_again_for_jitter_ = false;
};

}  // namespace onehop::sim
