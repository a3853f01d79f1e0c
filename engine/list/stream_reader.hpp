// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// read_stream: a descriptor's bytes, as the volumes of one file of unknown size.
//
//   fd ─▶ read ─▶ [ piece in memory | next ] ─▶ a volume each ─▶ VolumeOutlet
//
// A piece is sent, verified and forgotten as a small file is, so the open volumes bound the memory,
// and what has left cannot be sent again: a stream does not resume. It runs in the outlet's thread.
#pragma once

#include <string>

#include "engine/base/result.hpp"
#include "engine/list/volume_maker.hpp"

namespace onehop::list {

struct StreamInput {
  int fd = -1;       ///< outlives the reading; read, never written or closed
  std::string name;  ///< of the file at the other end; as that of a ManifestEntry
};

/// Bytes of a full piece. Higher: memory, some ten of them at once. Lower: an offer and an answer
/// for less.
inline constexpr std::uint64_t piece_bytes_max = std::uint64_t{4} << 20;

/// read_stream puts volumes of one piece each, and returns the last one. A piece that is not full
/// is put when it is VolumeSizes::age_max old and awaited; the first one may be empty then. Error:
/// a read failed, or the outlet is stopped. Syscalls: poll, read, memfd_create, pwrite, fstat.
[[nodiscard]] Result<ScanVolume> read_stream(const StreamInput& input, VolumeOutlet& outlet);

}  // namespace onehop::list
