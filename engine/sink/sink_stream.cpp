// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink, a stream: the blocks of its pieces go to one output. A file gets its name when the last
// piece is verified.
#include "engine/sink/sink.hpp"

namespace onehop::sink {

bool Sink::is_stream_open(Writing& volume) {
  if (!stream_) {
    stream_.emplace(*destination_);
    const std::uint32_t file = volume.list->first_file();
    if (const int errno_value = stream_->open(file); errno_value != 0)
      fail(file, FileFailure::write_error, errno_value);
  }
  return !is_stopped_;
}

void Sink::write_stream() {
  while (!is_stopped_) {
    const auto written = stream_->write_next();
    if (!written) return;
    const BlockRef& block = written->block;
    if (block.data != nullptr) give_back(block);
    if (written->errno_value != 0)
      return fail(block.file, FileFailure::write_error, written->errno_value);
    OpenFile& open = *open_.at(block.file);
    if (block.data != nullptr) {
      on_stored(open, block);
      continue;
    }
    if (!add_hole(open, block)) return fail(block.file, FileFailure::protocol);
    settle(block.file);
  }
  drop_stream();
}

void Sink::drop_stream() {
  while (const auto block = stream_->drop())
    if (block->data != nullptr) give_back(*block);
}

/// False: it failed, which was told.
bool Sink::finish_stream(Writing& last) {
  if (stream_->is_ordered()) return true;  // there is no name, and all is written
  const list::ManifestEntry& piece = last.list->entry(0);
  unsigned number = 0;
  const FinishResult result = stream_->finish(piece, last.list->policy_of(0), number);
  if (result.failure != FileFailure::none)
    fail(last.list->first_file(), result.failure, result.errno_value);
  else
    for (FileEvent& done : last.held) std::get<FileFinished>(done).name_number = number;
  return !is_stopped_;
}

}  // namespace onehop::sink
