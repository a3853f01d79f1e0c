// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Messages of the control connection: their meaning, and their bounded codec.
//
//   | type u8 | length u32 | body (length bytes, at most 1 MiB) |   integers big endian, in TLS
//
//   sender                                receiver
//     Introduce ───────────▶ ◀── Introduce     where two devices are paired, twice
//     Hello ───────────────────────────▶       proves who the sender is, for a later reconnect
//     ◀── Welcome | Busy, later Welcome        ... | Refuse: another version, too many wait
//     ◀───────────────── RequireSha256         before the Welcome: checksums are not enough
//     Offer, ManifestPart.., VolumeEnd ▶       the first volume of what is sent
//     ◀─ Accept, VolumeAnswer, HeldPart..      ... | Refuse
//     DataReady ───────────────────────▶       the sender's port is up: both prove the path
//     PathReady ───────────▶ ◀── PathReady
//     BlockDigests.., Holes.., FileRoot.. ▶
//     ◀──────────── FileDone.., PackDone..     verified, fsynced, renamed; or compared
//     ManifestPart.., VolumeEnd ───────▶       the next volumes, while data flows
//     ◀───────── VolumeAnswer, HeldPart..
//     Complete ──────────────────▶ ◀── Bye
//     Restart ─────────────────────────▶       a file changed while it was sent: stop in order
//     ◀───────────── FileDone.., Restarted     then what is not done is offered again, from Offer
//   either way, at any time: KeepAlive, Failure, Bye (interrupted)
//
// Pure functions and plain values; any thread. A decoder trusts nothing: it compares every length
// with what is left before it allocates, bounds every number, and treats trailing bytes as an
// error. Welcome and Refuse keep their layout in all versions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "control/pair/device_hello.hpp"
#include "engine/base/file_message.hpp"
#include "engine/base/result.hpp"
#include "engine/crypto/digest.hpp"
#include "engine/crypto/key_schedule.hpp"
#include "engine/list/manifest.hpp"

