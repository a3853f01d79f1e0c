// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/system/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace onehop {

bool IpAddress::is_link_local() const noexcept {
  return is_v6 && bytes[0] == std::byte{0xfe} && (bytes[1] & std::byte{0xc0}) == std::byte{0x80};
}

bool IpAddress::is_any() const noexcept {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

bool IpAddress::is_loopback() const noexcept {
  if (!is_v6) return bytes[0] == std::byte{127};
  IpBytes loopback{};
  loopback.back() = std::byte{1};
  return bytes == loopback;
}

std::string IpAddress::text() const {
  char buffer[INET6_ADDRSTRLEN] = {};
  if (::inet_ntop(family(), bytes.data(), buffer, sizeof buffer) == nullptr) return "?";
  std::string text{buffer};
  if (scope_id != 0) {
    char name[IF_NAMESIZE] = {};
    text += '%';
    text +=
        ::if_indextoname(scope_id, name) != nullptr ? std::string{name} : std::to_string(scope_id);
  }
  return text;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  IpAddress address;
  if (text.find('\0') != std::string_view::npos) return std::nullopt;  // inet_pton stops there
  const std::size_t percent = text.find('%');
  const std::string host{text.substr(0, percent)};
  if (percent == std::string_view::npos &&
      ::inet_pton(AF_INET, host.c_str(), address.bytes.data()) == 1)
    return address;
  address.is_v6 = true;
  if (::inet_pton(AF_INET6, host.c_str(), address.bytes.data()) != 1) return std::nullopt;
  if (percent != std::string_view::npos) {
    const std::string scope{text.substr(percent + 1)};
    address.scope_id = ::if_nametoindex(scope.c_str());
    if (address.scope_id == 0) {
      const auto [end, error] =
          std::from_chars(scope.data(), scope.data() + scope.size(), address.scope_id);
      if (error != std::errc{} || end != scope.data() + scope.size() || address.scope_id == 0)
        return std::nullopt;
    }
  }
  return address;
}

std::string Endpoint::text() const {
  std::string text = address.text();
  if (address.is_v6) {
    text.insert(text.begin(), '[');
    text.push_back(']');
  }
  text += ':';
  return text += std::to_string(port);
}

SocketAddress Endpoint::to_sockaddr() const noexcept {
  SocketAddress out;
  if (address.is_v6) {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    in6.sin6_scope_id = address.scope_id;
    std::memcpy(&in6.sin6_addr, address.bytes.data(), 16);
    std::memcpy(&out.storage, &in6, out.size_bytes = sizeof in6);
    return out;
  }
  sockaddr_in in4{};
  in4.sin_family = AF_INET;
  in4.sin_port = htons(port);
  std::memcpy(&in4.sin_addr, address.bytes.data(), 4);
  std::memcpy(&out.storage, &in4, out.size_bytes = sizeof in4);
  return out;
}

std::optional<Endpoint> Endpoint::from_sockaddr(const sockaddr* from, socklen_t length) noexcept {
  Endpoint endpoint;
  if (from->sa_family == AF_INET && length >= socklen_t{sizeof(sockaddr_in)}) {
    sockaddr_in in4;
    std::memcpy(&in4, from, sizeof in4);
    endpoint.port = ntohs(in4.sin_port);
    std::memcpy(endpoint.address.bytes.data(), &in4.sin_addr, 4);
    return endpoint;
  }
  if (from->sa_family != AF_INET6 || length < socklen_t{sizeof(sockaddr_in6)}) return std::nullopt;
  sockaddr_in6 in6;
  std::memcpy(&in6, from, sizeof in6);
  endpoint.port = ntohs(in6.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
    std::memcpy(endpoint.address.bytes.data(), &in6.sin6_addr.s6_addr[12], 4);
    return endpoint;
  }
  endpoint.address.is_v6 = true;
  endpoint.address.scope_id = in6.sin6_scope_id;
  std::memcpy(endpoint.address.bytes.data(), &in6.sin6_addr, 16);
  return endpoint;
}

Result<Endpoint> Endpoint::of_socket(int fd) {
  SocketAddress bound{.storage = {}, .size_bytes = sizeof bound.storage};
  auto* into = reinterpret_cast<sockaddr*>(&bound.storage);
  if (::getsockname(fd, into, &bound.size_bytes) != 0)
    return errno_error(ExitCode::internal_error, "read the address of a socket");
  return from_sockaddr(into, bound.size_bytes).value_or(Endpoint{});
}

}  // namespace onehop
