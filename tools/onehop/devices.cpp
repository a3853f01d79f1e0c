// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/devices.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace onehop::tool {

namespace {

uid_t owner_of(const std::optional<User>& user) { return user ? user->uid : ::geteuid(); }

}  // namespace

std::string shown_name(const std::string& wanted) {
  std::string name = wanted;
  if (std::array<char, 256> own{}; name.empty() && ::gethostname(own.data(), own.size() - 1) == 0)
    name = own.data();
  return find::name_for_answer(std::move(name));
}

bool has_code(const OutputOptions& output) {
  return !output.code_file.empty() || std::getenv("ONEHOP_CODE") != nullptr;
}

api::Devices devices_of(const std::optional<User>& user, const OutputOptions& output,
                        std::string to) {
  return {.folder = device_folder(user),
          .name = shown_name(output.device_name),
          .to = std::move(to),
          .is_remembered = output.is_remembered};
}

Result<pair::PeerBook> read_peers(const std::optional<User>& user) {
  return pair::PeerBook::open(device_folder(user), owner_of(user), false);
}

Result<std::function<find::PeerHash(const find::Nonce&, const find::Instance&)>> peer_hash_of(
    const std::optional<User>& user) {
  pair::FindKey key;
  find::fill_random(key);
  ONEHOP_TRY(folder, pair::PrivateFolder::open(device_folder(user), owner_of(user), false));
  if (folder) {
    ONEHOP_TRY(own, pair::DeviceKey::read(*folder));
    if (own) key = own->find_key();
  }
  return std::function{[key](const find::Nonce& nonce, const find::Instance& instance) {
    return pair::find_hash(key, nonce, instance);
  }};
}

std::string device_of(const std::vector<pair::Peer>& peers, const find::Answer& answer) {
  for (const pair::Peer& peer : peers)
    if (pair::find_hash(peer.find_key, answer.nonce, answer.instance) == answer.peer_hash)
      return peer.name;
  return {};
}

Addressee addressee_of(const std::string& to) {
  const std::size_t at = to.rfind('@');
  if (at == std::string::npos) return {"", to};
  return {to.substr(0, at), to.substr(at + 1)};
}

}  // namespace onehop::tool
