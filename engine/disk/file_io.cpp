// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/file_io.hpp"

#include <algorithm>
#include <cerrno>

#include "engine/base/block.hpp"
#include "engine/base/check.hpp"

namespace onehop::disk {

namespace {

/// Bytes, less at the end of the file or of the disk, or -errno. Syscalls: preadv or pwritev.
std::int64_t move(const FileOperation& o) noexcept {
  std::uint32_t done = 0;
  while (done < o.bytes) {
    const Pieces pieces{o, done};
    const auto count = static_cast<int>(pieces.count);
    const auto at = static_cast<off_t>(o.offset + done);
    const ssize_t moved = o.kind == FileOperation::Kind::read
                              ? ::preadv(o.fd, pieces.list.data(), count, at)
                              : ::pwritev(o.fd, pieces.list.data(), count, at);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return -errno;
    if (moved == 0) break;
    done += static_cast<std::uint32_t>(moved);
  }
  return done;
}

/// ThreadIo works in the calling file thread: every operation is finished when submit returns.
class ThreadIo final : public FileIo {
 public:
  std::string_view name() const noexcept override { return "threads"; }
  std::size_t depth() const noexcept override { return 1; }
  std::size_t in_flight() const noexcept override { return has_done_ ? 1 : 0; }

  /// Syscalls: preadv, pwritev or fdatasync.
  void submit(const FileOperation& o) override {
    ONEHOP_CHECK(!has_done_);
    has_done_ = true;
    ++syscalls_total_;
    done_ = {.tag = o.tag, .result = 0};
    if (o.kind != FileOperation::Kind::sync) {
      done_.result = move(o);
    } else if (::fdatasync(o.fd) != 0) {
      done_.result = -errno;
    }
  }
  std::size_t collect(std::span<IoCompletion> done) override {
    if (!has_done_ || done.empty()) return 0;
    has_done_ = false;
    done[0] = done_;
    return 1;
  }
  void wait_one() override { ONEHOP_CHECK(has_done_); }
  std::uint64_t syscalls_total() const noexcept override { return syscalls_total_; }

 private:
  IoCompletion done_{};
  bool has_done_ = false;
  std::uint64_t syscalls_total_ = 0;
};

Result<std::unique_ptr<FileIo>> make_thread_io() {
  return std::unique_ptr<FileIo>{std::make_unique<ThreadIo>()};
}

struct Kind {
  std::string_view name;
  Result<std::unique_ptr<FileIo>> (*make)();
};
constexpr std::array<Kind, 3> kinds{
    {{"auto", make_thread_io}, {"io_uring", make_uring_io}, {"threads", make_thread_io}}};

}  // namespace

Pieces::Pieces(const FileOperation& o, std::uint32_t done) noexcept {
  std::uint32_t left = o.bytes + o.spare_bytes;
  for (std::size_t i = 0; left > 0; ++i) {
    std::byte* const buffer = i == 0 ? o.buffer : o.more[i - 1];
    const std::uint32_t bytes = std::min(left, block_bytes), skipped = std::min(done, bytes);
    if (skipped < bytes) list[count++] = {buffer + skipped, bytes - skipped};
    left -= bytes;
    done -= skipped;
  }
}

Result<std::unique_ptr<FileIo>> make_file_io(std::string_view kind) {
  for (const Kind& known : kinds)
    if (known.name == kind) return known.make();
  return Error{ExitCode::usage, "read --file-io",
               "no kind of file I/O is called " + std::string{kind}};
}

std::vector<std::string> file_io_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

}  // namespace onehop::disk
