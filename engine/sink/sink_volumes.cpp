// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink, the volumes: how they come, what is told of their files, and how they end, in order.
//
//   pack verified, all else in place, all before it as well ─▶ its folders get mode and time, in
//   the batch of its last records ─▶ what was held is told ─▶ it is dropped
#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/sink/sink.hpp"

namespace onehop::sink {

Sink::Writing::Writing(std::unique_ptr<SinkVolume> given)
    : list{std::move(given)},
      is_done(list->entries(), false),
      files_left{
          static_cast<std::size_t>(std::ranges::count_if(list->actions(), list::has_digests))} {}

void Sink::add(std::unique_ptr<SinkVolume> volume, bool is_last) {
  ONEHOP_CHECK(volume != nullptr);
  const std::lock_guard lock{added_.mutex};
  added_.volumes.push_back({std::move(volume), is_last});
}

void Sink::take_volumes() {
  const std::lock_guard lock{added_.mutex};
  for (; !added_.volumes.empty(); added_.volumes.pop_front()) {
    ONEHOP_CHECK(!taken_.has_last);
    taken_.has_last = added_.volumes.front().is_last;
    auto made = std::make_unique<Writing>(std::move(added_.volumes.front().volume));
    Writing& volume = *volumes_.emplace_back(std::move(made));
    SinkVolume& list = *volume.list;
    ONEHOP_CHECK(list.first_file() >= taken_.end_file);
    list.places().make_way();
    taken_.end_file = list.pack_file() + 1;
    for (const std::uint64_t size : list.block_sizes())
      if (size != file_without_blocks) blocks_.left += blocks_of(size);
    for (auto& [entry, part] : list.parts()) {
      auto open = std::make_unique<OpenFile>(volume, destination_->options().digest_kind);
      open->part = std::move(part);
      const int errno_value = open->part.begin(*destination_);
      OpenFile& begun = *open;
      open_.emplace(list.first_file() + entry, std::move(open));
      if (errno_value != 0) refuse(begun, list.first_file() + entry, errno_value);
    }
    list.parts().clear();
    for (std::uint32_t entry = 0; entry < list.entries(); ++entry)
      if (!list.held_of(entry).empty()) held_.files.push_back(list.first_file() + entry);
    if (list.is_stream())
      volume.base = std::exchange(taken_.stream_bytes, taken_.stream_bytes + list.entry(0).size);
    volume.records_left = list.pack().entries().size();
    if (!list.pack().is_empty()) volume.pack = std::make_unique<PackSink>(list, commit_);
  }
}

/// The volume that a message is about. Null: it has ended, or there is none.
Sink::Writing* Sink::volume_of(std::uint32_t file) {
  if (file >= taken_.end_file) take_volumes();  // it was added before the message was sent
  const auto at =
      std::ranges::find_if(volumes_, [&](const auto& volume) { return volume->contains(file); });
  return at == volumes_.end() ? nullptr : at->get();
}

/// Tells of files that are in place, but of a volume's last ones only when it ends.
void Sink::tell(Writing& volume, const FileEvent& done, std::size_t files) {
  ONEHOP_CHECK(files <= volume.files_left);
  volume.files_left -= files;
  done_total_ += files;
  if (volume.files_left == 0)
    volume.held.push_back(done);
  else
    told_.push_back(done);
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
    volume->records_left -= run->count;
    tell(*volume,
         RecordsFinished{.pack = volume->list->pack_file(),
                         .first = run->first,
                         .count = run->count,
                         .outcome = run->fault != 0 ? FileOutcome::name_refused
                                    : run->is_kept  ? FileOutcome::kept
                                                    : FileOutcome::received,
                         .name_number = run->fault != 0 ? 0 : run->name_number,
                         .name_fault = run->fault},
         run->count);
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
    if (stream_ && taken_.has_last && volumes_.size() == 1 && !finish_stream(oldest)) return;
    if (!oldest.are_folders_finishing) oldest.list->discard_left();
    told_.insert(told_.end(), oldest.held.begin(), oldest.held.end());
    volumes_.pop_front();
  }
}

/// Of volumes that will not end: their files are in place all the same.
void Sink::tell_held() {
  for (const auto& volume : volumes_) {
    told_.insert(told_.end(), volume->held.begin(), volume->held.end());
    volume->held.clear();
  }
}

}  // namespace onehop::sink
