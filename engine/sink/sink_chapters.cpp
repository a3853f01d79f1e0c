// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink, the chapters: what is told of their files, and how they end, in order.
//
//   pack verified, all else in place, all before it as well ─▶ its folders get mode and time, in
//   the batch of its last records ─▶ what was held is told ─▶ it is dropped
#include "engine/base/check.hpp"
#include "engine/sink/sink.hpp"

namespace onehop::sink {

/// Tells of files that are in place, but of a chapter's last ones only when it ends.
void Sink::tell(Chapter& chapter, const BlockRef& done) {
  const std::size_t count = done.kind == FileMessageKind::pack_done ? done.length : 1;
  ONEHOP_CHECK(count <= chapter.files_left);
  chapter.files_left -= count;
  if (done.kind == FileMessageKind::pack_done) chapter.records_left -= count;
  done_total_ += count;
  if (chapter.files_left == 0)
    chapter.held.push_back(done);
  else
    outbox_.push_back(done);
}

/// Takes what the commit thread has done: runs of packed files that are in place, folders that have
/// mode and time.
void Sink::tell_packed() {
  while (const auto run = commit_.pop()) {
    Chapter* const chapter = chapter_of(run->list->first_file());
    ONEHOP_CHECK(chapter != nullptr);  // it does not end before
    if (run->count == 0) {
      chapter->are_folders_finished = true;
      continue;
    }
    for (std::uint32_t i = 0; i < run->count; ++i) {
      const std::uint32_t entry = run->list->pack().entries()[run->first + i];
      chapter->is_done[entry] = true;
      chapter->list->count_made(entry);  // of a folder; a file's was counted in the stage
    }
    tell(*chapter,
         {.offset = run->first,
          .file = chapter->list->pack_file(),
          .length = run->count,
          .status = run->fault != 0 ? run->fault : static_cast<std::int32_t>(run->name_number),
          .kind = FileMessageKind::pack_done,
          .outcome = run->fault != 0 ? FileOutcome::name_refused
                     : run->is_kept  ? FileOutcome::kept
                                     : FileOutcome::received});
  }
}

/// Folders of chapters that were gathered, as all before them were: a later file would change their
/// times. True: every chapter that is here was.
bool Sink::finish_folders() {
  for (const auto& chapter : chapters_) {
    if (!chapter->is_gathered()) return false;
    if (chapter->pack && chapter->pack->has_folders() &&
        !std::exchange(chapter->are_folders_finishing, true)) {
      chapter->list->discard_left();  // before: what is removed changes its folder's time
      commit_.finish(*chapter->list);
    }
  }
  return true;
}

void Sink::end_chapters() {
  while (!chapters_.empty() && !is_stopped_) {
    Chapter& oldest = *chapters_.front();
    if (oldest.files_left > 0 || !oldest.is_gathered()) return;
    if (oldest.pack && oldest.pack->has_folders() && !oldest.are_folders_finished) return;
    if (stream_ && has_last_ && chapters_.size() == 1 && !finish_stream(oldest)) return;
    if (!oldest.are_folders_finishing) oldest.list->discard_left();
    outbox_.insert(outbox_.end(), oldest.held.begin(), oldest.held.end());
    chapters_.pop_front();
  }
}

/// Of chapters that will not end: their files are in place all the same.
void Sink::tell_held() {
  for (const auto& chapter : chapters_) {
    outbox_.insert(outbox_.end(), chapter->held.begin(), chapter->held.end());
    chapter->held.clear();
  }
}

}  // namespace onehop::sink
