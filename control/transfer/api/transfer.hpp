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

namespace onehop::transfer {
class Side;
}

namespace onehop::api {

/// Status has the numbers of the program's exit codes.
enum class Status : int {
  done = 0,  ///< every file is verified, on disk, and has its final name
  internal_error = 1,
  usage = 2,  ///< an option is wrong
  peer_unreachable = 3,
  authentication_failed = 4,
  refused_by_peer = 5,
  verification_failed = 6,
  interrupted = 7,       ///< what arrived is kept: the same transfer goes on where it ended
  local_file_error = 8,  ///< a file or the disk of this machine
  io_unavailable = 9,    ///< the named port cannot be had here
  privilege_missing = 10,
  timed_out = 11,
  partly_done = 12,
};

/// Error: "attempt: cause. hint". True where something failed.
struct Error {
  Status status = Status::done;
  std::string attempt, cause, hint;
  explicit operator bool() const noexcept { return status != Status::done; }
  /// message joins the parts for one line of text.
  [[nodiscard]] std::string message() const;
};

// --- options. A word is one that the program's option of that name takes (docs/transfer.md).

struct Options {
  std::string io = "auto";        ///< port: auto, udp, afxdp, dpdk; a named one never falls back
  std::string xdp_mode = "auto";  ///< auto, zero-copy, copy, skb; with io afxdp
  std::string interface;          ///< empty: as the route to the peer says
  std::string eal;                ///< arguments of DPDK's EAL; with io dpdk
  std::size_t frame_bytes = 0;    ///< UDP payload of a full frame; 0: as the MTU allows
  std::string law = "auto";       ///< auto, safe-range, wdtcp, wdtcp:paper, cupid, fixed:RATE
  bool has_qcut = false;
  std::string law_params;       ///< JSON as in configs/law; empty: the defaults
  std::string law_params_name;  ///< of law_params, for errors
  std::string repair;           ///< eager, lazy; empty: eager, or what the sender asks for
  std::string target = "under";
  std::string bounds = "measured";
  std::string priority = "normal";  ///< normal, background
  std::string rate_max;             ///< "600Mbit"; empty: no bound
  std::string poll = "adaptive";    ///< adaptive, busy
  std::optional<int> core;          ///< CPU of the engine's thread
  std::string digest = "xxh3";      ///< xxh3, sha256; the stronger of both ends' counts
  std::string file_io = "auto";     ///< auto, io_uring, threads
  std::uint64_t key_interval_packets = 1U << 22;
  std::string trace_file;  ///< CSV, one row per control tick; empty: none
  /// JSON: what one session delivered, file by file, and a root over it that is the same at both
  /// ends (docs/receipt.md). It makes digest sha256. A receiver's next session replaces it. Empty:
  /// none.
  std::string receipt_file;
  bool has_all_files = false;  ///< a FileDone also of each small file
  std::string command_line;    ///< who wrote trace and receipt, for these
  std::string link_model;      ///< socket of a model of the link; sending
};

struct SendOptions {
  Options common;
  std::vector<std::string> paths;  ///< regular files and folders; `DIR/`: what the folder holds
  /// What is left out below a folder: patterns of gitignore(5), the last that matches decides.
  std::vector<std::string> excludes;
  std::string symlinks = "skip";  ///< below a folder: skip, error, copy, follow-inside
  bool is_one_file_system = false;
  /// Instead of paths: a descriptor whose bytes arrive as the file stream_name. It stays the
  /// caller's, is read from its place on, and cannot be sent again after an interrupt. -1: none.
  int stream_fd = -1;
  std::string stream_name;
  std::string to;           ///< HOST[:PORT]
  double wait_seconds = 5;  ///< for a receiver that is not there yet, or busy
  bool has_fragments = false;
  bool has_mac_noack = false;
  /// Where the rate that was reached on a path is kept as the next one's start; empty: nowhere.
  std::string rate_memory_file;
};

struct ReceiveOptions {
  Options common;
  std::string directory = ".";
  std::string listen;            ///< ADDR[:PORT]; empty: all addresses, port 7411
  std::string on_exist = "ask";  ///< ask (by an Offer), resume, skip, rename, overwrite
  /// batch, file: synced before a file has its name, small ones together or each; none: when the
  /// kernel likes, so after a power cut a file that has its name may have any content.
  std::string durability = "batch";
  /// A file that is there with the offered size and time is taken for the offered one: neither end
  /// reads it. Else its content is compared.
  bool is_quick = false;
  bool is_hidden_allowed = false;
  bool is_code_long = false;  ///< the code that is made has 130 bits, which guesses do not burn
  /// take, refuse: symbolic links. Those that lead out of the folder that was sent are refused in
  /// any case, and without is_hidden_allowed those with a target that begins with a dot somewhere.
  std::string symlinks = "take";
  /// Instead of a folder: a descriptor that the one file of a session, or its stream, is written to
  /// in order. It stays the caller's. A pipe whose reader is gone raises SIGPIPE, unless that is
  /// ignored. -1: none.
  int stream_fd = -1;
  /// Take what is offered though the disk says that it has too little room or inodes for it.
  bool is_space_unchecked = false;
  bool is_once = false;      ///< run() returns after the first accepted session
  bool is_approved = false;  ///< each offer is an Offer event, not only one with conflicts
  /// Called in run() for each offer, when the data port is open and before a file is touched:
  /// the place to give up privileges. An Error refuses the offer.
  std::function<Error()> before_files;
};

// --- events. A member has the name, unit and meaning of the JSON key (docs/json.md).

/// Found: what is sent, all of it. Where a tree is still being looked at when a sender starts, it
/// comes later.
struct Found {
  std::uint64_t files = 0, folders = 0, bytes_total = 0;
  std::uint64_t hard_links = 0;      ///< of the files: further names of one that is sent as well
  bool has_more_hard_links = false;  ///< hard_links is a lower bound
};

struct Started {
  struct Way {
    std::string interface, to;  ///< what follows --to on the sender; %IF: its own interface
  };
  std::string role;           ///< "send", "recv"
  std::string to;             ///< sending
  Found found;                ///< sending; so far, unless:
  bool is_all_found = false;  ///< there is no more, and no Found follows
  std::string listen;         ///< receiving: it can accept
  std::vector<Way> ways;      ///< receiving: how a sender gets here, best first
  std::string directory;
  std::string version;
};

/// Code: the receiver made one, as none was given, or the one before was guessed at too often.
struct Code {
  std::string code;
  std::vector<Started::Way> ways;  ///< best first
};

/// PortOpened: how frames leave. io_reason says why.
struct PortOpened {
  std::string io_requested, io_used, io_mode, io_reason;
};

/// StartRate: a sender starts near what an earlier one reached on this path, within its rate_max.
struct StartRate {
  std::int64_t rate_bps = 0;
  std::string peer, interface;
};

/// Offer: the question that answer() answers, within 15 minutes: then the session ends with 11.
struct Offer {
  struct File {
    std::string name;            ///< escaped: safe on a terminal
    std::uint64_t bytes = 0;     ///< offered
    std::string conflict;        ///< why on_exist cannot deal with it; empty: it can
    bool is_regular = false;     ///< what is there
    std::uint64_t existing = 0;  ///< its bytes
  };
  std::uint64_t id = 0;
  std::string peer, directory;
  std::vector<File> files;
  std::size_t conflicts = 0;
  bool is_part = false;  ///< of a large tree; of what follows only conflicts are asked about
};
/// OfferGone: nobody waits for the answer any more; or it has come.
struct OfferGone {
  std::uint64_t id = 0;
};
/// Answer to an Offer. accept takes it where there are no conflicts and else refuses; the last four
/// settle all conflicts that were shown.
enum class Answer { refuse, accept, resume, skip, rename, overwrite };

/// Buffer: one buffer on the path.
struct Buffer {
  std::string scope = "none";  ///< "none": nobody reads it
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
  std::string role, version, phase, peer, interface, io, io_mode, law, repair, link_source;
  std::int64_t t_ns = 0;        ///< CLOCK_MONOTONIC
  std::int64_t elapsed_ns = 0;  ///< since the first data frame; 0: none yet
  std::uint64_t bytes_done = 0, bytes_expected = 0;
  /// Files of which it is known what became of them, and all that are known of; folders are none.
  std::uint64_t files_done = 0, files_total = 0;
  bool is_all_known = false;     ///< the tree was read to its end: there are no more bytes or files
  std::int64_t goodput_bps = 0;  ///< over about the last second
  std::optional<double> eta_seconds;     ///< none before is_all_known, or where nothing moves
  std::optional<std::int64_t> rate_bps;  ///< granted; sending
  std::int64_t backlog_max_bytes = 0;
  std::string bottleneck;  ///< now; sending
  std::string cap;  ///< which, where that is one: max_rate, max_rate_there, airtime, loss, law
  std::optional<std::int64_t> link_down_ns;  ///< for so long; none: the link is up
  /// Of the last 2 s: the part that each bottleneck held, in permille; sending.
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
  std::string phase;
  std::uint64_t bytes_total = 0;
  std::uint64_t files_done = 0, files_total = 0;  ///< as in Progress, and so the next two
  bool is_all_known = false;
  std::optional<double> eta_seconds;
  std::int64_t goodput_bps = 0;  ///< since the interval before
  std::int64_t rate_bps = 0;
  std::string bottleneck;
  std::int64_t tx_queue_bytes = 0, rx_ring_bytes = 0, app_buffer_bytes = 0, srtt_ns = 0;
};

/// FileDone: one offered file is received, or kept as it was. All names are escaped. Without
/// has_all_files there is none of small files that shared a block or were not read, but where
/// something else was kept or the receiver has no name for it.
struct FileDone {
  std::string name;
  std::uint64_t bytes = 0;
  std::string digest_kind, digest;  ///< hexadecimal; empty where not verified
  bool is_verified = false;
  std::string outcome;     ///< "received", "there", "kept", "not_compared", "there_unread",
                           ///< "name_refused", "name_taken"
  std::string final_name;  ///< the one that it got at the receiver
  std::string path;        ///< the same, with the receiver's folder
};

/// LeftOut: what a sender found below its folders and does not send: after the look at the folders,
/// and once more for what vanished since. At both ends: what the receiver's file system has no name
/// for, as it is found, for the first part of a tree before data flows. Where one of them is a
/// failure, a run that else succeeds ends with Status::partly_done.
struct LeftOut {
  struct Item {
    std::string path;  ///< escaped: safe on a terminal
    std::string kind;  ///< unreadable, special, symlink_skipped, symlink_refused, vanished,
                       ///< changed; name_refused, name_taken
    std::string cause;
    bool is_failure = false;  ///< not of symlink_skipped
  };
  std::vector<Item> items;
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

/// End: the account of one session. An Error event comes before that of one that failed. CPU, RSS
/// and switches are those of the whole process.
struct End {
  std::string role;
  Status exit_code = Status::done;
  /// skipped: of bytes_total, what was there already; hole: what lies in holes of the source.
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
  std::string law, repair = "eager", fragments = "off";
  Queue tx_queue, rx_ring, app_buffer;
  std::int64_t tx_queue_mean_bytes = 0, tx_queue_target_bytes = 0;
  std::uint64_t files_total = 0, files_kept_total = 0;
  std::uint64_t names_refused_total = 0;       ///< entries without a name at the receiver
  std::uint64_t files_there_unread_total = 0;  ///< of files_total: compared by size and time alone
  std::string receipt_root;                    ///< empty: no receipt, or not of a whole session
  std::string peer, directory, path;           ///< path: of the file that was done last
  std::string digest, aead, key_exchange, file_io;
  std::uint64_t auth_failures_total = 0, replays_total = 0, malformed_total = 0;
  std::uint64_t key_updates_total = 0, engine_turns_total = 0, engine_wakeups_total = 0;
  std::uint64_t engine_syscalls_total = 0, voluntary_switches_total = 0, rss_bytes_max = 0;
  std::int64_t port_memory_bytes = 0, block_pool_bytes = 0;  ///< both are there from the start

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

using Event = std::variant<Started, Found, LeftOut, Code, PortOpened, StartRate, Offer, OfferGone,
                           Progress, Interval, FileDone, Notice, Error, End>;
using Handler = std::function<void(const Event&)>;

class Transfer {
 public:
  Transfer(SendOptions options, Handler handler);
  Transfer(ReceiveOptions options, Handler handler);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// check looks at the options alone. Does not block.
  [[nodiscard]] Error check() const;

  /// open takes what needs privileges and can be had before the peer is known: a sender's port, a
  /// receiver's named afxdp or dpdk. It may block for a name's look-up, and seconds for a driver.
  [[nodiscard]] Error open();

  /// set_code takes the code that both ends share: three words, or 20 to 256 printable bytes, kept
  /// in pages that no core dump has. A receiver without makes one and tells it by a Code event.
  [[nodiscard]] Error set_code(std::string_view code);

  /// run does the transfer; a receiver takes sessions until it is interrupted, or one with
  /// is_once. It calls open() where that was not done. The error that it returns was an event.
  /// When it returns no port is open and no thread runs.
  [[nodiscard]] Error run();

  /// interrupt ends run() in order with Status::interrupted, within seconds; before run(), run()
  /// returns at once. Not from a signal handler.
  void interrupt();

  /// answer answers the Offer of that id. An answer to one that is gone is ignored.
  void answer(std::uint64_t offer, Answer answer);

 private:
  std::unique_ptr<transfer::Side> side_;
};

}  // namespace onehop::api
