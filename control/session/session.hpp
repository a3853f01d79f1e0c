// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the two sessions share with the program that runs them: options, hosts, and how a session
// ends. It does not use Asio.
//
//   SendSession / RecvServer ──▶ SendHost / RecvHost (implemented by the program)
//     open_data()    open the port, say which UDP port and how large a frame
//     next_volume()  sending: the next entries of what is sent
//     consider()     receiving: decide on a volume (folder, space, existing names, resume)
//     on_accepted()  sending: what the peer wants of a volume, and what it has already
//     start_data()   keys and peer are known: connect the port, start the threads
//     take_volume()  receiving: a later volume, when the host has decided on it
//     stop_data()    the engine's loop has ended (or never began): join the threads, close the port
//
// Every call comes on the session thread, the one that runs the io_context. A host may block in
// open_data, start_data and stop_data for as long as opening sockets and starting threads takes;
// consider() and next_volume() are answered later and from any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "control/pair/device_hello.hpp"
#include "control/session/code/code.hpp"
#include "control/session/message.hpp"
#include "engine/base/message.hpp"
#include "engine/base/result.hpp"
#include "engine/base/spsc_ring.hpp"
#include "engine/base/system/address.hpp"
#include "engine/base/units.hpp"
#include "engine/crypto/content_mac.hpp"
#include "engine/crypto/key_schedule.hpp"
#include "engine/list/manifest.hpp"
#include "engine/list/volume.hpp"

