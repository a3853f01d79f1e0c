// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink, the volumes: what is told of their files, and how they end, in order.
//
//   pack verified, all else in place, all before it as well ─▶ its folders get mode and time, in
//   the batch of its last records ─▶ what was held is told ─▶ it is dropped
#include "engine/base/check.hpp"
#include "engine/sink/sink.hpp"

namespace onehop::sink {

/// Tells of files that are in place, but of a volume's last ones only when it ends.
void Sink::tell(Writing& volume, const BlockRef& done) {
  const std::size_t count = done.kind == FileMessageKind::pack_done ? done.length : 1;
  ONEHOP_CHECK(count <= volume.files_left);
  volume.files_left -= count;
  if (done.kind == FileMessageKind::pack_done) volume.records_left -= count;
  done_total_ += count;
  if (volume.files_left == 0)
    volume.held.push_back(done);
  else
    outbox_.push_back(done);
}

/// Takes what the commit thread has done: runs of packed files that are in place, folders that have
/// mode and time.
void Sink::tell_packed() {
  while (const auto run = commit_.pop()) {
    Writing* const volume = volume_of(run->list->first_file());
    ONEHOP_CHECK(volume != nullptr);  // it does not end before
    if (run->count == 0) {
      volume->are_folders_finished = true;
      continue;
    }
    for (std::uint32_t i = 0; i < run->count; ++i) {
      const std::uint32_t entry = run->list->pack().entries()[run->first + i];
      volume->is_done[entry] = true;
      volume->list->count_made(entry);  // of a folder; a file's was counted in the stage
    }
    tell(*volume,
         {.offset = run->first,
          .file = volume->list->pack_file(),
          .length = run->count,
          .status = run->fault != 0 ? run->fault : static_cast<std::int32_t>(run->name_number),
          .kind = FileMessageKind::pack_done,
          .outcome = run->fault != 0 ? FileOutcome::name_refused
                     : run->is_kept  ? FileOutcome::kept
                                     : FileOutcome::received});
  }
}

/// Folders of volumes that were gathered, as all before them were: a later file would change their
/// times. True: every volume that is here was.
bool Sink::finish_folders() {
  for (const auto& volume : volumes_) {
    if (!volume->is_gathered()) return false;
    if (volume->pack && volume->pack->has_folders() &&
        !std::exchange(volume->are_folders_finishing, true)) {
      volume->list->discard_left();  // before: what is removed changes its folder's time
      commit_.finish(*volume->list);
    }
  }
  return true;
}

void Sink::end_volumes() {
  while (!volumes_.empty() && !is_stopped_) {
    Writing& oldest = *volumes_.front();
    if (oldest.files_left > 0 || !oldest.is_gathered()) return;
    if (oldest.pack && oldest.pack->has_folders() && !oldest.are_folders_finished) return;
    if (stream_ && has_last_ && volumes_.size() == 1 && !finish_stream(oldest)) return;
    if (!oldest.are_folders_finishing) oldest.list->discard_left();
    outbox_.insert(outbox_.end(), oldest.held.begin(), oldest.held.end());
    volumes_.pop_front();
  }
}

/// Of volumes that will not end: their files are in place all the same.
void Sink::tell_held() {
  for (const auto& volume : volumes_) {
    outbox_.insert(outbox_.end(), volume->held.begin(), volume->held.end());
    volume->held.clear();
  }
}

}  // namespace onehop::sink
