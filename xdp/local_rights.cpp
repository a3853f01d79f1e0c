// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/local_rights.hpp"

#include <bpf/bpf.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cerrno>

#include "engine/base/system/address.hpp"
#include "engine/base/system/interface.hpp"
#include "xdp/steer.hpp"

namespace onehop::xdp {

Result<Fd> LocalRights::open_xdp_socket() {
  Fd socket{::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)};
  if (socket.is_open()) return Result<Fd>{std::move(socket)};
  constexpr const char* attempt = "open an AF_XDP socket";
  if (errno == EPERM)
    return errno_error(ExitCode::privilege_missing, attempt,
                       "CAP_NET_RAW is missing: run as root, grant it, or take --io udp");
  return errno_error(ExitCode::io_unavailable, attempt,
                     errno == EAFNOSUPPORT ? "The kernel lacks it: take --io udp" : "");
}

Result<SteerFds> LocalRights::attach_program(const SteerRequest& request) {
  char name[IF_NAMESIZE] = {};
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  const auto* const address = reinterpret_cast<const sockaddr*>(&bound);
  if (::if_indextoname(static_cast<unsigned>(request.ifindex), name) == nullptr ||
      ::getsockname(request.udp_socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    return errno_error(ExitCode::io_unavailable, "find whose frames are steered");
  const auto local = Endpoint::from_sockaddr(address, length);
  if (!local)
    return Error{ExitCode::io_unavailable, "find whose frames are steered",
                 "the socket has no address of UDP", "", EAFNOSUPPORT};
  ONEHOP_TRY(facts, read_interface_facts(name));
  return attach_steer(facts, {.frames = steer_frames(*local),
                              .is_generic = request.is_generic,
                              .has_fragments = request.has_fragments});
}

Result<void> LocalRights::set_socket(int map, std::uint32_t queue, int xsk) {
  const int rc = bpf_map_update_elem(map, &queue, &xsk, BPF_ANY);
  if (rc == 0) return success();
  return errno_error(ExitCode::io_unavailable,
                     "direct receive queue " + std::to_string(queue) + " to its socket",
                     "take --io udp", -rc);
}

bool LocalRights::force_buffer(int socket, int option, int bytes) noexcept {
  return ::setsockopt(socket, SOL_SOCKET, option, &bytes, sizeof bytes) == 0;
}

Rights& rights() noexcept {
  static LocalRights own;
  Rights* const kept = kept_rights();
  return kept != nullptr ? *kept : own;
}

}  // namespace onehop::xdp
