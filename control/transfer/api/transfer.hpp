// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop's API: one Transfer is one send, or one receiver, from its options to its account.
//
//   options ─▶ Transfer ─▶ check() ─▶ open() ─▶ set_code() ─▶ run() ─▶ Error (done: verified)
//                                       └───────── events ──────┴──▶ handler
//
// Threads   run() blocks until the transfer is over. The engine, the law and the files have threads
//           of their own, which run() starts and joins. The handler is called on the thread that is
//           inside open() or run(), one event at a time: return soon, for the session waits
//           meanwhile. interrupt() and answer() may be called from any thread, also from the
//           handler; the other members from one thread at a time.
// Lifetime  A Transfer runs once. Destroy it when run() has returned. A process may hold several.
// Errors    Nothing is thrown but std::bad_alloc by the constructors. Every Error names what was
//           attempted, the cause and the remedy; its status is the exit code of the program.
// Process   Nothing is printed, no signal is handled, no privilege is dropped, no environment
//           variable is read. Three options reach beyond the one Transfer: io "dpdk" starts DPDK's
//           EAL, once per process, wants SIGPIPE ignored, and captures what DPDK prints: while
//           open() and the end of run() start and stop it, descriptors 1 and 2 of the process lead
//           elsewhere (End comes before that); has_mac_noack forks a keeper in open(), so call it
//           before there are threads; a file name is relative to the folder of the process.
//
// Link with `pkg-config --cflags --libs onehop`. docs/embedding.md has a program for each side, and
// says why another version refuses the program: structs by value grow with each added member.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "control/transfer/api/options.hpp"

namespace onehop::transfer {
class Side;
}

