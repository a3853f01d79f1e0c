// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// C1 D3 P6: a peer that has the code sends blocks, digests, roots and records of packs in any order
// and with any content. Whatever it sends, a name is visible only with content whose root the peer
// gave, what was there is only replaced where the policy says so, every buffer comes back, and
// nothing is left in the stage.
//
// An input is a choice of what is there before, then steps of four bytes. Each file has two
// contents that the peer takes its bytes, digests and roots from, as it likes, and holes.
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/sink/sink.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::sink;
namespace fs = std::filesystem;

std::uint64_t fuzz::accepted_total = 0;

namespace {

constexpr crypto::DigestKind kind = crypto::DigestKind::xxh3;
constexpr std::size_t slots = 3, step_bytes = 4;
constexpr std::array<std::uint64_t, 10> sizes{0,
                                              1,
                                              100'000,
                                              packed_bytes_max,
                                              packed_bytes_max - 16,
                                              70'000,
                                              0,
                                              packed_bytes_max + 1,
                                              block_bytes + 9,
                                              16};
constexpr std::uint32_t folder = 6, link = 9, files = sizes.size(), pack = files;
enum Step : std::uint8_t {
  block,
  digest,
  skipped,
  root,
  pack_block,
  pack_root,
  stop,
  hole,
  step_count
};

std::string content_of(std::uint32_t file, bool is_other) {
  if (file == link) return is_other ? "/leads/out/of/it" : "../leads/into/it";
  std::string content(sizes[file], '\0');
  for (std::size_t i = 0; i < content.size(); ++i)
    content[i] = static_cast<char>(i * (is_other ? 7 : 11) % 251 + file);
  return content;
}
std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span{text});
}
Digest digest_of(const std::string& content, std::uint64_t offset) {
  return crypto::block_digest(
      kind, bytes_of(content).subspan(offset, block_length_at(content.size(), offset)));
}
Digest root_of(const std::string& content) {
  crypto::DigestTree tree{kind};
  for (std::uint64_t at = 0; at < content.size(); at += block_bytes)
    tree.add(digest_of(content, at));
  return tree.root();
}

// What the peer can say, worked out once.
struct Known {
  std::array<std::array<std::string, 2>, files> content;
  std::array<std::array<Digest, 2>, files> root;
  Manifest manifest;
  Known() {
    for (std::uint32_t file = 0; file < files; ++file) {
      for (const bool is_other : {false, true}) {
        content[file][is_other] = content_of(file, is_other);
        root[file][is_other] = root_of(content[file][is_other]);
      }
      manifest.files.push_back({.name = "d/" + std::to_string(file),
                                .size = sizes[file],
                                .mode = 0644,
                                .kind = file == link ? EntryKind::symlink : EntryKind::file});
    }
    manifest.files[folder] = {.name = "d", .mode = 0755, .kind = EntryKind::folder};
  }
};
const Known& known() {
  static const Known it;
  return it;
}

// The folder of a process, emptied for each input.
class Folder {
 public:
  Folder() {
    const fs::path below = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    std::string name = (below / "onehop-sink-fuzz-XXXXXX").string();
    ONEHOP_CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] fs::path emptied() const {
    for (const auto& entry : fs::directory_iterator{path_}) fs::remove_all(entry.path());
    return path_;
  }

 private:
  fs::path path_;
};

class World {
 public:
  World(const fs::path& at, std::uint8_t choice) : at_{at} {
    // Files 2 and 8 may be there before, with a content that the peer may have or not.
    if ((choice & 3) != 0) {
      fs::create_directory(at_ / "d");
      for (const std::uint32_t file : {2U, 8U}) {
        before_[file] = (choice & 3) == 3 ? std::string(sizes[file], 'x')
                                          : known().content[file][(choice & 3) == 2];
        std::ofstream{at_ / name_of(file), std::ios::binary} << before_[file];
      }
    }
    policy_ = std::array{OnExist::resume, OnExist::skip, OnExist::overwrite,
                         OnExist::rename}[choice >> 2 & 3];
    if ((choice & 16) != 0) leave_part();
    open_sink();
  }

