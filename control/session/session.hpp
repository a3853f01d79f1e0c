// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the two sessions share with the program that runs them: options, hosts, and how a session
// ends. No Asio here.
//
//   SendSession / RecvServer ──▶ SendHost / RecvHost (implemented by the program)
//     open_data()    open the port, say which UDP port and how large a frame
//     next_volume() sending: the next entries of what is sent
//     consider()     receiving: decide on a volume (folder, space, existing names, resume)
//     on_accepted()  sending: what the peer wants of a volume, and what it has already
//     start_data()   keys and peer are known: connect the port, start the threads
//     take_volume() receiving: a volume after the first, when it was decided on
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

/// Phase: what progress shows. `verifying` is its own, so that nobody sees 100 % before the files
/// are on disk.
enum class Phase : std::uint8_t {
  connecting,
  authenticating,
  waiting_for_accept,
  proving_path,
  transferring,
  verifying,
  done,
};
[[nodiscard]] std::string_view name_of(Phase phase) noexcept;

/// SessionLimits are ours alone; no message moves one of them. Tests make them short.
struct SessionLimits {
  Nanos connect = 5s;  ///< --wait: for a receiver that is not there yet, or busy
  /// For one address, so that a dead one does not use up the others' time.
  Nanos connect_attempt = 3s;
  Nanos handshake = 10s;
  /// Receiving: after a wrong code one attempt of that address begins per so long. Shorter: a
  /// guesser's rate. Longer: whoever mistyped waits as well.
  Nanos guess_pause = 1s;
  Nanos step = 10s;        ///< for a message that the peer owes at once
  Nanos offer = 60s;       ///< receiving: for the whole manifest
  Nanos consider = 15min;  ///< for somebody at the receiver to decide
  /// The receiver hashes what is on its disk before it answers. Higher: a disk or processor that is
  /// slower ends with 11 what can be resumed. Lower: who waits for one that hangs waits longer.
  static constexpr std::uint64_t hash_bytes_per_s = 10'000'000;
  /// consider_all is for the answer to a volume, all of which may be there: it is read before
  /// somebody is asked, and once more with the answer. What else is looked at before has the time
  /// of an offer, so that a question ends first.
  [[nodiscard]] Nanos consider_all(const list::Manifest& volume) const noexcept {
    constexpr std::uint64_t seconds_max = 365 * 24 * 3600;  // a peer may claim any size
    const std::uint64_t seconds = list::total_bytes(volume) / hash_bytes_per_s;
    return consider + offer + 2s * static_cast<std::int64_t>(std::min(seconds, seconds_max));
  }
  /// For our full-size PINGs to be answered. The engine itself gives up after 2 to 10 s.
  Nanos prove = 15s;
  /// Nothing on the control connection. Shorter: a peer that waits for a slow disk is given up.
  /// Longer: a dead one is noticed late.
  Nanos silent = 30s;
  /// Receiving: for a sender to answer when its next connection is here already. Shorter: a link
  /// that repeats a segment twice is taken for dead. Longer: who comes back waits.
  Nanos answer = 1s;
  /// Receiving: a session that brings less than floor_bytes in so long ends when another sender
  /// waits. 160 KiB in 10 s are 131 kbit/s. More: the slowest links fall below it. Less: one sender
  /// keeps the others out for nearly nothing.
  Nanos floor_window = 10s;
  std::uint64_t floor_bytes = 160 * 1024;
  Nanos keep_alive = 5s;   ///< a sixth of `silent`: a few may be lost to a stalled thread
  Nanos checkpoint = 10s;  ///< for the file side to make durable what arrived
  Nanos engine_stop = 5s;  ///< for the engine's loop to end
  /// Between looks at the engine's events: 28 digests each at 600 Mbit/s, 500 at 10 Gbit/s.
  Nanos poll = 100ms;
  /// While a person or the peer waits for us: the path is proven, the last files are verified, a
  /// volume ends.
  Nanos poll_short = 2ms;
};

