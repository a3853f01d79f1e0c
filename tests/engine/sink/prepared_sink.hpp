// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PreparedSink: a Sink with its volumes, as a receiving host makes them, for tests.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/sink/sink.hpp"

namespace onehop::sink::test {

using namespace onehop::list;
using namespace onehop::disk;

namespace fs = std::filesystem;

/// ONEHOP_TEST_FILE_IO=threads runs a whole program with that kind; the program is skipped where
/// this machine does not have it.
inline std::string& io_kind_under_test() {
  static std::string kind = [] {
    const char* const wanted = std::getenv("ONEHOP_TEST_FILE_IO");
    if (wanted == nullptr) return std::string{"auto"};
    if (const auto io = make_file_io(wanted);
        !io.has_value() && io.error().code == ExitCode::io_unavailable) {
      std::puts(("skipped: " + io.error().message()).c_str());
      std::exit(77);
    }
    return std::string{wanted};
  }();
  return kind;
}

/// ONEHOP_TEST_DIRECT_IO=always runs a whole program with all large files past the page cache.
inline DirectIo& direct_io_under_test() {
  static DirectIo wanted = [] {
    const char* const word = std::getenv("ONEHOP_TEST_DIRECT_IO");
    return word == nullptr ? DirectIo::automatic : DirectIo::always;
  }();
  return wanted;
}

inline std::unique_ptr<FileIo> make_io() {
  Result<std::unique_ptr<FileIo>> io = make_file_io(io_kind_under_test());
  REQUIRE(io.has_value());
  return std::move(io).value();
}

/// SinkSettings are all options of a Sink with one volume.
struct SinkSettings {
  std::string folder;
  Digest approved{};
  OnExist on_exist = OnExist::ask;
  Durability durability = Durability::batch;
  std::vector<OnExist> on_exist_of;
  bool is_quick = false;
  std::vector<Conflict>* conflicts = nullptr;
  bool* is_unsaid = nullptr;
  std::stop_token withdrawn{};
  bool is_again = false;
  int output_fd = -1;
  std::size_t slots = 16;
  std::function<std::unique_ptr<FileIo>()> make_io;  ///< empty: the kind under test
  std::uint64_t reserve_bytes = 0;
  bool is_room_unchecked = false;
  Nanos checkpoint_span = SinkOptions{}.checkpoint_span;
  std::uint64_t checkpoint_bytes = SinkOptions{}.checkpoint_bytes;
};

/// whole_list is `manifest` as the one volume of a session.
inline std::shared_ptr<const Volume> whole_list(const Manifest& manifest) {
  return std::make_shared<const Volume>(
      Volume{.manifest = std::make_shared<const Manifest>(manifest),
             .is_last = true,
             .manifest_hash = manifest_hash(manifest)});
}

inline SinkSettings sink_settings(const fs::path& folder, const Manifest& manifest,
                                  OnExist on_exist = OnExist::ask) {
  return {.folder = folder.string(), .approved = manifest_hash(manifest), .on_exist = on_exist};
}

/// PreparedSink is a Sink with its volumes, and what each of them answered.
class PreparedSink {
 public:
  struct Answer {
    std::uint32_t first_file = 0;
    Held held;
    std::vector<FileAction> actions;
    std::vector<int> faults;
    std::shared_ptr<const Pack> pack;  // never null
    std::uint32_t pack_file = 0;
  };

  explicit PreparedSink(const SinkSettings& settings, std::shared_ptr<Destination> destination)
      : settings_{settings},
        destination_{std::move(destination)},
        sink_{std::make_unique<Sink>(destination_,
                                     settings.make_io ? settings.make_io() : make_io(),
                                     SinkOptions{.slots = settings.slots,
                                                 .checkpoint_span = settings.checkpoint_span,
                                                 .checkpoint_bytes = settings.checkpoint_bytes})} {}

