// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/dhcp_server.hpp"

#include <algorithm>

namespace onehop::p2p {

namespace {
constexpr Ipv4 to_all = ~Ipv4{0};
}

auto DhcpServer::lease_of(const std::string& client) -> Lease* {
  const auto found = std::ranges::find(leases_, client, &Lease::client);
  return found == leases_.end() ? nullptr : &*found;
}

auto DhcpServer::lease_at(Ipv4 address) -> Lease* {
  const Ipv4 index = address - own_ - pool_offset;  // wraps for what is below
  return index < leases_.size() ? &leases_[index] : nullptr;
}

Ipv4 DhcpServer::address_of(const Lease& lease) const {
  return own_ + pool_offset + static_cast<Ipv4>(&lease - leases_.data());
}

//= RFC 2131 §4.3.1
// The client's own, else the one that it asks for, else the one that is free for longest, else the
// oldest offer.
auto DhcpServer::choose(Instant now, const DhcpRequest& request) -> Lease* {
  if (Lease* own = lease_of(request.client())) return own;
  if (Lease* wanted = lease_at(request.requested); wanted != nullptr && wanted->until <= now)
    return wanted;
  const auto rank = [now](const Lease& lease) {
    return std::pair{lease.is_bound && lease.until > now, lease.until};
  };
  Lease& oldest = *std::ranges::min_element(leases_, {}, rank);
  return rank(oldest).first ? nullptr : &oldest;
}

auto DhcpServer::offer(Instant now, const DhcpRequest& request) -> std::optional<Answer> {
  Lease* const lease = choose(now, request);
  if (lease == nullptr) return std::nullopt;
  if (!lease->is_bound || lease->until <= now) *lease = {request.client(), now + offer_span, false};
  return reply(request, DhcpType::offer, address_of(*lease));
}

//= RFC 2131 §4.3.2
auto DhcpServer::grant(Instant now, const DhcpRequest& request) -> std::optional<Answer> {
  Lease* const own = lease_of(request.client());
  const bool is_offered = own != nullptr && !own->is_bound;
  if (request.server != 0 && request.server != own_) {  // the client has chosen another server
    if (is_offered) own->until = now;
    return std::nullopt;
  }
  Lease* const wanted = lease_at(request.requested != 0 ? request.requested : request.ciaddr);
  //= RFC 2131 §4.3.2 type=deviation reason=no silence where the client is not known
  // No other server is on this link. So an address that a client remembers and nobody has is
  // granted, and any other is refused: a group that was started again serves its stations at once.
  const bool is_free = request.server == 0 && wanted != nullptr && wanted->until <= now;
  if (wanted == nullptr || (wanted != own && !is_free)) return reply(request, DhcpType::nak, 0);
  if (own != nullptr && own != wanted) *own = {};
  *wanted = {request.client(), now + lease_span, true};
  return reply(request, DhcpType::ack, address_of(*wanted));
}

void DhcpServer::release(Instant now, const DhcpRequest& request) {
  Lease* const lease = lease_of(request.client());
  const bool is_decline = request.type == DhcpType::decline;
  const Ipv4 address = is_decline ? request.requested : request.ciaddr;
  if (request.server != own_ || lease == nullptr || address_of(*lease) != address) return;
  if (is_decline)
    *lease = {{}, now + declined_span, true};
  else
    lease->until = now;  // its client gets it again, where nobody else comes first
}

auto DhcpServer::reply(const DhcpRequest& request, DhcpType type, Ipv4 address) const -> Answer {
  Answer out;
  DhcpReply body{.type = type, .server = own_, .yiaddr = address};
  if (type != DhcpType::nak) body.mask = group_mask;
  if (address != 0)
    body.lease_seconds = static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::seconds>(lease_span).count());
  out.size = write_dhcp(request, body, out.bytes);
  // A client without an address cannot be asked for its hardware address, and to write it into the
  // kernel's table would let clients write there. So all hear it, as §4.1 allows.
  const bool has_address = request.type == DhcpType::inform || request.ciaddr == address;
  out.to = type == DhcpType::ack && has_address ? request.ciaddr : to_all;
  return out;
}

auto DhcpServer::answer(Instant now, std::span<const std::byte> message) -> std::optional<Answer> {
  const auto request = parse_dhcp(message);
  if (!request) return std::nullopt;
  switch (request->type) {
    case DhcpType::discover: return offer(now, *request);
    case DhcpType::request: return grant(now, *request);
    case DhcpType::decline:
    case DhcpType::release: release(now, *request); return std::nullopt;
    case DhcpType::inform:
      // Nothing leaves this link, whatever address a message names.
      if ((request->ciaddr & group_mask) != (own_ & group_mask)) return std::nullopt;
      return reply(*request, DhcpType::ack, 0);
    default: return std::nullopt;
  }
}

}  // namespace onehop::p2p