/// SessionEnd: the exit code, and what to tell the user when it is not `done`.
struct SessionEnd {
  ExitCode code = ExitCode::done;
  Error error;
  /// Both ends know what became of each entry that was offered.
  bool is_complete = false;
  /// The other end was interrupted by its user, or ended in order.
  bool is_peer_interrupted = false;
  /// Receiving: the same sender came back, and its transfer goes on in the next session.
  bool is_replaced = false;
};

/// exit_code_for_failure_of_peer: what this end reports when the other end failed with `code`.
/// Codes that describe the session as a whole (3, 4, 6, 7, 11) are the same on both ends; a failure
/// inside the peer (its disk, its privileges, its port) is "refused by the peer" here, because 8, 9
/// and 10 speak of this machine.
[[nodiscard]] ExitCode exit_code_for_failure_of_peer(ExitCode code) noexcept;

/// is_way_missing: there is no route, or no link, which may be there again in a moment.
[[nodiscard]] bool is_way_missing(const Error& error) noexcept;
/// When to look for it again. Longer: a transfer begins later than it could.
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
  bool is_stream = false;  ///< nothing of it is kept when it ends on the way
  /// What fall_back() would take, where no frame comes back over this one; empty: nothing.
  std::string other_io;
};

/// DataTerms: what both ends agreed on for the data path.
struct DataTerms {
  crypto::ExporterContext context;
  std::uint32_t frame_body_max_bytes = 0;  ///< the smaller of both
  bool is_repair_lazy = false;
  bool has_fragments = false;  ///< datagrams of wire::datagram_bytes_max, which the port fragments
};
/// DataPlan: everything that start_data() needs. `secret` gives both directions' keys
/// (crypto::direction_secret). `compare_key` is the one that consider() had.
struct DataPlan : DataTerms {
  Endpoint local;  ///< address of the TLS connection, our data port
  Endpoint peer;   ///< address of the TLS peer, its announced data port: no other (N6)
  crypto::ExporterSecret secret;
  crypto::CompareKey compare_key{};
  PathUpdate path;  ///< as first found; later ones come as commands
  std::string key_exchange;
};

/// EngineRings: owned by the host, alive from start_data() until stop_data() returns. The session
/// produces commands and consumes events.
struct EngineRings {
  SpscRing<Command>* commands = nullptr;
  SpscRing<Event>* events = nullptr;
};

// --- What a session learns, besides its Phase and each Event of the engine on which it has acted.

struct Report {  ///< once per offered entry that the session gets to the end of
  FileDone done;
  std::shared_ptr<const list::Manifest> manifest;
  std::size_t place = 0;  ///< in the manifest
};
struct VolumeOver {  ///< nothing more happens to the entries of this volume
  std::shared_ptr<const list::Manifest> manifest;
};
struct Notice {  ///< for the user
  std::string text;
  bool is_warning = false;  ///< something is to be done about it
};
struct Skipped {  ///< so many bytes of blocks are at the receiver and need not be sent
  std::uint64_t bytes = 0;
};
struct HoleAnnounced {  ///< so many bytes of a file are a hole at the sender, which nobody sends
  std::uint32_t file = 0;
  std::uint64_t bytes = 0;
};
struct LinkState {  ///< of the link to the peer
  bool is_up = true;
};
using SessionFact =
    std::variant<Phase, Event, Report, VolumeOver, Notice, Skipped, HoleAnnounced, LinkState>;

class SessionHost {
 public:
  SessionHost() = default;
  SessionHost(const SessionHost&) = delete;
  SessionHost& operator=(const SessionHost&) = delete;
  virtual ~SessionHost() = default;