  // An earlier session has left a block of file 8.
  void leave_part() {
    open_sink();
    send_block(8, 0, known().content[8][1]);
    send(FileCommand{EndAtCheckpoint{}});
    send({.kind = BlockKind::checkpoint});
    sink_.reset();
    free_.clear();
    sent_.clear();
  }
  void open_sink() {
    auto destination = Destination::open(
        {.folder = at_.string(), .digest_kind = kind, .durability = Durability::none});
    ONEHOP_CHECK(destination.has_value());
    auto io = make_file_io("threads");
    ONEHOP_CHECK(io.has_value());
    sink_ = std::make_unique<Sink>(destination.value(), std::move(io).value(),
                                   SinkOptions{.slots = slots});
    auto volume =
        SinkVolume::prepare(std::move(destination).value(),
                            std::make_shared<const Volume>(Volume{
                                .manifest = std::make_shared<const Manifest>(known().manifest),
                                .manifest_hash = manifest_hash(known().manifest)}),
                            {.on_exist = policy_});
    ONEHOP_CHECK(volume.has_value());
    pack_ = volume.value()->pack();
    sizes_ = volume.value()->block_sizes();
    sink_->add(std::move(volume).value(), true);
    turn();
  }

  void take(Step step, std::uint8_t file, std::uint8_t where, std::uint8_t how) {
    const bool is_other = (how & 1) != 0;
    file %= files;
    const std::uint64_t offset = where % (blocks_of(sizes[file]) + 1) * block_bytes;
    const Digest of_block = offset < sizes[file] || offset == 0
                                ? digest_of(known().content[file][is_other], offset)
                                : Digest{};
    switch (step) {
      case block: return send_block(file, offset, known().content[file][is_other]);
      case digest: return send(AnnouncedDigest{file, offset, of_block});
      case skipped:
        return send(
            {.offset = offset, .file = file, .kind = BlockKind::skipped, .digest = of_block});
      case root:
        given_[file].push_back((how & 6) == 6   ? mixed_root(file, {0, 1})
                               : (how & 6) == 4 ? mixed_root(file, {2, is_other ? 2 : 1})
                                                : known().root[file][is_other]);
        return send(AnnouncedRoot{file, given_[file].back()});
      case hole: {
        const std::uint64_t left = sizes[file] - std::min(offset, sizes[file]);
        const std::array<std::uint64_t, 4> lengths{left, block_bytes, how, left + 1};
        return send({.offset = offset,
                     .file = file,
                     .length = static_cast<std::uint32_t>(lengths[how % lengths.size()]),
                     .kind = BlockKind::hole});
      }
      case pack_block: return send_pack_block(where, how);
      case pack_root: return send(AnnouncedRoot{pack, pack_root_of(how)});
      default:
        if (is_other) send(FileCommand{EndAtCheckpoint{}});
        return send({.kind = BlockKind::checkpoint});
    }
  }

  // True: something arrived.
  bool end() {
    for (int i = 0; i < 4 && !sink_->is_over(); ++i) turn();
    sink_->close();
    turn();
    ONEHOP_CHECK(free_.size() == slots);
    sink_.reset();
    ONEHOP_CHECK(!fs::exists(at_ / stage_suffix));
    bool has_any = false;
    for (std::uint32_t file = 0; file < files; ++file)
      if (file != folder) has_any = check_file(file) || has_any;
    return has_any;
  }

 private:
  static std::string name_of(std::uint32_t file) { return known().manifest.files[file].name; }
  // Of a file of two blocks: the content of the first, and of the second; 2: zeros.
  static Digest mixed_root(std::uint32_t file, std::array<int, 2> of) {
    const std::string zeros(sizes[file], '\0');
    crypto::DigestTree tree{kind};
    for (std::uint64_t at = 0; at < sizes[file]; at += block_bytes) {
      const auto which = static_cast<std::size_t>(of[at == 0 ? 0 : 1]);
      tree.add(digest_of(which == 2 ? zeros : known().content[file][which], at));
    }
    return tree.root();
  }

