// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/steer.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/base/system/driver_quirks.hpp"
#include "engine/base/units.hpp"

extern "C" {
extern const unsigned char onehop_steer_object[];  // steer_object.S: the compiled program
extern const unsigned char onehop_steer_object_end[];
}

namespace onehop::xdp {

namespace {

// Teardown of a killed predecessor is asynchronous. Too low: a second run right after the first
// fails now and then. Too high: the user waits for an error. Measured on veth: 20 ms.
constexpr Nanos attach_patience = 2s;
constexpr Nanos attach_retry_interval = 20ms;
constexpr const char* program_name = "onehop_steer";

// libbpf's last warning, for the error text; thread_local because two ports may be set up at once.
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
  Fd program;
  std::string name;
};

AttachedProgram find_attached(int ifindex) {
  AttachedProgram found;
  bpf_xdp_query_opts query{};
  query.sz = sizeof query;
  if (bpf_xdp_query(ifindex, 0, &query) != 0) return found;
  found.is_native = query.drv_prog_id != 0;
  found.id = found.is_native ? query.drv_prog_id
                             : (query.skb_prog_id != 0 ? query.skb_prog_id : query.prog_id);
  if (found.id == 0) return found;
  found.name = "unnamed program";
  found.program = Fd{bpf_prog_get_fd_by_id(found.id)};
  bpf_prog_info info{};
  std::uint32_t length = sizeof info;
  if (found.program.is_open() && bpf_obj_get_info_by_fd(found.program.get(), &info, &length) == 0 &&
      info.name[0] != '\0')
    found.name = info.name;
  return found;
}

int create_link(int program_fd, int ifindex, bool is_native) {
  bpf_link_create_opts options{};
  options.sz = sizeof options;
  options.flags = is_native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
  return bpf_link_create(program_fd, ifindex, BPF_XDP, &options);
}

Error load_error(int errno_value) {
  if (errno_value == EPERM) {
    return errno_error(
        ExitCode::privilege_missing, "load the steering program",
        "It needs CAP_BPF and CAP_NET_ADMIN: run as root, grant them, or take --io udp", EPERM);
  }
  Error error = errno_error(ExitCode::io_unavailable, "load the steering program", "take --io udp",
                            errno_value);
  if (!libbpf_text.empty()) error.cause += " (" + libbpf_text + ")";
  return error;
}

Error parts_error(const char* attempt) {
  return {ExitCode::internal_error, attempt, "its parts are not those it was built with"};
}

Error attach_error(const InterfaceFacts& interface, const SteerOptions& options, int errno_value) {
  const std::string attempt = "attach the steering program to " + interface.name +
                              (options.is_generic ? " (generic XDP)" : " (native XDP)");
  if (errno_value == EPERM)
    return errno_error(ExitCode::privilege_missing, attempt,
                       "CAP_NET_ADMIN is missing: run as root or grant it", EPERM);
  if (errno_value == EBUSY || errno_value == EEXIST) {
    const std::string other = attached_program(interface.ifindex);
    return Error{ExitCode::io_unavailable, attempt,
                 other.empty() ? errno_text(errno_value)
                               : "the interface already has the XDP program " + other,
                 "onehop replaces no other program: detach it, or take --io udp", errno_value};
  }
  return errno_error(
      ExitCode::io_unavailable, attempt,
      quirk_remedy(interface.driver, errno_value,
                   options.is_generic ? "take --io udp" : "take --xdp-mode skb or --io udp"),
      errno_value);
}

// rodata_of finds the program's constants in its object file; empty where it is not as built.
Elf64_Shdr rodata_of(const std::vector<char>& object) {
  Elf64_Ehdr header{};
  std::memcpy(&header, object.data(), sizeof header);
  const auto section_at = [&](std::size_t index) {
    Elf64_Shdr section{};
    std::memcpy(&section, object.data() + header.e_shoff + index * sizeof section, sizeof section);
    return section;
  };
  const Elf64_Shdr names = section_at(header.e_shstrndx);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr section = section_at(i);
    if (std::string_view{object.data() + names.sh_offset + section.sh_name} == ".rodata")
      return section;
  }
  return {};
}

}  // namespace

onehop_steer_config steer_frames(const Endpoint& local) {
  onehop_steer_config config{};
  config.is_ipv6 = local.address.is_v6;
  config.local_port = htons(local.port);
  static_assert(sizeof config.local_address == sizeof local.address.bytes);
  std::memcpy(config.local_address, local.address.bytes.data(), sizeof config.local_address);
  return config;
}

