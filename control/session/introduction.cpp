// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/introduction.hpp"

namespace onehop::session {

namespace {

constexpr std::string_view binding_label = "EXPORTER-onehop introduction v1";
constexpr std::string_view secret_label = "EXPORTER-onehop pair v1";

using Binding = std::array<std::byte, 32>;

Error introduction_error(ExitCode code, std::string cause, std::string hint) {
  return {code, "get to know the other device", std::move(cause), std::move(hint)};
}

Error unwilling_error(std::string cause) {
  return introduction_error(ExitCode::refused_by_peer, std::move(cause),
                            "Run onehop pair at both, or give --remember to both");
}

// Its secret is that of this connection.
Result<pair::Peer> peer_of(Channel& channel, const Introduce& heard, Role role,
                           const Binding& binding, const SessionOptions& options) {
  // Who came by its certificate is known: it brings no other key, and changes nothing of its own.
  if (channel.device() != nullptr)
    return introduction_error(ExitCode::authentication_failed,
                              "it came as a paired device, and not by the code", "");
  if (!pair::is_genuine(heard, role, binding))
    return introduction_error(ExitCode::authentication_failed, "it could not prove its key", "");
  if (heard.key == options.device->key.public_key())
    return introduction_error(
        ExitCode::authentication_failed,
        "it has the same key as this device: one is a copy of the other, or both are one",
        "Remove the key of one of them (onehop peers says where it is), and pair again");
  pair::Peer peer;
  peer.name = heard.name;
  peer.key = heard.key;
  peer.find_key = heard.find_key;
  ONEHOP_TRYV(export_bound(channel.ssl(), secret_label, peer.secret.writable()));
  return peer;
}

Result<Introduce> own_words(Channel& channel, Role role, const SessionOptions& options,
                            Binding& binding) {
  ONEHOP_TRYV(export_bound(channel.ssl(), binding_label, binding));
  Introduce own;
  static_cast<pair::Introduced&>(own) = pair::introduce(*options.device, role, binding);
  return own;
}

bool shows(const Introduce& heard, const pair::Peer& peer, Role role, const Binding& binding) {
  return pair::is_proof(heard.proof, pair::hello_proof(peer.secret, role, binding));
}

// Nothing: it said something else, or nothing.
Task<std::optional<Introduce>> next_introduction(Channel& channel, Nanos limit) {
  const auto message = co_await next_message(channel, limit);
  const auto* said = message ? std::get_if<Introduce>(&*message) : nullptr;
  if (said == nullptr) co_return std::nullopt;
  co_return *said;
}

Task<Result<void>> answer_introduction(Channel& channel, const RecvOptions& options, RecvHost& host,
                                       Introduce heard) {
  const auto refuse = [&](const Error& why) {
    channel.send(Introduce{});
    return Result<void>{why};
  };
  if (options.introduction == Introduction::none || options.device == nullptr)
    co_return refuse(unwilling_error(
        "the sender wants to be remembered, and this end was started without --remember"));
  Binding binding{};
  auto own = own_words(channel, Role::receiver, options, binding);
  if (!own) co_return refuse(own.error());
  auto peer = peer_of(channel, heard, Role::sender, binding, options);
  if (!peer) co_return refuse(peer.error());
  const pair::KnownPeer known = options.device->find(heard.key);
  if (known != nullptr)
    own.value().proof = pair::hello_proof(known->secret, Role::receiver, binding);
  channel.send(own.value());
  const auto said = co_await next_introduction(channel, options.limits.step);
  if (!said || said->name.empty())
    co_return unwilling_error(
        "it left before it knew this device, or could not keep what it heard");
  if (known != nullptr && shows(*said, *known, Role::sender, binding))
    peer.value().secret = known->secret;
  else if (!shows(*said, peer.value(), Role::sender, binding))
    co_return refuse(introduction_error(ExitCode::authentication_failed,
                                        "it did not show what the two have in common", ""));
  if (const auto kept = host.on_introduced(peer.value()); !kept) co_return refuse(kept.error());
  channel.send(own.value());
  co_return success();
}

}  // namespace

Task<std::optional<Message>> next_message(Channel& channel, Nanos limit) {
  const Instant deadline = monotonic_now() + limit;
  while (!channel.has_message() && channel.end() == ChannelEnd::open && monotonic_now() < deadline)
    co_await channel.wait_activity(deadline - monotonic_now());
  co_return channel.pop();
}

Task<Result<void>> introduce(std::shared_ptr<Channel> channel, const SendOptions& options,
                             SendHost& host) {
  Binding binding{};
  auto own = own_words(*channel, Role::sender, options, binding);
  if (!own) co_return own.error();
  channel->send(own.value());
  const auto heard = co_await next_introduction(*channel, options.limits.step);
  if (!heard)
    co_return introduction_error(ExitCode::refused_by_peer, "it did not say who it is", "");
  if (heard->name.empty()) co_return unwilling_error("it was not asked to");
  auto peer = peer_of(*channel, *heard, Role::receiver, binding, options);
  const pair::KnownPeer known = peer ? options.device->find(heard->key) : nullptr;
  if (known != nullptr && shows(*heard, *known, Role::receiver, binding))
    peer.value().secret = known->secret;
  // Who knows the other one writes first: it has nothing to lose, and the other one no other secret
  // yet.
  Result<void> kept = peer ? success() : Result<void>{peer.error()};
  if (known != nullptr) kept = host.on_introduced(peer.value());
  if (kept) own.value().proof = pair::hello_proof(peer.value().secret, Role::sender, binding);
  channel->send(kept ? own.value() : Introduce{});
  if (!kept) co_return kept;
  const auto last = co_await next_introduction(*channel, options.limits.step);
  if (!last || last->name.empty())
    co_return unwilling_error(
        "it left before it knew this device, or could not keep what it heard");
  co_return known != nullptr ? kept : host.on_introduced(peer.value());
}

Task<std::optional<Message>> first_message(std::shared_ptr<Channel> channel,
                                           const RecvOptions& options, RecvHost& host,
                                           bool& is_paired) {
  auto message = co_await next_message(*channel, options.limits.step);
  const auto* introduction = message ? std::get_if<Introduce>(&*message) : nullptr;
  if (introduction == nullptr) co_return message;
  const auto known = co_await answer_introduction(*channel, options, host, *introduction);
  if (!known) host.on_rejected(channel->peer(), known.error());
  is_paired = known.has_value();
  if (is_paired && options.introduction == Introduction::only) {
    co_await channel->close();
    co_return std::nullopt;
  }
  co_return co_await next_message(*channel, options.limits.step);
}

}  // namespace onehop::session
