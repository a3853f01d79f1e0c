// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/volume_preparer.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <filesystem>

#include "engine/base/display_name.hpp"
#include "engine/base/memory.hpp"
#include "engine/base/system/thread.hpp"
#include "engine/disk/stage.hpp"

namespace onehop::transfer {

namespace {

sink::OnExist on_exist_of(api::Answer answer) {
  switch (answer) {
    case api::Answer::resume: return sink::OnExist::resume;
    case api::Answer::skip: return sink::OnExist::skip;
    case api::Answer::rename: return sink::OnExist::rename;
    case api::Answer::overwrite: return sink::OnExist::overwrite;
    case api::Answer::refuse:
    case api::Answer::accept:
    case api::Answer::unasked: break;
  }
  return sink::OnExist::ask;
}

}  // namespace

void VolumePreparer::start(std::shared_ptr<const session::OfferedVolume> offer,
                           const crypto::CompareKey& key, session::Decide decide) {
  join();
  volume_.reset();
  key_ = key;
  if (offer->first_file == 0) {
    destination_.reset();
    // One that is offered again because a source changed was approved before.
    if (!offer->is_again) {
      const bool is_asked = device_ != nullptr && device_->rule == pair::Rule::ask;
      is_approved_ = !options_.is_approved && !is_asked;
      symlinks_ = std::make_shared<list::SymlinkRule>(options_.is_hidden_allowed);
    }
  }
  auto started =
      start_thread<std::jthread>("preparing", [this, offer, decide](const std::stop_token& stop) {
        try {
          decide(prepare(offer, stop));
        } catch (const std::bad_alloc& refused) {
          decide(memory_error("prepare to receive", refused));
        }
      });
  if (!started.has_value()) return decide(started.error());
  thread_ = std::move(started).value();
}

std::unique_ptr<sink::SinkVolume> VolumePreparer::take() {
  join();
  return std::move(volume_);
}

void VolumePreparer::end() {
  join();
  volume_.reset();
  destination_.reset();
}

/// It may hash small files, and with --on-exist skip all that is there, or wait for an answer.
/// `stop` ends either.
Result<list::Answer> VolumePreparer::prepare(
    const std::shared_ptr<const session::OfferedVolume>& offer, const std::stop_token& stop) {
  if (options_.is_service && !options_.is_asking && device_->rule == pair::Rule::ask)
    return unasked_error();
  if (!destination_) {
    ONEHOP_TRYV(open_destination(*offer));
  }
  if (!offer->is_again) answers_.clear();
  if (!offer->is_again && offer->first_file == 0) replaced_.clear();
  // Else each run would leave one more.
  for (const list::ManifestEntry& entry : offer->left_out) {
    static_cast<void>(destination_->session().is_known(list::entry_hash(entry)));
    sink::PartFile::discard(*destination_, entry);
  }
  if (offer->is_again && offer->is_last && offer->manifest->files.empty())
    destination_->session().remove();
  // Once per volume, however often its user is asked about it.
  name_faults_ = destination_->names().check(*offer->manifest, stop);
  if (options_.symlinks == "refuse") refuse_symlinks(*offer->manifest);
  if (offer->is_last) destination_->names().close();
  is_unsaid_ = false;
  Prepared prepared = prepare_or_ask(offer, stop);
  if (prepared.has_error() && is_unsaid_)
    return list::Answer{.refusal = std::move(prepared).error()};
  ONEHOP_TRY(volume, std::move(prepared));
  volume_ = std::move(volume);
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(directory_, error);
  folder_ = options_.stream_fd >= 0 ? "standard output" : error ? directory_ : folder.string();
  list::Answer answer = volume_->answer();
  answer.folder = folder_;
  const bool is_all = offer->is_last && offer->first_file == 0;
  if (is_all && std::ranges::none_of(answer.actions, session::has_digests)) clear_left();
  return answer;
}

/// What dead sessions left, where nothing is wanted: no file side follows, which would see to it.
void VolumePreparer::clear_left() {
  volume_->discard_left();
  destination_->session().remove();
  if (!destination_->is_output()) disk::Stage::remove_left(destination_->root());
}

void VolumePreparer::refuse_symlinks(const list::Manifest& volume) {
  name_faults_.resize(volume.files.size());
  for (std::size_t i = 0; i < volume.files.size(); ++i)
    if (volume.files[i].is_symlink())
      name_faults_[i] = static_cast<int>(list::SymlinkFault::not_taken);
}

/// An answer holds for the names that were shown with its question, and for what comes into a
/// folder that was to replace one of them. Any other that comes up later is asked about, or
/// refused.
VolumePreparer::Prepared VolumePreparer::prepare_or_ask(
    const std::shared_ptr<const session::OfferedVolume>& offer, const std::stop_token& stop) {
  for (;;) {
    std::vector<sink::Conflict> conflicts;
    auto volume = prepare_one(offer, options_.on_exist == "ask" ? &conflicts : nullptr, stop);
    if (conflicts.empty() && (is_approved_ || volume.has_error())) return volume;
    if (options_.is_service && (!options_.is_asking || !conflicts.empty())) return volume;
    const auto answered = ask(*offer, conflicts, stop);
    if (!answered)
      return Error{ExitCode::timed_out, "decide on the offer", "nobody decided in time",
                   "Send again; --on-exist answers without a person"};
    const api::Answer answer = *answered;
    if (answer == api::Answer::unasked) return unasked_error();
    if (conflicts.empty() && answer == api::Answer::refuse) {
      is_unsaid_ = true;  // it reads like any other refusal by a person
      return Error{ExitCode::refused_by_peer, "receive from " + offer->peer.address.text(),
                   "the offer was refused here", ""};
    }
    if (!conflicts.empty() && on_exist_of(answer) == sink::OnExist::ask) return volume;
    is_approved_ = true;
    if (conflicts.empty()) return volume;
    for (const sink::Conflict& conflict : conflicts) {
      const list::ManifestEntry& entry = offer->manifest->files[conflict.file];
      answers_[entry.name] = on_exist_of(answer);
      if (entry.is_folder() && answer == api::Answer::overwrite) replaced_.insert(entry.name);
    }
  }
}

Error VolumePreparer::unasked_error() const {
  const std::string name = device_ == nullptr ? "somebody" : device_->name;
  return {ExitCode::refused_by_peer, "receive from " + name,
          "a person would have to agree, and a service asks nobody",
          "There: onehop peers set " + name + " --rule accept"};
}

/// Nullopt: no answer came within the session's limit, or the session needs none any more.
std::optional<api::Answer> VolumePreparer::ask(const session::OfferedVolume& offer,
                                               const std::vector<sink::Conflict>& conflicts,
                                               const std::stop_token& stop) {
  api::Offer event;
  event.id = question_.begin();
  event.peer = offer.peer.address.text();
  event.directory = display_name(directory_);
  if (device_ != nullptr) event.device = device_->name;
  std::error_code unknown;
  const auto room = std::filesystem::space(directory_, unknown);
  if (!unknown) event.free_bytes = room.available;
  event.conflicts = conflicts.size();
  event.is_part = !offer.is_last;
  for (const list::ManifestEntry& entry : offer.manifest->files)
    event.files.push_back({.name = display_name(entry.name),
                           .bytes = entry.size,
                           .kind = entry.is_folder()    ? api::Offer::Kind::folder
                                   : entry.is_symlink() ? api::Offer::Kind::symlink
                                                        : api::Offer::Kind::file});
  for (const list::ManifestEntry& entry : offer.manifest->files)
    event.files_total += entry.is_folder() ? 0 : 1;
  event.bytes_total = list::total_bytes(*offer.manifest);
  if (!offer.is_last) {
    event.files_total = std::max(event.files_total, offer.known.files);
    event.bytes_total = std::max(event.bytes_total, offer.known.bytes);
  }
  for (const sink::Conflict& conflict : conflicts) {
    api::Offer::File& file = event.files[conflict.file];
    file.conflict = conflict.cause;
    file.is_regular = conflict.is_regular;
    file.existing = conflict.size;
  }
  const std::uint64_t id = event.id;
  boost::asio::post(io_, [this, event = std::move(event)] { events_.emit(event); });
  const auto answer = question_.wait_answer(stop, session::SessionLimits{}.consider);
  boost::asio::post(io_, [this, id] { events_.emit(api::OfferGone{id}); });
  return answer;
}

Result<void> VolumePreparer::open_destination(const session::OfferedVolume& offer) {
  sink::DestinationOptions options;
  options.folder = directory_;
  options.digest_kind = offer.digest;
  options.compare_key = key_;
  options.durability = choice<sink::Durability>("--durability", options_.durability);
  options.direct_io = choice<disk::DirectIo>("--direct-io", options_.common.direct_io);
  options.is_again = offer.is_again;
  options.symlinks = symlinks_;
  options.output_fd = options_.stream_fd;
  options.is_room_unchecked = options_.is_space_unchecked;
  options.room = room_;
  options.quota_bytes =
      device_ != nullptr && device_->quota_bytes > 0 ? device_->quota_bytes : options_.quota_bytes;
  ONEHOP_TRY(opened, sink::Destination::open(std::move(options)));
  destination_ = std::move(opened);
  return success();
}

/// is_replaced: a folder above it replaces a file, as somebody said.
bool VolumePreparer::is_replaced(std::string_view name) const {
  while (!name.empty() && !replaced_.contains(name)) name = disk::parent_of(name);
  return !name.empty();
}

VolumePreparer::Prepared VolumePreparer::prepare_one(
    const std::shared_ptr<const session::OfferedVolume>& offer,
    std::vector<sink::Conflict>* conflicts, const std::stop_token& stop) {
  sink::SinkVolumeOptions options;
  options.on_exist = choice<sink::OnExist>("--on-exist", options_.on_exist);
  if (!answers_.empty() || !replaced_.empty())
    for (const list::ManifestEntry& entry : offer->manifest->files) {
      const auto answer = answers_.find(entry.name);
      options.on_exist_of.push_back(answer != answers_.end()  ? answer->second
                                    : is_replaced(entry.name) ? sink::OnExist::overwrite
                                                              : options.on_exist);
    }
  options.is_quick = options_.is_quick;
  options.name_faults = name_faults_;
  options.conflicts = conflicts;
  options.is_unsaid = &is_unsaid_;
  options.withdrawn = stop;
  return sink::SinkVolume::prepare(destination_, offer, std::move(options));
}

}  // namespace onehop::transfer
