// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/chapter_maker.hpp"

#include <algorithm>
#include <utility>

#include "engine/base/time.hpp"

namespace onehop::list {

ChapterMaker::ChapterMaker(const ScanOptions& options, ScanArguments& arguments,
                           const ChapterSizes& sizes, ChapterOutlet* outlet)
    : options_{options}, arguments_{arguments}, sizes_{sizes}, outlet_{outlet} {
  begin(0);
}

void ChapterMaker::begin(std::size_t entries) {
  SourceFiles& source = chapter_.source;
  source.roots = arguments_.roots;
  source.manifest.files.reserve(entries);
  source.places.reserve(entries);
  source.files.reserve(entries);
}

Result<void> ChapterMaker::add(ManifestEntry entry, SourcePlace place, SourceFile file) {
  SourceFiles& source = chapter_.source;
  if (outlet_ != nullptr && source.files.size() >= sizes_.entries_max) {
    ONEHOP_TRYV(put());
  }
  if (outlet_ != nullptr && source.files.empty()) begun_ = monotonic_now();
  entry.is_folder() ? ++chapter_.counts.folders : ++chapter_.counts.files;
  chapter_.counts.bytes += entry.size;
  source.add(std::move(entry), place, std::move(file));
  note(false);
  return success();
}

void ChapterMaker::exclude(std::string path, std::string rule) {
  ++chapter_.counts.excluded;
  if (options_.lists_excluded)
    chapter_.excluded.push_back({.path = std::move(path), .rule = std::move(rule)});
}

bool ChapterMaker::keeps_open() const noexcept {
  return chapters_put_ == 0 &&
         chapter_.source.files.size() < std::min(arguments_.kept_max, sizes_.entries_max);
}

Result<void> ChapterMaker::check() {
  if (entries_total() > options_.limits.entries_max)
    return too_many_entries(entries_total(), options_.limits);
  if (outlet_ == nullptr) return success();
  if (outlet_->is_stopped())
    return Error{ExitCode::interrupted, "look through the folders", "it was ended"};
  if (chapter_.problems.size() >= sizes_.entries_max) return put();
  if (!chapter_.source.files.empty() && monotonic_now() - begun_ >= sizes_.age_max &&
      outlet_->is_starved())
    return put();
  return success();
}

/// The rules of a list hold for each chapter. Names in different chapters differ: they stand in
/// different folders, or are different names of one, or take_name() has compared them.
Result<void> ChapterMaker::seal() {
  chapter_.counts.hard_links = arguments_.links.links_total();
  chapter_.counts.has_more_hard_links = arguments_.links.is_lower_bound();
  const std::size_t entries = chapter_.source.files.size();
  const std::uint64_t bytes = total_bytes(chapter_.source.manifest);
  leave_out_temporaries(chapter_.source, chapter_.problems);
  chapter_.counts.files -= entries - chapter_.source.files.size();
  chapter_.counts.bytes -= bytes - total_bytes(chapter_.source.manifest);
  if (!chapter_.source.files.empty()) {
    ONEHOP_TRYV(validate(chapter_.source.manifest, options_.limits));
  }
  if (chapter_.counts.bytes <= options_.limits.total_bytes_max) return success();
  return too_many_bytes(chapter_.counts.bytes, options_.limits);
}

Result<void> ChapterMaker::put() {
  ONEHOP_TRYV(seal());
  const std::size_t entries = chapter_.source.files.size();
  ScanChapter next;
  next.counts = chapter_.counts;
  ++chapters_put_;
  ONEHOP_TRYV(outlet_->wait_put(std::exchange(chapter_, std::move(next))));
  begin(entries);
  return success();
}

void ChapterMaker::note(bool is_complete) {
  if (outlet_ != nullptr)
    outlet_->note({.entries = entries_total(),
                   .files = chapter_.counts.files,
                   .bytes = chapter_.counts.bytes,
                   .is_complete = is_complete});
}

Result<ScanChapter> ChapterMaker::finish() {
  if (entries_total() == 0 && !chapter_.problems.empty())
    return Error{ExitCode::local_file_error,
                 attempt_to_offer(chapter_.problems.front().path),
                 chapter_.problems.front().cause + ", and there is nothing else",
                 {},
                 0};
  if (entries_total() == 0) {
    ONEHOP_TRYV(validate({}, options_.limits));  // which refuses an empty list
  }
  ONEHOP_TRYV(seal());
  chapter_.is_last = true;
  note(true);
  return std::move(chapter_);
}

}  // namespace onehop::list
