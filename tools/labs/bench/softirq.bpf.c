// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Time spent in softirqs by the thread that they interrupted, on all CPUs: two raw tracepoints and
// two maps. Thread 0 is an idle CPU: a softirq there is in nobody's accounts.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} onehop_begin SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, __u64);
} onehop_spent SEC(".maps");

SEC("raw_tp/softirq_entry")
int onehop_softirq_entry(void* context) {
  const __u32 only = 0;
  __u64* begin = bpf_map_lookup_elem(&onehop_begin, &only);
  if (begin) *begin = bpf_ktime_get_ns();
  return 0;
}

SEC("raw_tp/softirq_exit")
int onehop_softirq_exit(void* context) {
  const __u32 only = 0;
  __u64* begin = bpf_map_lookup_elem(&onehop_begin, &only);
  if (!begin || *begin == 0) return 0; /* attached in the middle of one */
  __u64 span = bpf_ktime_get_ns() - *begin;
  *begin = 0;
  const __u32 thread = (__u32)bpf_get_current_pid_tgid();
  __u64* spent = bpf_map_lookup_elem(&onehop_spent, &thread);
  if (spent)
    *spent += span;
  else
    bpf_map_update_elem(&onehop_spent, &thread, &span, BPF_ANY);
  return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
