// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/volume_maker.hpp"

#include <algorithm>
#include <utility>

#include "engine/base/time.hpp"

namespace onehop::list {

VolumeMaker::VolumeMaker(const ScanOptions& options, ScanArguments& arguments,
                         const VolumeSizes& sizes, VolumeOutlet* outlet)
    : options_{options}, arguments_{arguments}, sizes_{sizes}, outlet_{outlet} {
  begin(0);
}

void VolumeMaker::begin(std::size_t entries) {
  SourceFiles& source = volume_.source;
  source.roots = arguments_.roots;
  source.manifest.files.reserve(entries);
  source.places.reserve(entries);
  source.files.reserve(entries);
}

Result<void> VolumeMaker::add(ManifestEntry entry, SourcePlace place, SourceFile file) {
  SourceFiles& source = volume_.source;
  if (outlet_ != nullptr && source.files.size() >= sizes_.entries_max) {
    ONEHOP_TRYV(put());
  }
  if (outlet_ != nullptr && source.files.empty()) begun_ = monotonic_now();
  entry.is_folder() ? ++volume_.counts.folders : ++volume_.counts.files;
  volume_.counts.bytes += entry.size;
  source.add(std::move(entry), place, std::move(file));
  note(false);
  return success();
}

void VolumeMaker::exclude(std::string path, std::string rule) {
  ++volume_.counts.excluded;
  if (options_.lists_excluded)
    volume_.excluded.push_back({.path = std::move(path), .rule = std::move(rule)});
}

bool VolumeMaker::keeps_open() const noexcept {
  return volumes_put_ == 0 &&
         volume_.source.files.size() < std::min(arguments_.kept_max, sizes_.entries_max);
}

Result<void> VolumeMaker::check() {
  if (entries_total() > options_.limits.entries_max)
    return too_many_entries(entries_total(), options_.limits);
  if (outlet_ == nullptr) return success();
  if (outlet_->is_stopped())
    return Error{ExitCode::interrupted, "look through the folders", "it was ended"};
  if (volume_.problems.size() >= sizes_.entries_max) return put();
  if (!volume_.source.files.empty() && monotonic_now() - begun_ >= sizes_.age_max &&
      outlet_->is_starved())
    return put();
  return success();
}

/// The rules of a list hold for each volume. Names in different volumes differ: they stand in
/// different folders, or are different names of one, or take_name() has compared them.
Result<void> VolumeMaker::seal() {
  volume_.counts.hard_links = arguments_.links.links_total();
  volume_.counts.has_more_hard_links = arguments_.links.is_lower_bound();
  const std::size_t entries = volume_.source.files.size();
  const std::uint64_t bytes = total_bytes(volume_.source.manifest);
  leave_out_temporaries(volume_.source, volume_.problems);
  volume_.counts.files -= entries - volume_.source.files.size();
  volume_.counts.bytes -= bytes - total_bytes(volume_.source.manifest);
  if (!volume_.source.files.empty()) {
    ONEHOP_TRYV(validate(volume_.source.manifest, options_.limits));
  }
  if (volume_.counts.bytes <= options_.limits.total_bytes_max) return success();
  return too_many_bytes(volume_.counts.bytes, options_.limits);
}

Result<void> VolumeMaker::put() {
  ONEHOP_TRYV(seal());
  const std::size_t entries = volume_.source.files.size();
  ScanVolume next;
  next.counts = volume_.counts;
  ++volumes_put_;
  ONEHOP_TRYV(outlet_->wait_put(std::exchange(volume_, std::move(next))));
  begin(entries);
  return success();
}

void VolumeMaker::note(bool is_complete) {
  if (outlet_ != nullptr)
    outlet_->note({.entries = entries_total(),
                   .files = volume_.counts.files,
                   .bytes = volume_.counts.bytes,
                   .is_complete = is_complete});
}

Result<ScanVolume> VolumeMaker::finish() {
  if (entries_total() == 0 && !volume_.problems.empty())
    return Error{ExitCode::local_file_error,
                 attempt_to_offer(volume_.problems.front().path),
                 volume_.problems.front().cause + ", and there is nothing else",
                 {},
                 0};
  if (entries_total() == 0) {
    ONEHOP_TRYV(validate({}, options_.limits));  // which refuses an empty list
  }
  ONEHOP_TRYV(seal());
  volume_.is_last = true;
  note(true);
  return std::move(volume_);
}

}  // namespace onehop::list
