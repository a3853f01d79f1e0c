// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/parts/file_part.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <array>

#include "engine/base/block.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/time.hpp"
#include "engine/disk/thread/block_pool.hpp"
#include "engine/list/manifest.hpp"
#include "engine/source/read_ahead.hpp"

namespace onehop::bench {

namespace {

Result<Fd> nameless_file(const std::string& folder) {
  Fd fd{::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
  if (fd.is_open()) return fd;
  return errno_error(ExitCode::local_file_error, "make a file in " + folder,
                     "Name a folder of a file system that has O_TMPFILE with --dir");
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& tv) {
    return static_cast<double>(tv.tv_sec) + static_cast<double>(tv.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Goes through a file of `bytes` once, as deep as the kind allows and as few buffers as the engine
/// keeps ready.
Result<void> pass(disk::FileIo& io, disk::BlockPool& pool, int fd, std::uint64_t bytes,
                  bool is_writing) {
  const std::uint64_t blocks = blocks_of(bytes);
  std::array<disk::IoCompletion, disk::io_depth_max> done;
  std::uint64_t next = 0, finished = 0;
  while (finished < blocks) {
    std::uint32_t slot = 0;
    while (next < blocks && io.in_flight() < io.depth() && pool.lend(slot)) {
      const std::uint32_t length = block_length_at(bytes, next * block_bytes);
      using Kind = disk::FileOperation::Kind;
      io.submit({.kind = is_writing ? Kind::write : Kind::read,
                 .fd = fd,
                 .buffer = pool.data(slot),
                 .bytes = length,
                 .offset = next * block_bytes,
                 .tag = slot});
      ++next;
    }
    if (io.in_flight() > 0) io.wait_one();
    const std::size_t count = io.collect(done);
    for (std::size_t i = 0; i < count; ++i) {
      if (done[i].result < 0)
        return errno_error(ExitCode::local_file_error, is_writing ? "write a file" : "read a file",
                           "", static_cast<int>(-done[i].result));
      pool.give_back(static_cast<std::uint32_t>(done[i].tag));
      ++finished;
    }
  }
  return success();
}

}  // namespace

Result<RunResult> measure_file(const std::string& kind, const std::string& folder,
                               std::uint64_t bytes) {
  ONEHOP_TRY(io, disk::make_file_io(kind));
  disk::BlockPool pool{std::max(source::ReadAhead::blocks_min, disk::io_depth_max)};
  ONEHOP_TRY(file, nameless_file(folder));
  RunResult result;
  const auto amount = static_cast<double>(bytes);
  double before_s = cpu_seconds();
  Instant begin = monotonic_now();
  ONEHOP_TRYV(pass(*io, pool, file.get(), bytes, true));
  result.metrics["write_ns_per_byte"] = (cpu_seconds() - before_s) * 1e9 / amount;
  result.metrics["write_bps"] =
      8 * amount / std::chrono::duration<double>(monotonic_now() - begin).count();
  before_s = cpu_seconds();
  begin = monotonic_now();
  ONEHOP_TRYV(pass(*io, pool, file.get(), bytes, false));
  result.metrics["read_ns_per_byte"] = (cpu_seconds() - before_s) * 1e9 / amount;
  result.metrics["read_bps"] =
      8 * amount / std::chrono::duration<double>(monotonic_now() - begin).count();
  result.metrics["cpu_ns_per_byte"] =
      result.metrics["read_ns_per_byte"] + result.metrics["write_ns_per_byte"];
  result.metrics["bytes_total"] = amount;
  result.metrics["syscalls_per_block"] =
      static_cast<double>(io->syscalls_total()) / static_cast<double>(2 * blocks_of(bytes));
  result.used["file_io"] = io->name();
  return result;
}

}  // namespace onehop::bench
