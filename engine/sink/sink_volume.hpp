// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SinkVolume: a volume of the offered list, held against the destination: what is there already,
// what is wanted, and what of it can be resumed.
//
//   manifest ─▶ prepare() ─▶ the answer for the peer: held, actions, block_sizes
//                   └──────▶ Sink::add()
//
// prepare() runs before the peer is told "accepted", on any thread, also while the file thread
// works on earlier volumes. It validates, checks existing names and room, and finds what an
// earlier session left. A file that is visible with the announced size, or that a session which
// died has delivered, is compared with what the sender announces and never written. From
// Sink::add() on the file thread owns it, and reads what is there while new blocks come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/list/pack.hpp"
#include "engine/list/volume.hpp"
#include "engine/sink/destination.hpp"
#include "engine/sink/held_blocks.hpp"
#include "engine/sink/part_file.hpp"
#include "engine/sink/places.hpp"

namespace onehop::sink {

/// Conflict: an existing name that the policy for it cannot deal with.
struct Conflict {
  std::uint32_t file = 0;  ///< index in the volume's manifest
  std::string_view cause;  ///< a literal, "that name exists"
  bool is_regular = false;
  std::uint64_t size = 0;  ///< bytes, of a regular file
};

/// Existing: what is there of an entry.
struct Existing {
  std::vector<BlockRun> held;  ///< what seems to be there; the Sink reads it
  HeldBlocks blocks;           ///< what was read
  /// The name belongs to a regular file of the announced size, or to one that a dead session
  /// delivered: another content is an error.
  bool is_expected = false;
  unsigned number = 0;         ///< of the name which a dead session gave it; 0: the announced one
  std::optional<ino_t> other;  ///< it has another mode or time than the one that is offered
  PartStems left;              ///< of dead sessions
};

/// Vectors are by entry of the volume.
struct SinkVolumeOptions {
  OnExist on_exist = OnExist::ask;
  std::vector<OnExist> on_exist_of;  ///< instead of on_exist; empty: that for all
  /// Files of the announced size and time are FileAction::assume.
  bool is_quick = false;
  /// As NameProbe::check() has it. Such an entry is not wanted, whatever there is. prepare() finds
  /// more of them: what stands in the way of an entry, or who may not write there
  /// (entry_fault.hpp).
  std::vector<int> name_faults;
  /// Where not null: prepare() appends every conflict before it fails with the first.
  std::vector<Conflict>* conflicts = nullptr;
  /// Where not null: prepare() sets it where it fails for what is in the destination, and the
  /// policy is OnExist::ask: nobody has agreed to tell the peer of that.
  bool* is_unsaid = nullptr;
  /// Ends prepare() early, with exit 7: nobody waits for it any more. Any thread may ask for it.
  std::stop_token withdrawn{};
};

class SinkVolume {
 public:
  /// prepare may block for long: it hashes packed files that are there, and what has a name under
  /// OnExist::skip, unless that is withdrawn. Nothing is written. An empty manifest is a
  /// volume, too. Errors: exit 8 (local) or 7 (withdrawn). Syscalls: openat2, fstatvfs, fstatat,
  /// pread, flock.
  [[nodiscard]] static Result<std::unique_ptr<SinkVolume>> prepare(
      std::shared_ptr<Destination> destination, std::shared_ptr<const list::Volume> volume,
      SinkVolumeOptions options);
  /// The room that it took and did not use is given back.
  ~SinkVolume() { destination_->give_room(room_); }
  SinkVolume(const SinkVolume&) = delete;
  SinkVolume& operator=(const SinkVolume&) = delete;

  // --- for the answer, by entry
  [[nodiscard]] const std::vector<BlockRun>& held_of(std::uint32_t entry) const {
    return existing(entry).held;
  }
  [[nodiscard]] const std::vector<list::FileAction>& actions() const noexcept { return actions_; }
  [[nodiscard]] bool is_wanted(std::uint32_t entry) const {
    return list::has_digests(actions_[entry]);
  }
  /// name_fault is the errno for which the entry is left out; 0: none.
  [[nodiscard]] int name_fault(std::uint32_t entry) const {
    return options_.name_faults.empty() ? 0 : options_.name_faults[entry];
  }
  [[nodiscard]] const list::Pack& pack() const noexcept { return *pack_; }
  /// pack_roots is filled while the Sink works.
  [[nodiscard]] const std::shared_ptr<list::PackRoots>& pack_roots() const noexcept {
    return pack_roots_;
  }
  /// has_pack: small files are packed, if they are wanted.
  [[nodiscard]] bool has_pack() const noexcept { return has_pack_; }
  /// block_sizes are the files as the engine is to count them, from first_file() on.
  [[nodiscard]] std::vector<std::uint64_t> block_sizes() const {
    return list::block_sizes(manifest(), *pack_, actions_);
  }

  /// answer is what the peer learns of it.
  [[nodiscard]] list::Answer answer() const;