  /// open_data: after an Error that is_way_missing() it is called again, until the session ends.
  [[nodiscard]] virtual Result<DataOpened> open_data(const PeerLink& link) = 0;
  [[nodiscard]] virtual Result<EngineRings> start_data(const DataPlan& plan) = 0;
  /// fall_back has the running engine go over to other_io, with the same port number, keys and
  /// packet numbers that go on. Once in a session. It may block for milliseconds. Errors: 9.
  [[nodiscard]] virtual Result<void> fall_back() { return success(); }
  /// stop_data is called once after every open_data() that succeeded; a started engine was sent
  /// Command{finish}. A session whose source changed opens, starts and stops once more for the
  /// files that are not done.
  virtual void stop_data() noexcept = 0;

  /// on_path: the way to the peer is another one (`interface`), or its link is up again; before the
  /// engine hears of it. An Error ends the session. It may block as start_data() does.
  [[nodiscard]] virtual Result<void> on_path(const std::string& /*interface*/, const PathUpdate&) {
    return success();
  }
  /// on_fact: the session has learnt something; its observer counts and shows it.
  virtual void on_fact(const SessionFact&) {}
  /// on_introduced: the other device proved its key, and both are to know each other from now on.
  /// Its name is what it says; secret and all else are set. An Error ends the introduction.
  [[nodiscard]] virtual Result<void> on_introduced(const pair::Peer& /*device*/) {
    return Error{ExitCode::internal_error, "keep a device", "this host keeps none", ""};
  }
};

using list::Claims;

/// Introduction: whether the two devices get to know each other, over a connection that the code
/// has proven.
enum class Introduction : std::uint8_t {
  none,
  beside,  ///< before the files, where both ends want it
  only,    ///< instead of files
};

/// SessionOptions are those of both ends.
struct SessionOptions {
  std::uint16_t port = control_port_default;  ///< receiving, 0: any
  SessionLimits limits;
  std::uint8_t dscp = 0;  ///< of frames, for raw ports
  std::string interface;  ///< --iface; empty: as the route says
  /// The own device and those that are paired with it; null: none.
  std::shared_ptr<const pair::Identity> device;
  Introduction introduction = Introduction::none;
  bool prefers_chacha20 = !crypto::has_aes_instructions();
  /// certified is `device` where a certificate lets its peers in; to pair, the code alone counts.
  [[nodiscard]] std::shared_ptr<const pair::Identity> certified() const {
    return introduction == Introduction::only ? nullptr : device;
  }
};

// --- sending

struct SendOptions : SessionOptions {
  std::string host;
  std::string peer;  ///< the paired device that it is; empty: the code says who it is
  crypto::DigestKind digest = crypto::DigestKind::xxh3;
  std::uint64_t key_interval = crypto::key_interval_default;
  bool is_repair_lazy = false;  ///< offered; the receiver may keep to eager repair
  bool has_fragments = false;   ///< asked for; a receiver whose port cannot refuses
  Nanos busy{};                 ///< for a busy receiver, where that is longer than limits.connect
  SenderToken token{};  ///< that we are who was here before; all zero: the receiver cannot know
};
/// Accepted: a volume, and the receiver's answer to it.
struct Accepted {
  list::Volume volume;
  std::shared_ptr<const list::Answer> answer;
};
/// A volume has at most volume_entries_max entries. The session gives it the next indices, in the
/// order in which volumes come; the first one begins at 0, and is not empty.
using TakeVolume = std::function<void(Result<list::Volume>)>;
/// Unsettled: a volume that is under way, and which of its entries need not be offered again.
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
  /// next_volume calls `take` once, now or later, from any thread; it may be called after the
  /// session has gone. It is not asked again before, nor after the last one or an Error.
  virtual void next_volume(TakeVolume take) = 0;
  [[nodiscard]] virtual KnownTree known() = 0;
  /// offer_again makes one volume of the entries that are not settled, as they are now, after one
  /// of them changed while it was sent, or one could not be sent; indices begin anew. The data path
  /// is stopped. Error: one of them is no longer there, or must not be left out.
  [[nodiscard]] virtual Result<std::shared_ptr<const list::Manifest>> offer_again(
      const std::vector<Unsettled>& volumes) = 0;
  /// on_accepted of the first volume comes before start_data(). Blocks in it cost the peer's
  /// patience only.
  virtual void on_accepted(const Accepted& accepted) = 0;
};