  /// add prepares the next volume.
  Result<void> add(const Manifest& manifest, bool is_last) {
    std::vector<int> faults = destination_->names().check(manifest, settings_.withdrawn);
    if (is_last) destination_->names().close();
    ONEHOP_TRY(volume,
               SinkVolume::prepare(destination_,
                                   std::make_shared<const Volume>(Volume{
                                       .manifest = std::make_shared<const Manifest>(manifest),
                                       .is_last = is_last,
                                       .first_file = next_file_,
                                       .manifest_hash = settings_.approved}),
                                   {.on_exist = settings_.on_exist,
                                    .on_exist_of = settings_.on_exist_of,
                                    .is_quick = settings_.is_quick,
                                    .name_faults = std::move(faults),
                                    .conflicts = settings_.conflicts,
                                    .is_unsaid = settings_.is_unsaid,
                                    .withdrawn = settings_.withdrawn}));
    Held held;
    std::vector<int> name_faults;
    for (std::uint32_t entry = 0; entry < volume->entries(); ++entry) {
      held.push_back(volume->held_of(entry));
      name_faults.push_back(volume->name_fault(entry));
    }
    ONEHOP_CHECK(volume->block_sizes().size() == manifest.files.size() + 1);
    const std::lock_guard lock{mutex_};
    answers_.push_back({.first_file = next_file_,
                        .held = std::move(held),
                        .actions = volume->actions(),
                        .faults = std::move(name_faults),
                        .pack = std::make_shared<const Pack>(volume->pack()),
                        .pack_file = volume->pack_file()});
    next_file_ = volume->pack_file() + 1;
    sink_->add(std::move(volume), is_last);
    return success();
  }
  /// approve: the next volume is the one with this list.
  void approve(const Manifest& manifest) { settings_.approved = manifest_hash(manifest); }

  /// answer_of gives that of a volume by the index of its pack, also while others are added.
  [[nodiscard]] const Answer& answer_of(std::uint32_t pack_file) const {
    const std::lock_guard lock{mutex_};
    const auto answer = std::ranges::find(answers_, pack_file, &Answer::pack_file);
    ONEHOP_CHECK(answer != answers_.end());
    return *answer;
  }
  [[nodiscard]] const Answer& last() const { return answers_.back(); }
  [[nodiscard]] const auto& held() const { return last().held; }
  [[nodiscard]] const auto& actions() const { return last().actions; }
  [[nodiscard]] const auto& faults() const { return last().faults; }

  std::size_t turn(Instant now, FileRings& rings) { return sink_->turn(now, rings); }
  [[nodiscard]] bool is_over() const { return sink_->is_over(); }
  void close() { sink_->close(); }
  [[nodiscard]] Sink& sink() { return *sink_; }
  /// take gives the Sink to a thread.
  [[nodiscard]] std::unique_ptr<Sink> take() {
    destination_.reset();
    return std::move(sink_);
  }

 private:
  SinkSettings settings_;
  std::shared_ptr<Destination> destination_;
  std::unique_ptr<Sink> sink_;
  mutable std::mutex mutex_;    // of answers_, which are found while others are added
  std::deque<Answer> answers_;  // references stay valid
  std::uint32_t next_file_ = 0;
};

/// prepare_sink prepares a Sink without a volume, or with all of `manifest` in one.
inline Result<std::unique_ptr<PreparedSink>> prepare_sink(const SinkSettings& settings) {
  ONEHOP_TRY(destination, Destination::open({.folder = settings.folder,
                                             .durability = settings.durability,
                                             .direct_io = direct_io_under_test(),
                                             .reserve_bytes = settings.reserve_bytes,
                                             .is_room_unchecked = settings.is_room_unchecked,
                                             .is_again = settings.is_again,
                                             .output_fd = settings.output_fd}));
  return std::make_unique<PreparedSink>(settings, std::move(destination));
}
inline Result<std::unique_ptr<PreparedSink>> prepare_sink(const Manifest& manifest,
                                                          const SinkSettings& settings) {
  ONEHOP_TRY(sink, prepare_sink(settings));
  ONEHOP_TRYV(sink->add(manifest, true));
  return sink;
}

inline std::unique_ptr<PreparedSink> make_sink(const Manifest& manifest,
                                               const SinkSettings& settings) {
  auto sink = prepare_sink(manifest, settings);
  if (sink.has_error()) FAIL(sink.error().message());
  return std::move(sink).value();
}

}  // namespace onehop::sink::test
