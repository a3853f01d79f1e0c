// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Both ends of a gated direction of the lab's link. At the egress of the gate's device: note each
// packet's time and size in a ring that the control process has mapped, and refuse what finds the
// queue full. At the ingress of the device's peer: count what has really left, and drop what the
// model has given up.
//
// Frames of the experimental type 0x88b5 (IEEE 802) are the control process's own: they kick the
// gate, pass it, are not counted and do not reach a host.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "gate_map.h"

#define SHARED_ARRAY(map, count, kind) \
  struct {                             \
    __uint(type, BPF_MAP_TYPE_ARRAY);  \
    __uint(map_flags, BPF_F_MMAPABLE); \
    __uint(max_entries, count);        \
    __type(key, __u32);                \
    __type(value, kind);               \
  } map SEC(".maps")

SHARED_ARRAY(gate_directions, ONEHOP_GATE_DIRECTIONS, struct onehop_gate_direction);
SHARED_ARRAY(gate_arrivals, ONEHOP_GATE_DIRECTIONS* ONEHOP_GATE_RING, struct onehop_gate_arrival);
SHARED_ARRAY(gate_verdicts, ONEHOP_GATE_DIRECTIONS* ONEHOP_GATE_VERDICTS, __u8);

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);
} gate_bell SEC(".maps");

static __always_inline int arrive(struct __sk_buff* skb, __u32 direction) {
  struct onehop_gate_direction* to = bpf_map_lookup_elem(&gate_directions, &direction);
  if (skb->protocol == bpf_htons(ETH_P_802_EX1)) return TC_ACT_OK;
  if (!to) return TC_ACT_SHOT;
  // A GSO packet's wire_len counts the headers of all its frames, len counts them once.
  __u64 frames = skb->gso_size ? skb->gso_segs : 1, first = skb->len, last = skb->len;
  if (frames == 0) frames = 1;
  if (frames > 1) {
    const __u64 header = (skb->wire_len - skb->len) / (frames - 1);
    first = header + skb->gso_size;
    last = skb->len - (frames - 1) * skb->gso_size;
  }
  if (!to->is_open || to->frames_total + frames > to->departed_total + to->queue_frames) {
    __sync_fetch_and_add(&to->refused_total, frames);
    return TC_ACT_SHOT;
  }
  __sync_fetch_and_add(&to->frames_total, frames);
  const __u64 serial = __sync_fetch_and_add(&to->packets_total, 1);
  const __u32 place = direction * ONEHOP_GATE_RING + (__u32)(serial % ONEHOP_GATE_RING);
  struct onehop_gate_arrival* arrival = bpf_map_lookup_elem(&gate_arrivals, &place);
  if (!arrival) return TC_ACT_SHOT;
  arrival->at_ns = bpf_ktime_get_ns();
  arrival->packet_bytes = skb->len;
  arrival->frames = (__u16)frames;
  arrival->first_bytes = (__u16)first;
  arrival->last_bytes = (__u16)last;
  // Release: the atomic is a full barrier; acquire in Taps::next_arrival().
  __sync_lock_test_and_set(&arrival->serial_1, serial + 1);
  if (to->is_wake_wanted && __sync_lock_test_and_set(&to->is_wake_wanted, 0)) {
    const __u32 bell = direction;
    bpf_ringbuf_output(&gate_bell, (void*)&bell, sizeof bell, BPF_RB_FORCE_WAKEUP);
  }
  return TC_ACT_OK;
}

static __always_inline int depart(struct __sk_buff* skb, __u32 direction) {
  struct onehop_gate_direction* to = bpf_map_lookup_elem(&gate_directions, &direction);
  if (skb->protocol == bpf_htons(ETH_P_802_EX1)) return TC_ACT_SHOT;
  if (!to) return TC_ACT_SHOT;
  const __u64 serial = __sync_fetch_and_add(&to->departed_total, 1);
  const __u32 place = direction * ONEHOP_GATE_VERDICTS + (__u32)(serial % ONEHOP_GATE_VERDICTS);
  __u8* verdict = bpf_map_lookup_elem(&gate_verdicts, &place);
  if (!verdict || !*verdict) return TC_ACT_UNSPEC;  // on to the next program
  *verdict = 0;
  __sync_fetch_and_add(&to->dropped_total, 1);
  return TC_ACT_SHOT;
}

SEC("tc")
int gate_arrive_a(struct __sk_buff* skb) { return arrive(skb, ONEHOP_GATE_A_TO_B); }

SEC("tc")
int gate_arrive_b(struct __sk_buff* skb) { return arrive(skb, ONEHOP_GATE_B_TO_A); }

SEC("tc")
int gate_depart_a(struct __sk_buff* skb) { return depart(skb, ONEHOP_GATE_A_TO_B); }

SEC("tc")
int gate_depart_b(struct __sk_buff* skb) { return depart(skb, ONEHOP_GATE_B_TO_A); }

char gate_license[] SEC("license") = "Dual BSD/GPL";