// --- receiving

struct RecvOptions : SessionOptions {
  std::string address;  ///< numeric; empty: all addresses, IPv6 and IPv4
  bool is_once = false;
  bool is_code_own = false;  ///< the host made the code, and makes another for is_once as well
  std::uint32_t sessions_max = 1;   ///< at once
  std::uint32_t waiting_max = 8;    ///< authenticated senders that wait for their turn
  bool is_lazy_allowed = true;      ///< false: eager repair, whatever the sender offers
  bool is_sha256_required = false;  ///< the sender is asked for SHA-256, and refused without it
};
/// OfferedVolume: a volume, validated, and what else its receiver knows of it.
struct OfferedVolume : list::Volume {
  KnownTree known;  ///< as the sender said in its offer; of a hostile one: anything
  crypto::DigestKind digest = crypto::DigestKind::xxh3;
  Endpoint peer;
  bool has_fragments = false;  ///< the data port must take datagrams of wire::datagram_bytes_max
  /// Of a volume that is offered again: what was offered and is not any more. A part of it is of no
  /// use.
  std::vector<list::ManifestEntry> left_out;
  /// is_again: it offers again what is left after a source changed. Then there is an is_changed per
  /// entry, true for one that was another before, so that nothing of it that came before is of use.
  bool is_again = false;
  std::vector<bool> is_changed;
};
using Decide = std::function<void(Result<list::Answer>)>;
/// Arrival: how far the data of the session under way has come.
struct Arrival {
  std::uint64_t bytes = 0;  ///< of file data that frames brought
  /// The disk holds the sender back, or everything came and is being verified.
  bool is_up_to_us = false;
};

class RecvHost : public SessionHost {
 public:
  /// consider looks at a volume and calls `decide` once, now or later, from any thread; it may be
  /// called after the session has gone. What is there is compared by `key`. An Error refuses: its
  /// code is this end's, its text is told to the peer (which ends with 5).
  virtual void consider(std::shared_ptr<const OfferedVolume> offer, const crypto::CompareKey& key,
                        Decide decide) = 0;
  /// take_volume comes before the peer is told what was decided on a volume after the first. The
  /// file side is to know its files, and the engine gets the command. An Error ends the session.
  [[nodiscard]] virtual Result<Command> take_volume(const OfferedVolume& offer) = 0;
  [[nodiscard]] virtual Arrival arrival() const = 0;
  /// renew_code makes another code, after `why` burnt the one before, and tells it to the user. A
  /// host that cannot returns `why`, which ends the server.
  [[nodiscard]] virtual Result<PairingCode> renew_code(const Error& why) { return why; }
  virtual void on_listening(const Endpoint& /*local*/) {}
  /// refresh_devices looks which devices are paired now: before somebody is let in, and once more
  /// before a device's session.
  virtual void refresh_devices() {}
  /// begin_session comes before a session, and gives its host, which has to be there until its
  /// on_session_end() returns. `device` is the paired one that sends, null: somebody with the
  /// code.
  [[nodiscard]] virtual RecvHost& begin_session(const pair::KnownPeer& /*device*/) { return *this; }
  /// on_rejected: a connection came to nothing before it was a session (wrong code, garbage, gone).
  /// For the log, and as often as strangers like.
  virtual void on_rejected(const Endpoint& /*peer*/, const Error& /*why*/) {}
  /// on_session_end comes after each session, and once more when the server ends for another reason
  /// and without success. Where the session ended while the host still considered its offer, nobody
  /// waits for the decision any more.
  virtual void on_session_end(const SessionEnd& /*end*/) {}
};

}  // namespace onehop::session
