// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tests/control/session/virtual_session.hpp"

#include <algorithm>

#include "control/session/channel/tls.hpp"

namespace onehop::session::test {

std::function<std::optional<list::ManifestEntry>()> each_of(list::Manifest manifest) {
  return [manifest = std::move(manifest), at = std::size_t{0}]() mutable {
    return at < manifest.files.size() ? std::optional{manifest.files[at++]} : std::nullopt;
  };
}

Digest some_root(const list::ManifestEntry& entry) {
  Digest root{};
  for (std::size_t i = 0; i < entry.name.size(); ++i)
    root[i % 8] ^= static_cast<std::byte>(entry.name[i]);
  root[14] = static_cast<std::byte>(entry.size & 0xff);
  root[15] = static_cast<std::byte>((entry.size / block_bytes) | 1);
  return root;
}

namespace {

/// What the file side knows of packed files, all at once.
void set_roots(list::PackRoots& roots, const list::Manifest& manifest, const list::Pack& pack) {
  for (std::uint32_t i = 0; i < pack.entries().size(); ++i)
    roots.set(i, some_root(manifest.files[pack.entries()[i]]));
}

}  // namespace

VirtualEnd::VirtualEnd(const SendOptions& options, NextEntry next, std::uint64_t seed,
                       std::size_t volume_entries)
    : random_{seed}, next_{std::move(next)}, volume_entries_{volume_entries} {
  auto machine = std::make_unique<SendMachine>(
      options, SendMachine::Connection{{*IpAddress::parse("10.0.0.2"), 7411},
                                       std::string{alpn_name},
                                       Instant{options.limits.connect}});
  sender_ = machine.get();
  machine_ = std::move(machine);
  upcoming_ = next_();
}

VirtualEnd::VirtualEnd(const RecvOptions& options, std::uint64_t seed) : random_{seed} {
  auto machine =
      std::make_unique<RecvMachine>(options, Endpoint{*IpAddress::parse("10.0.0.1"), 40'000});
  receiver_ = machine.get();
  machine_ = std::move(machine);
}

void VirtualEnd::start(Instant now) {
  machine_->start(now);
  perform_all(now);
}

Instant VirtualEnd::later(Instant now) {
  return now + Nanos{1'000 + static_cast<std::int64_t>(
                                 draw(static_cast<std::uint64_t>(engine_time_max.count())))};
}

void VirtualEnd::take_event(Instant now, const Event& event) {
  if (!has_engine_) return;
  if (event.kind == EventKind::path_proven) is_proven_ = true;
  machine_->on_event(now, event);
  perform_all(now);
}

void VirtualEnd::run_engine(Instant now) {
  if (volume_at_ <= now) give_volume(now);
  while (!events_.empty() && events_.begin()->first <= now) {
    const auto next = events_.extract(events_.begin());
    std::visit([&](const auto& event) { take_event(now, event); }, next.mapped());
  }
}

Instant VirtualEnd::next_event_at() const noexcept {
  return events_.empty() ? volume_at_ : std::min(volume_at_, events_.begin()->first);
}

VirtualEnd::Held* VirtualEnd::find(std::uint32_t file) noexcept {
  for (Held& held : held_)
    if (file >= held.first_file && file <= held.pack_file()) return &held;
  return nullptr;
}

const list::ManifestEntry* VirtualEnd::entry_of(std::uint32_t file) const noexcept {
  for (const Held& held : held_)
    if (file >= held.first_file && file < held.pack_file())
      return &held.manifest->files[file - held.first_file];
  return nullptr;
}

void VirtualEnd::hold(Held held) {
  if (!held_.empty() && held.first_file != held_.back().pack_file() + 1)
    fault("the indices of volumes have a gap");
  held.pack = list::Pack::make(*held.manifest, crypto::DigestKind::xxh3, held.actions);
  for (std::uint32_t entry = 0; entry < held.blocks.size(); ++entry)
    if (!held.blocks[entry].empty()) held.untold.insert(entry);
  held_.push_back(std::move(held));
}

void VirtualEnd::give_volume(Instant now) {
  volume_at_ = Instant::max();
  auto manifest = std::make_shared<list::Manifest>();
  const bool is_empty = has_gaps && std::exchange(has_given_, true) && draw(4) == 0;
  while (!is_empty && upcoming_ && manifest->files.size() < volume_entries_)
    manifest->files.push_back(*std::exchange(upcoming_, next_()));
  const bool is_last = !upcoming_ && !(has_gaps && draw(4) == 0);
  sender_->on_volume(now, list::Volume{std::move(manifest), is_last}, KnownTree{});
  perform_all(now);
}

void VirtualEnd::perform_all(Instant now) {
  while (auto action = machine_->pop_action()) perform(now, *action);
}

void VirtualEnd::perform(Instant now, Action& action) {
  if (std::holds_alternative<AskPeer>(action)) return machine_->note_heard(now);
  if (auto* message = std::get_if<Message>(&action)) {
    if (const auto* root = std::get_if<FileRoot>(message); root != nullptr && !is_forgetful)
      if (const list::ManifestEntry* entry = entry_of(root->file))
        announced[entry->name] = root->root;
    said.push_back(std::move(*message));
  } else if (const auto* command = std::get_if<Command>(&action)) {
    obey(now, *command);
  } else if (const auto* to_file = std::get_if<FileCommand>(&action)) {
    take_file_command(now, *to_file);
  } else if (const auto* fact = std::get_if<SessionFact>(&action)) {
    learn(*fact);
  } else if (const auto* accepted = std::get_if<Accepted>(&action)) {
    const list::Volume& volume = accepted->volume;
    const list::Answer& answer = *accepted->answer;
    if (answer.pack_roots != nullptr) set_roots(*answer.pack_roots, *volume.manifest, *answer.pack);
    hold({volume.first_file, volume.manifest, answer.actions, answer.held, volume.is_last});
    if (is_started_ && !is_mute) send_volume(now, held_.back());
  } else if (const auto* change = std::get_if<ChangePath>(&action)) {
    is_held = !change->update.is_link_up;
  } else if (std::holds_alternative<OpenData>(action)) {
    if (opened++ != stopped) fault("opened twice");
    SessionId id{};
    id[0] = static_cast<std::byte>(++next_id_);
    machine_->on_data_opened(now, DataOpened{40'001, 1400, "virtual"}, id);
  } else if (std::holds_alternative<StartData>(action)) {
    if (has_engine_ || opened == stopped) fault("started without a port, or twice");
    has_engine_ = true;
    is_finished_ = is_proven_ = is_started_ = has_failed_ = false;
    digests_.clear();
    sent_at_ = now;
    machine_->on_data_started(now, std::string{"virtual0"});
    for (const Held& held : held_) tell_held(now, held);
  } else if (std::holds_alternative<StopData>(action)) {
    if (++stopped != opened) fault("stopped what was not open");
    has_engine_ = is_held = false;
    events_.clear();
    held_.clear();
  } else if (const auto* again = std::get_if<OfferAgain>(&action)) {
    list_settled();
    auto left = std::make_shared<list::Manifest>();
    for (const Unsettled& volume : again->volumes)
      if (volume.unsent && draw(4) == 0)  // it was named itself
        return sender_->on_offered_again(now, volume.unsent->why);
    for (const Unsettled& volume : again->volumes)
      for (std::size_t i = 0; i < volume.is_settled.size(); ++i)
        if (!volume.is_settled[i] && !(has_gaps && draw(4) == 0))
          left->files.push_back(volume.manifest->files[i]);
    if (!left->files.empty() && !left->files[0].is_folder()) left->files[0].size += block_bytes;
    sender_->on_offered_again(now, std::shared_ptr<const list::Manifest>{std::move(left)});
  } else if (std::holds_alternative<WantVolume>(action)) {
    if (volume_at_ != Instant::max()) return fault("a volume was asked for twice");
    volume_at_ = draw(2) == 0 ? now : later(now);
    if (volume_at_ == now) give_volume(now);
  } else if (const auto* consider = std::get_if<Consider>(&action)) {
    if (consider->offer->first_file == 0) list_settled();  // it is offered again
    considered = consider->offer;
    decision_at = later(now);
  } else if (const auto* taken = std::get_if<TakeOffered>(&action)) {
    if (!has_engine_ || taken->offer != offer_) return fault("a volume that was not decided on");
    hold_decided();
    tell_held(now, held_.back());
  }
}

void VirtualEnd::learn(const SessionFact& fact) {
  if (const auto* phase = std::get_if<Phase>(&fact)) phases.insert(*phase);
  if (const auto* report = std::get_if<Report>(&fact)) take_report(*report);
  const auto* over = std::get_if<VolumeOver>(&fact);
  if (over == nullptr) return;
  ++volumes_over;
  list(over->manifest->files.size());
  if (!has_engine_) return;
  if (held_.empty() || held_.front().manifest != over->manifest)
    return fault("another volume is over than the first");
  held_.pop_front();
}

void VirtualEnd::take_report(const Report& report) {
  const list::ManifestEntry& entry = report.manifest->files.at(report.place);
  const std::string& name = entry.name;
  ++reported;
  if (is_forgetful) return;
  unlisted_.emplace(report.done.file, entry);
  if (report.done.outcome == FileOutcome::there_unread) announced.emplace(name, Digest{});
  const bool is_new = outcomes.emplace(name, report.done).second;
  if (!is_new && !entry.is_folder() && !is_peer_hostile) fault(name + " was reported twice");
}

void VirtualEnd::list(std::size_t entries) {
  for (; entries > 0 && !unlisted_.empty(); --entries) {
    listed.push_back(unlisted_.begin()->second.name);
    unlisted_.erase(unlisted_.begin());
  }
}

void VirtualEnd::list_settled() {
  std::erase_if(unlisted_, [](const auto& one) { return one.second.is_folder(); });
  list(unlisted_.size());
}

void VirtualEnd::hold_decided() {
  hold({offer_->first_file, offer_->manifest, decided_.actions, decided_.held, offer_->is_last});
}

void VirtualEnd::decide(Instant now) {
  offer_ = std::exchange(considered, nullptr);
  const std::vector<list::ManifestEntry>& files = offer_->manifest->files;
  list::Answer decision;
  for (std::size_t i = 0; i < files.size(); ++i) {
    decision.actions.push_back(static_cast<FileAction>(draw(8)));
    if (decision.actions[i] == FileAction::name_refused) decision.name_faults.push_back(EINVAL);
  }
  if (sends_all) decision = {.actions = std::vector<FileAction>(files.size(), FileAction::send)};
  const list::Pack pack =
      list::Pack::make(*offer_->manifest, crypto::DigestKind::xxh3, decision.actions);
  decision.held.resize(sends_all ? 0 : files.size());
  for (std::uint32_t i = 0; i < decision.held.size(); ++i) {
    if (decision.actions[i] != FileAction::resume || pack.contains(i)) continue;
    const std::uint64_t blocks = blocks_of(files[i].size);
    for (std::uint64_t first = draw(blocks + 1); first < blocks;) {
      const std::uint64_t end = first + 1 + draw(blocks - first);
      decision.held[i].push_back({first, end});
      first = end + 1 + draw(blocks);
    }
  }
  decision.pack_roots = std::make_shared<list::PackRoots>(pack.entries().size());
  set_roots(*decision.pack_roots, *offer_->manifest, pack);
  decided_ = decision;
  const bool is_first = offer_->first_file == 0;
  if (is_first) {
    held_.clear();
    hold_decided();
  }
  if (!sends_all && draw(is_first ? 20 : 200) == 0)
    receiver_->on_decision(now, Error{ExitCode::local_file_error, "decide", "it is full", ""});
  else
    receiver_->on_decision(now, std::move(decision));
  perform_all(now);
}

}  // namespace onehop::session::test