namespace onehop::api {

// --- events. A member has the name, unit and meaning of the JSON key (docs/json.md); name_of()
// gives the word of an enumerator there.

/// Role: which way the data goes.
enum class Role : std::uint8_t { sending, receiving };
[[nodiscard]] constexpr std::string_view name_of(Role role) noexcept {
  return role == Role::sending ? "send" : "recv";
}

/// Phase: what a session does. listening: there is none.
enum class Phase : std::uint8_t {
  connecting,
  authenticating,
  waiting_for_accept,
  proving_path,
  transferring,
  verifying,
  done,
  listening
};
[[nodiscard]] constexpr std::string_view name_of(Phase phase) noexcept {
  constexpr std::array<std::string_view, 8> names{
      "connecting",   "authenticating", "waiting_for_accept", "proving_path",
      "transferring", "verifying",      "done",               "listening"};
  return names[static_cast<std::size_t>(phase)];
}

/// Cap: what holds the rate below what the link would take. max_rate_there: what the receiver
/// offers; law: its fixed rate.
enum class Cap : std::uint8_t { none, max_rate, max_rate_there, airtime, loss, law };
[[nodiscard]] constexpr std::string_view name_of(Cap cap) noexcept {
  constexpr std::array<std::string_view, 6> names{"none",    "max_rate", "max_rate_there",
                                                  "airtime", "loss",     "law"};
  return names[static_cast<std::size_t>(cap)];
}

/// Found: the totals of all that is sent. It comes later where the sender starts before it has
/// scanned the whole tree.
struct Found {
  std::uint64_t files = 0, folders = 0, bytes_total = 0;
  std::uint64_t hard_links = 0;      ///< among the files: further names of a file that is sent, too
  bool has_more_hard_links = false;  ///< hard_links is a lower bound
};

struct Started {
  struct Way {
    std::string interface, to;  ///< the argument of --to on the sender; %IF: its own interface
  };
  Role role = Role::sending;
  std::string to;             ///< sending
  Found found;                ///< sending; the totals so far, unless:
  bool is_all_found = false;  ///< these are the final totals, and no Found follows
  std::string listen;         ///< receiving: it can accept
  std::vector<Way> ways;      ///< receiving: how a sender reaches this end, best first
  std::string directory;
  std::string version;
};

/// Code: the receiver made a code, because it had none or too many guesses burnt the last one.
struct Code {
  std::string code;
  std::vector<Started::Way> ways;  ///< best first
};

/// PortOpened: how frames leave. io_reason says why.
struct PortOpened {
  std::string io_requested, io_used, io_mode, io_reason;
};

/// StartRate: the sender starts near the rate that an earlier one reached on this path, within its
/// rate_max.
struct StartRate {
  std::int64_t rate_bps = 0;
  std::string peer, interface;
};

/// InSession: of a service. The events that follow belong to the session of that number, from 1,
/// until the next InSession. 0: to none.
struct InSession {
  std::uint64_t number = 0;
};

/// Beat: of a service; the thread in run() is alive.
struct Beat {};

/// Offer: asks for answer(). Without an answer within 15 minutes the session ends with 11.
struct Offer {
  enum class Kind : std::uint8_t { file, folder, symlink };
  struct File {
    std::string name;            ///< escaped: safe on a terminal
    std::uint64_t bytes = 0;     ///< offered
    std::string conflict;        ///< why on_exist cannot decide; empty: it can
    bool is_regular = false;     ///< what exists there
    std::uint64_t existing = 0;  ///< its bytes
    Kind kind = Kind::file;      ///< of what is offered
  };
  std::uint64_t id = 0;
  std::string peer, directory;
  std::string device;  ///< the paired device; empty: a sender with the code
  /// Totals as far as they are known, and the free space of the folder's file system.
  std::uint64_t files_total = 0, bytes_total = 0, free_bytes = 0;
  std::vector<File> files;
  std::size_t conflicts = 0;
  bool is_part = false;  ///< of a large tree; its later parts ask about conflicts only
};
/// OfferGone: the offer needs no answer any more, or has one.
struct OfferGone {
  std::uint64_t id = 0;
};
/// Answer to an Offer. accept takes an offer without conflicts and refuses any other; the next
/// four settle all conflicts of the offer. unasked: nobody can be asked; a service then refuses.
enum class Answer { refuse, accept, resume, skip, rename, overwrite, unasked };

/// Buffer: one buffer on the path.
struct Buffer {
  std::string scope = "none";  ///< "none": no sensor reads it
  std::int64_t occupancy_bytes = 0, target_bytes = 0;
  std::optional<std::int64_t> under_bytes, over_bytes;  ///< the safe range
  std::int64_t limit_bytes = 0;                         ///< the law's maximum; 0: none
  std::int64_t capacity_bytes = 0;                      ///< 0: unknown
  std::int64_t drain_bps = 0;
  std::optional<std::int64_t> allowed_bps;  ///< the rate that this buffer alone would allow
  bool takes_part = false;
  std::uint64_t refused_total = 0;
};
/// In the order of Progress::buffers, which is that of the path.
inline constexpr std::array<std::string_view, 3> buffer_names{"tx_queue", "rx_ring", "app_buffer"};

/// Progress: ten times a second while data flows, and at each new phase.
struct Progress {
  std::int64_t pid = 0;
  std::uint64_t session = 0;  ///< of a service: which one it is
  Role role = Role::sending;
  Phase phase = Phase::connecting;
  std::string version, peer, interface, io, io_mode, law, repair, link_source;
  std::int64_t t_ns = 0;        ///< CLOCK_MONOTONIC
  std::int64_t elapsed_ns = 0;  ///< since the first data frame; 0: none yet
  std::uint64_t bytes_done = 0, bytes_expected = 0;
  std::uint64_t bytes_to_compare = 0;  ///< seem to be at the receiver, and are not expected
  /// Files whose outcome is known, and all that are known of; folders do not count.
  std::uint64_t files_done = 0, files_total = 0;
  bool is_all_known = false;             ///< the tree was read to its end: the totals are final
  std::int64_t goodput_bps = 0;          ///< over about the last second
  std::optional<double> eta_seconds;     ///< absent before is_all_known, or while nothing moves
  std::optional<std::int64_t> rate_bps;  ///< granted; sending
  std::int64_t backlog_max_bytes = 0;
  std::string bottleneck;  ///< now; sending
  Cap cap = Cap::none;     ///< which, where that is one
  std::optional<std::int64_t> link_down_ns;  ///< for so long; none: the link is up
  /// Sending: permille of the last 2 s for which each bottleneck was the limit.
  std::map<std::string, std::int64_t> bottleneck_permille;
  bool is_degraded = false;
  std::int64_t srtt_ns = 0;
  std::uint64_t packets_sent_total = 0, packets_lost_total = 0;
  std::uint64_t retransmitted_bytes_total = 0, auth_failures_total = 0;
  double cpu_seconds = 0;  ///< of the process
  std::optional<std::int64_t> link_rate_bps;
  std::string sensor = "none";
  std::vector<std::pair<std::string, std::int64_t>> details;  ///< the law's: key with unit, value
  std::array<Buffer, 3> buffers;
};

/// Interval: once a second while data flows.
struct Interval {
  std::int64_t t_ns = 0;  ///< since the first data frame
  Phase phase = Phase::connecting;
  std::uint64_t bytes_total = 0;
  std::uint64_t files_done = 0, files_total = 0;  ///< as in Progress, and so the next two
  bool is_all_known = false;
  std::optional<double> eta_seconds;
  std::int64_t goodput_bps = 0;  ///< since the interval before
  std::int64_t rate_bps = 0;
  std::string bottleneck;
  std::int64_t tx_queue_bytes = 0, rx_ring_bytes = 0, app_buffer_bytes = 0, srtt_ns = 0;
};

/// Outcome: what became of an offered file at the receiver.
enum class Outcome : std::uint8_t {
  received,
  there,         ///< it was, with the same content
  kept,          ///< something else has the name and keeps it
  not_compared,  ///< so has a file of the same size, which could not be read
  there_unread,  ///< it was, with the same size and time; nobody read it
  name_refused,  ///< the receiver's file system does not take the name
  name_taken,    ///< an earlier entry has this name at the receiver, which takes the two for one
};
[[nodiscard]] constexpr std::string_view name_of(Outcome outcome) noexcept {
  constexpr std::array<std::string_view, 7> names{
      "received", "there", "kept", "not_compared", "there_unread", "name_refused", "name_taken"};
  return names[static_cast<std::size_t>(outcome)];
}

/// FileDone: one offered file is received, or kept as it was. All names are escaped. Without
/// has_all_files small files that shared a block or were not read have a FileDone only if another
/// version was kept or the receiver has no name for the file.
struct FileDone {
  std::string name;
  std::uint64_t bytes = 0;
  std::string digest_kind, digest;  ///< hexadecimal; empty where not verified
  bool is_verified = false;
  Outcome outcome = Outcome::received;
  std::string final_name;  ///< its name at the receiver
  std::string path;        ///< the same, with the receiver's folder
};

/// LeftOut: what a sender found below its folders and does not send; emitted after the scan, and
/// once more for what vanished since. At both ends: entries whose names the receiver's file system
/// cannot hold, as they are found; those of the first part of a tree before data flows. If an item
/// is a failure, a run that otherwise succeeds ends with Status::partly_done.
struct LeftOut {
  struct Item {
    std::string path;  ///< escaped: safe on a terminal
    std::string kind;  ///< unreadable, special, symlink_skipped, symlink_refused, vanished,
                       ///< changed; name_refused, name_taken
    std::string cause;
    bool is_failure = false;  ///< false for symlink_skipped
  };
  std::vector<Item> items;
};

/// Paired: this device and that one know each other from now on.
struct Paired {
  std::string name;  ///< our name for it
  std::string fingerprint;
};

/// Notice: a sentence for people.
struct Notice {
  std::string text;
  bool is_warning = false;
};

/// Queue: what a buffer held while data flowed.
struct Queue {
  std::string scope = "none";
  std::int64_t capacity_bytes = 0;
  std::int64_t occupancy_bytes_p50 = 0, occupancy_bytes_p99 = 0, occupancy_bytes_max = 0;
  std::uint64_t refused_total = 0;
  std::int64_t underflow_ns_total = 0;
};

/// Fragments: whether data frames are datagrams in IP fragments. given_up: they no longer are.
enum class Fragments : std::uint8_t { off, on, given_up };
[[nodiscard]] constexpr std::string_view name_of(Fragments fragments) noexcept {
  constexpr std::array<std::string_view, 3> names{"off", "on", "given_up"};
  return names[static_cast<std::size_t>(fragments)];
}

/// End: the account of one session. If the session failed, its Error event comes first. CPU, RSS
/// and switches are those of the whole process.
struct End {
  Role role = Role::sending;
  Status exit_code = Status::done;
  /// skipped: bytes of bytes_total that the receiver had already; hole: bytes in holes of the
  /// source.
  std::uint64_t bytes_total = 0, bytes_skipped_total = 0, bytes_hole_total = 0;
  double seconds = 0, cpu_seconds = 0;
  std::optional<double> softirq_seconds, system_busy_seconds;
  std::map<std::string, double> thread_cpu_seconds;
  std::uint64_t frames_total = 0, retransmitted_bytes_total = 0, tail_probes_total = 0;
  std::uint64_t duplicate_bytes_total = 0;
  double loss_ratio = 0;
  std::uint64_t ce_packets_total = 0, link_acked_total = 0, link_failed_total = 0;
  std::int64_t srtt_ns = 0;
  std::string io_requested, io_used, io_mode, io_reason, interface;
  std::optional<std::vector<std::pair<std::string, std::uint64_t>>> interface_drops;
  std::string link_source = "none";
  std::size_t frame_bytes = 0;
  std::string law, repair = "eager";
  Fragments fragments = Fragments::off;
  Queue tx_queue, rx_ring, app_buffer;
  std::int64_t tx_queue_mean_bytes = 0, tx_queue_target_bytes = 0;
  std::uint64_t files_total = 0, files_kept_total = 0;
  std::uint64_t names_refused_total = 0;       ///< entries without a name at the receiver
  std::uint64_t files_there_unread_total = 0;  ///< of files_total: compared by size and time alone
  std::string receipt_root;                    ///< empty: no receipt, or not of a whole session
  std::string peer, directory, path;           ///< path: of the file that was done last
  std::string device;                          ///< the paired device; empty: by a code
  std::string digest, aead, key_exchange, file_io;
  std::uint64_t auth_failures_total = 0, replays_total = 0, malformed_total = 0;
  std::uint64_t key_updates_total = 0, engine_turns_total = 0, engine_wakeups_total = 0;
  std::uint64_t engine_syscalls_total = 0, voluntary_switches_total = 0, rss_bytes_max = 0;
  std::int64_t port_memory_bytes = 0;
  std::int64_t block_pool_bytes = 0;  ///< at most: blocks that are not used take no memory

