// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/loss.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <memory>

#include "tools/labs/lab/lossy_config.h"

extern "C" {
extern const unsigned char onehop_lossy_object[];  // lossy_object.S: the compiled program
extern const unsigned char onehop_lossy_object_end[];
}

namespace onehop::lab {

namespace {

struct ObjectCloser {
  void operator()(bpf_object* object) const noexcept { bpf_object__close(object); }
};

Error loss_error(const char* attempt, int rc) {
  const bool is_privilege = rc == -EPERM;
  return errno_error(
      is_privilege ? ExitCode::privilege_missing : ExitCode::io_unavailable, attempt,
      is_privilege ? "Run as root" : "The kernel needs CONFIG_NET_CLS_BPF and clsact", -rc);
}

Result<void> set_up(bpf_object* object, std::uint32_t direction,
                    const onehop_lossy_config& config) {
  const bpf_map* const map = bpf_object__find_map_by_name(object, "lossy_config");
  const int rc =
      bpf_map__update_elem(map, &direction, sizeof direction, &config, sizeof config, BPF_ANY);
  if (rc != 0) return loss_error("set the loss of the lab's link", rc);
  return success();
}

Result<void> attach(bpf_object* object, const char* program_name, int ifindex) {
  bpf_tc_hook hook{};
  hook.sz = sizeof hook;
  hook.ifindex = ifindex;
  hook.attach_point = BPF_TC_INGRESS;
  int rc = bpf_tc_hook_create(&hook);
  if (rc != 0 && rc != -EEXIST) return loss_error("add clsact in the lab's middle namespace", rc);
  bpf_tc_opts options{};
  options.sz = sizeof options;
  options.prog_fd = bpf_program__fd(bpf_object__find_program_by_name(object, program_name));
  rc = bpf_tc_attach(&hook, &options);
  if (rc != 0) return loss_error("attach the lab's loss program", rc);
  return success();
}

}  // namespace

Result<void> attach_loss(const LossOptions& options) {
  libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
  bpf_object_open_opts open_options{};
  open_options.sz = sizeof open_options;
  open_options.object_name = "onehop_lossy";
  const std::unique_ptr<bpf_object, ObjectCloser> object{bpf_object__open_mem(
      onehop_lossy_object, static_cast<std::size_t>(onehop_lossy_object_end - onehop_lossy_object),
      &open_options)};
  if (object == nullptr) return loss_error("open the lab's loss program", -errno);
  if (const int rc = bpf_object__load(object.get()); rc != 0)
    return loss_error("load the lab's loss program", rc);
  ONEHOP_TRYV(set_up(object.get(), ONEHOP_LOSSY_A_TO_B, {options.loss_ppm}));
  ONEHOP_TRYV(set_up(object.get(), ONEHOP_LOSSY_B_TO_A, {options.reverse_loss_ppm}));
  ONEHOP_TRYV(attach(object.get(), "lossy_a_to_b", options.to_a_ifindex));
  return attach(object.get(), "lossy_b_to_a", options.to_b_ifindex);
}

}  // namespace onehop::lab
