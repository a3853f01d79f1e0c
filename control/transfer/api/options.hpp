// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Options of a Transfer, and the Error it returns. transfer.hpp includes this file, which is
// installed in a folder below that one's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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
  io_unavailable = 9,    ///< this machine cannot provide the named port
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

// --- options. Strings take the values of the program's options (docs/transfer.md).

struct Options {
  std::string io = "auto";        ///< port: auto, udp, afxdp, dpdk; a named one never falls back
  std::string xdp_mode = "auto";  ///< auto, zero-copy, copy, skb; with io afxdp
  std::string interface;          ///< empty: as the route to the peer says
  std::string eal;                ///< arguments of DPDK's EAL; with io dpdk
  std::size_t frame_bytes = 0;    ///< UDP payload of a full frame; 0: as the MTU allows
  std::string law = "auto";       ///< auto, safe-range, wdtcp, wdtcp:paper, cupid, fixed:RATE
  bool has_qcut = false;
  std::string law_params;       ///< JSON as in configs/law; empty: the defaults
  std::string law_params_name;  ///< the name of law_params, for errors
  std::string repair;           ///< eager, lazy; empty: eager, or what the sender asks for
  std::string target = "under";
  std::string bounds = "measured";
  std::string priority = "normal";  ///< normal, background
  std::string rate_max;             ///< "600Mbit"; empty: no bound
  std::string poll = "adaptive";    ///< adaptive, busy
  std::optional<int> core;          ///< CPU of the engine's thread
  std::string digest = "xxh3";      ///< xxh3, sha256; the stronger one of both ends applies
  std::string file_io = "auto";     ///< auto, io_uring, threads
  std::string direct_io = "auto";   ///< auto, always, never: past the page cache
  std::uint64_t key_interval_packets = 1U << 22;
  std::string trace_file;  ///< CSV, one row per control tick; empty: none
  /// JSON: what one session delivered, file by file, and a root over it that is the same at both
  /// ends (docs/receipt.md). It sets digest to sha256. A receiver's next session replaces the file.
  /// Empty: none.
  std::string receipt_file;
  bool has_all_files = false;  ///< a FileDone for each small file, too
  std::string command_line;    ///< recorded in trace and receipt
  std::string link_model;      ///< sending: socket of a model of the link
};

struct SendOptions {
  Options common;
  std::vector<std::string> paths;  ///< regular files and folders; `DIR/`: what the folder holds
  /// What is left out below a folder: patterns of gitignore(5); the last one that matches decides.
  std::vector<std::string> excludes;
  std::string symlinks = "skip";  ///< below a folder: skip, error, copy, follow-inside
  bool is_one_file_system = false;
  /// Instead of paths: a descriptor whose bytes arrive as the file stream_name. The caller keeps
  /// it. It is read from its current position, and cannot be sent again after an interrupt. -1:
  /// none.
  int stream_fd = -1;
  std::string stream_name;
  std::string to;           ///< HOST[:PORT]
  double wait_seconds = 5;  ///< how long to wait for a receiver that is not there yet, or is busy
  /// How long to wait for a receiver that disappears after some data arrived there; the transfer
  /// goes on when it is back. Measured by CLOCK_BOOTTIME, which counts a suspend.
  double patience_seconds = 0;
  /// Called repeatedly during that wait: returns the receiver's current HOST[:PORT], or empty if it
  /// is not known. It may block for a second. Without it, `to` is tried.
  std::function<std::string()> find_again;
  bool is_pairing = false;  ///< send no files: only pair the two devices
  bool has_fragments = false;
  bool has_mac_noack = false;
  /// File that keeps the rate reached on each path, as the start of the next transfer; empty: none.
  std::string rate_memory_file;
};

struct ReceiveOptions {
  Options common;
  std::string directory = ".";
  std::string listen;            ///< ADDR[:PORT]; empty: all addresses, port 7411
  std::string on_exist = "ask";  ///< ask (by an Offer), resume, skip, rename, overwrite
  /// batch, file: a file is synced before it gets its name, small ones together or each alone.
  /// none: the kernel decides when, so after a power cut a file with its final name may have any
  /// content.
  std::string durability = "batch";
  /// A file that exists with the offered size and time counts as the offered one, and neither end
  /// reads it. Otherwise its content is compared.
  bool is_quick = false;
  bool is_hidden_allowed = false;
  bool is_code_long = false;  ///< the generated code has 130 bits; guesses do not burn it
  /// take, refuse: symbolic links. Links out of the sent folder are always refused. Without
  /// is_hidden_allowed, so are links whose target has a component that begins with a dot.
  std::string symlinks = "take";
  /// Instead of a folder: the one file or stream of a session is written to this descriptor in
  /// order. The caller keeps it. A pipe whose reader has closed raises SIGPIPE, unless that is
  /// ignored. -1: none.
  int stream_fd = -1;
  /// Accept an offer even if the disk reports too little room or too few inodes for it.
  bool is_space_unchecked = false;
  /// Accept paired devices only, and never ask the user: what neither their rules nor on_exist
  /// decide is refused. InSession says which session an event belongs to.
  bool is_service = false;
  /// Of a service: what a device offers whose rule is `ask` is an Offer. Names that exist are none.
  bool is_asking = false;
  std::uint32_t sessions_max = 1;  ///< at the same time; more than 1 needs is_service
  /// Service: what the folder of a device may hold, unless the device has a limit of its own. 0: no
  /// limit but the disk's.
  std::uint64_t quota_bytes = 0;
  double beat_seconds = 0;   ///< service: interval of Beat events; 0: none
  bool is_once = false;      ///< run() returns after the first accepted session
  bool is_approved = false;  ///< every offer becomes an Offer event, not only one with conflicts
  bool is_pairing = false;   ///< take no files: pair the first device that has the code, then
                             ///< return
  /// Called in run() for each offer, when the data port is open and no file has been touched yet:
  /// the place to give up privileges. If it returns an Error, the offer is refused.
  std::function<Error()> before_files;
};

/// Devices: those that are paired with this one (docs/pairing.md).
struct Devices {
  std::string folder;  ///< holds this device's key and the paired ones; only this user may access
                       ///< it
  std::string name;    ///< the name this device introduces itself by
  /// Sending: the name here of the paired device at SendOptions::to. It replaces the code.
  std::string to;
  /// If the other end wants it, too, the two devices are paired before the files are sent.
  bool is_remembered = false;
  bool is_key_made = false;  ///< make this device's key where there is none
};

}  // namespace onehop::api
