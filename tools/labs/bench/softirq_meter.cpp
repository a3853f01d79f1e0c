// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/softirq_meter.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <vector>

extern "C" {
extern const unsigned char onehop_softirq_object[];  // softirq_object.S: the compiled program
extern const unsigned char onehop_softirq_object_end[];
}

namespace onehop::bench {

struct SoftirqMeter::Impl {
  bpf_object* object = nullptr;
  std::vector<bpf_link*> links;
  int spent_fd = -1;
  ~Impl() {
    for (bpf_link* link : links) bpf_link__destroy(link);
    if (object != nullptr) bpf_object__close(object);
  }
};

Result<SoftirqMeter> SoftirqMeter::attach() {
  const auto refused = [](int rc) {
    return errno_error(ExitCode::privilege_missing, "count softirq time",
                       "It takes CAP_BPF and CAP_PERFMON: run as root", rc < 0 ? -rc : rc);
  };
  auto impl = std::make_unique<Impl>();
  const libbpf_print_fn_t before = libbpf_set_print(nullptr);  // the error below says it
  impl->object = bpf_object__open_mem(
      onehop_softirq_object,
      static_cast<std::size_t>(onehop_softirq_object_end - onehop_softirq_object), nullptr);
  int rc = impl->object == nullptr ? errno : bpf_object__load(impl->object);
  if (rc == 0) {
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, impl->object) {
      bpf_link* link = bpf_program__attach(program);
      if (link == nullptr)
        rc = errno;
      else
        impl->links.push_back(link);
    }
    impl->spent_fd = bpf_object__find_map_fd_by_name(impl->object, "onehop_spent");
  }
  libbpf_set_print(before);
  if (rc != 0) return refused(rc);
  return SoftirqMeter{std::move(impl)};
}

std::map<pid_t, double> SoftirqMeter::read() const {
  std::map<pid_t, double> seconds;
  std::vector<std::uint64_t> by_cpu(static_cast<std::size_t>(libbpf_num_possible_cpus()));
  std::uint32_t key = 0, next = 0;
  const void* at = nullptr;
  while (bpf_map_get_next_key(impl_->spent_fd, at, &next) == 0) {
    key = next;
    at = &key;
    if (bpf_map_lookup_elem(impl_->spent_fd, &key, by_cpu.data()) != 0) continue;
    std::uint64_t sum_ns = 0;
    for (const std::uint64_t part : by_cpu) sum_ns += part;
    seconds[static_cast<pid_t>(key)] = static_cast<double>(sum_ns) / 1e9;
  }
  return seconds;
}

SoftirqMeter::SoftirqMeter(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
SoftirqMeter::SoftirqMeter(SoftirqMeter&&) noexcept = default;
SoftirqMeter& SoftirqMeter::operator=(SoftirqMeter&&) noexcept = default;
SoftirqMeter::~SoftirqMeter() = default;

}  // namespace onehop::bench
