// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Chapter: a run of a tree's entries that is offered, answered and forgotten as a whole, as both
// machines keep it. So a session's memory does not grow with the tree.
//
//   file index   0 .. 2047 | 2048 | 2049 .. 4096 | 4097 | 4098 ..
//                entries     pack   entries        pack
//
// Indices count through the session, and each chapter has one more, for its pack. One thread.
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

struct Chapter {
  std::uint32_t first_file = 0;
  std::shared_ptr<const list::Manifest> manifest;
  Digest manifest_hash{};
  bool is_last = false;      ///< of the session
  bool is_answered = false;  ///< what follows is valid
  std::vector<FileAction> actions;
  std::vector<std::uint8_t> name_faults;        ///< as ChapterAnswer has them
  std::shared_ptr<const list::Pack> pack;       ///< null: nothing is packed
  std::shared_ptr<list::PackRoots> pack_roots;  ///< of `pack`; null: they are not known here
  std::vector<bool> is_done;
  std::size_t files_left = 0;                       ///< that nothing was said about
  std::size_t roots_left = 0;                       ///< to be announced; one for all of the pack
  std::unordered_map<std::uint32_t, Digest> roots;  ///< announced, by index in the session

  [[nodiscard]] std::uint32_t pack_file() const noexcept {
    return first_file + static_cast<std::uint32_t>(manifest->files.size());
  }
  /// end is the first index behind the chapter.
  [[nodiscard]] std::uint32_t end() const noexcept { return pack_file() + 1; }
  [[nodiscard]] bool has_entry(std::uint32_t file) const noexcept {
    return file >= first_file && file < pack_file();
  }
  [[nodiscard]] const list::ManifestEntry& entry(std::uint32_t file) const {
    return manifest->files[file - first_file];
  }
  [[nodiscard]] FileAction action(std::uint32_t file) const { return actions[file - first_file]; }
  [[nodiscard]] bool is_file_done(std::uint32_t file) const { return is_done[file - first_file]; }
  /// is_pack: the pack has this index, and there is one.
  [[nodiscard]] bool is_pack(std::uint32_t file) const noexcept {
    return pack != nullptr && file == pack_file();
  }
  /// has_blocks: entry `file` has digests of its own.
  [[nodiscard]] bool has_blocks(std::uint32_t file) const {
    return has_entry(file) && is_answered && has_digests(action(file)) &&
           (pack == nullptr || !pack->contains(file - first_file));
  }
  [[nodiscard]] bool is_over() const noexcept {
    return is_answered && files_left == 0 && roots_left == 0;
  }
  /// is_settled: an entry that is not offered again. Folders are, for their times are set last.
  [[nodiscard]] bool is_settled(std::size_t i) const {
    return is_answered &&
           (!has_digests(actions[i]) || (is_done[i] && !manifest->files[i].is_folder()));
  }
  /// answer takes the receiver's answer, which fits the manifest.
  void answer(std::vector<FileAction> given, std::vector<std::uint8_t> faults,
              crypto::DigestKind kind);
  /// bytes_of_blocks are in the blocks that the sender reads for it.
  [[nodiscard]] std::uint64_t bytes_of_blocks() const;
  /// take_packed marks the records of `run`; nothing: it has some that are done, or are none, or
  /// that the file side has not read yet.
  [[nodiscard]] std::span<const std::uint32_t> take_packed(const RecordRun& run);
  [[nodiscard]] FileOutcome outcome_of(const RecordRun& run, std::uint32_t ordinal) const {
    return run.outcome == RecordOutcome::kept      ? FileOutcome::kept
           : run.outcome == RecordOutcome::refused ? FileOutcome::name_refused
           : pack->is_whole(ordinal)               ? FileOutcome::received
                                                   : FileOutcome::there;
  }
  /// packed_root is the root of the record at this ordinal; zero: not known.
  [[nodiscard]] Digest packed_root(std::uint32_t ordinal) const {
    return pack_roots == nullptr ? Digest{} : pack_roots->find(ordinal).value_or(Digest{});
  }
};

/// Accepted: the receiver's answer to a chapter. The file side fills the roots of its pack.
struct Accepted {
  Chapter chapter;
  Claims claims;       ///< only files with FileAction::resume have any
  std::string folder;  ///< the peer's, its bytes as they came
};

/// Chapters are those that are under way, in order.
class Chapters {
 public:
  /// add takes the next one and gives it its indices; null: there are no more indices.
  [[nodiscard]] Chapter* add(std::shared_ptr<const list::Manifest> manifest,
                             const Digest& manifest_hash, bool is_last);
  /// find gives the chapter of an index; null: none that is under way.
  [[nodiscard]] Chapter* find(std::uint32_t file) noexcept;
  /// unanswered is the first without an answer; null: none.
  [[nodiscard]] Chapter* unanswered() noexcept;
  /// take_root keeps the root of a file or a pack that is still to be announced; false: it is not.
  [[nodiscard]] bool take_root(std::uint32_t file, const Digest& root);
  /// pop_over forgets the first chapter if it is over; its manifest, or null.
  [[nodiscard]] std::shared_ptr<const list::Manifest> pop_over();
  /// restart forgets all: the next one begins at index 0.
  void restart() { *this = {}; }

  [[nodiscard]] bool has_room() const noexcept { return open_.size() < chapters_open_max; }
  /// is_over: the last one came, and all are over.
  [[nodiscard]] bool is_over() const noexcept { return has_last_ && open_.empty(); }
  [[nodiscard]] bool has_last() const noexcept { return has_last_; }
  /// are_roots_announced: the last one came, and every root of all.
  [[nodiscard]] bool are_roots_announced() const noexcept;
  [[nodiscard]] std::deque<Chapter>& open() noexcept { return open_; }

 private:
  std::deque<Chapter> open_;
  std::uint32_t next_file_ = 0;
  bool has_last_ = false;
};

}  // namespace onehop::session