namespace onehop::session {

// --- Specification: both ends agree on these.
using crypto::Role;
inline constexpr std::uint16_t protocol_version = crypto::protocol_version;
inline constexpr std::size_t message_header_bytes = 5;
inline constexpr std::size_t message_body_bytes_max = 1U << 20;
inline constexpr std::size_t text_bytes_max = 1024;
inline constexpr std::size_t short_text_bytes_max = 64;
inline constexpr std::size_t manifest_entries_per_part_max = 4096;
inline constexpr std::size_t digests_per_message_max = 4096;
/// A volume is a run of entries that is offered, answered and forgotten as a whole. At most
/// volumes_open_max volumes of at most volume_entries_max entries are open at a time. Files have
/// indices through the session, and behind each volume's entries its pack has one.
inline constexpr std::size_t volumes_open_max = 8;
inline constexpr std::size_t volume_entries_max = 65'536;
inline constexpr std::uint32_t file_index_max = 0xffff'fffe;
inline constexpr std::size_t folder_bytes_max = 4095;  ///< PATH_MAX less the closing NUL
/// Bodies of frames. The least IPv6 MTU leaves 1280 - 48 bytes less the frame's overhead; no link
/// that we run on has less.
inline constexpr std::uint32_t frame_body_bytes_min = 256;
inline constexpr std::uint32_t frame_body_bytes_max = 65'000;
inline constexpr std::uint16_t queue_count_max = 64;
inline constexpr std::uint64_t block_index_max = (std::uint64_t{1} << 62) / block_bytes;

/// MessageType: the index of a message in Message, from 1. A new one goes to the end.
enum class MessageType : std::uint8_t {};

struct Welcome {
  std::uint16_t version = protocol_version;
  std::string software;  ///< "onehop 0.1.0"
};
/// Refuse: no session. `code` is the exit code that the other end reports (5 in most cases).
struct Refuse {
  ExitCode code = ExitCode::refused_by_peer;
  std::string text;
};
/// KnownTree: how much will be sent, as far as the sender has scanned.
struct KnownTree {
  std::uint64_t files = 0, bytes = 0;  ///< folders do not count
  bool is_all = false;
};
struct Offer {
  std::uint16_t version = protocol_version;
  std::string software;
  /// Each end sets its own version, AEAD and role; they are not on the wire.
  crypto::ExporterContext context;
  std::uint32_t frame_body_max_bytes = 0;  ///< what the sender's port and MTU can carry
  std::uint16_t data_port = 0;             ///< where feedback goes; the address is the TLS peer's
  KnownTree known;                         ///< totals of all that will be offered
  bool is_repair_lazy = false;             ///< the sender prefers to repair in rounds, from lists
  /// Both ends send datagrams of wire::datagram_bytes_max, in IP fragments.
  bool has_fragments = false;
};
struct ManifestPart {
  std::vector<list::ManifestEntry> entries;
};
struct VolumeEnd {
  Digest manifest_hash{};  ///< of the volume's entries
  bool is_last = false;    ///< of the session
};

using list::FileAction;
using list::has_digests;
/// Accept: the receiver accepts the session. The answer to the first volume follows.
struct Accept {
  std::uint16_t data_port = 0;
  std::uint32_t frame_body_max_bytes = 0;  ///< at most the offer's
  bool is_repair_lazy = false;             ///< agreed: only if the offer has it, too
  std::string io;                          ///< the receiver's "udp", "afxdp"
  std::string folder;                      ///< where the files go, as text for the user
};
/// VolumeAnswer answers the first volume without an answer. It is sent when its file side is ready.
struct VolumeAnswer {
  Digest manifest_hash{};           ///< what was approved
  bool has_held = false;            ///< HeldParts follow, up to the one with is_last
  std::vector<FileAction> actions;  ///< one per entry
  /// The errno, or list::SymlinkFault, of each FileAction::name_refused, in order.
  std::vector<std::uint8_t> name_faults;
};
/// HeldRun: `count` blocks of `file` that the receiver seems to hold. It reads them while others
/// are sent, and tells what it finds in ClaimParts.
struct HeldRun {
  std::uint32_t file = 0;
  std::uint64_t first_block = 0, count = 1;
};
/// HeldPart: files and blocks ascend over the parts.
struct HeldPart {
  bool is_last = false;
  std::vector<HeldRun> runs;
};
/// ClaimPart: consecutive blocks of `file`, which has HeldRuns, by their tags (crypto::ContentMac).
/// Blocks ascend over the parts of a file.
struct ClaimPart {
  std::uint32_t file = 0;
  std::uint64_t first_block = 0;
  bool is_last = false;         ///< of this file: blocks that were left out are not there any more
  std::vector<Digest> digests;  ///< tags
};
struct DataReady {};
struct PathReady {
  std::uint32_t frame_bytes = 0;
};

struct BlockDigest {
  std::uint32_t file = 0;
  std::uint64_t block = 0;  ///< offset / block_bytes
  Digest digest{};
};
struct BlockDigests {
  /// The receiver claimed these blocks: no frame carries them, and the digests are tags.
  bool is_skipped = false;
  std::vector<BlockDigest> digests;
};
/// HoleRun: `count` blocks of `file` from `first_block` on are a hole of the source. No frame
/// carries them; their digests are those of zeros.
struct HoleRun {
  std::uint32_t file = 0;
  std::uint64_t first_block = 0;
  std::uint32_t count = 1;
};
struct Holes {
  std::vector<HoleRun> runs;
};
/// FileRoot: the root of a file, or the one over a volume's whole pack.
struct FileRoot {
  std::uint32_t file = 0;
  Digest root{};
};
/// FileDone: the outcome of `file` is final. `name_number` gives its final name,
/// list::numbered_leaf(); 0: as announced. A file that is refused only after its blocks were sent
/// still has its root.
struct FileDone {
  std::uint32_t file = 0;
  Digest root{};  ///< as announced, of a packed file as its record has it; zero: not known
  FileOutcome outcome = FileOutcome::received;
  std::uint16_t name_number = 0;
  bool is_small = false;        ///< a PackDone reports it, or would have; not on the wire
  std::uint8_t name_fault = 0;  ///< of name_refused, as VolumeAnswer has them
};
/// RecordOutcome: the one outcome of all records of a run. A delivered record was received if its
/// content was sent, and was there if only its root was sent. The numbers are protocol.
enum class RecordOutcome : std::uint8_t { delivered = 0, kept = 1, refused = 2 };
/// RecordRun: `count` records of a pack from ordinal `first` on are verified and in place.
struct RecordRun {
  std::uint32_t pack = 0;  ///< its file index
  std::uint32_t first = 0, count = 0;
  std::uint16_t name_number = 0;  ///< as in FileDone
  RecordOutcome outcome = RecordOutcome::delivered;
  std::uint8_t name_fault = 0;  ///< of RecordOutcome::refused, as VolumeAnswer has them
};
/// PackDone reports many runs at once: among files with the same names but other contents, every
/// second one may be kept.
struct PackDone {
  std::vector<RecordRun> runs;
};
/// is_named is false for an entry that the receiver leaves out, because its file system cannot hold
/// the name or an existing entry blocks it.
[[nodiscard]] constexpr bool is_named(FileOutcome outcome) noexcept {
  return outcome != FileOutcome::name_refused && outcome != FileOutcome::name_taken;
}
/// name_fault_text explains why an entry is not is_named().
[[nodiscard]] std::string name_fault_text(FileOutcome outcome, int name_fault);
/// kept_by: the outcome of a file whose content the receiver does not want; no FileDone is sent for
/// it.
[[nodiscard]] constexpr FileDone kept_by(FileAction action, std::uint32_t file) noexcept {
  const auto outcome = [action] {
    switch (action) {
      case FileAction::keep: return FileOutcome::kept;
      case FileAction::assume: return FileOutcome::there_unread;
      case FileAction::name_refused: return FileOutcome::name_refused;
      case FileAction::name_taken: return FileOutcome::name_taken;
      default: return FileOutcome::not_compared;
    }
  };
  return {.file = file, .outcome = outcome()};
}
struct Complete {};
struct Bye {
  ExitCode code = ExitCode::done;
};
struct Failure {
  ExitCode code = ExitCode::internal_error;
  std::string text;
};
/// KeepAlive: if it asks for an answer, the channel answers with one that does not.
struct KeepAlive {
  bool wants_answer = false;
};
struct Restart {};
struct Restarted {};
/// SenderToken proves that a connection comes from the sender of an earlier one: only that user on
/// that machine can compute it again, for these files and this code
/// (control/transfer/sender_token.hpp). All zero: it proves nothing.
using SenderToken = std::array<std::byte, 16>;
struct Hello {
  SenderToken sender{};
};
/// RequireSha256: the offer must use SHA-256; any other digest is refused.
struct RequireSha256 {};
/// Introduce: this end's device. Without a name: this end does not pair, or could not keep the
/// other device.
struct Introduce : pair::Introduced {
  pair::HelloProof proof{};  ///< of the secret that it has of the two (introduction.hpp)
};
/// Busy: another session is running. The Welcome follows when it is this sender's turn.
struct Busy {};

using Message = std::variant<Welcome, Refuse, Offer, ManifestPart, VolumeEnd, Accept, ClaimPart,
                             DataReady, PathReady, BlockDigests, FileRoot, FileDone, Complete, Bye,
                             Failure, KeepAlive, Restart, Restarted, Hello, Busy, PackDone,
                             VolumeAnswer, Holes, RequireSha256, Introduce, HeldPart>;

struct MessageHeader {
  MessageType type{};
  std::uint32_t body_bytes = 0;
};
/// decode_message_header rejects unknown types and lengths above the bound of the type, before the
/// body is read.
[[nodiscard]] std::optional<MessageHeader> decode_message_header(
    std::span<const std::byte, message_header_bytes> in) noexcept;

/// decode_message takes a whole body. nullopt: the peer broke the protocol.
[[nodiscard]] std::optional<Message> decode_message(MessageType type,
                                                    std::span<const std::byte> body);

/// encode_message appends header and body. Texts are cut at their bound; other bounds are the
/// caller's duty.
void encode_message(const Message& message, std::vector<std::byte>& out);

[[nodiscard]] MessageType type_of(const Message& message) noexcept;
[[nodiscard]] std::string_view name_of(MessageType type) noexcept;

}  // namespace onehop::session
