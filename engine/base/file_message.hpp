// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FileCommand and FileEvent: what session and file thread say to each other, over FileRings. The
// engine core has no part in it. What has to keep its place among the blocks is a BlockRef.
//
//   session ── FileCommand ──▶ file thread ── FileEvent ──▶ session
//   engine core ── BlockRef ──▶ file thread ── BlockRef ──▶ engine core
//
// Plain data; both ends poll.
#pragma once

#include <variant>

#include "engine/base/block.hpp"
#include "engine/base/spsc_ring.hpp"

namespace onehop {

// --- to and from the file thread
/// HeldBlock: a block that the receiver has, by its tag (crypto::ContentMac). Those of a file
/// ascend. The receiver's file thread reads them beside all else, and the sender's waits for them.
struct HeldBlock {
  std::uint32_t file = 0;
  std::uint64_t block = 0;
  Digest tag{};
};
struct HeldEnd {  ///< of `file` no HeldBlock follows: what was left out is not there any more
  std::uint32_t file = 0;
};

// --- to the file thread; a sending one is told of HeldBlocks alone
struct AnnouncedDigest {  ///< the digest of a block, which may come before it or behind it
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  Digest digest{};
};
struct AnnouncedRoot {  ///< of a file, or of a pack
  std::uint32_t file = 0;
  Digest root{};
};
/// EndAtCheckpoint: the next checkpoint is the last. Nothing is written behind it, and what can be
/// resumed stays.
struct EndAtCheckpoint {};
using FileCommand =
    std::variant<AnnouncedDigest, AnnouncedRoot, EndAtCheckpoint, HeldBlock, HeldEnd>;

enum class FileFailure : std::uint8_t {
  none,
  read_error,
  source_changed,
  source_vanished,
  source_length,  // sending
  write_error,
  sync_error,
  rename_error,
  exists,
  differs,
  digest_mismatch,
  root_mismatch,
  protocol,  // receiving
};

/// FileOutcome: what became of an offered file at the receiver.
enum class FileOutcome : std::uint8_t {
  received,      ///< verified and in place
  there,         ///< in place before, and found to have the announced digest
  kept,          ///< something else has the name and keeps it: another content, or no regular file
  not_compared,  ///< a regular file of the announced size has the name and keeps it; it could not
                 ///< be read
  there_unread,  ///< in place before, with the announced size and time; nobody read it
  name_refused,  ///< the receiver's file system does not take the name, or the receiver the link
  name_taken,    ///< an earlier entry of the session has this name at the receiver, which takes the
                 ///< two for one
};

// --- from the file thread
struct RootRead {  ///< sending: all of a file, or of a pack, was read
  std::uint32_t file = 0;
  Digest root{};
};
struct FileFinished {  ///< receiving: nothing more happens to `file`
  std::uint32_t file = 0;
  Digest root{};  ///< the announced one
  FileOutcome outcome = FileOutcome::received;
  unsigned name_number = 0;  ///< that its final name got; 0: the announced name
  int name_fault = 0;        ///< of name_refused: why, as VolumeAnswer::name_faults
};
/// RecordsFinished: receiving: `count` records of a pack are verified and in place, or of
/// name_refused none of them is. Of outcome received those of which the tag alone came were there.
struct RecordsFinished {
  std::uint32_t pack = 0;  ///< its index as a file
  std::uint32_t first = 0, count = 0;
  FileOutcome outcome = FileOutcome::received;  ///< or kept, or name_refused
  unsigned name_number = 0;
  int name_fault = 0;
};
struct CheckpointMade {};  ///< receiving: what came before the checkpoint is durable
struct FileFailed {        ///< the file thread does nothing more
  std::uint32_t file = 0;
  FileFailure failure = FileFailure::none;
  int errno_value = 0;
};
using FileEvent = std::variant<RootRead, FileFinished, RecordsFinished, CheckpointMade, FileFailed,
                               HeldBlock, HeldEnd>;

/// FileRings: all rings of a file thread. A command and a block have no order between them, with
/// one exception: who takes a checkpoint from `from_engine` finds in `commands` all that was said
/// before it.
struct FileRings {
  explicit FileRings(std::size_t blocks = 1024, std::size_t messages = 1024)
      : to_engine{blocks}, from_engine{blocks}, commands{messages}, events{2 * messages} {}

  SpscRing<BlockRef> to_engine, from_engine;
  SpscRing<FileCommand> commands;
  SpscRing<FileEvent> events;
};

}  // namespace onehop
