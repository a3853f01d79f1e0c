// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/file_io.hpp"

#include <cerrno>

#include "engine/base/check.hpp"
#include "engine/disk/file_bytes.hpp"

namespace onehop::disk {

namespace {

/// ThreadIo works in the calling file thread: every operation is finished when submit returns.
class ThreadIo final : public FileIo {
 public:
  std::string_view name() const noexcept override { return "threads"; }
  std::size_t depth() const noexcept override { return 1; }
  std::size_t in_flight() const noexcept override { return has_done_ ? 1 : 0; }

  /// Syscalls: pread, pwrite or fdatasync.
  void submit(const FileOperation& o) override {
    ONEHOP_CHECK(!has_done_);
    has_done_ = true;
    ++syscalls_total_;
    done_ = {.tag = o.tag, .result = 0};
    if (o.kind == FileOperation::Kind::read) {
      done_.result = read_at_least(o.fd, {o.buffer, o.bytes + o.spare_bytes}, o.bytes, o.offset);
    } else if (o.kind == FileOperation::Kind::write) {
      const int errno_value = write_at(o.fd, {o.buffer, o.bytes}, o.offset);
      done_.result = errno_value == 0 ? std::int64_t{o.bytes} : -errno_value;
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
