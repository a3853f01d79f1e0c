// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/pack_batches.hpp"

#include <utility>

#include "engine/file/pack.hpp"

namespace onehop::file {

namespace {
// A batch is due at the first of these. Smaller: more syncs, each a pause of the disk. Larger: a
// power cut loses more, and it is sent again: 64 MiB took no less time on ext4 than 16.
constexpr std::size_t batch_files_max = 4096;
constexpr std::uint64_t batch_bytes_max = std::uint64_t{16} << 20;
constexpr Nanos batch_span = 1s;
}  // namespace

int PackBatches::open() {
  if (has_started_) return 0;
  has_started_ = true;
  scratch_.resize(packed_bytes_max);
  if (const int errno_value = stage_.open(options_.root); errno_value != 0) return errno_value;
  const auto started = commit_.start();
  return started ? 0 : started.error().errno_value;
}

void PackBatches::add(Instant now, const PackRecord& record) {
  if (batch_.records.empty()) batch_at_ = now;
  batch_.records.push_back(record);
  if (record.outcome == FileOutcome::received) batch_bytes_ += record.entry().size;
}

void PackBatches::finish(const PackList& list) { batch_.finished.push_back(&list); }

bool PackBatches::is_full() const noexcept {
  return batch_.records.size() >= batch_files_max || batch_bytes_ >= batch_bytes_max;
}

std::optional<PackFailure> PackBatches::turn(Instant now, bool is_all) {
  if (auto failure = commit_.failure()) return failure;
  if (batch_.is_empty()) return std::nullopt;
  // A file of its own each: what came with one block is a batch.
  const bool is_due = is_full() || is_all || now - batch_at_ >= batch_span ||
                      options_.durability == Durability::file;
  if (!is_due) return std::nullopt;
  // Two batches are all that a power cut may take; then the disk holds the sender back.
  if (is_full()) commit_.wait_idle();
  return commit_.is_idle() ? hand_over() : std::nullopt;
}

std::optional<PackFailure> PackBatches::hand_over() {
  if (options_.durability != Durability::none && !batch_.records.empty())
    if (const int errno_value = options_.session->sync(); errno_value != 0)
      return PackFailure{batch_.records.front().file(), FileFailure::sync_error, errno_value};
  commit_.commit(std::exchange(batch_, {}));
  batch_bytes_ = 0;
  return std::nullopt;
}

std::optional<PackFailure> PackBatches::commit_all() {
  commit_.wait_idle();
  if (!batch_.is_empty())
    if (auto failure = hand_over()) return failure;
  commit_.wait_idle();
  return commit_.failure();
}

void PackBatches::close() {
  if (!stage_.is_open()) return;
  static_cast<void>(commit_all());  // what failed was told, or ends only the keeping
  stage_.remove();
}

}  // namespace onehop::file
