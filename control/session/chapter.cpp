// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/chapter.hpp"

#include <algorithm>
#include <span>

namespace onehop::session {

void Chapter::answer(std::vector<FileAction> given, std::vector<std::uint8_t> faults,
                     crypto::DigestKind kind) {
  actions = std::move(given);
  name_faults = std::move(faults);
  is_answered = true;
  is_done.assign(actions.size(), false);
  files_left = roots_left = static_cast<std::size_t>(std::ranges::count_if(actions, has_digests));
  auto made = std::make_shared<const list::Pack>(list::Pack::make(*manifest, kind, actions));
  if (made->is_empty()) return;
  roots_left -= made->entries().size() - 1;
  pack = std::move(made);
}

std::uint64_t Chapter::bytes_of_blocks() const {
  std::uint64_t bytes = pack == nullptr ? 0 : pack->bytes();
  for (std::uint32_t i = 0; i < actions.size(); ++i)
    if (has_blocks(first_file + i)) bytes += manifest->files[i].size;
  return bytes;
}

std::span<const std::uint32_t> Chapter::take_packed(const RecordRun& run) {
  if (!is_pack(run.pack) || run.first >= pack->entries().size() ||
      run.count > pack->entries().size() - run.first)
    return {};
  const auto entries = std::span{pack->entries()}.subspan(run.first, run.count);
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    const bool is_read = pack_roots == nullptr || pack_roots->find(run.first + i).has_value();
    const bool is_possible = run.outcome == RecordOutcome::delivered ||
                             can_come_to(actions[entries[i]], outcome_of(run, run.first + i));
    if (is_done[entries[i]] || !is_read || !is_possible) return {};
  }
  for (const std::uint32_t i : entries) is_done[i] = true;
  files_left -= entries.size();
  return entries;
}

Chapter* Chapters::add(std::shared_ptr<const list::Manifest> manifest, const Digest& manifest_hash,
                       bool is_last) {
  if (manifest->files.size() >= file_index_max - next_file_) return nullptr;
  Chapter& chapter = open_.emplace_back();
  chapter.first_file = next_file_;
  chapter.manifest = std::move(manifest);
  chapter.manifest_hash = manifest_hash;
  chapter.is_last = has_last_ = is_last;
  next_file_ = chapter.end();
  return &chapter;
}

Chapter* Chapters::find(std::uint32_t file) noexcept {
  const auto at = std::ranges::find_if(open_, [file](const Chapter& chapter) {
    return file >= chapter.first_file && file < chapter.end();
  });
  return at == open_.end() ? nullptr : &*at;
}

Chapter* Chapters::unanswered() noexcept {
  const auto at = std::ranges::find(open_, false, &Chapter::is_answered);
  return at == open_.end() ? nullptr : &*at;
}

bool Chapters::take_root(std::uint32_t file, const Digest& root) {
  Chapter* const chapter = find(file);
  const bool is_due = chapter != nullptr && (chapter->has_blocks(file) || chapter->is_pack(file)) &&
                      chapter->roots.emplace(file, root).second;
  if (is_due) --chapter->roots_left;
  return is_due;
}

bool Chapters::are_roots_announced() const noexcept {
  return has_last_ && std::ranges::all_of(open_, [](const Chapter& chapter) {
           return chapter.is_answered && chapter.roots_left == 0;
         });
}

std::shared_ptr<const list::Manifest> Chapters::pop_over() {
  if (open_.empty() || !open_.front().is_over()) return nullptr;
  std::shared_ptr<const list::Manifest> over = std::move(open_.front().manifest);
  open_.pop_front();
  return over;
}

}  // namespace onehop::session
