// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/pair/peers.hpp"

#include <algorithm>
#include <charconv>

namespace onehop::pair {

namespace {

constexpr std::string_view file_ending = ".toml";
constexpr std::string_view comment =
    "# A device that is paired with this one (onehop peers). The last two lines are secret.\n";

std::string file_of(const Peer& peer) { return fingerprint(peer.key) + std::string{file_ending}; }

std::string text_of(const Peer& peer) {
  return write_values(comment,
                      {{"name", peer.name},
                       {"key", to_hex(peer.key)},
                       {"rule", std::string{rule_words[static_cast<std::size_t>(peer.rule)]}},
                       {"folder", peer.folder},
                       {"quota", std::to_string(peer.quota_bytes)},
                       {"paired", peer.paired},
                       {"secret", to_hex(peer.secret.bytes())},
                       {"finding", to_hex(peer.find_key)}});
}

Result<Peer> read_peer(std::string_view text, const std::string& where) {
  ONEHOP_TRY(values, read_values(text, where));
  Peer peer;
  peer.name = value_of(values, "name");
  peer.folder = value_of(values, "folder");
  peer.paired = value_of(values, "paired");
  const auto rule = std::ranges::find(rule_words, value_of(values, "rule"));
  peer.rule = static_cast<Rule>(rule - rule_words.begin());
  const std::string quota = value_of(values, "quota");  // older files have none
  const auto [end, fault] =
      std::from_chars(quota.data(), quota.data() + quota.size(), peer.quota_bytes);
  const bool is_quota =
      quota.empty() || (fault == std::errc{} && end == quota.data() + quota.size());
  const std::string wrong = !is_peer_name(peer.name)                        ? "name"
                            : !from_hex(value_of(values, "key"), peer.key)  ? "key"
                            : rule == rule_words.end()                      ? "rule"
                            : !peer.folder.empty() && peer.folder[0] != '/' ? "folder"
                            : !is_quota                                     ? "quota"
                            : !from_hex(value_of(values, "secret"), peer.secret.writable())
                                ? "secret"
                            : !from_hex(value_of(values, "finding"), peer.find_key) ? "finding"
                                                                                    : "";
  if (wrong.empty()) return peer;
  return Error{ExitCode::local_file_error, "read " + where, "its " + wrong + " is none",
               "Put it right, or remove the file and pair anew"};
}

Error forgotten(const std::string& name) {
  return {ExitCode::usage, "find the device " + name, "it was forgotten meanwhile", ""};
}

}  // namespace

bool is_peer_name(std::string_view name) {
  return !name.empty() && name.size() <= peer_name_bytes_max &&
         std::ranges::none_of(
             name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

Result<PeerBook> PeerBook::open(const std::string& folder, uid_t owner, bool is_made) {
  PeerBook book;
  ONEHOP_TRY(above, PrivateFolder::open(folder, owner, is_made));
  if (!above) return book;
  ONEHOP_TRY(own, PrivateFolder::open(folder + "/peers", owner, is_made));
  if (!own) return book;
  book.folder_ = std::move(own);
  ONEHOP_TRYV(book.read());
  return book;
}

Result<void> PeerBook::read() {
  if (!folder_) return success();
  std::vector<Peer> peers;
  for (const std::string& name : folder_->names(file_ending)) {
    ONEHOP_TRY(text, folder_->read(name));
    if (!text) continue;  // forgotten meanwhile
    ONEHOP_TRY(peer, read_peer(*text, folder_->path_of(name)));
    const bool is_double = std::ranges::any_of(
        peers, [&](const Peer& other) { return other.name == peer.name || other.key == peer.key; });
    if (is_double || file_of(peer) != name)
      return Error{ExitCode::local_file_error, "read " + folder_->path_of(name),
                   "another file has the same name or key, or its own name is not that of its key",
                   "Remove one of them"};
    peers.push_back(std::move(peer));
  }
  peers_ = std::move(peers);
  return success();
}

// Another process may have changed what was read at the start: it counts, and not ours.
Result<Fd> PeerBook::lock_and_read() {
  if (!folder_)
    return Error{ExitCode::internal_error, "keep a device", "its folder is not open", ""};
  ONEHOP_TRY(lock, folder_->lock());
  ONEHOP_TRYV(read());
  return std::move(lock);
}

const Peer* PeerBook::find(std::string_view name) const {
  const auto at = std::ranges::find(peers_, name, &Peer::name);
  return at == peers_.end() ? nullptr : &*at;
}

const Peer* PeerBook::find(const PublicKey& key) const {
  const auto at = std::ranges::find(peers_, key, &Peer::key);
  return at == peers_.end() ? nullptr : &*at;
}

Result<void> PeerBook::write(const Peer& peer) {
  return folder_->write(file_of(peer), text_of(peer));
}

Result<std::string> PeerBook::keep(Peer peer) {
  const auto lock = lock_and_read();
  if (lock.has_error()) return lock.error();
  if (const Peer* known = find(peer.key)) {
    peer.name = known->name;
    peer.rule = known->rule;
    peer.folder = known->folder;
    peer.quota_bytes = known->quota_bytes;
  } else {
    if (peers_.size() >= peers_max)
      return Error{ExitCode::local_file_error, "keep the device " + peer.name,
                   std::to_string(peers_max) + " are paired, and no more are kept",
                   "Forget one: onehop peers forget NAME"};
    const std::string wanted = peer.name;
    for (int i = 2; find(peer.name) != nullptr; ++i) {
      const std::string ending = "-" + std::to_string(i);
      peer.name = wanted.substr(0, peer_name_bytes_max - ending.size()) + ending;
    }
  }
  ONEHOP_TRYV(write(peer));
  std::erase_if(peers_, [&](const Peer& old) { return old.key == peer.key; });
  peers_.push_back(peer);
  return peer.name;
}

Result<void> PeerBook::change(const std::string& name, const Peer& changed) {
  const auto lock = lock_and_read();
  if (lock.has_error()) return lock.error();
  const auto at = std::ranges::find(peers_, name, &Peer::name);
  if (at == peers_.end()) return forgotten(name);
  if (changed.name != name && find(changed.name) != nullptr)
    return Error{ExitCode::usage, "rename " + name, "another device is called " + changed.name,
                 "Choose another name, or forget that one"};
  ONEHOP_TRYV(write(changed));
  *at = changed;
  return success();
}

Result<void> PeerBook::forget(const std::string& name) {
  const auto lock = lock_and_read();
  if (lock.has_error()) return lock.error();
  const auto at = std::ranges::find(peers_, name, &Peer::name);
  if (at == peers_.end()) return forgotten(name);
  ONEHOP_TRYV(folder_->remove(file_of(*at)));
  peers_.erase(at);
  return success();
}

}  // namespace onehop::pair