  void send(const BlockRef& message) {
    ONEHOP_CHECK(rings_.from_engine.push(message));
    turn();
  }
  void send(const FileCommand& message) {
    ONEHOP_CHECK(rings_.commands.push(message));
    turn();
  }
  void turn() {
    now_ += 1ms;
    sink_->turn(now_, rings_);
    for (BlockRef free; rings_.to_engine.pop(free);) free_.push_back(free);
    for (FileEvent event; rings_.events.pop(event);) {
    }
  }

  // What the engine guarantees: files and lengths of its list, each block once, in a lent buffer.
  bool take_buffer(std::uint32_t file, std::uint64_t offset, BlockRef& message) {
    const std::uint64_t size = sizes_[file];
    if (size == file_without_blocks || offset / block_bytes >= blocks_of(size)) return false;
    const std::uint64_t key = file * 16 + offset / block_bytes;
    for (int i = 0; i < 100 && free_.empty(); ++i) turn();  // a write is under way
    if (free_.empty() || std::ranges::find(sent_, key) != sent_.end()) return false;
    sent_.push_back(key);
    message = free_.front();
    free_.pop_front();
    message = {.data = message.data,
               .offset = offset,
               .file = file,
               .length = block_length_at(size, offset),
               .slot = message.slot};
    return true;
  }
  void send_block(std::uint32_t file, std::uint64_t offset, const std::string& content) {
    BlockRef message;
    if (!take_buffer(file, offset, message)) return;
    std::memcpy(message.data, content.data() + offset, message.length);
    send(message);
  }

  // A block of records: `how` says for all of them which content they have and which root.
  void send_pack_block(std::uint8_t where, std::uint8_t how) {
    BlockRef message;
    if (pack_.is_empty() ||
        !take_buffer(pack, where % blocks_of(pack_.bytes()) * block_bytes, message))
      return;
    if (pack_bytes_.empty()) write_pack(how);
    std::memcpy(message.data, pack_bytes_.data() + message.offset, message.length);
    if ((how & 0x30) == 0x30) message.data[how * 997U % message.length] ^= std::byte{1};
    send(message);
  }
  void write_pack(std::uint8_t how) {
    pack_bytes_.resize(pack_.bytes());
    for (std::uint32_t i = 0; i < pack_.entries().size(); ++i) {
      const PackPlace place = pack_.place_of(i);
      const bool is_whole = pack_.is_whole(i);
      const std::uint64_t content_end =
          place.end - (is_whole ? crypto::digest_bytes(kind) : crypto::content_tag_bytes);
      const std::uint32_t file = pack_.entries()[i];
      const bool is_other = (how >> (i % 2) & 1) != 0, is_wrong = (how & 0xc) == 0xc && i == 3;
      const std::string& content = known().content[file][is_other];
      if (content_end > place.begin)
        std::memcpy(pack_bytes_.data() + place.begin, content.data(), content_end - place.begin);
      const Digest its_root =
          file == folder ? record_root(kind, {}) : known().root[file][is_other != is_wrong];
      ONEHOP_CHECK(file == folder ||
                   record_root(kind, bytes_of(content)) == known().root[file][is_other]);
      const Digest leaf = is_whole ? its_root : crypto::ContentMac{{}}.tag(bytes_of(content));
      std::memcpy(pack_bytes_.data() + content_end, leaf.data(), place.end - content_end);
      pack_tree_.add(leaf);
      given_[file].push_back(its_root);
    }
  }
  [[nodiscard]] Digest pack_root_of(std::uint8_t how) const {
    Digest of_all = pack_tree_.root();
    if ((how & 7) == 7) of_all[0] ^= std::byte{1};
    return of_all;
  }

