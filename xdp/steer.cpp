// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/steer.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <thread>

#include "engine/base/units.hpp"

extern "C" {
extern const unsigned char onehop_steer_object[];      // steer_object.S: the compiled program
extern const unsigned char onehop_steer_object_end[];
}

namespace onehop::xdp {

namespace {

// Teardown of a killed predecessor is asynchronous. Too low: a second run right after the first fails now and then.
// Too high: the user waits for an error that will not go away. Measured on veth: 20 ms.
constexpr Nanos attach_patience = 2s;
constexpr Nanos attach_retry_interval = 20ms;
constexpr const char* program_name = "onehop_steer";
constexpr const char* program_name_mb = "onehop_steer_mb";

// libbpf's last warning, for the error text. Set-up runs on one thread at a time; thread_local keeps it honest.
thread_local std::string libbpf_text;

int keep_libbpf_text(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) return 0;
  char line[512];
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  if (length > 0 && libbpf_text.size() < 2048) libbpf_text += line;
  return length;
}

struct AttachedProgram {
  std::uint32_t id = 0;
  bool is_native = false;
  std::string name;
};

AttachedProgram find_attached(int ifindex) {
  AttachedProgram found;
  bpf_xdp_query_opts query{};
  query.sz = sizeof query;
  if (bpf_xdp_query(ifindex, 0, &query) != 0) return found;
  found.is_native = query.drv_prog_id != 0;
  found.id = found.is_native ? query.drv_prog_id : (query.skb_prog_id != 0 ? query.skb_prog_id : query.prog_id);
  if (found.id == 0) return found;
  found.name = "unnamed program";
  const Fd program{bpf_prog_get_fd_by_id(found.id)};
  bpf_prog_info info{};
  std::uint32_t length = sizeof info;
  if (program.is_open() && bpf_obj_get_info_by_fd(program.get(), &info, &length) == 0 && info.name[0] != '\0')
    found.name = info.name;
  return found;
}

void copy_address(const sockaddr_storage& from, std::uint32_t (&to)[4]) {
  if (from.ss_family == AF_INET) {
    to[0] = reinterpret_cast<const sockaddr_in&>(from).sin_addr.s_addr;
  } else {
    std::memcpy(to, &reinterpret_cast<const sockaddr_in6&>(from).sin6_addr, sizeof to);
  }
}

Error load_error(int errno_value) {
  if (errno_value == EPERM) {
    return errno_error(ExitCode::privilege_missing, "load the steering program",
                       "It needs CAP_BPF and CAP_NET_ADMIN: run as root, grant them, or take --io udp", EPERM);
  }
  Error error = errno_error(ExitCode::io_unavailable, "load the steering program", "take --io udp", errno_value);
  if (!libbpf_text.empty()) error.cause += " (" + libbpf_text + ")";
  return error;
}

Error attach_error(const InterfaceFacts& interface, const SteerOptions& options, int errno_value) {
  const bool is_native = options.mode == AttachMode::native;
  const std::string attempt =
      "attach the steering program to " + interface.name + (is_native ? " (native XDP)" : " (generic XDP)");
  if (errno_value == EPERM)
    return errno_error(ExitCode::privilege_missing, attempt, "CAP_NET_ADMIN is missing: run as root or grant it",
                       EPERM);
  if (errno_value == EBUSY || errno_value == EEXIST) {
    const std::string other = attached_program(interface.ifindex);
    return Error{ExitCode::io_unavailable, attempt,
                 other.empty() ? errno_text(errno_value) : "the interface already has the XDP program " + other,
                 "onehop replaces no other program: detach it, or take --io udp", errno_value};
  }
  std::string hint = is_native ? "take --xdp-mode skb or --io udp" : "take --io udp";
  if (errno_value == ENOSPC && interface.kind == "veth")
    hint = "the veth peer sends on more queues than this end receives on: `ethtool -L`; or " + hint;
  return errno_error(ExitCode::io_unavailable, attempt, hint, errno_value);
}

}  // namespace

