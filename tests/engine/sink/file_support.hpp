// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Shared by the tests of files: a folder that removes itself, files with known bytes, and
// Wire, which stands between a Source and a Sink as the engine and the session do: it carries
// blocks into lent buffers, announces digests and roots, and can delay, reorder or damage what it
// carries. All of it runs in the calling thread.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/base/time.hpp"
#include "engine/list/scan_arguments.hpp"
#include "engine/source/source.hpp"
#include "tests/engine/sink/prepared_sink.hpp"

namespace onehop::sink::test {

using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;

/// What a session leaves for a file called "f".
inline const std::string session_name{session_suffix};
inline const std::string part_name = temporary_name("f", part_suffix),
                         journal_name = temporary_name("f", journal_suffix);

/// A sync of a whole file system waits for what others write to it: here for nobody.
inline fs::path in_memory() {
  return ::access("/dev/shm", W_OK) == 0 ? fs::path{"/dev/shm"} : fs::temp_directory_path();
}

class TempFolder {
 public:
  explicit TempFolder(const fs::path& below = fs::temp_directory_path()) {
    std::string name = (below / "onehop-file-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }
  [[nodiscard]] fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

/// AsNobody gives root's power up for its lifetime: root may read and change everything. Any other
/// user is who he is.
class AsNobody {
 public:
  AsNobody() {
    if (before_ == 0) REQUIRE(::seteuid(nobody) == 0);
  }
  ~AsNobody() {
    if (before_ == 0) ONEHOP_CHECK(::seteuid(before_) == 0);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  static constexpr uid_t nobody = 65'534;
  const uid_t before_ = ::geteuid();
};

inline mode_t mode_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

inline std::string random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, count - i));
  }
  return bytes;
}

inline void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream out{path, std::ios::binary | std::ios::trunc};
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(out.good());
}

inline std::string read_file(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  REQUIRE(in.good());
  std::string text(fs::file_size(path), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  REQUIRE(in.gcount() == static_cast<std::streamsize>(text.size()));
  return text;
}

/// Names in a folder, hidden ones included, sorted.
inline std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator{folder})
    names.push_back(fs::relative(entry.path(), folder).string());
  std::ranges::sort(names);
  return names;
}

inline SourceFiles open_files(const std::vector<std::string>& paths) {
  Result<ScanArguments> found = check_arguments(paths);
  if (found.has_error()) FAIL(found.error().message());
  return std::move(found.value().named);
}

/// What came out at the Sink's end.
struct Outcome {
  std::vector<std::uint32_t> done;     ///< in place, folders included
  std::vector<FileFinished> outcomes;  ///< the messages of those
  std::optional<FileFailed> sink_failure, source_failure;
  std::size_t blocks_carried = 0, blocks_skipped = 0, checkpointed = 0;
  std::size_t blocks_read = 0;  ///< of what was there
  std::uint64_t bytes_hole = 0;
  /// Of `done`, those that shared blocks, by what came of them.
  std::size_t packed = 0, packed_there = 0, packed_kept = 0;
  std::size_t packed_runs = 0;  ///< messages that told of them
  std::vector<RecordsFinished> packed_refused;
  bool is_end_seen = false;
  std::size_t turns = 0;
};

class Wire {
 public:
  Wire(Source* source, PreparedSink& sink) : source_{source}, sink_{sink} {}

  std::function<void(BlockRef&)>
      on_carry;  ///< sees each block in the Sink's buffer before the Sink does
  std::function<bool(const RootRead&)> on_root;  ///< false: this root is not announced
  std::function<void()> on_turn;                 ///< before each turn
  std::function<void()> on_done;                 ///< before run() returns
  std::function<Instant()> clock = monotonic_now;
  std::function<bool(const BlockRef&)> is_cut;  ///< true: carry nothing more from here on
  bool is_digest_first = false;                 ///< announce before the block instead of after it
  bool is_digest_lost = false, is_root_lost = false;  ///< never announce
  std::uint64_t reorder_seed = 0;                     ///< 0: in order

  /// run pumps until the Sink is over, either end failed, the cut, or nothing has moved for long.
  Outcome run() {
    std::size_t idle = 0;
    while (idle < 50'000) {  // 10 s: the disk may be busy
      if (on_turn) on_turn();
      std::size_t moved = source_ != nullptr && !is_cut_ ? source_->turn(clock(), from_source_) : 0;
      moved += carry();
      moved += sink_.turn(clock(), to_sink_);
      moved += take();
      ++outcome_.turns;
      if (sink_.is_over()) break;
      if (outcome_.source_failure && held_.empty() && blocks_.empty() && idle > 50) break;
      if (is_cut_ && idle > 50) break;
      const bool may_end = source_ != nullptr && !is_digest_lost && !is_withheld_;
      if (!may_end && idle > 2000) break;
      idle = moved > 0 ? 0 : idle + 1;
      if (moved == 0) ::usleep(200);  // io_uring may have the block
    }
    if (on_done) on_done();
    return outcome_;
  }

