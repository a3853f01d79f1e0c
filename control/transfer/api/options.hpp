// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a Transfer is told to do, and how it says that it could not (transfer.hpp, which includes
// this file; it is installed below that one's folder).
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
  /// A receiver that is gone when something has arrived there is waited for, and the transfer goes
  /// on when it is back. By CLOCK_BOOTTIME, which counts a suspend.
  double patience_seconds = 0;
  /// Meanwhile called again and again: where the receiver is now, HOST[:PORT]; empty: not known. It
  /// may block for a second. Without it, `to` is tried.
  std::function<std::string()> find_again;
  bool is_pairing = false;  ///< send nothing: the two devices get to know each other
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
  /// Paired devices alone, and nobody is asked: what their rules and on_exist do not decide is
  /// refused. InSession tells which session an event is of.
  bool is_service = false;
  std::uint32_t sessions_max = 1;  ///< at once; more than 1 of a service alone
  /// Of a service: what the folder of a device may hold, unless the device has a bound of its own.
  /// 0: what the disk has.
  std::uint64_t quota_bytes = 0;
  double beat_seconds = 0;   ///< of a service: a Beat so often; 0: none
  bool is_once = false;      ///< run() returns after the first accepted session
  bool is_approved = false;  ///< each offer is an Offer event, not only one with conflicts
  bool is_pairing = false;   ///< take no files: the first that has the code is paired, and it ends
  /// Called in run() for each offer, when the data port is open and before a file is touched:
  /// the place to give up privileges. An Error refuses the offer.
  std::function<Error()> before_files;
};

/// Devices: those that are paired with this one (docs/pairing.md).
struct Devices {
  std::string folder;  ///< this device's key and the others, this user's alone
  std::string name;    ///< by which this device introduces itself
  /// Sending: the paired device at SendOptions::to, by its name here. It takes the place of a code.
  std::string to;
  /// Where the other end wants it, too, the two get to know each other before the files.
  bool is_remembered = false;
  bool is_key_made = false;  ///< make this device's key where there is none
};

}  // namespace onehop::api
