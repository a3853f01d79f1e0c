// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SinkVolume::prepare() of a session that is one stream.
#include <fcntl.h>
#include <sys/stat.h>

#include "engine/base/display_name.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/sink/sink_volume.hpp"

namespace onehop::sink {

/// The first volume says whether the session is a stream; then all are.
Result<void> SinkVolume::check_stream() {
  std::string& stream = destination_->stream_name();
  const bool is_first = first_file() == 0, is_empty = entries() == 0;
  const bool has_piece = !is_empty && manifest().files[0].is_piece();
  if (destination_->is_output()) {
    if (is_empty && !stream.empty()) return success();  // behind a file that is no stream
    const bool is_file = entries() == 1 && manifest().files[0].kind == list::EntryKind::file;
    if (!has_piece && !(is_first && is_file))
      return Error{ExitCode::local_file_error, "write to standard output",
                   "the sender offers more than one file, or a folder",
                   "Take a folder with --dir, or let it send an archive", 0};
  } else if (!has_piece && stream.empty()) {
    return success();
  }
  if (is_first) {
    stream = manifest().files[0].name;
    if (Result<void> named = check_stream_name(manifest().files[0]); named.has_error())
      return of_destination(0, std::move(named).error());
  }
  if (is_empty || stream != manifest().files[0].name || (!is_first && !has_piece))
    return Error{ExitCode::local_file_error, "receive the stream",
                 "what follows its pieces is none, or it begins behind other files",
                 "Nothing of it is kept", 0};
  is_stream_ = true;
  needs_inode_[0] = is_first;
  return success();
}

/// Whatever has the name cannot be compared with a stream, whose size nobody knows.
Result<void> SinkVolume::check_stream_name(const list::ManifestEntry& piece) {
  const std::string attempt = "receive '" + display_name(piece.name) + "'";
  if (const int fault = name_fault(0); fault != 0)
    return Error{ExitCode::local_file_error, attempt, errno_text(fault),
                 "Let it be sent under another --name", 0};
  if (destination_->is_output()) return success();
  ONEHOP_TRYV(places_.check(piece.name, true));
  if (policy_of(0) == OnExist::rename) return success();
  ONEHOP_TRY(folder, places_.folder_of(piece.name, may_replace(0)));
  struct stat status {};
  const std::string leaf{disk::leaf_of(piece.name)};
  if (!folder || ::fstatat(*folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return success();
  if (may_replace(0) && S_ISREG(status.st_mode)) return success();
  return Error{ExitCode::local_file_error, attempt,
               "that name exists, and a stream cannot be compared with it",
               "Choose --on-exist rename or overwrite", 0};
}

}  // namespace onehop::sink
