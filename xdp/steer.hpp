// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Steer owns the steering program, its XSKMAP and the bpf_link that holds it on the interface. The kernel detaches a
// link when its last descriptor closes, so nothing stays behind, whatever kills the process. It never replaces a
// program that somebody else attached. Set-up only; the engine core never calls it.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "xdp/probe.hpp"
#include "xdp/steer_config.h"

struct bpf_object;

namespace onehop::xdp {

enum class AttachMode : std::uint8_t { native, generic };

struct SteerOptions {
  onehop_steer_config frames{};       ///< which frames are ours
  AttachMode mode = AttachMode::native;
  bool has_fragments = false;         ///< the MTU does not fit one chunk: attach the multi-buffer variant
};

class Steer {
 public:
  Steer() noexcept;
  Steer(Steer&&) noexcept;
  Steer& operator=(Steer&&) noexcept;
  ~Steer();

  /// attach loads and attaches. It retries for up to two seconds while another onehop's program is still going away;
  /// any other program on the interface is an error that names it. Syscalls: bpf, socket, sendto, recvmsg, nanosleep.
  [[nodiscard]] static Result<Steer> attach(const InterfaceFacts& interface, const SteerOptions& options);

  [[nodiscard]] bool is_attached() const noexcept { return link_.is_open(); }

  /// set_socket directs receive queue `queue` to an AF_XDP socket. Syscalls: bpf.
  [[nodiscard]] Result<void> set_socket(std::uint32_t queue, int xsk_fd);

 private:
  struct Closer { void operator()(bpf_object* object) const noexcept; };
  std::unique_ptr<bpf_object, Closer> object_;
  Fd link_;
  int map_fd_ = -1;  ///< belongs to object_
};

/// steer_frames describes UDP frames to `local`, from `peer` only where that has the same family.
[[nodiscard]] onehop_steer_config steer_frames(const sockaddr_storage& local, const sockaddr_storage& peer);

/// attached_program names the program on an interface ("name (id 12, native)"), or is empty. Syscalls: bpf, socket.
[[nodiscard]] std::string attached_program(int ifindex);

}  // namespace onehop::xdp
