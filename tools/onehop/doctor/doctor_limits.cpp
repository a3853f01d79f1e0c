// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What this process may do: capabilities, locked memory, io_uring; and who seals frames.
#include <fmt/format.h>
#include <sys/resource.h>

#include <array>

#include "engine/crypto/aead.hpp"
#include "engine/disk/file_io.hpp"
#include "tools/onehop/confine/confine.hpp"
#include "tools/onehop/doctor/doctor.hpp"
#include "tools/onehop/text/quantity.hpp"

namespace onehop::tool {

namespace {

struct Capability {
  unsigned number;
  const char* name;
};
constexpr std::array<Capability, 4> wanted{{{CAP_NET_RAW, "CAP_NET_RAW"},
                                            {CAP_NET_ADMIN, "CAP_NET_ADMIN"},
                                            {CAP_BPF, "CAP_BPF"},
                                            {CAP_IPC_LOCK, "CAP_IPC_LOCK"}}};

bool has_capability(unsigned number) {
  return (confine::effective_capabilities() & confine::bit_of(number)) != 0;
}

Finding find_capabilities() {
  Json have = Json::array(), missing = Json::array();
  std::string text;
  for (const Capability& capability : wanted) {
    const bool is_there = has_capability(capability.number);
    (is_there ? have : missing).push_back(capability.name);
    if (!is_there) text += (text.empty() ? "" : ", ") + std::string{capability.name};
  }
  const Json value{{"have", have}, {"missing", missing}};
  if (missing.empty())
    return {"limits", "capabilities", Verdict::good, "all that --io afxdp needs", value};
  return {"limits",
          "capabilities",
          Verdict::bad,
          "for --io afxdp are missing: " + text,
          value,
          "--io udp needs none. For AF_XDP run with sudo (files stay yours), or once: sudo setcap "
          "cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep $(readlink -f $(command -v onehop))"};
}

// 6144 chunks of 2048 bytes: what the AF_XDP port registers for its first queue with an MTU of
// 1500.
constexpr std::uint64_t umem_bytes = 6144ULL * 2048;

Finding find_locked_memory() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
    return {"limits", "locked-memory", Verdict::bad, "not readable", nullptr};
  const bool is_free = has_capability(CAP_IPC_LOCK);
  const bool is_enough = is_free || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= umem_bytes;
  const std::string text =
      limit.rlim_cur == RLIM_INFINITY
          ? "no limit"
          : format_bytes(limit.rlim_cur) + (is_free ? ", which CAP_IPC_LOCK lifts" : "");
  return {"limits",
          "locked-memory",
          is_enough ? Verdict::good : Verdict::bad,
          text,
          limit.rlim_cur == RLIM_INFINITY ? Json(nullptr) : Json(limit.rlim_cur),
          is_enough ? ""
                    : fmt::format("--io afxdp locks {} per queue: ulimit -l {}",
                                  format_bytes(umem_bytes), umem_bytes / 1024)};
}

Finding find_io_uring() {
  const auto io = disk::make_file_io("io_uring");
  if (io) return {"limits", "io_uring", Verdict::good, "allowed", true};
  return {"limits",     "io_uring",
          Verdict::bad, "no: " + io.error().cause + "; threads read and write instead",
          false,        io.error().hint};
}

/// find_confinement: what send and recv give up before they listen to a peer.
Finding find_confinement() {
  const std::string missing = confine::missing_in_kernel();
  const Json value{{"landlock_abi", confine::landlock_abi()}, {"seccomp", confine::has_seccomp()}};
  if (missing.empty())
    return {"limits", "confinement", Verdict::good, confine::describe_kernel(), value};
  return {"limits",
          "confinement",
          Verdict::bad,
          missing,
          value,
          "send and recv say so and go on. It takes Linux 5.19 with Landlock among lsm=, and a "
          "sandbox around it that allows both"};
}

}  // namespace

void find_limits(Diagnosis& out) {
  out.findings.push_back(find_capabilities());
  out.findings.push_back(find_locked_memory());
  out.findings.push_back(find_io_uring());
  out.findings.push_back(find_confinement());
  const bool has_aes = crypto::has_aes_instructions();
  const std::string aead{
      crypto::name(has_aes ? crypto::AeadBackend::automatic : crypto::AeadBackend::chacha20)};
  out.findings.push_back(
      {"limits", "aead", Verdict::info,
       crypto::describe_aead(aead) + (has_aes ? "" : ": the processor has no AES instructions"),
       aead});
}

}  // namespace onehop::tool
