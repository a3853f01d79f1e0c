// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/steer_file.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <linux/if_link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

extern "C" {
extern const unsigned char onehop_steer_object[];      // steer_object.S: the compiled program
extern const unsigned char onehop_steer_object_end[];
}

namespace onehop::xdp {

namespace {

/// rodata_of finds the section of the program's constants in its object file; an empty one where it is not as built.
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
    if (std::string_view{object.data() + names.sh_offset + section.sh_name} == ".rodata") return section;
  }
  return {};
}

}  // namespace

Result<Fd> steer_file(const onehop_steer_config& frames) {
  std::vector<char> object(onehop_steer_object, onehop_steer_object_end);
  const Elf64_Shdr constants = rodata_of(object);
  if (constants.sh_size != sizeof frames)
    return Error{ExitCode::internal_error, "write the steering program", "its parts are not those it was built with"};
  std::memcpy(object.data() + constants.sh_offset, &frames, sizeof frames);
  Fd file{::memfd_create("onehop-steer", MFD_CLOEXEC)};
  if (!file.is_open()) return errno_error(ExitCode::io_unavailable, "make a file in memory for the steering program");
  if (::write(file.get(), object.data(), object.size()) != static_cast<ssize_t>(object.size()))
    return errno_error(ExitCode::io_unavailable, "write the steering program");
  return file;
}

std::string path_of(const Fd& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

Result<Fd> hold_program(int ifindex, const std::string& interface) {
  const std::string attempt = "hold the steering program on " + interface + " by a link";
  bpf_xdp_query_opts query{};
  query.sz = sizeof query;
  if (const int rc = bpf_xdp_query(ifindex, 0, &query); rc != 0) return errno_error(ExitCode::io_unavailable, attempt, {}, -rc);
  const bool is_native = query.drv_prog_id != 0;
  const std::uint32_t id = is_native ? query.drv_prog_id : query.skb_prog_id;
  const Fd program{bpf_prog_get_fd_by_id(id)};
  if (id == 0 || !program.is_open())
    return Error{ExitCode::io_unavailable, attempt, "DPDK attached none", "See docs/dpdk.md", ENOENT};
  const std::uint32_t mode = is_native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
  if (const int rc = bpf_xdp_detach(ifindex, mode, nullptr); rc != 0) return errno_error(ExitCode::io_unavailable, attempt, {}, -rc);
  bpf_link_create_opts options{};
  options.sz = sizeof options;
  options.flags = mode;
  const int link = bpf_link_create(program.get(), ifindex, BPF_XDP, &options);
  if (link < 0) return errno_error(ExitCode::io_unavailable, attempt, "Linux 5.9 or later has such links", -link);
  return Fd{link};
}

}  // namespace onehop::xdp