  // --- for the Sink
  [[nodiscard]] const list::Manifest& manifest() const noexcept { return *volume_->manifest; }
  [[nodiscard]] const list::ManifestEntry& entry(std::uint32_t entry) const {
    return manifest().files[entry];
  }
  [[nodiscard]] std::uint32_t first_file() const noexcept { return volume_->first_file; }
  [[nodiscard]] std::uint32_t pack_file() const noexcept {
    return list::pack_file(manifest(), volume_->first_file);
  }
  /// packed_entry is that of a record of the pack; packed_file is its index on the wire, by which
  /// its volume and it are known everywhere.
  [[nodiscard]] const list::ManifestEntry& packed_entry(std::uint32_t ordinal) const {
    return manifest().files[pack_->entries()[ordinal]];
  }
  [[nodiscard]] std::uint32_t packed_file(std::uint32_t ordinal) const {
    return volume_->first_file + pack_->entries()[ordinal];
  }
  [[nodiscard]] std::uint32_t entries() const noexcept {
    return static_cast<std::uint32_t>(manifest().files.size());
  }
  /// is_there: visible, and compared instead of written.
  [[nodiscard]] bool is_there(std::uint32_t entry) const noexcept {
    return existing(entry).is_expected || actions_[entry] == list::FileAction::compare;
  }
  /// is_stream: its one entry is a piece of the session's stream.
  [[nodiscard]] bool is_stream() const noexcept { return is_stream_; }
  /// has_part: the file is not packed, so that a part of it may be there.
  [[nodiscard]] bool has_part(std::uint32_t entry) const noexcept {
    return !has_pack_ || !list::is_packable(manifest().files[entry]);
  }
  [[nodiscard]] OnExist policy_of(std::uint32_t entry) const noexcept {
    return options_.on_exist_of.empty() ? options_.on_exist : options_.on_exist_of[entry];
  }
  /// discard_left removes the parts and journals that dead sessions left of entries which nothing
  /// more comes of. Syscalls: as PartFile::discard.
  void discard_left() const;
  /// add_held keeps a block of held_of() that the Sink has read.
  void add_held(std::uint32_t entry, std::uint64_t block, const HeldDigests& held) {
    existing_[entry].blocks.add(block, held);
  }
  [[nodiscard]] const Existing& existing(std::uint32_t entry) const {
    static const Existing none;
    const auto at = existing_.find(entry);
    return at == existing_.end() ? none : at->second;
  }
  /// parts are those that were found, by entry; the Sink takes them.
  [[nodiscard]] std::unordered_map<std::uint32_t, PartFile>& parts() noexcept { return parts_; }
  /// count_written gives back room that is used now, count_made the inode of an entry.
  void count_written(std::uint64_t bytes) noexcept;
  [[nodiscard]] const Places& places() const noexcept { return places_; }
  /// bring_over gives what is in `folder` under the entry's name, and was found to be the very one
  /// that is offered, its mode and time, unless they were so. Syscalls: openat2, fstat, fchmod,
  /// futimens; of a link fstatat, utimensat.
  void bring_over(std::uint32_t entry, int folder) const;
  void count_made(std::uint32_t entry) noexcept;

 private:
  SinkVolume(std::shared_ptr<Destination> destination, std::shared_ptr<const list::Volume> volume,
             SinkVolumeOptions options);

  [[nodiscard]] Result<void> check_stream();
  [[nodiscard]] Result<void> check_stream_name(const list::ManifestEntry& piece);
  [[nodiscard]] Error of_destination(std::uint32_t entry, Error why) const;
  [[nodiscard]] Result<void> check_existing();
  [[nodiscard]] Result<void> check_existing_name(std::uint32_t entry);
  void refuse(std::uint32_t entry, int fault);
  [[nodiscard]] bool may_replace(std::uint32_t entry) const noexcept {
    return policy_of(entry) == OnExist::overwrite;
  }
  [[nodiscard]] Result<void> check_folder(std::uint32_t entry, const struct stat& status);
  [[nodiscard]] Result<void> apply_policy(std::uint32_t entry, const struct stat& status,
                                          int folder);
  void note_other(std::uint32_t entry, const struct stat& status);
  [[nodiscard]] mode_t mode_of(std::uint32_t entry) const {
    return manifest().files[entry].mode & 0777 & ~destination_->umask_bits();
  }
  [[nodiscard]] std::optional<unsigned> find_delivered(std::uint32_t entry, int folder) const;
  [[nodiscard]] Result<void> compare(std::uint32_t entry, int folder, const std::string& leaf);
  [[nodiscard]] Result<void> compare_symlink(std::uint32_t entry, int folder,
                                             const std::string& leaf);
  [[nodiscard]] bool is_assumed(const list::ManifestEntry& file,
                                const struct stat& status) const noexcept;
  void keep(std::uint32_t entry, const struct stat& status, int folder);
  [[nodiscard]] Error conflict(std::uint32_t entry, const struct stat& status, int kind_fault,
                               std::string_view cause, std::string_view hint);
  [[nodiscard]] Result<void> find_part(std::uint32_t entry);
  void expect(std::uint32_t entry, HeldBlocks blocks) {
    existing_[entry].blocks = std::move(blocks);
    existing_[entry].is_expected = true;
  }
  [[nodiscard]] Result<void> take_room();
  /// What an entry that has to be made takes of the disk beside its content.
  [[nodiscard]] std::uint64_t slack_of(std::uint32_t entry) const noexcept;
  void make_pack();

  const std::shared_ptr<Destination> destination_;
  const std::shared_ptr<const list::Volume> volume_;
  SinkVolumeOptions options_;
  const bool has_pack_;  // small files are packed, if they are sent
  bool is_stream_ = false;
  std::shared_ptr<const list::Pack> pack_;  // never null, once it is prepared
  std::shared_ptr<list::PackRoots> pack_roots_;
  std::vector<list::FileAction> actions_;
  std::unordered_map<std::uint32_t, Existing> existing_;
  std::unordered_map<std::uint32_t, PartFile> parts_;
  Places places_;
  std::optional<HeldReader> reader_;  // while prepare() looks
  struct {
    std::size_t total = 0;
    bool is_of_kind = false;  // the newest one
  } conflicts_;
  std::vector<bool> needs_inode_;  // and has not got it
  Room room_;                      // taken and not used
};

}  // namespace onehop::sink
