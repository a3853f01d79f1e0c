// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Peers: the devices that this user has paired, one readable text file each.
//
//   FOLDER/peers/FINGERPRINT.toml   name, key, rule, folder, quota, paired; secret, finding
//
// A device is its key. Its name is ours, and unique. Set-up code; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/pair/device_key.hpp"

namespace onehop::pair {

inline constexpr std::size_t peer_name_bytes_max = 63, peers_max = 256;

/// Rule: how a receiver treats that device's offers. In the order of rule_words.
enum class Rule : std::uint8_t { ask, accept, refuse };
inline constexpr std::array<std::string_view, 3> rule_words{"ask", "accept", "refuse"};

using PairSecret = crypto::Secret<32>;  ///< of the two devices alone, from their introduction

struct Peer {
  std::string name;
  PublicKey key{};
  PairSecret secret;
  FindKey find_key{};  ///< its own: identifies its answers
  Rule rule = Rule::ask;
  std::string folder;  ///< where Rule::accept puts its files; empty: the receiver's folder
  std::uint64_t quota_bytes = 0;  ///< bound of its folder in a service; 0: the service's bound
  std::string paired;             ///< when, "2026-11-28T10:42:21Z"
};

/// is_peer_name: 1 to 63 bytes of UTF-8 that a terminal shows as they are.
[[nodiscard]] bool is_peer_name(std::string_view name);

/// PeerBook is the folder of the devices. Each change reads the folder again first, under a lock,
/// and so keeps what another process has changed.
class PeerBook {
 public:
  /// open: `folder` is the one above; it is made only when something is kept. Error 8.
  [[nodiscard]] static Result<PeerBook> open(const std::string& folder, uid_t owner, bool is_made);
  /// read reads the folder again. After an Error the devices are the previous ones.
  [[nodiscard]] Result<void> read();
  [[nodiscard]] const std::vector<Peer>& peers() const noexcept { return peers_; }
  [[nodiscard]] const Peer* find(std::string_view name) const;
  [[nodiscard]] const Peer* find(const PublicKey& key) const;
  /// keep writes a device: a new one under its name or, if another device has that, NAME-2; an
  /// existing one gets the new values of its introduction, and keeps name, rule and folder. Returns
  /// its name.
  [[nodiscard]] Result<std::string> keep(Peer peer);
  /// change writes a user's changes of an existing device. Error 2: another has that name.
  [[nodiscard]] Result<void> change(const std::string& name, const Peer& changed);
  [[nodiscard]] Result<void> forget(const std::string& name);

 private:
  PeerBook() = default;
  [[nodiscard]] Result<Fd> lock_and_read();
  [[nodiscard]] Result<void> write(const Peer& peer);
  std::optional<PrivateFolder> folder_;
  std::vector<Peer> peers_;
};

}  // namespace onehop::pair
