// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/introduction.hpp"

namespace onehop::session {

namespace {

constexpr std::string_view binding_label = "EXPORTER-onehop introduction v1";
constexpr std::string_view secret_label = "EXPORTER-onehop pair v1";

Error introduction_error(ExitCode code, std::string cause, std::string hint) {
  return {code, "get to know the other device", std::move(cause), std::move(hint)};
}

Result<pair::Peer> peer_of(SSL* ssl, const Introduce& heard, Role role,
                           std::span<const std::byte> binding, const SessionOptions& options) {
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
  ONEHOP_TRYV(export_bound(ssl, secret_label, peer.secret.writable()));
  return peer;
}

}  // namespace

Task<std::optional<Message>> next_message(Channel& channel, Nanos limit) {
  const Instant deadline = monotonic_now() + limit;
  while (!channel.has_message() && channel.end() == ChannelEnd::open && monotonic_now() < deadline)
    co_await channel.wait_activity(deadline - monotonic_now());
  co_return channel.pop();
}

Task<Result<void>> introduce(std::shared_ptr<Channel> channel, Role role,
                             const SessionOptions& options, SessionHost& host,
                             std::optional<Introduce> heard) {
  const bool is_wanted = options.introduction != Introduction::none && options.device != nullptr;
  std::array<std::byte, 32> binding{};
  if (const auto bound = export_bound(channel->ssl(), binding_label, binding); !bound)
    co_return bound.error();
  Introduce own;
  if (is_wanted)
    static_cast<pair::Introduced&>(own) = pair::introduce(*options.device, role, binding);
  if (role == Role::sender) {
    channel->send(own);
    const auto answer = co_await next_message(*channel, options.limits.step);
    if (const auto* said = answer ? std::get_if<Introduce>(&*answer) : nullptr) heard = *said;
    if (!heard)
      co_return introduction_error(ExitCode::refused_by_peer, "it did not say who it is", "");
  }
  if (!is_wanted || heard->name.empty()) {
    if (role == Role::receiver) channel->send(Introduce{});
    co_return introduction_error(
        ExitCode::refused_by_peer,
        is_wanted ? "it was not asked to, or could not keep what it heard"
                  : "the sender wants to be remembered, and this end was started without "
                    "--remember",
        "Run onehop pair at both, or give --remember to both");
  }
  // Who came by its certificate is known: it brings no other key, and changes nothing of its own.
  if (channel->device() != nullptr) {
    if (role == Role::receiver) channel->send(Introduce{});
    co_return introduction_error(ExitCode::authentication_failed,
                                 "it came as a paired device, and not by the code", "");
  }
  const Role other = role == Role::sender ? Role::receiver : Role::sender;
  const auto peer = peer_of(channel->ssl(), *heard, other, binding, options);
  const Result<void> kept = peer ? host.on_introduced(peer.value()) : Result<void>{peer.error()};
  if (role == Role::receiver) channel->send(kept ? own : Introduce{});
  co_return kept;
}

Task<std::optional<Message>> first_message(std::shared_ptr<Channel> channel,
                                           const RecvOptions& options, RecvHost& host,
                                           bool& is_paired) {
  auto message = co_await next_message(*channel, options.limits.step);
  const auto* introduction = message ? std::get_if<Introduce>(&*message) : nullptr;
  if (introduction == nullptr) co_return message;
  const auto known = co_await introduce(channel, Role::receiver, options, host, *introduction);
  if (!known) host.on_rejected(channel->peer(), known.error());
  is_paired = known.has_value();
  if (is_paired && options.introduction == Introduction::only) {
    co_await channel->close();
    co_return std::nullopt;
  }
  co_return co_await next_message(*channel, options.limits.step);
}

}  // namespace onehop::session