std::string attached_program(int ifindex) {
  const AttachedProgram found = find_attached(ifindex);
  if (found.id == 0) return {};
  return found.name + " (id " + std::to_string(found.id) +
         (found.is_native ? ", native)" : ", generic)");
}

Result<SteerFds> attach_steer(const InterfaceFacts& interface, const SteerOptions& options) {
  // 1. Open the embedded object. A device whose MTU does not fit one chunk takes only a program
  // that
  //    says it knows fragments.
  libbpf_set_print(keep_libbpf_text);
  libbpf_text.clear();
  const auto bytes = static_cast<std::size_t>(onehop_steer_object_end - onehop_steer_object);
  const std::unique_ptr<bpf_object, decltype(&bpf_object__close)> object{
      bpf_object__open_mem(onehop_steer_object, bytes, nullptr), bpf_object__close};
  if (!object) return load_error(errno);
  bpf_program* const program = bpf_object__find_program_by_name(object.get(), program_name);
  bpf_map* const map = bpf_object__find_map_by_name(object.get(), "xsks_map");
  bpf_map* const constants = bpf_object__find_map_by_name(object.get(), ".rodata");
  if (program == nullptr || map == nullptr || constants == nullptr)
    return parts_error("open the steering program");
  if (options.has_fragments) bpf_program__set_flags(program, BPF_F_XDP_HAS_FRAGS);

  // 2. Set the constants: which frames are ours. The kernel freezes them at load.
  int rc = bpf_map__set_initial_value(constants, &options.frames, sizeof options.frames);
  if (rc == 0) rc = bpf_map__set_max_entries(map, interface.rx_queues);
  if (rc == 0) rc = bpf_object__load(object.get());
  if (rc != 0) return load_error(-rc);
  SteerFds self;
  self.map = Fd{::fcntl(bpf_map__fd(map), F_DUPFD_CLOEXEC, 0)};
  if (!self.map.is_open()) return load_error(errno);

  // 3. Attach by a link. A predecessor of ours may still be on its way out; a foreign program is
  //    not waited for.
  for (Nanos waited{0};; waited += attach_retry_interval) {
    const int fd = create_link(bpf_program__fd(program), interface.ifindex, !options.is_generic);
    if (fd >= 0) {
      self.link = Fd{fd};
      return Result<SteerFds>{std::move(self)};
    }
    bool is_leaving = false;
    if (fd == -EBUSY || fd == -EEXIST) {
      const AttachedProgram other = find_attached(interface.ifindex);
      is_leaving = other.id == 0 || other.name.starts_with(program_name);
    }
    if (!is_leaving || waited >= attach_patience) return attach_error(interface, options, -fd);
    std::this_thread::sleep_for(attach_retry_interval);
  }
}

Result<Fd> steer_file(const onehop_steer_config& frames) {
  std::vector<char> object(onehop_steer_object, onehop_steer_object_end);
  const Elf64_Shdr constants = rodata_of(object);
  if (constants.sh_size != sizeof frames) return parts_error("write the steering program");
  std::memcpy(object.data() + constants.sh_offset, &frames, sizeof frames);
  Fd file{::memfd_create("onehop-steer", MFD_CLOEXEC)};
  if (!file.is_open())
    return errno_error(ExitCode::io_unavailable, "make a file in memory for the steering program");
  if (::write(file.get(), object.data(), object.size()) != static_cast<ssize_t>(object.size()))
    return errno_error(ExitCode::io_unavailable, "write the steering program");
  return file;
}

std::string path_of(const Fd& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

Result<Fd> hold_program(int ifindex, const std::string& interface) {
  const std::string attempt = "hold the steering program on " + interface + " by a link";
  const AttachedProgram found = find_attached(ifindex);
  if (!found.program.is_open())
    return Error{ExitCode::io_unavailable, attempt, "DPDK attached none", "See docs/dpdk.md",
                 ENOENT};
  const std::uint32_t mode = found.is_native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
  if (const int rc = bpf_xdp_detach(ifindex, mode, nullptr); rc != 0)
    return errno_error(ExitCode::io_unavailable, attempt, {}, -rc);
  const int link = create_link(found.program.get(), ifindex, found.is_native);
  if (link < 0)
    return errno_error(ExitCode::io_unavailable, attempt, "Linux 5.9 or later has such links",
                       -link);
  return Fd{link};
}

}  // namespace onehop::xdp
