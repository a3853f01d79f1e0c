// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/volume.hpp"

#include <algorithm>
#include <span>

namespace onehop::session {

void VolumeState::take_answer(list::Answer given) {
  answer = std::make_shared<const list::Answer>(std::move(given));
  is_done.assign(answer->actions.size(), false);
  files_left = roots_left =
      static_cast<std::size_t>(std::ranges::count_if(answer->actions, has_digests));
  if (pack() != nullptr) roots_left -= pack()->entries().size() - 1;
}

std::uint64_t VolumeState::bytes_of_blocks() const {
  std::uint64_t bytes = pack() == nullptr ? 0 : pack()->bytes();
  for (std::uint32_t i = 0; i < answer->actions.size(); ++i)
    if (has_blocks(first_file + i)) bytes += manifest->files[i].size;
  return bytes;
}

std::span<const std::uint32_t> VolumeState::take_packed(const RecordRun& run) {
  if (!is_pack(run.pack) || run.first >= pack()->entries().size() ||
      run.count > pack()->entries().size() - run.first)
    return {};
  const auto entries = std::span{pack()->entries()}.subspan(run.first, run.count);
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    const list::PackRoots* const roots_read = answer->pack_roots.get();
    const bool is_read = roots_read == nullptr || roots_read->find(run.first + i).has_value();
    const bool is_possible =
        run.outcome == RecordOutcome::delivered ||
        can_come_to(answer->actions[entries[i]], outcome_of(run, run.first + i));
    if (is_done[entries[i]] || !is_read || !is_possible) return {};
  }
  for (const std::uint32_t i : entries) is_done[i] = true;
  files_left -= entries.size();
  return entries;
}

VolumeState* Volumes::add(const list::Volume& volume) {
  if (volume.manifest->files.size() >= file_index_max - next_file_) return nullptr;
  VolumeState& state = open_.emplace_back(VolumeState{volume});
  state.first_file = next_file_;
  has_last_ = volume.is_last;
  next_file_ = state.end();
  return &state;
}

VolumeState* Volumes::find(std::uint32_t file) noexcept {
  const auto at = std::ranges::find_if(open_, [file](const VolumeState& volume) {
    return file >= volume.first_file && file < volume.end();
  });
  return at == open_.end() ? nullptr : &*at;
}

VolumeState* Volumes::unanswered() noexcept {
  const auto at = std::ranges::find(open_, nullptr, &VolumeState::answer);
  return at == open_.end() ? nullptr : &*at;
}

bool Volumes::take_root(std::uint32_t file, const Digest& root) {
  VolumeState* const volume = find(file);
  const bool is_due = volume != nullptr && (volume->has_blocks(file) || volume->is_pack(file)) &&
                      volume->roots.emplace(file, root).second;
  if (is_due) --volume->roots_left;
  return is_due;
}

bool Volumes::are_roots_announced() const noexcept {
  return has_last_ && std::ranges::all_of(open_, [](const VolumeState& volume) {
           return volume.answer != nullptr && volume.roots_left == 0;
         });
}

std::shared_ptr<const list::Manifest> Volumes::pop_over() {
  if (open_.empty() || !open_.front().is_over()) return nullptr;
  std::shared_ptr<const list::Manifest> over = std::move(open_.front().manifest);
  open_.pop_front();
  return over;
}

}  // namespace onehop::session