  /// tell hands the Sink one message as engine core or session would.
  void tell(const BlockRef& block) {
    blocks_.push_back(block);
    is_withheld_ = false;
  }
  void tell(const FileCommand& command) {
    commands_.push_back(command);
    is_withheld_ = false;
  }
  /// abort: a checkpoint that is the last, as on Ctrl-C.
  void abort() {
    tell(FileCommand{EndAtCheckpoint{}});
    tell({.kind = BlockKind::checkpoint});
  }
  [[nodiscard]] Outcome& outcome() { return outcome_; }

 private:
  std::size_t carry() {
    std::size_t moved = 0;
    BlockRef from;
    while (source_ != nullptr && !is_cut_ && held_.size() < 8 && from_source_.to_engine.pop(from)) {
      held_.push_back(from);
      ++moved;
    }
    for (FileEvent event; !is_cut_ && from_source_.events.pop(event); ++moved) hear(event);
    while (!held_.empty()) {
      const std::size_t pick = reorder_seed == 0 ? 0 : random_() % held_.size();
      from = held_[pick];
      if (from.kind == BlockKind::block && free_.empty()) break;
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(pick));
      deliver(from);
      ++moved;
    }
    for (; !commands_.empty() && to_sink_.commands.push(commands_.front()); ++moved)
      commands_.pop_front();
    for (; !tags_.empty() && from_source_.commands.push(tags_.front()); ++moved) tags_.pop_front();
    // The Sink takes blocks before commands.
    const auto may_push = [this] { return !is_digest_first || to_sink_.commands.is_empty(); };
    for (; !blocks_.empty() && may_push() && to_sink_.from_engine.push(blocks_.front()); ++moved)
      blocks_.pop_front();
    return moved;
  }

  void hear(const FileEvent& event) {
    if (const auto* failed = std::get_if<FileFailed>(&event)) outcome_.source_failure = *failed;
    const auto* read = std::get_if<RootRead>(&event);
    if (read == nullptr) return;
    const bool is_told = !is_root_lost && (!on_root || on_root(*read));
    is_withheld_ |= !is_told;
    if (is_told) commands_.push_back(AnnouncedRoot{read->file, read->root});
  }

  void deliver(BlockRef from) {
    if (is_cut_) return;
    if (from.kind == BlockKind::block) {
      if (is_cut && is_cut(from)) {
        is_cut_ = true;
        return;
      }
      BlockRef to = free_.front();
      free_.pop_front();
      std::memcpy(to.data, from.data, from.length);
      to.file = from.file;
      to.offset = from.offset;
      to.length = from.length;
      if (on_carry) on_carry(to);
      blocks_.push_back(to);
      if (!is_digest_lost && from.digest != Digest{})  // of a pack: none
        commands_.push_back(AnnouncedDigest{from.file, from.offset, from.digest});
      ++outcome_.blocks_carried;
      REQUIRE(from_source_.from_engine.push({.data = from.data, .slot = from.slot}));
    } else if (from.kind == BlockKind::skipped) {
      ++outcome_.blocks_skipped;
      blocks_.push_back(from);
    } else if (from.kind == BlockKind::hole) {
      outcome_.bytes_hole += from.length;
      blocks_.push_back(from);
    } else if (from.kind == BlockKind::end_of_files) {
      outcome_.is_end_seen = true;
    }
  }

  std::size_t take() {
    std::size_t moved = 0;
    for (BlockRef block; to_sink_.to_engine.pop(block); ++moved) free_.push_back(block);
    for (FileEvent event; to_sink_.events.pop(event); ++moved) {
      if (const auto* file = std::get_if<FileFinished>(&event)) {
        outcome_.done.push_back(file->file);
        outcome_.outcomes.push_back(*file);
      }
      if (const auto* records = std::get_if<RecordsFinished>(&event)) take_packed(*records);
      if (const auto* failed = std::get_if<FileFailed>(&event)) outcome_.sink_failure = *failed;
      if (std::holds_alternative<CheckpointMade>(event)) ++outcome_.checkpointed;
      if (const auto* held = std::get_if<HeldBlock>(&event)) {
        ++outcome_.blocks_read;
        tags_.emplace_back(*held);
      }
      if (const auto* end = std::get_if<HeldEnd>(&event)) tags_.emplace_back(*end);
    }
    return moved;
  }

  void take_packed(const RecordsFinished& message) {
    ++outcome_.packed_runs;
    if (message.outcome == FileOutcome::name_refused) outcome_.packed_refused.push_back(message);
    const PreparedSink::Answer& answer = sink_.answer_of(message.pack);
    for (std::uint32_t i = message.first; i < message.first + message.count; ++i) {
      outcome_.done.push_back(answer.first_file + answer.pack->entries().at(i));
      ++(message.outcome == FileOutcome::kept ? outcome_.packed_kept
         : answer.pack->is_whole(i)           ? outcome_.packed
                                              : outcome_.packed_there);
    }
  }

  Source* source_;
  PreparedSink& sink_;
  FileRings from_source_{256}, to_sink_{256};
  std::vector<BlockRef> held_;
  std::deque<BlockRef> free_, blocks_;  // for the Sink
  std::deque<FileCommand> commands_;
  std::deque<FileCommand> tags_;  // for the Source
  std::mt19937_64 random_{reorder_seed + 1};
  bool is_cut_ = false;
  bool is_withheld_ = false;  // a root was not told: nothing ends without it
  Outcome outcome_;
};