  // True: the file has arrived, under its own name or with a number.
  bool check_file(std::uint32_t file) {
    bool has_arrived = false;
    for (const unsigned number : {0U, 2U}) {
      const fs::path path = at_ / final_name(name_of(file), number);
      const fs::file_status status = fs::symlink_status(path);
      if (!fs::exists(status)) continue;
      ONEHOP_CHECK(fs::is_symlink(status) == (file == link));
      std::ifstream in{path, std::ios::binary};
      const std::string content = file == link
                                      ? fs::read_symlink(path).string()
                                      : std::string{std::istreambuf_iterator<char>{in}, {}};
      ONEHOP_CHECK(file != link || content == content_of(link, false));
      const bool is_before = number == 0 && before_.contains(file) && content == before_[file];
      if (is_before) continue;
      ONEHOP_CHECK(number != 0 || !before_.contains(file) || policy_ == OnExist::overwrite);
      ONEHOP_CHECK(content.size() == sizes[file]);
      ONEHOP_CHECK(std::ranges::find(given_[file], root_of(content)) != given_[file].end());
      has_arrived = true;
    }
    ONEHOP_CHECK(!before_.contains(file) || policy_ == OnExist::overwrite ||
                 fs::file_size(at_ / name_of(file)) == before_[file].size());
    return has_arrived;
  }

  const fs::path at_;
  OnExist policy_ = OnExist::ask;
  std::unordered_map<std::uint32_t, std::string> before_;
  std::unique_ptr<Sink> sink_;
  Pack pack_;
  std::vector<std::uint64_t> sizes_;  // as the engine counts
  FileRings rings_{256};
  std::deque<BlockRef> free_;
  std::vector<std::uint64_t> sent_;
  std::vector<std::byte> pack_bytes_;
  crypto::DigestTree pack_tree_{kind};
  std::array<std::vector<Digest>, files> given_;
  Instant now_{1s};
};

}  // namespace

// An honest sender's messages, or nearly: in any order.
std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  std::vector<std::array<std::uint8_t, step_bytes>> steps;
  const std::uint8_t how = random() % 4 == 0 ? static_cast<std::uint8_t>(random()) : 0;
  for (std::uint8_t at = 0; at < 3; ++at) steps.push_back({pack_block, 0, at, how});
  for (const std::uint8_t file : {std::uint8_t{7}, std::uint8_t{8}}) {
    const auto blocks = static_cast<std::uint8_t>(blocks_of(sizes[file]));
    // None, all (how % 4 is 0), or the first, and with that the second of content 1.
    const auto holes = static_cast<std::uint8_t>(random() % 3 == 0 ? 1 + random() % blocks : 0);
    const std::uint8_t is_all = holes == blocks ? 1 : 0;
    if (holes > 0)
      steps.push_back({hole, file, 0, is_all != 0 ? std::uint8_t{0} : std::uint8_t{1}});
    for (std::uint8_t at = holes; at < blocks; ++at) {
      const auto which = holes > 0 ? std::uint8_t{1} : how;
      steps.push_back({block, file, at, which});
      steps.push_back({digest, file, at, which});
    }
    const auto its_root = static_cast<std::uint8_t>(4 + is_all);
    steps.push_back({root, file, 0, holes > 0 ? its_root : how});
  }
  if (random() % 2 == 0) std::ranges::shuffle(steps, random);
  steps.push_back({pack_root, 0, 0, 0});
  out[0] = static_cast<std::byte>(random());
  for (std::size_t i = 0; i < steps.size(); ++i)
    std::memcpy(out.data() + 1 + i * step_bytes, steps[i].data(), step_bytes);
  return 1 + steps.size() * step_bytes;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 1 + 64 * step_bytes) return 0;
  static const Folder folder_of_process;
  World world{folder_of_process.emptied(), data[0]};
  for (std::size_t at = 1; at + step_bytes <= size; at += step_bytes)
    world.take(static_cast<Step>(data[at] % step_count), data[at + 1], data[at + 2], data[at + 3]);
  if (world.end()) ++fuzz::accepted_total;
  return 0;
}
