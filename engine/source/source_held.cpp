// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Source, what the receiver has already: its tags come while other blocks are sent.
#include "engine/source/source.hpp"

namespace onehop::source {

void Source::take(const FileCommand& command) {
  if (const auto* held = std::get_if<HeldBlock>(&command))
    tags_[held->file].told.push_back({held->block, held->tag});
  if (const auto* end = std::get_if<HeldEnd>(&command)) tags_[end->file].is_over = true;
}

/// Whether the peer has said what it has of a block of the next file, which it seemed to have.
bool Source::is_tag_known(std::uint64_t block) {
  Tags& tags = tags_[next_file()];
  while (!tags.told.empty() && tags.told.front().block < block) tags.told.pop_front();
  return !tags.told.empty() || tags.is_over;
}

/// That of a block, which is known. Nothing: the peer has nothing of it.
std::optional<Digest> Source::take_tag(std::uint64_t block) {
  if (!next_.piece->is_held) return std::nullopt;
  std::deque<Claim>& told = tags_[next_file()].told;
  if (told.empty() || told.front().block != block) return std::nullopt;
  const Digest tag = told.front().digest;
  told.pop_front();
  return tag;
}

/// The tag of a block that the peer has, or that is only compared; without data it is zeros.
/// Nothing: the peer has not got this content, and wants it. A block that it has nothing of costs
/// no tag.
std::optional<Digest> Source::tag_if_held(const BlockRef& block, const std::optional<Digest>& tag) {
  const SourceVolume& list = volume_of(block.file);
  const bool is_compared = list.action(block.file - list.first_file) == list::FileAction::compare;
  if (!is_compared && !tag) return std::nullopt;
  const Digest own =
      block.data == nullptr ? mac_.zero_tag(block.length) : mac_.tag({block.data, block.length});
  if (!is_compared && own != tag) return std::nullopt;
  return own;
}

}  // namespace onehop::source