/// only_volume is a session's whole list, all of it wanted. answered_volume is it as the Sink
/// answered its newest volume.
inline SourceVolume only_volume(SourceFiles files) {
  SourceVolume volume;
  *volume.files = std::move(files);
  volume.is_last = true;
  return volume;
}
inline SourceVolume answered_volume(SourceFiles files, const PreparedSink& sink) {
  const PreparedSink::Answer& answer = sink.last();
  SourceVolume volume = only_volume(std::move(files));
  volume.first_file = answer.first_file;
  volume.answer = std::make_shared<const list::Answer>(
      list::Answer{.actions = answer.actions,
                   .held = answer.held,
                   .pack = answer.pack->is_empty() ? nullptr : answer.pack});
  return volume;
}

/// send_files carries files into a folder, with whatever an earlier session left there. `set` has
/// the last word on the Sink's options.
inline Outcome send_files(SourceFiles files, const fs::path& folder, OnExist on_exist,
                          const std::function<void(Wire&)>& prepare,
                          const std::function<void(SinkSettings&)>& set = {}) {
  const Manifest manifest = files.manifest;
  SinkSettings settings = sink_settings(folder, manifest, on_exist);
  if (set) set(settings);
  const std::unique_ptr<PreparedSink> sink = make_sink(manifest, std::move(settings));
  Source source{{.slots = 16, .direct_io = direct_io_under_test()}, make_io()};
  source.add(answered_volume(std::move(files), *sink));
  Wire wire{&source, *sink};
  if (prepare) prepare(wire);
  Outcome outcome = wire.run();
  sink->close();
  return outcome;
}
inline Outcome send(const std::vector<std::string>& paths, const fs::path& folder,
                    OnExist on_exist = OnExist::ask,
                    const std::function<void(Wire&)>& prepare = {}) {
  return send_files(open_files(paths), folder, on_exist, prepare);
}

/// A session that ends as by SIGKILL when `is_cut` says so: nothing is closed in order, and locks
/// go.
inline void kill_at(SourceFiles files, const fs::path& folder, OnExist on_exist,
                    const std::function<bool(const BlockRef&)>& is_cut,
                    const std::function<void(SinkSettings&)>& set = {}) {
  const Manifest manifest = files.manifest;
  SinkSettings options = sink_settings(folder, manifest, on_exist);
  if (set) set(options);
  const std::unique_ptr<PreparedSink> sink = make_sink(manifest, options);
  Source source{{.slots = 16, .direct_io = direct_io_under_test()}, make_io()};
  source.add(answered_volume(std::move(files), *sink));
  Wire wire{&source, *sink};
  wire.is_cut = is_cut;
  static_cast<void>(wire.run());
}
inline void kill_at(const std::vector<std::string>& paths, const fs::path& folder, OnExist on_exist,
                    const std::function<bool(const BlockRef&)>& is_cut,
                    const std::function<void(SinkSettings&)>& set = {}) {
  kill_at(open_files(paths), folder, on_exist, is_cut, set);
}

inline std::function<bool(const BlockRef&)> at_block(std::uint32_t file, std::uint64_t block) {
  return [=](const BlockRef& message) {
    return message.file == file && message.offset == block * block_bytes;
  };
}

}  // namespace onehop::sink::test
