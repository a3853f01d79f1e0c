// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink, what is there already. It is read beside all else, a block a turn, so that nobody waits for
// it: the sender sends what is new meanwhile, and compares when it has the tags.
//
//   SinkVolume::held_of() ─▶ read_held() ─▶ HeldBlock.., HeldEnd ─▶ session ─▶ sender
//                                └─▶ SinkVolume::add_held() ─▶ on_skipped()
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "engine/disk/confined.hpp"
#include "engine/list/manifest.hpp"
#include "engine/sink/sink.hpp"

namespace onehop::sink {

/// A part's journal is a hint: only a block that still has the digest it once had is worth telling.
/// The tag tells whether it is the sender's block: whoever planted a part planted its journal, too.
std::size_t Sink::read_held() {
  if (is_stopped_ || held_.files.empty() || !has_room()) return 0;
  const std::uint32_t file = held_.files.front();
  Writing* const volume = volume_of(file);
  if (volume == nullptr || volume->is_done[volume->entry_of(file)]) {
    held_.end_file();
    return 1;
  }
  SinkVolume& list = *volume->list;
  const std::uint32_t entry = volume->entry_of(file);
  const std::vector<BlockRun>& runs = list.held_of(entry);
  if (!std::exchange(held_.is_begun, true)) {
    held_.there = open_held(*volume, file);
    if (held_.there.is_open()) held_.reader.begin(held_.there.get(), list.entry(entry).size);
  }
  const bool is_lost = !held_.there.is_open();
  const std::uint64_t block = std::max(held_.block, runs[held_.run].first);
  held_.block = block + 1;
  if (held_.block == runs[held_.run].end) ++held_.run;
  const auto held = is_lost ? std::nullopt : held_.reader.read_block(block);
  const auto is_listed = [&] {
    return std::ranges::binary_search(open_.at(file)->part.listed(), Claim{block, held->digest});
  };
  if (held && (list.is_there(entry) || is_listed())) {
    list.add_held(entry, block, *held);
    told_.emplace_back(HeldBlock{file, block, held->tag});
  }
  if (is_lost || held_.run == runs.size()) {
    told_.emplace_back(HeldEnd{file});
    held_.end_file();
  }
  return 1;
}

/// Opens what is there once more: a part is written with flags of its own. Not open: it cannot be
/// read any more.
Fd Sink::open_held(const Writing& volume, std::uint32_t file) const {
  const SinkVolume& list = *volume.list;
  const list::ManifestEntry& entry = list.entry(volume.entry_of(file));
  if (!list.is_there(volume.entry_of(file))) {
    const auto at = open_.find(file);
    return at == open_.end() || at->second->fault != 0 ? Fd{} : at->second->part.open_again();
  }
  const unsigned number = list.existing(volume.entry_of(file)).number;
  const auto place =
      disk::open_place(destination_->root(), list::final_name(entry.name, number), false);
  if (place.has_error()) return {};
  Fd there = disk::open_beneath(place.value().folder.get(), place.value().leaf,
                                O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  const bool is_same = there.is_open() && ::fstat(there.get(), &status) == 0 &&
                       S_ISREG(status.st_mode) &&
                       static_cast<std::uint64_t>(status.st_size) == entry.size;
  return is_same ? std::move(there) : Fd{};
}

}  // namespace onehop::sink
