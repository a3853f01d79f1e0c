// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// VolumeState: a volume that is under way, as both machines keep it, with what became of its
// entries. One thread.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "control/session/message.hpp"
#include "control/session/session.hpp"
#include "engine/list/pack.hpp"

namespace onehop::session {

/// can_come_to: a file of which the receiver wants this can have that outcome. A comparison writes
/// nothing, and only it can find that something else was kept.
[[nodiscard]] constexpr bool can_come_to(FileAction action, FileOutcome outcome) noexcept {
  if (action == FileAction::compare)
    return outcome == FileOutcome::there || outcome == FileOutcome::kept;
  return outcome == FileOutcome::received || outcome == FileOutcome::there ||
         outcome == FileOutcome::name_refused;
}

struct VolumeState : list::Volume {
  /// Null: there is none yet, and what follows is not valid.
  std::shared_ptr<const list::Answer> answer;
  std::vector<bool> is_done;
  std::size_t files_left = 0;                       ///< that nothing was said about
  std::size_t roots_left = 0;                       ///< to be announced; one for all of the pack
  std::unordered_map<std::uint32_t, Digest> roots;  ///< announced, by index in the session

  /// pack of an answered one; null: nothing is packed.
  [[nodiscard]] const list::Pack* pack() const noexcept { return answer->pack.get(); }
  [[nodiscard]] std::uint32_t pack_file() const noexcept {
    return first_file + static_cast<std::uint32_t>(manifest->files.size());
  }
  /// end is the first index behind the volume.
  [[nodiscard]] std::uint32_t end() const noexcept { return pack_file() + 1; }
  [[nodiscard]] bool has_entry(std::uint32_t file) const noexcept {
    return file >= first_file && file < pack_file();
  }
  [[nodiscard]] const list::ManifestEntry& entry(std::uint32_t file) const {
    return manifest->files[file - first_file];
  }
  [[nodiscard]] FileAction action(std::uint32_t file) const {
    return answer->actions[file - first_file];
  }
  [[nodiscard]] bool is_file_done(std::uint32_t file) const { return is_done[file - first_file]; }
  /// is_pack: the pack has this index, and there is one.
  [[nodiscard]] bool is_pack(std::uint32_t file) const noexcept {
    return answer != nullptr && pack() != nullptr && file == pack_file();
  }
  /// has_blocks: entry `file` has digests of its own.
  [[nodiscard]] bool has_blocks(std::uint32_t file) const {
    return has_entry(file) && answer != nullptr && has_digests(action(file)) &&
           (pack() == nullptr || !pack()->contains(file - first_file));
  }
  [[nodiscard]] bool is_over() const noexcept {
    return answer != nullptr && files_left == 0 && roots_left == 0;
  }
  /// is_settled: an entry that is not offered again. Folders are, for their times are set last.
  [[nodiscard]] bool is_settled(std::size_t i) const {
    return answer != nullptr &&
           (!has_digests(answer->actions[i]) || (is_done[i] && !manifest->files[i].is_folder()));
  }
  /// take_answer takes the receiver's answer, which fits the manifest.
  void take_answer(list::Answer given);
  /// bytes_of_blocks are in the blocks that the sender reads for it.
  [[nodiscard]] std::uint64_t bytes_of_blocks() const;
  /// take_packed marks the records of `run`; nothing: it has some that are done, or are none, or
  /// that the file side has not read yet.
  [[nodiscard]] std::span<const std::uint32_t> take_packed(const RecordRun& run);
  [[nodiscard]] FileOutcome outcome_of(const RecordRun& run, std::uint32_t ordinal) const {
    return run.outcome == RecordOutcome::kept      ? FileOutcome::kept
           : run.outcome == RecordOutcome::refused ? FileOutcome::name_refused
           : pack()->is_whole(ordinal)             ? FileOutcome::received
                                                   : FileOutcome::there;
  }
  /// packed_root is the root of the record at this ordinal; zero: not known.
  [[nodiscard]] Digest packed_root(std::uint32_t ordinal) const {
    return answer->pack_roots == nullptr ? Digest{}
                                         : answer->pack_roots->find(ordinal).value_or(Digest{});
  }
};

/// Volumes are those that are under way, in order.
class Volumes {
 public:
  /// add takes the next one and gives it its indices; null: there are no more indices.
  [[nodiscard]] VolumeState* add(const list::Volume& volume);
  /// find gives the volume of an index; null: none that is under way.
  [[nodiscard]] VolumeState* find(std::uint32_t file) noexcept;
  /// unanswered is the first without an answer; null: none.
  [[nodiscard]] VolumeState* unanswered() noexcept;
  /// take_root keeps the root of a file or a pack that is still to be announced; false: it is not.
  [[nodiscard]] bool take_root(std::uint32_t file, const Digest& root);
  /// pop_over forgets the first volume if it is over; its manifest, or null.
  [[nodiscard]] std::shared_ptr<const list::Manifest> pop_over();
  /// restart forgets all: the next one begins at index 0.
  void restart() { *this = {}; }

  [[nodiscard]] bool has_room() const noexcept { return open_.size() < volumes_open_max; }
  /// is_over: the last one came, and all are over.
  [[nodiscard]] bool is_over() const noexcept { return has_last_ && open_.empty(); }
  [[nodiscard]] bool has_last() const noexcept { return has_last_; }
  /// are_roots_announced: the last one came, and every root of all.
  [[nodiscard]] bool are_roots_announced() const noexcept;
  [[nodiscard]] std::deque<VolumeState>& open() noexcept { return open_; }

 private:
  std::deque<VolumeState> open_;
  std::uint32_t next_file_ = 0;
  bool has_last_ = false;
};

}  // namespace onehop::session
