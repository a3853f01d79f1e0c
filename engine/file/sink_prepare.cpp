// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink::prepare(): what can be refused is refused here, before the peer is told "accepted".
//
//   1 the manifest is valid and the one that was approved
//   2 the folder is opened once, and a file can be made in it
//   3 existing final names, by policy; parts of earlier sessions are hashed, and offered
//   4 the rest fits on the disk
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "engine/base/check.hpp"
#include "engine/file/file_bytes.hpp"
#include "engine/file/sink.hpp"

namespace onehop::file {

namespace {

/// Small files are open from their first byte to their root, which is announced a round trip later:
/// more than the 1024 descriptors that a shell allows. The hard limit stays.
void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// File systems keep times in steps of up to two seconds (FAT).
constexpr std::int64_t mtime_slack_s = 2;

constexpr std::string_view no_regular_file = "that name exists and is not a regular file";

Error gave_up() {
  return {ExitCode::interrupted, "look for what is there already", "nobody waits for it any more"};
}

}  // namespace

Sink::Sink(std::shared_ptr<const Manifest> manifest, SinkOptions options,
           std::unique_ptr<FileIo> io)
    : shared_manifest_{std::move(manifest)},
      manifest_{*shared_manifest_},
      options_{std::move(options)},
      io_{std::move(io)},
      pool_{options_.slots},
      claims_(manifest_.files.size()),
      is_wanted_(manifest_.files.size(), true),
      is_done_(manifest_.files.size(), false),
      existing_(manifest_.files.size(), Existing::none),
      has_pack_{file::has_pack(manifest_)},
      writing_(options_.slots) {
  ONEHOP_CHECK(io_ != nullptr);
  ONEHOP_CHECK(options_.on_exist_of.empty() ||
               options_.on_exist_of.size() == manifest_.files.size());
  part_options_ = {.digest_kind = options_.digest_kind,
                   .durability = options_.durability,
                   .umask_bits = read_umask(),
                   .is_creating = false,
                   .session = &session_};
}

Result<std::unique_ptr<Sink>> Sink::prepare(std::shared_ptr<const Manifest> manifest,
                                            SinkOptions options, std::unique_ptr<FileIo> io) {
  ONEHOP_TRYV(validate(*manifest, options.limits));
  if (manifest_hash(*manifest) != options.approved)
    return Error{ExitCode::local_file_error, "receive the files",
                 "the list is not the one that was approved", "Nothing was written"};
  raise_descriptor_limit();
  std::unique_ptr<Sink> self{new Sink{std::move(manifest), std::move(options), std::move(io)}};
  ONEHOP_TRYV(self->open_folder());
  self->session_.adopt(self->root_.get(), self->manifest_, !self->options_.is_changed.empty());
  ONEHOP_TRYV(self->check_existing());
  ONEHOP_TRYV(self->check_room());
  self->files_left_ = static_cast<std::size_t>(std::ranges::count(self->is_wanted_, true));
  self->make_pack();
  self->part_options_.is_creating = true;
  return self;
}

/// What is sent whole and small goes in shared blocks, as the sender works out for itself from our
/// answer.
void Sink::make_pack() {
  Pack pack = Pack::make(manifest_, options_.digest_kind, [this](std::uint32_t file) {
    return is_wanted_[file] && existing_[file] == Existing::none && claims_[file].empty();
  });
  for (const std::uint64_t size : file::block_sizes(manifest_, pack))
    if (size != file_without_blocks) blocks_left_ += blocks_of(size);
  for (std::size_t file = 0; file < is_wanted_.size(); ++file)
    if (!is_wanted_[file]) blocks_left_ -= blocks_of(manifest_.files[file].size);
  if (pack.is_empty()) return;
  pack_ = std::make_unique<PackSink>(
      manifest_, std::move(pack),
      PackOptions{
          .root = root_.get(),
          .digest_kind = options_.digest_kind,
          .durability = options_.durability,
          .umask_bits = part_options_.umask_bits,
          .policy = [this](std::uint32_t file) { return policy_of(file); },
          .mark = [this](std::uint32_t file,
                         int fd) { return session_.add(entry_hash(manifest_.files[file]), fd); },
          .sync_marks = [this] { return session_.sync(); }});
}

/// The folder's own path may go through links: the user named it. Nothing below it may.
Result<void> Sink::open_folder() {
  const std::string attempt = "receive into '" + display_name(options_.folder) + "'";
  root_ = Fd{::open(options_.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!root_.is_open())
    return errno_error(ExitCode::local_file_error, attempt, "Choose an existing folder with --dir");
  // A file without a name proves that files can be made here, and leaves nothing behind.
  Fd probe{::openat(root_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
  if (!probe.is_open() && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
    const std::string name = ".onehop-probe-" + std::to_string(::getpid());
    probe = open_beneath(root_.get(), name, O_RDWR | O_CREAT | O_EXCL, 0600);
    unlink_same(root_.get(), name, probe.get());
  }
  if (!probe.is_open())
    return errno_error(ExitCode::local_file_error, attempt,
                       "Choose a folder that can be written to");
  return success();
}

Result<void> Sink::check_existing() {
  std::size_t conflicts = 0;
  Error first;
  for (std::uint32_t file = 0; file < manifest_.files.size(); ++file) {
    Result<void> checked = check_existing_name(file);
    if (options_.withdrawn.stop_requested())
      return gave_up();  // not all blocks of this file may have been hashed
    if (checked) continue;
    if (checked.error().errno_value != EEXIST) return checked;
    if (conflicts++ == 0) first = std::move(checked).error();
  }
  if (conflicts == 0) return success();
  if (conflicts > 1) first.cause += ", as do " + std::to_string(conflicts - 1) + " more";
  return first;
}

Result<void> Sink::check_existing_name(std::uint32_t file) {
  const std::string& name = manifest_.files[file].name;
  // Below a folder that is not there is nothing.
  if (!missing_folder_.empty() && name.starts_with(missing_folder_)) return success();
  Result<Place> place = open_place(root_.get(), manifest_.files[file].name, false);
  if (place.has_error()) {
    if (place.error().errno_value == ENOENT) {
      missing_folder_ = name.substr(0, name.rfind('/') + 1);
      return success();  // its folder is made when its first block comes
    }
    return std::move(place).error();
  }
  const int folder = place.value().folder.get();
  const std::string& leaf = place.value().leaf;
  struct stat status {};
  if (::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    if (manifest_.files[file].is_folder)
      return S_ISDIR(status.st_mode)
                 ? Result<void>{success()}
                 : conflict(file, status, "something else has the folder's name",
                            "It is never replaced");
    if (const auto number = find_delivered(file, place.value())) {
      if (*number != 0) delivered_numbers_.emplace(file, *number);
      return compare(file, folder, *number == 0 ? leaf : numbered_leaf(leaf, *number));
    }
    ONEHOP_TRYV(apply_policy(file, status, place.value()));
    if (!is_wanted_[file] || is_there(file)) return success();
  } else if (errno != ENOENT) {
    return errno_error(ExitCode::local_file_error,
                       "look for '" + display_name(manifest_.files[file].name) + "'");
  }
  if (manifest_.files[file].is_folder) {
    missing_folder_ = name + '/';
    return success();
  }
  // A packed file has no part: it is whole, or it is nothing.
  if (has_pack_ && is_packable(manifest_.files[file])) return success();
  return find_part(file);
}

/// The number of the name (0: the announced one) under which a session that died delivered this
/// very file, if it did and nobody has written to it since.
std::optional<unsigned> Sink::find_delivered(std::uint32_t file, const Place& place) const {
  const ManifestEntry& entry = manifest_.files[file];
  if (session_.is_empty() || policy_of(file) == OnExist::skip)
    return std::nullopt;  // skip compares whatever is there
  const Digest hash = entry_hash(entry);
  if (!session_.is_known(hash)) return std::nullopt;
  const unsigned last = policy_of(file) == OnExist::rename ? name_number_max : 1;
  for (unsigned number = 1; number <= last; ++number) {
    const std::string leaf = number == 1 ? place.leaf : numbered_leaf(place.leaf, number);
    struct stat status {};
    if (::fstatat(place.folder.get(), leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return std::nullopt;
    const std::int64_t late_s = status.st_mtim.tv_sec - entry.mtime_ns / 1'000'000'000;
    if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != entry.size ||
        std::abs(late_s) > mtime_slack_s)
      continue;
    const auto identity = identity_of(place.folder.get(), leaf.c_str());
    if (identity && session_.is_made(hash, *identity)) return number == 1 ? 0 : number;
  }
  return std::nullopt;
}

Error Sink::conflict(std::uint32_t file, const struct stat& status, std::string_view cause,
                     std::string_view hint) {
  const bool is_regular = S_ISREG(status.st_mode);
  if (options_.conflicts != nullptr)
    options_.conflicts->push_back(
        {file, cause, is_regular, is_regular ? static_cast<std::uint64_t>(status.st_size) : 0});
  return {ExitCode::local_file_error, "receive '" + display_name(manifest_.files[file].name) + "'",
          std::string{cause}, std::string{hint}, EEXIST};
}

/// The final name exists: the policy decides.
Result<void> Sink::apply_policy(std::uint32_t file, const struct stat& status, const Place& place) {
  const bool is_regular = S_ISREG(status.st_mode);
  const bool is_same_size =
      is_regular && static_cast<std::uint64_t>(status.st_size) == manifest_.files[file].size;
  switch (policy_of(file)) {
    case OnExist::ask:
      if (is_same_size) return compare(file, place.folder.get(), place.leaf);
      return conflict(file, status, is_regular ? "that name exists" : no_regular_file,
                      "Choose --on-exist resume, skip, rename or overwrite");
    case OnExist::skip: keep(file, status, place); return success();
    case OnExist::rename: return success();
    case OnExist::overwrite:
      if (is_regular) return success();
      return conflict(file, status, no_regular_file, "It is never replaced");
    case OnExist::resume: break;
  }
  if (!is_regular) return conflict(file, status, no_regular_file, "It is never replaced");
  if (!is_same_size)
    return conflict(file, status, "a complete file of another size has that name",
                    "Choose --on-exist rename or overwrite");
  return compare(file, place.folder.get(), place.leaf);
}

/// OnExist::skip: what has the name keeps it. Its size can show only that it is another file.
void Sink::keep(std::uint32_t file, const struct stat& status, const Place& place) {
  const std::uint64_t size = manifest_.files[file].size;
  const bool is_alike =
      S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) == size;
  const bool is_read = is_alike && compare(file, place.folder.get(), place.leaf) &&
                       claims_[file].size() == blocks_of(size);
  existing_[file] = is_read ? Existing::compared : is_alike ? Existing::unread : Existing::other;
  is_wanted_[file] = is_read;
  if (!is_read) claims_[file].clear();
}

/// The file is there, perhaps this very one. All of it is offered, nothing written.
Result<void> Sink::compare(std::uint32_t file, int folder, const std::string& leaf) {
  const ManifestEntry& entry = manifest_.files[file];
  const Fd there = open_beneath(folder, leaf, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!there.is_open())
    return errno_error(ExitCode::local_file_error, "compare '" + display_name(entry.name) + "'");
  std::vector<Claim> all(blocks_of(entry.size));
  for (std::uint64_t block = 0; block < all.size(); ++block) all[block].block = block;
  claims_[file] = hash_listed(there.get(), entry.size, all);
  existing_[file] = Existing::expected;
  return success();
}

Result<void> Sink::find_part(std::uint32_t file) {
  const ManifestEntry& entry = manifest_.files[file];
  ONEHOP_TRY(part, open_part(file));
  if (!part.is_open()) return success();
  std::vector<Claim> claims;
  for (Claim& found : hash_listed(part.fd(), entry.size, part.listed())) {
    // The journal is a hint; only a block that still has the digest it once had is worth offering.
    const auto listed = std::ranges::lower_bound(part.listed(), found.block, {}, &Claim::block);
    if (listed->digest == found.digest) claims.push_back(found);
  }
  claims_[file] = std::move(claims);
  auto open = std::make_unique<OpenFile>(options_.digest_kind);
  open->part = std::move(part);
  open_.emplace(file, std::move(open));
  return success();
}

/// The listed blocks as they are on the disk now. One that cannot be read is left out.
std::vector<Claim> Sink::hash_listed(int fd, std::uint64_t size, const std::vector<Claim>& listed) {
  std::vector<Claim> found;
  found.reserve(listed.size());
  std::byte* const buffer = pool_.data(0);  // nothing is lent yet
  for (const Claim& claim : listed) {
    if (options_.withdrawn.stop_requested()) break;
    const std::uint32_t length = block_length_at(size, claim.block * block_bytes);
    if (read_at(fd, {buffer, length}, claim.block * block_bytes) !=
        static_cast<std::int64_t>(length))
      continue;
    found.push_back({claim.block, crypto::block_digest(options_.digest_kind, {buffer, length})});
  }
  return found;
}

/// Sizes are the peer's claims; they are held against the disk before anything is accepted (Z2).
Result<void> Sink::check_room() const {
  std::uint64_t needed_bytes = 0;
  for (std::size_t file = 0; file < manifest_.files.size(); ++file) {
    if (!is_wanted_[file]) continue;
    needed_bytes += manifest_.files[file].size;  // the sum was checked by validate()
    for (const Claim& claim : claims_[file])
      needed_bytes -= block_length_at(manifest_.files[file].size, claim.block * block_bytes);
  }
  struct statvfs disk {};
  if (::fstatvfs(root_.get(), &disk) != 0)
    return errno_error(ExitCode::local_file_error,
                       "ask for the free space of '" + display_name(options_.folder) + "'");
  const Wide free_bytes = static_cast<Wide>(disk.f_bavail) * disk.f_frsize;
  if (needed_bytes == 0 || static_cast<Wide>(needed_bytes) + options_.reserve_bytes <= free_bytes)
    return success();
  return Error{ExitCode::local_file_error, "receive " + std::to_string(needed_bytes) + " bytes",
               "the disk has room for " +
                   std::to_string(static_cast<std::uint64_t>(
                       std::max<Wide>(0, free_bytes - static_cast<Wide>(options_.reserve_bytes)))) +
                   " bytes beside its reserve",
               "Free some space, or choose another folder with --dir", ENOSPC};
}

}  // namespace onehop::file
