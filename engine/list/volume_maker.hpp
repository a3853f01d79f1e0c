// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// VolumeMaker: makes volumes of what the walk finds, and keeps the counts. A part of
// tree_scan.hpp.
//
//   TreeWalk ── add, problem, exclude ─▶ VolumeMaker ── full, or old ─▶ VolumeOutlet
//                                             └─ finish() ─▶ the last volume
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>

#include "engine/base/units.hpp"
#include "engine/list/scan_arguments.hpp"
#include "engine/list/tree_scan.hpp"

namespace onehop::list {

/// VolumeOutlet is where volumes go, and what asks the walk to end. Called in the walk's thread.
class VolumeOutlet {
 public:
  VolumeOutlet() = default;
  VolumeOutlet(const VolumeOutlet&) = delete;
  VolumeOutlet& operator=(const VolumeOutlet&) = delete;
  virtual ~VolumeOutlet() = default;

  /// wait_put waits until there is room. Error: the walk ends.
  [[nodiscard]] virtual Result<void> wait_put(ScanVolume volume) = 0;
  [[nodiscard]] virtual bool is_stopped() const noexcept = 0;
  /// is_starved: all that was put has been taken.
  [[nodiscard]] virtual bool is_starved() = 0;
  virtual void note(const ScanKnown& known) noexcept = 0;
};

class VolumeMaker {
 public:
  /// Without an outlet all is one volume, which finish() gives. All that is referred to outlives
  /// this.
  VolumeMaker(const ScanOptions& options, ScanArguments& arguments, const VolumeSizes& sizes,
              VolumeOutlet* outlet);

  /// add appends an entry. A volume that is full is put here and not when it became full, so that
  /// the last one has entries in all but rare cases.
  [[nodiscard]] Result<void> add(ManifestEntry entry, SourcePlace place, SourceFile file);
  void add_problem(ScanProblem problem) { volume_.problems.push_back(std::move(problem)); }
  void exclude(std::string path, std::string rule);
  /// count_links is for a file that is sent and was not among the arguments.
  void count_links(const struct stat& status) { arguments_.links.count(status); }

  /// keeps_open: the next file's descriptor is one of those that are kept.
  [[nodiscard]] bool keeps_open() const noexcept;
  [[nodiscard]] bool is_stopped() const noexcept {
    return outlet_ != nullptr && outlet_->is_stopped();
  }
  /// check is called after whatever was looked at: the limits of the list, a request to end, and a
  /// volume that has too many problems or is awaited.
  [[nodiscard]] Result<void> check();
  [[nodiscard]] Result<ScanVolume> finish();

 private:
  [[nodiscard]] Result<void> seal();
  [[nodiscard]] Result<void> put();
  void begin(std::size_t entries);
  void note(bool is_complete);
  [[nodiscard]] std::uint64_t entries_total() const noexcept {
    return volume_.counts.files + volume_.counts.folders;
  }

  const ScanOptions& options_;
  ScanArguments& arguments_;
  const VolumeSizes sizes_;
  VolumeOutlet* const outlet_;
  ScanVolume volume_;
  Instant begun_{};  // when the volume got its first entry
  std::size_t volumes_put_ = 0;
};

}  // namespace onehop::list