namespace onehop::session {

inline constexpr std::uint16_t control_port_default = 7411;

/// Phase: what progress shows. `verifying` is a phase of its own, so that progress does not show
/// 100 % before the files are on disk.
enum class Phase : std::uint8_t {
  connecting,
  authenticating,
  waiting_for_accept,
  proving_path,
  transferring,
  verifying,
  done,
};

/// SessionLimits are local; no message changes them. Tests make them short.
struct SessionLimits {
  Nanos connect = 5s;  ///< --wait: for a receiver that is not there yet, or is busy
  /// For one address, so that an unreachable one does not use up the time for the others.
  Nanos connect_attempt = 3s;
  Nanos handshake = 10s;
  /// Receiving: the pause between attempts of an address that had a wrong code. Shorter: guesses
  /// come faster. Longer: a user who mistyped waits, too.
  Nanos guess_pause = 1s;
  Nanos step = 10s;        ///< for a message that the peer must send at once
  Nanos offer = 60s;       ///< receiving: for the whole manifest
  Nanos consider = 15min;  ///< for a user at the receiver to decide
  /// The receiver hashes small files that it has before it answers, and with --on-exist skip all
  /// that it has. Higher: a session with a slower disk or processor ends with 11, though it can be
  /// resumed. Lower: a peer waits longer for one that hangs.
  static constexpr std::uint64_t hash_bytes_per_s = 10'000'000;
  /// consider_all limits the answer to a volume whose files may all exist: they are read before the
  /// user is asked, and once more with the answer. Other work before the question has the time of
  /// an offer, so that the question's limit ends first.
  [[nodiscard]] Nanos consider_all(const list::Manifest& volume) const noexcept {
    constexpr std::uint64_t seconds_max = 365 * 24 * 3600;  // a peer may claim any size
    const std::uint64_t seconds = list::total_bytes(volume) / hash_bytes_per_s;
    return consider + offer + 2s * static_cast<std::int64_t>(std::min(seconds, seconds_max));
  }
  /// For our full-size PINGs to be answered. The engine itself gives up after 2 to 10 s.
  Nanos prove = 15s;
  /// Silence on the control connection. Shorter: a peer that waits for a slow disk is given up.
  /// Longer: a dead one is noticed late.
  Nanos silent = 30s;
  /// Receiving: how long the old connection of a sender that reconnects may take to answer.
  /// Shorter: a link that loses a segment twice counts as dead. Longer: the returning sender waits.
  Nanos answer = 1s;
  /// Receiving: while another sender waits, a session ends if it brings less than floor_bytes in
  /// this time. 160 KiB in 10 s are 131 kbit/s. More: the slowest links fall below it. Less: one
  /// sender keeps the others out for nearly nothing.
  Nanos floor_window = 10s;
  std::uint64_t floor_bytes = 160 * 1024;
  Nanos keep_alive = 5s;   ///< a sixth of `silent`: a few may be lost to a stalled thread
  Nanos checkpoint = 10s;  ///< for the file side to sync what arrived
  Nanos engine_stop = 5s;  ///< for the engine's loop to end
  /// Between polls of the engine's events: 28 digests each at 600 Mbit/s, 500 at 10 Gbit/s.
  Nanos poll = 100ms;
  /// The same while a person or the peer waits for us: the path is proven, the last files are
  /// verified, a volume ends.
  Nanos poll_short = 2ms;
};

/// SessionEnd: the exit code, and the error to report when it is not `done`.
struct SessionEnd {
  ExitCode code = ExitCode::done;
  Error error;
  /// Both ends know the outcome of each offered entry.
  bool is_complete = false;
  /// The peer was interrupted by its user, or ended in order.
  bool is_peer_interrupted = false;
  /// Receiving: the same sender reconnected, and its transfer goes on in the next session.
  bool is_replaced = false;
};

/// exit_code_for_failure_of_peer: what this end reports when the other end failed with `code`.
/// Codes that describe the session as a whole (3, 4, 6, 7, 11) are the same on both ends; a failure
/// inside the peer (its disk, its privileges, its port) is "refused by the peer" here, because 8, 9
/// and 10 speak of this machine.
[[nodiscard]] ExitCode exit_code_for_failure_of_peer(ExitCode code) noexcept;

/// is_way_missing: there is no route or no link, which may be temporary.
[[nodiscard]] bool is_way_missing(const Error& error) noexcept;
/// When to look for it again. Longer: a transfer starts later than it could.
inline constexpr Nanos way_retry_pause = 100ms;

struct PeerLink {
  Endpoint local;  ///< of the TLS connection
  Endpoint peer;
};

/// DataOpened: the host's answer to open_data().
struct DataOpened {
  std::uint16_t data_port = 0;  ///< the UDP port that this end receives on
  /// UDP payload that port and MTU carry, less wire::overhead_bytes.
  std::uint32_t frame_body_max_bytes = 0;
  std::string io;          ///< "udp", "afxdp"
  bool is_stream = false;  ///< nothing is kept when it ends early
  /// The port that fall_back() would take if no frame comes back over this one; empty: none.
  std::string other_io;
};

/// DataTerms: what both ends agreed on for the data path.
struct DataTerms {
  crypto::ExporterContext context;
  std::uint32_t frame_body_max_bytes = 0;  ///< the smaller of both
  bool is_repair_lazy = false;
  bool has_fragments = false;  ///< datagrams of wire::datagram_bytes_max, which the port fragments
};
/// DataPlan: everything that start_data() needs. `secret` yields both directions' keys
/// (crypto::direction_secret). `compare_key` is the one that consider() had.
struct DataPlan : DataTerms {
  Endpoint local;  ///< address of the TLS connection, our data port
  Endpoint peer;   ///< address of the TLS peer, its announced data port, and no other (N6)
  crypto::ExporterSecret secret;
  crypto::CompareKey compare_key{};
  PathUpdate path;  ///< as first found; changes come as commands
  std::string key_exchange;
};

/// SessionRings: owned by the host, alive from start_data() until stop_data() returns. The session
/// produces commands and consumes events, those of `file` as well.
struct SessionRings {
  SpscRing<Command>* commands = nullptr;
  SpscRing<Event>* events = nullptr;
  FileRings* file = nullptr;
};

// --- What a session reports, besides its Phase and each Event of the engine that it has handled.

struct Report {  ///< once per offered entry whose outcome the session knows
  FileDone done;
  std::shared_ptr<const list::Manifest> manifest;
  std::size_t place = 0;  ///< in the manifest
};
struct VolumeOver {  ///< the outcomes of all entries of this volume are final
  std::shared_ptr<const list::Manifest> manifest;
};
struct Notice {  ///< for the user
  std::string text;
  bool is_warning = false;  ///< the user should act on it
};
struct SeemsHeld {  ///< bytes of blocks that the receiver says it holds: most will be skipped
  std::uint64_t bytes = 0;
};
struct Skipped {  ///< bytes of blocks that the receiver has, and that need not be sent
  std::uint64_t bytes = 0;
};
struct HoleAnnounced {  ///< bytes of a file that are a hole at the sender, and are not sent
  std::uint32_t file = 0;
  std::uint64_t bytes = 0;
};
struct LinkState {  ///< of the link to the peer
  bool is_up = true;
};
using SessionFact = std::variant<Phase, Event, Report, VolumeOver, Notice, SeemsHeld, Skipped,
                                 HoleAnnounced, LinkState>;

class SessionHost {
 public:
  SessionHost() = default;
  SessionHost(const SessionHost&) = delete;
  SessionHost& operator=(const SessionHost&) = delete;
  virtual ~SessionHost() = default;

