// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/stream_reader.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "engine/base/time.hpp"
#include "engine/disk/file_bytes.hpp"

namespace onehop::list {

namespace {

constexpr Nanos stop_look = 100ms;  // how late a request to end is seen
constexpr mode_t stream_mode = 0666;

class StreamReader {
 public:
  StreamReader(const StreamInput& input, VolumeOutlet& outlet)
      : input_{input},
        outlet_{outlet},
        roots_{std::make_shared<const std::vector<SourceRoot>>(1)},
        buffer_(block_bytes) {}

  Result<ScanVolume> run() {
    ONEHOP_TRYV(begin());
    while (true) {
      ONEHOP_TRYV(wait());
      const ssize_t got = ::read(input_.fd, buffer_.data(), room());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got < 0) return errno_error(ExitCode::local_file_error, "read the stream to send");
      if (got == 0) return seal(true);
      ONEHOP_TRYV(append(static_cast<std::size_t>(got)));
      if (bytes_ < piece_bytes_max) continue;
      ONEHOP_TRYV(put());
    }
  }

 private:
  std::size_t room() const {
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(buffer_.size(), piece_bytes_max - bytes_));
  }

  Result<void> begin() {
    memory_ = Fd{::memfd_create("onehop-stream", MFD_CLOEXEC)};
    bytes_ = 0;
    if (memory_.is_open()) return success();
    return errno_error(ExitCode::io_unavailable, "keep a piece of the stream in memory");
  }

  /// Until there is something to read. A piece that is old enough does not wait for more, and the
  /// first one not even for its first byte: the session can begin, and be interrupted.
  Result<void> wait() {
    while (true) {
      if (outlet_.is_stopped())
        return Error{ExitCode::interrupted, "read the stream to send", "it was ended"};
      const bool is_awaited = (bytes_ > 0 || !has_put_) && outlet_.is_starved();
      const Nanos left = is_awaited ? begun_ + VolumeSizes{}.age_max - monotonic_now() : stop_look;
      pollfd look{.fd = input_.fd, .events = POLLIN, .revents = 0};
      const auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(
          std::clamp(left, Nanos{0}, Nanos{stop_look}));
      if (::poll(&look, 1, static_cast<int>(wait_ms.count())) > 0) return success();
      if (is_awaited && left <= 0ns) {
        ONEHOP_TRYV(put());
      }
    }
  }

  Result<void> append(std::size_t bytes) {
    if (bytes_ == 0) begun_ = monotonic_now();
    const std::span content = std::span{buffer_}.first(bytes);
    if (const int errno_value = disk::write_at(memory_.get(), content, bytes_); errno_value != 0)
      return Error{ExitCode::io_unavailable, "keep a piece of the stream in memory",
                   errno_text(errno_value), "Free some memory", errno_value};
    bytes_ += bytes;
    counts_.bytes += bytes;
    outlet_.note({.entries = 1, .files = 1, .bytes = counts_.bytes, .is_complete = false});
    return success();
  }

  Result<void> put() {
    ONEHOP_TRY(volume, seal(false));
    ONEHOP_TRYV(outlet_.wait_put(std::move(volume)));
    has_put_ = true;
    return begin();
  }

  /// The last piece may be empty: only then it is known that there is no more.
  Result<ScanVolume> seal(bool is_last) {
    struct stat status {};
    if (::fstat(memory_.get(), &status) != 0)
      return errno_error(ExitCode::internal_error, "look at a piece of the stream");
    ScanVolume volume;
    ManifestEntry entry = entry_of(input_.name, status);
    entry.kind = EntryKind::piece;
    entry.mode = stream_mode;
    volume.source.add(std::move(entry), {},
                      {.fd = std::move(memory_), .fence = fence_of(status, true)});
    volume.source.roots = roots_;
    volume.counts = {.files = 1, .bytes = counts_.bytes};
    volume.is_last = is_last;
    ONEHOP_TRYV(validate(volume.source.manifest));
    if (is_last)
      outlet_.note({.entries = 1, .files = 1, .bytes = counts_.bytes, .is_complete = true});
    return volume;
  }

  const StreamInput& input_;
  VolumeOutlet& outlet_;
  const std::shared_ptr<const std::vector<SourceRoot>> roots_;
  std::vector<std::byte> buffer_;
  ScanCounts counts_;
  Fd memory_;  // the piece that is being filled
  std::uint64_t bytes_ = 0;
  Instant begun_ = monotonic_now();
  bool has_put_ = false;
};

}  // namespace

Result<ScanVolume> read_stream(const StreamInput& input, VolumeOutlet& outlet) {
  return StreamReader{input, outlet}.run();
}

}  // namespace onehop::list
