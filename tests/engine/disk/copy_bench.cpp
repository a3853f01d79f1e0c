// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// file_copy_bench FILE FOLDER io_uring|threads [MBIT]: carries one file through both file threads
// and their rings, and prints what that cost this process. MBIT paces the blocks as a link would;
// without it they go as fast as they can. Not a test: it measures. The copy between the pools
// stands for seal and open, and is the same for both kinds.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>

#include "engine/base/time.hpp"
#include "engine/disk/file_thread.hpp"
#include "engine/list/scan_arguments.hpp"
#include "engine/sink/sink.hpp"
#include "engine/source/source.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;

namespace {

template <class T>
T need(Result<T> result) {
  if (result.has_value()) return std::move(result).value();
  std::fprintf(stderr, "%s\n", result.error().message().c_str());
  std::exit(static_cast<int>(result.error().code));
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

struct Rings {
  SpscRing<BlockRef> from_source{256}, to_source{256}, from_sink{256}, to_sink{256};
};

bool push(SpscRing<BlockRef>& ring, const BlockRef& message) {
  while (!ring.push(message)) ::usleep(50);
  return true;
}

/// Plays the engine until the file is done. False: it failed.
bool carry(Rings& rings, double bytes_per_s) {
  const Instant begin = monotonic_now();
  std::deque<BlockRef> free;
  double carried_bytes = 0;
  for (;;) {
    BlockRef message;
    while (rings.from_sink.pop(message)) {
      if (message.kind == FileMessageKind::file_done) return true;
      if (message.kind == FileMessageKind::failed) return false;
      free.push_back(message);
    }
    const double elapsed_s = static_cast<double>((monotonic_now() - begin).count()) / 1e9;
    const bool is_early = bytes_per_s > 0 && carried_bytes > elapsed_s * bytes_per_s;
    if (is_early || free.empty() || !rings.from_source.pop(message)) {
      ::usleep(300);
      continue;
    }
    if (message.kind == FileMessageKind::failed) return false;
    if (message.kind == FileMessageKind::root) push(rings.to_sink, message);
    if (message.kind != FileMessageKind::block) continue;
    BlockRef target = free.front();
    free.pop_front();
    std::memcpy(target.data, message.data, message.length);
    target.offset = message.offset;
    target.length = message.length;
    carried_bytes += message.length;
    push(rings.to_sink, target);
    push(rings.to_source, {.data = message.data, .slot = message.slot});
    message.kind = FileMessageKind::digest;
    push(rings.to_sink, message);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string kind = argv[3];
  SourceFiles files = need(check_arguments(std::vector<std::string>{argv[1]})).named;
  const Manifest manifest = files.manifest;
  const double bytes = static_cast<double>(total_bytes(manifest));
  const auto destination = need(Destination::open({.folder = argv[2], .reserve_bytes = 0}));
  auto sink = std::make_unique<Sink>(destination, need(make_file_io(kind)), SinkOptions{});
  sink->add(need(SinkVolume::prepare(destination,
                                     std::make_shared<const Volume>(Volume{
                                         .manifest = std::make_shared<const Manifest>(manifest),
                                         .is_last = true,
                                         .manifest_hash = manifest_hash(manifest)}),
                                     {.on_exist = OnExist::overwrite})),
            true);
  Rings rings;
  auto source = std::make_unique<Source>(SourceOptions{}, need(make_file_io(kind)));
  SourceVolume all;
  *all.files = std::move(files);
  all.is_last = true;
  source->add(std::move(all));
  FileThread reader{std::move(source), rings.from_source, rings.to_source};
  FileThread writer{std::move(sink), rings.from_sink, rings.to_sink};
  const Instant begin = monotonic_now();
  const double cpu_before_s = cpu_seconds();
  if (!reader.start() || !writer.start()) return 1;
  const bool is_done = carry(rings, argc > 4 ? std::atof(argv[4]) * 125'000 : 0);
  const double seconds = static_cast<double>((monotonic_now() - begin).count()) / 1e9;
  const double cpu_s = cpu_seconds() - cpu_before_s;
  std::printf("%-8s %s cpu_ns_per_byte %.3f  %.2f Gbit/s  naps/s read %.0f write %.0f\n", argv[3],
              is_done ? "done" : "FAILED", cpu_s * 1e9 / bytes, bytes * 8 / seconds / 1e9,
              static_cast<double>(reader.naps_total()) / seconds,
              static_cast<double>(writer.naps_total()) / seconds);
  return is_done ? 0 : 1;
}
