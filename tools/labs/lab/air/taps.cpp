// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/air/taps.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "tools/labs/lab/process/netns.hpp"

extern "C" {
extern const unsigned char onehop_gate_object[];  // gate_object.S: the compiled program
extern const unsigned char onehop_gate_object_end[];
}

namespace onehop::lab::air {

namespace {

Error tap_error(const std::string& attempt, int rc) {
  const bool is_privilege = rc == -EPERM;
  return errno_error(is_privilege ? ExitCode::privilege_missing : ExitCode::io_unavailable, attempt,
                     is_privilege
                         ? "Run as root"
                         : "The kernel needs CONFIG_NET_CLS_BPF, clsact and BPF ring buffers",
                     -rc);
}

template <class T>
T load(const T& shared) noexcept {
  return std::atomic_ref<T>{const_cast<T&>(shared)}.load(std::memory_order_acquire);
}

template <class T>
void store(T& shared, T value) noexcept {
  std::atomic_ref<T>{shared}.store(value, std::memory_order_seq_cst);
}

template <class T>
Result<T*> map_array(bpf_object* object, const char* name, std::size_t count) {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (count * sizeof(T) + page - 1) / page * page;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                              bpf_map__fd(bpf_object__find_map_by_name(object, name)), 0);
  if (memory == MAP_FAILED) return tap_error(std::string{"map "} + name, -errno);
  return static_cast<T*>(memory);
}

}  // namespace

void Taps::ObjectCloser::operator()(bpf_object* object) const noexcept {
  bpf_object__close(object);
}
void Taps::BellCloser::operator()(ring_buffer* bell) const noexcept { ring_buffer__free(bell); }

Result<void> Taps::map_memory() {
  ONEHOP_TRY(directions, map_array<onehop_gate_direction>(object_.get(), "gate_directions",
                                                          ONEHOP_GATE_DIRECTIONS));
  ONEHOP_TRY(arrivals, map_array<onehop_gate_arrival>(
                           object_.get(), "gate_arrivals",
                           std::size_t{ONEHOP_GATE_DIRECTIONS} * ONEHOP_GATE_RING));
  // The kernel rounds an array's entry up to 8 bytes.
  ONEHOP_TRY(verdicts,
             map_array<std::uint64_t>(object_.get(), "gate_verdicts",
                                      std::size_t{ONEHOP_GATE_DIRECTIONS} * ONEHOP_GATE_VERDICTS));
  directions_ = directions;
  arrivals_ = arrivals;
  verdicts_ = reinterpret_cast<std::uint8_t*>(verdicts);
  const auto ignore = [](void*, void*, std::size_t) { return 0; };
  bell_.reset(
      ring_buffer__new(bpf_map__fd(bpf_object__find_map_by_name(object_.get(), "gate_bell")),
                       ignore, nullptr, nullptr));
  if (bell_ == nullptr) return tap_error("map the gate's bell", -errno);
  return success();
}

Result<void> Taps::attach(const char* program, const Place& place, bool is_egress) {
  const Result<InNetns> inside = InNetns::enter(place.host);
  if (inside.has_error()) return inside.error();
  bpf_tc_hook hook{};
  hook.sz = sizeof hook;
  hook.ifindex = static_cast<int>(::if_nametoindex(place.device));
  hook.attach_point = is_egress ? BPF_TC_EGRESS : BPF_TC_INGRESS;
  // clsact is one for both sides of a device: who comes second finds it, and libbpf would print
  // that as an error.
  const libbpf_print_fn_t print = libbpf_set_print(nullptr);
  int rc = bpf_tc_hook_create(&hook);
  libbpf_set_print(print);
  if (rc != 0 && rc != -EEXIST) return tap_error(std::string{"add clsact to "} + place.device, rc);
  bpf_tc_opts options{};
  options.sz = sizeof options;
  options.prog_fd = bpf_program__fd(bpf_object__find_program_by_name(object_.get(), program));
  options.priority = 1;  // before the loss program, whose priority the kernel chose from above
  rc = bpf_tc_attach(&hook, &options);
  if (rc != 0) return tap_error(std::string{"attach "} + program, rc);
  return success();
}

Result<Taps> Taps::open(std::span<const TapOptions, ONEHOP_GATE_DIRECTIONS> directions) {
  libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
  Taps taps;
  bpf_object_open_opts open_options{};
  open_options.sz = sizeof open_options;
  open_options.object_name = "onehop_gate";
  taps.object_.reset(bpf_object__open_mem(
      onehop_gate_object, static_cast<std::size_t>(onehop_gate_object_end - onehop_gate_object),
      &open_options));
  if (taps.object_ == nullptr) return tap_error("open the gate's program", -errno);
  if (const int rc = bpf_object__load(taps.object_.get()); rc != 0)
    return tap_error("load the gate's program", rc);
  ONEHOP_TRYV(taps.map_memory());
  constexpr std::array arrive{"gate_arrive_a", "gate_arrive_b"},
      depart{"gate_depart_a", "gate_depart_b"};
  for (std::size_t i = 0; i < directions.size(); ++i) {
    ONEHOP_TRYV(taps.attach(arrive[i], directions[i].sender, true));
    ONEHOP_TRYV(taps.attach(depart[i], directions[i].receiver, false));
  }
  return taps;
}

void Taps::open_gate(std::size_t direction, std::uint64_t frames) noexcept {
  onehop_gate_direction& to = directions_[direction];
  to.departed_total = 0;  // of the time before, when nothing came in
  store<unsigned long long>(to.queue_frames, frames);
  store<unsigned long long>(to.is_open, 1);
}

bool Taps::next_arrival(std::size_t direction, onehop_gate_arrival& out) noexcept {
  const std::uint64_t serial = read_total_[direction];
  const onehop_gate_arrival& next =
      arrivals_[direction * ONEHOP_GATE_RING + serial % ONEHOP_GATE_RING];
  if (load(next.serial_1) != serial + 1) return false;  // acquire here, release in gate.bpf.c
  out = next;
  read_total_[direction] += 1;
  return true;
}

std::uint64_t Taps::departed_total(std::size_t direction) const noexcept {
  return load(directions_[direction].departed_total);
}
std::uint64_t Taps::refused_total(std::size_t direction) const noexcept {
  return load(directions_[direction].refused_total);
}

void Taps::give_up(std::size_t direction, std::uint64_t frame) noexcept {
  constexpr std::size_t entry_bytes = 8;
  store<std::uint8_t>(
      verdicts_[(direction * ONEHOP_GATE_VERDICTS + frame % ONEHOP_GATE_VERDICTS) * entry_bytes],
      1);
}

void Taps::wait_for_arrival(Nanos timeout) noexcept {
  for (std::size_t i = 0; i < ONEHOP_GATE_DIRECTIONS; ++i)
    store<unsigned long long>(directions_[i].is_wake_wanted, 1);
  // What came before the flag was set rings no bell.
  for (std::size_t i = 0; i < ONEHOP_GATE_DIRECTIONS; ++i) {
    const std::uint64_t serial = read_total_[i];
    if (load(arrivals_[i * ONEHOP_GATE_RING + serial % ONEHOP_GATE_RING].serial_1) == serial + 1)
      return;
  }
  (void)ring_buffer__poll(bell_.get(), static_cast<int>(timeout / 1ms));
}

}  // namespace onehop::lab::air