onehop_steer_config steer_frames(const sockaddr_storage& local, const sockaddr_storage& peer) {
  onehop_steer_config config{};
  config.is_ipv6 = local.ss_family == AF_INET6;
  config.local_port = config.is_ipv6 ? reinterpret_cast<const sockaddr_in6&>(local).sin6_port
                                     : reinterpret_cast<const sockaddr_in&>(local).sin_port;
  copy_address(local, config.local_address);
  if (peer.ss_family == local.ss_family) {
    config.has_peer = 1;
    copy_address(peer, config.peer_address);
  }
  return config;
}

std::string attached_program(int ifindex) {
  const AttachedProgram found = find_attached(ifindex);
  if (found.id == 0) return {};
  return found.name + " (id " + std::to_string(found.id) + (found.is_native ? ", native)" : ", generic)");
}

void Steer::Closer::operator()(bpf_object* object) const noexcept { bpf_object__close(object); }

Steer::Steer() noexcept = default;
Steer::Steer(Steer&&) noexcept = default;
Steer& Steer::operator=(Steer&&) noexcept = default;
Steer::~Steer() = default;

Result<Steer> Steer::attach(const InterfaceFacts& interface, const SteerOptions& options) {
  // 1. Open the embedded object and choose the variant.
  libbpf_set_print(keep_libbpf_text);
  libbpf_text.clear();
  const auto bytes = static_cast<std::size_t>(onehop_steer_object_end - onehop_steer_object);
  Steer self;
  self.object_.reset(bpf_object__open_mem(onehop_steer_object, bytes, nullptr));
  if (!self.object_) return load_error(errno);
  bpf_program* simple = bpf_object__find_program_by_name(self.object_.get(), program_name);
  bpf_program* multi = bpf_object__find_program_by_name(self.object_.get(), program_name_mb);
  bpf_map* map = bpf_object__find_map_by_name(self.object_.get(), "xsks_map");
  bpf_map* constants = bpf_object__find_map_by_name(self.object_.get(), ".rodata");
  if (simple == nullptr || multi == nullptr || map == nullptr || constants == nullptr)
    return Error{ExitCode::internal_error, "open the steering program", "its parts are not those it was built with"};
  bpf_program* chosen = options.has_fragments ? multi : simple;
  bpf_program__set_autoload(simple, chosen == simple);
  bpf_program__set_autoload(multi, chosen == multi);

  // 2. Tell it which frames are ours; the kernel freezes the constants at load.
  int rc = bpf_map__set_initial_value(constants, &options.frames, sizeof options.frames);
  if (rc == 0) rc = bpf_map__set_max_entries(map, interface.rx_queues);
  if (rc == 0) rc = bpf_object__load(self.object_.get());
  if (rc != 0) return load_error(-rc);
  self.map_fd_ = bpf_map__fd(map);

  // 3. Attach by a link. A predecessor of ours may still be on its way out; a foreign program is not waited for.
  bpf_link_create_opts link{};
  link.sz = sizeof link;
  link.flags = options.mode == AttachMode::native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
  Nanos waited{0};
  for (;;) {
    const int fd = bpf_link_create(bpf_program__fd(chosen), interface.ifindex, BPF_XDP, &link);
    if (fd >= 0) {
      self.link_ = Fd{fd};
      return self;
    }
    const bool is_occupied = fd == -EBUSY || fd == -EEXIST;
    const AttachedProgram other = is_occupied ? find_attached(interface.ifindex) : AttachedProgram{};
    const bool is_leaving = is_occupied && (other.id == 0 || other.name.starts_with(program_name));
    if (!is_leaving || waited >= attach_patience) return attach_error(interface, options, -fd);
    std::this_thread::sleep_for(attach_retry_interval);
    waited += attach_retry_interval;
  }
}

Result<void> Steer::set_socket(std::uint32_t queue, int xsk_fd) {
  const int rc = bpf_map_update_elem(map_fd_, &queue, &xsk_fd, BPF_ANY);
  if (rc == 0) return success();
  return errno_error(ExitCode::io_unavailable, "direct receive queue " + std::to_string(queue) + " to its socket",
                     "take --io udp", -rc);
}

}  // namespace onehop::xdp
