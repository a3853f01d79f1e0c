// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// VolumeState: an open volume as both machines keep it, with the outcomes of its entries. One
// thread.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "control/session/message.hpp"
#include "control/session/session.hpp"
#include "engine/list/pack.hpp"

namespace onehop::session {

/// can_come_to: whether a file with this action can have that outcome. A comparison writes nothing,
/// and only it can find that another version was kept.
[[nodiscard]] constexpr bool can_come_to(FileAction action, FileOutcome outcome) noexcept {
  if (action == FileAction::compare)
    return outcome == FileOutcome::there || outcome == FileOutcome::kept;
  return outcome == FileOutcome::received || outcome == FileOutcome::there ||
         outcome == FileOutcome::name_refused;
}

struct VolumeState : list::Volume {
  /// Null: there is no answer yet, and the members below are not valid.
  std::shared_ptr<const list::Answer> answer;
  std::vector<bool> is_done;
  std::size_t files_left = 0;                       ///< without an outcome
  std::size_t roots_left = 0;                       ///< not announced yet; the pack has one for all
                                                    ///< its files
  std::unordered_map<std::uint32_t, Digest> roots;  ///< announced, by index in the session

  /// pack of an answered volume; null: nothing is packed.
  [[nodiscard]] const list::Pack* pack() const noexcept { return answer->pack.get(); }
  [[nodiscard]] std::uint32_t pack_file() const noexcept {
    return first_file + static_cast<std::uint32_t>(manifest->files.size());
  }
  /// end is the first index after the volume.
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
  /// is_pack: the volume has a pack, and this is its index.
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
  /// is_settled: the entry is not offered again. Folders are, because their times are set last.
  [[nodiscard]] bool is_settled(std::size_t i) const {
    return answer != nullptr &&
           (!has_digests(answer->actions[i]) || (is_done[i] && !manifest->files[i].is_folder()));
  }
  /// take_answer takes the receiver's answer, which matches the manifest.
  void take_answer(list::Answer given);
  /// bytes_of_blocks is the number of bytes in the blocks that the sender reads for it.
  [[nodiscard]] std::uint64_t bytes_of_blocks() const;
  /// take_packed marks the records of `run` as done and returns them; empty: some are done already,
  /// do not exist, or were not read by the file side yet.
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

/// Volumes: the open volumes, in order.
class Volumes {
 public:
  /// add takes the next volume and assigns its indices; null: there are no more indices.
  [[nodiscard]] VolumeState* add(const list::Volume& volume);
  /// find returns the open volume of an index, or null.
  [[nodiscard]] VolumeState* find(std::uint32_t file) noexcept;
  /// unanswered is the first volume without an answer, or null.
  [[nodiscard]] VolumeState* unanswered() noexcept;
  /// take_root keeps the announced root of a file or a pack; false: no such root is due.
  [[nodiscard]] bool take_root(std::uint32_t file, const Digest& root);
  /// pop_over removes the first volume if it is over, and returns its manifest, or null.
  [[nodiscard]] std::shared_ptr<const list::Manifest> pop_over();
  /// restart removes all volumes: the next one begins at index 0.
  void restart() { *this = {}; }

  [[nodiscard]] bool has_room() const noexcept { return open_.size() < volumes_open_max; }
  /// is_over: the last volume came, and all are over.
  [[nodiscard]] bool is_over() const noexcept { return has_last_ && open_.empty(); }
  [[nodiscard]] bool has_last() const noexcept { return has_last_; }
  /// are_roots_announced: the last volume came, and every root is announced.
  [[nodiscard]] bool are_roots_announced() const noexcept;
  [[nodiscard]] std::deque<VolumeState>& open() noexcept { return open_; }

 private:
  std::deque<VolumeState> open_;
  std::uint32_t next_file_ = 0;
  bool has_last_ = false;
};

}  // namespace onehop::session