  /// open_data is called again after an Error that is_way_missing(), until the session ends.
  [[nodiscard]] virtual Result<DataOpened> open_data(const PeerLink& link) = 0;
  [[nodiscard]] virtual Result<SessionRings> start_data(const DataPlan& plan) = 0;
  /// fall_back switches the running engine to other_io; port number, keys and packet numbers
  /// continue. Once in a session. It may block for milliseconds. Errors: 9.
  [[nodiscard]] virtual Result<void> fall_back() { return success(); }
  /// stop_data is called once after every open_data() that succeeded; a started engine was sent
  /// Command{finish}. A session whose source changed opens, starts and stops once more for the
  /// files that are not done.
  virtual void stop_data() noexcept = 0;

  /// on_path: the path to the peer leads over another interface, or its link is up again. It comes
  /// before the engine gets the update. An Error ends the session. It may block as start_data()
  /// does.
  [[nodiscard]] virtual Result<void> on_path(const std::string& /*interface*/, const PathUpdate&) {
    return success();
  }
  /// on_fact: the session learnt a fact; the host counts and shows it.
  virtual void on_fact(const SessionFact&) {}
  /// on_introduced: the other device proved its key, and both devices are to be paired. The name is
  /// what the device claims; secret and all else are set. An Error ends the introduction.
  [[nodiscard]] virtual Result<void> on_introduced(const pair::Peer& /*device*/) {
    return Error{ExitCode::internal_error, "keep a device", "this host keeps none", ""};
  }
};

using list::Held;

/// Introduction: whether the two devices are paired over a connection that the code has proven.
enum class Introduction : std::uint8_t {
  none,
  beside,  ///< before the files, if both ends want it
  only,    ///< instead of files
};

/// SessionOptions are those of both ends.
struct SessionOptions {
  std::uint16_t port = control_port_default;  ///< receiving, 0: any
  SessionLimits limits;
  std::uint8_t dscp = 0;  ///< of frames, for raw ports
  std::string interface;  ///< --iface; empty: as the route says
  /// This device and those that are paired with it; null: none.
  std::shared_ptr<const pair::Identity> device;
  Introduction introduction = Introduction::none;
  bool prefers_chacha20 = !crypto::has_aes_instructions();
  /// certified is `device` when certificates authenticate the peers, and null to pair, which needs
  /// the code.
  [[nodiscard]] std::shared_ptr<const pair::Identity> certified() const {
    return introduction == Introduction::only ? nullptr : device;
  }
};

// --- sending

struct SendOptions : SessionOptions {
  std::string host;
  std::string peer;  ///< the name of the paired device; empty: the code authenticates the peer
  crypto::DigestKind digest = crypto::DigestKind::xxh3;
  std::uint64_t key_interval = crypto::key_interval_default;
  bool is_repair_lazy = false;  ///< offered; the receiver may choose eager repair
  bool has_fragments = false;   ///< asked for; a receiver whose port cannot do it refuses
  Nanos busy{};                 ///< how long to wait for a busy receiver, if longer than
                                ///< limits.connect
  unsigned unproven = 0;  ///< of the session before, where this one goes on with the same code
  SenderToken token{};    ///< identifies this sender when it reconnects; all zero: the receiver
                          ///< cannot know
};
/// Accepted: a volume, and the receiver's answer to it.
struct Accepted {
  list::Volume volume;
  std::shared_ptr<const list::Answer> answer;
};
/// A volume has at most volume_entries_max entries. The session assigns it the next indices, in the
/// order in which volumes come; the first one begins at 0, and is not empty.
using TakeVolume = std::function<void(Result<list::Volume>)>;
/// Unsettled: an open volume, and which of its entries need not be offered again.
struct Unsettled {
  /// Unsent: an entry that cannot be read, or that changed again. It counts as settled.
  struct Unsent {
    std::size_t entry = 0;
    Error why;
  };
  std::shared_ptr<const list::Manifest> manifest;
  std::vector<bool> is_settled;
  std::optional<Unsent> unsent;  ///< of one volume at most
};
class SendHost : public SessionHost {
 public:
  /// next_volume calls `take` once, now or later, from any thread, perhaps after the session has
  /// ended. The session does not call it again before that, nor after the last volume or an Error.
  virtual void next_volume(TakeVolume take) = 0;
  [[nodiscard]] virtual KnownTree known() = 0;
  /// offer_again makes one volume of the entries that are not settled, in their present state,
  /// after one of them changed while it was sent, or could not be sent; indices begin at 0 again.
  /// The data path is stopped. Error: an entry no longer exists, or must not be left out.
  [[nodiscard]] virtual Result<std::shared_ptr<const list::Manifest>> offer_again(
      const std::vector<Unsettled>& volumes) = 0;
  /// on_accepted of the first volume comes before start_data(). Only the peer waits while it
  /// blocks.
  virtual void on_accepted(const Accepted& accepted) = 0;
};

// --- receiving

struct RecvOptions : SessionOptions {
  std::string address;  ///< numeric; empty: all addresses, IPv6 and IPv4
  bool is_once = false;
  bool is_code_own = false;         ///< the host made the code, and renews it for is_once, too
  std::uint32_t sessions_max = 1;   ///< at once
  std::uint32_t waiting_max = 8;    ///< authenticated senders that wait for their turn
  bool is_lazy_allowed = true;      ///< false: eager repair, whatever the sender offers
  bool is_sha256_required = false;  ///< ask the sender for SHA-256, and refuse it otherwise
};
/// OfferedVolume: a validated volume, and what else the receiver knows of it.
struct OfferedVolume : list::Volume {
  KnownTree known;  ///< as the sender claims; a hostile one may claim anything
  crypto::DigestKind digest = crypto::DigestKind::xxh3;
  Endpoint peer;
  bool has_fragments = false;  ///< the data port must take datagrams of wire::datagram_bytes_max
  /// Of a volume that is offered again: entries that were offered before and are not any more.
  /// Their parts are of no use.
  std::vector<list::ManifestEntry> left_out;
  /// is_again: the volume offers again what is left after a source changed. Then is_changed has one
  /// flag per entry, true for a changed one, whose earlier data are of no use.
  bool is_again = false;
  std::vector<bool> is_changed;
};
using Decide = std::function<void(Result<list::Answer>)>;
/// Arrival: how much data of the running session has arrived.
struct Arrival {
  std::uint64_t bytes = 0;  ///< of file data that frames brought
  /// The disk holds the sender back, or all data arrived and is being verified.
  bool is_up_to_us = false;
};

class RecvHost : public SessionHost {
 public:
  /// consider looks at a volume and calls `decide` once, now or later, from any thread, perhaps
  /// after the session has ended. `key` is for the comparison with existing files. An Error refuses
  /// the offer: this end ends with its code, the peer gets its text and ends with 5.
  virtual void consider(std::shared_ptr<const OfferedVolume> offer, const crypto::CompareKey& key,
                        Decide decide) = 0;
  /// take_volume comes before the session sends the answer to a volume after the first. The host
  /// hands its files to the file side, and the session gives the command to the engine. An Error
  /// ends the session.
  [[nodiscard]] virtual Result<Command> take_volume(const OfferedVolume& offer) = 0;
  [[nodiscard]] virtual Arrival arrival() const = 0;
  /// renew_code makes another code, after `why` burnt the last one, and shows it to the user. A
  /// host that cannot returns `why`, which ends the server.
  [[nodiscard]] virtual Result<PairingCode> renew_code(const Error& why) { return why; }
  virtual void on_listening(const Endpoint& /*local*/) {}
  /// refresh_devices reads which devices are paired: before each handshake, and once more before a
  /// device's session.
  virtual void refresh_devices() {}
  /// begin_session comes before a session, and returns its host, which must exist until its
  /// on_session_end() returns. `device` is the paired sender; null: a sender with the code.
  [[nodiscard]] virtual RecvHost& begin_session(const pair::KnownPeer& /*device*/) { return *this; }
  /// on_rejected: a connection failed before it became a session (wrong code, garbage, closed). For
  /// the log; strangers decide how often it comes.
  virtual void on_rejected(const Endpoint& /*peer*/, const Error& /*why*/) {}
  /// on_session_end comes after each session, and once more when the server ends for another reason
  /// and without success. A decision that comes after it is dropped.
  virtual void on_session_end(const SessionEnd& /*end*/) {}
};

}  // namespace onehop::session
