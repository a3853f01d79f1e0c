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
#include "engine/disk/thread/file_thread.hpp"
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
  FileRings source{256}, sink{256};
};

template <class Message>
void push(SpscRing<Message>& ring, const Message& message) {
  while (!ring.push(message)) ::usleep(50);
}

/// Plays the engine until the file is done. False: it failed.
bool carry(Rings& rings, double bytes_per_s) {
  const Instant begin = monotonic_now();
  std::deque<BlockRef> free;
  double carried_bytes = 0;
  for (;;) {
    BlockRef message;
    FileEvent event;
    while (rings.sink.to_engine.pop(message)) free.push_back(message);
    if (rings.sink.events.pop(event)) return std::holds_alternative<FileFinished>(event);
    if (rings.source.events.pop(event)) {
      const auto* read = std::get_if<RootRead>(&event);
      if (read == nullptr) return false;
      push(rings.sink.commands, FileCommand{AnnouncedRoot{read->file, read->root}});
    }
    const double elapsed_s = static_cast<double>((monotonic_now() - begin).count()) / 1e9;
    const bool is_early = bytes_per_s > 0 && carried_bytes > elapsed_s * bytes_per_s;
    if (is_early || free.empty() || !rings.source.to_engine.pop(message)) {
      ::usleep(300);
      continue;
    }
    if (message.kind != BlockKind::block) continue;
    BlockRef target = free.front();
    free.pop_front();
    std::memcpy(target.data, message.data, message.length);
    target.offset = message.offset;
    target.length = message.length;
    carried_bytes += message.length;
    push(rings.sink.from_engine, target);
    push(rings.source.from_engine, {.data = message.data, .slot = message.slot});
    push(rings.sink.commands,
         FileCommand{AnnouncedDigest{message.file, message.offset, message.digest}});
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
  FileThread reader{std::move(source), rings.source};
  FileThread writer{std::move(sink), rings.sink};
  const Instant begin = monotonic_now();
  const double cpu_before_s = cpu_seconds();
  if (!reader.start() || !writer.start()) return 1;
  const bool is_done = carry(rings, argc > 4 ? std::atof(argv[4]) * 125'000 : 0);
  const double seconds = static_cast<double>((monotonic_now() - begin).count()) / 1e9;
  const double cpu_s = cpu_seconds() - cpu_before_s;
  std::printf("%-8s %s cpu_ns_per_byte %.3f  %.2f Gbit/s\n", argv[3], is_done ? "done" : "FAILED",
              cpu_s * 1e9 / bytes, bytes * 8 / seconds / 1e9);
  return is_done ? 0 : 1;
}