  [[nodiscard]] std::int64_t goodput_bps() const noexcept {
    const double bits = 8 * static_cast<double>(bytes_total);
    return seconds > 0 ? static_cast<std::int64_t>(bits / seconds) : 0;
  }
  [[nodiscard]] double cpu_ns_per_byte() const noexcept {
    const double busy_ns = (cpu_seconds + softirq_seconds.value_or(0)) * 1e9;
    const std::uint64_t bytes = bytes_total - bytes_hole_total;  // a hole would flatter
    return bytes > 0 ? busy_ns / static_cast<double>(bytes) : 0;
  }
};

using Event =
    std::variant<Started, InSession, Beat, Found, LeftOut, Code, PortOpened, StartRate, Offer,
                 OfferGone, Progress, Interval, FileDone, Paired, Notice, Error, End>;
using Handler = std::function<void(const Event&)>;

class Transfer {
 public:
  Transfer(SendOptions options, Handler handler);
  Transfer(ReceiveOptions options, Handler handler);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// check validates the options alone. It does not block.
  [[nodiscard]] Error check() const;

  /// open takes what needs privileges and is available before the peer is known: a sender's port, a
  /// receiver's named afxdp or dpdk. It may block for a name's look-up, and for seconds for a
  /// driver.
  [[nodiscard]] Error open();

  /// set_code takes the code that both ends share: three words, or 20 to 256 printable bytes, kept
  /// in pages that are left out of core dumps. A receiver without one makes a code and reports it
  /// by a Code event.
  [[nodiscard]] Error set_code(std::string_view code);

  /// set_devices reads this device's key and the paired devices with the process's current rights,
  /// after open(). It makes the key if there is none and devices are to be paired. A receiver reads
  /// the paired devices again before each session. Errors: 8, others can read or write the files;
  /// 2, no device has that name.
  [[nodiscard]] Error set_devices(const Devices& devices);

  /// run does the transfer; a receiver takes sessions until it is interrupted, or one with is_once.
  /// It calls open() if the caller did not. The error that it returns was also an event. When it
  /// returns, no port is open and no thread runs.
  [[nodiscard]] Error run();

  /// interrupt ends run() in order with Status::interrupted, within seconds. Before run(), it makes
  /// run() return at once. Not for signal handlers.
  void interrupt();

  /// answer answers the Offer with that id, and is ignored if that offer is gone.
  void answer(std::uint64_t offer, Answer answer);

 private:
  std::unique_ptr<transfer::Side> side_;
};

}  // namespace onehop::api
