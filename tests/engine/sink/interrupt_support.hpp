// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What an interrupted session is, and what it leaves.
#pragma once

#include "tests/engine/sink/file_support.hpp"

namespace onehop::sink::test {

using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;

/// A session that stops after `carried` blocks, by an abort as on Ctrl-C: what arrived is made
/// durable.
inline void interrupt_after(const std::string& path, const fs::path& folder, std::size_t carried) {
  SourceFiles files = open_files({path});
  const Manifest manifest = files.manifest;
  const std::unique_ptr<PreparedSink> sink = make_sink(manifest, sink_settings(folder, manifest));
  Source source{{.slots = 16, .direct_io = direct_io_under_test()}, make_io()};
  source.add(answered_volume(std::move(files), *sink));
  Wire wire{&source, *sink};
  std::size_t seen = 0;
  wire.is_cut = [&](const BlockRef&) {
    if (seen++ < carried) return false;
    wire.abort();
    return true;
  };
  const Outcome outcome = wire.run();
  CHECK(outcome.checkpointed == 1);
  CHECK(outcome.done.empty());
}

inline std::vector<std::string> part_and_journal(const std::string& leaf) {
  std::vector<std::string> names{temporary_name(leaf, journal_suffix),
                                 temporary_name(leaf, part_suffix)};
  std::ranges::sort(names);
  return names;
}

inline void append(const fs::path& path, const std::string& bytes) {
  std::ofstream out{path, std::ios::binary | std::ios::app};
  out << bytes;
}

}  // namespace onehop::sink::test
